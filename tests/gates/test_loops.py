from hypothesis import given
from hypothesis import strategies as st

from analysis.gates.loops import MAX_PERIOD, MIN_PERIODS, MIN_TOKENS, loop_start

# A honest beginning never repeats a token; a cycle uses others.
beginnings = st.integers(0, 80).map(lambda length: list(range(1000, 1000 + length)))
cycles = st.lists(st.integers(0, 5), min_size=1, max_size=MAX_PERIOD)


@given(beginnings, cycles, st.integers(0, 200))
def test_a_planted_loop_is_found_where_it_begins(beginning, cycle, extra):
    length = max(MIN_PERIODS * len(cycle), MIN_TOKENS) + extra
    looping = (cycle * length)[:length]
    assert loop_start(beginning + looping) == len(beginning)


@given(beginnings, cycles)
def test_two_periods_are_a_refrain_and_no_loop(beginning, cycle):
    distinct = [2000 + index for index, _ in enumerate(cycle)]
    assert loop_start(beginning + distinct * 2) is None


@given(st.lists(st.integers(0, 3), max_size=MIN_TOKENS - 1))
def test_less_than_thirty_tokens_are_never_a_loop(tokens):
    assert loop_start(tokens) is None


@given(st.lists(st.integers(0, 2), max_size=150))
def test_what_is_reported_does_repeat_to_the_end(tokens):
    start = loop_start(tokens)
    if start is None:
        return
    tail = tokens[start:]
    assert any(
        tail[:-period] == tail[period:] and len(tail) >= MIN_PERIODS * period for period in range(1, MAX_PERIOD + 1)
    )


@given(beginnings, cycles)
def test_a_loop_that_ended_is_none(beginning, cycle):
    assert loop_start(cycle * MIN_TOKENS + list(range(3000, 3000 + MIN_TOKENS))) is None


def test_text_is_searched_in_words_and_signs():
    text = "def f(x):\n    return x\n" + "\n\ndef g(x):\n    return x" * 8
    start = loop_start(text)
    assert start is not None
    assert text[:start].strip().startswith("def f(x):")
    assert text[start:].count("return x") >= 7


def test_lines_that_only_count_are_a_loop():
    text = "The steps are these." + "".join(f"\n{number}. Check the value of the list." for number in range(1, 9))
    start = loop_start(text)
    assert start is not None
    assert start <= len("The steps are these.") + 2


def test_numbers_in_one_line_may_be_what_was_asked_for():
    assert loop_start("primes = [" + ", ".join(str(number) for number in range(100, 160)) + "]") is None


def test_real_source_is_no_loop():
    names = ("width", "height", "depth", "weight", "colour", "label", "owner", "state")
    source = "".join(f"    def {name}(self):\n        return self._{name}\n" for name in names)
    assert loop_start(source) is None


def test_nothing_is_no_loop():
    assert loop_start([]) is None
    assert loop_start("") is None
