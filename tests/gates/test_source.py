import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.gates.source import MAX_CHARS, parsed_chars, parses, spoken_chars

STUB = "def f(items):\n    total ="


@pytest.mark.parametrize(
    "beginning",
    [
        "",
        "x = 1\n",
        "def f():\n",
        "def f():\n    x = (1,\n",
        "class A:\n",
        "try:\n    x\n",
        'x = """never closed\n',
        "@a\n",
    ],
)
def test_a_beginning_of_source_parses(beginning):
    assert parses(beginning)


@pytest.mark.parametrize("text", ["The value of x.\n", "if x = 1:\n", "def f(:\n", "x = 'torn\n", "  x = 1\n y = 2\n"])
def test_what_no_continuation_can_mend_does_not_parse(text):
    assert not parses(text)


@pytest.mark.parametrize(
    "text",
    [
        "\0", "\ud800", "(" * 9000, "-" * 15_000 + "1", "not " * 3900 + "1", "lambda:" * 2200 + "1", "[" * 15_000,
        "a" + ".b" * 7900, "a" + "()" * 7900, "1" + "+1" * 7900, "x=" * 7900 + "1", "1**" * 5000 + "1", "f'{" * 5000,
        "".join(f"{' ' * depth}if x:\n" for depth in range(150)), "1 if 1 else " * 1300 + "1", "x" * (MAX_CHARS + 1),
        "x = '''" * 2200, "\\\n" * 7900, "await " * 2600 + "x", "@" * 15_000, "9" * 15_000, "{1:" * 5000,
    ],
)  # fmt: skip
def test_hostile_text_is_read_without_harm(text):
    assert parses(text) in (True, False)
    assert 0 <= parsed_chars(STUB, text) <= len(text)
    assert spoken_chars(text) <= len(text)


@given(st.text(max_size=300))
def test_any_text_is_read_without_harm(text):
    assert 0 <= parsed_chars(STUB, text) <= len(text)
    assert 0 <= spoken_chars(text) <= len(text)


def test_reading_does_not_run_what_it_reads():
    assert parses("raise SystemExit\nimport no_such_module\n")


def test_lines_count_up_to_the_first_error():
    good = " 0\n    for item in items:\n        total += item\n"
    assert parsed_chars(STUB, good + "    and that is how we add.\n    return total\n") == len(good)


def test_a_torn_last_line_counts_as_far_as_it_parses():
    good = " 0\n    for item in items:\n"
    assert parsed_chars(STUB, good + "        total += 'it") == len(good + "        total")
    assert parsed_chars(STUB, good + "        total += item.price *") == len(good + "        total += item.price *") - 2
    assert parsed_chars(STUB, " sum(item for item in items if item") == len(" sum(item for item in items if item")


def test_the_stub_of_a_method_stands_alone():
    assert parsed_chars("    def f(self):\n        return self.a +", " 1\n\n    def g(self):\n        pass\n") > 30


@pytest.mark.parametrize("name", ["textwrap.py", "argparse.py"])
def test_comments_and_docstrings_are_told_from_code(name):
    source = f"x = 1  # one\n'''two {name}'''\ny = '# three'\nz = \"'''four\"\n"
    assert spoken_chars(source) == len("#one") + len(f"'''two{name}'''")
    assert spoken_chars(source, source.index("y =")) == 0
    assert ast.parse(source)
