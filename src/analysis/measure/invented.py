"""Stubs of functions that nobody wrote: a small task in the words of the file around it, cut in mid-expression."""

import builtins
import hashlib
import keyword
import re
from collections import Counter

from analysis.measure.corpus import Corpus
from analysis.records import Problem

_WORD = re.compile(r"(?<![A-Za-z])[a-z]{4,12}(?![A-Za-z])")
# Words that every file has and that say nothing of what it is about.
_COMMON = """
self that this with from have been they what when which will else then than were there their must should could would
only also into some such more most other each does used uses using return returns value values none true false args
kwargs name names data item items result results import default defaults func function method methods class classes
object objects instance instances test tests call called calls given make made same note first last next like after
before about because without where while case cases here just even very both many
"""
_EMPTY_WORDS = frozenset(_COMMON.split()) | frozenset(keyword.kwlist) | frozenset(dir(builtins))

# Each asks for a well-defined task and stops where an expression must follow. `items`, `item` and `key` are words of
# the file, `n` is a small number; `{self}` is filled in for methods. Braces of Python are doubled.
_TASKS = (
    '''def group_{items}_by_{key}({self}{items}, {key}_of):
    """Return a dictionary from each {key} to the list of its {items}."""
    groups = {{}}
    for {item} in {items}:
        {key} = {key}_of({item})
        if {key} not in''',
    '''def longest_{item}_run({self}{items}, {key}):
    """Return start and length of the longest run of {items} equal to {key}."""
    best_start, best_length = 0, 0
    start = None
    for index, {item} in enumerate({items}):
        if {item} ==''',
    '''def merge_{key}_{items}({self}left, right, limit={n}):
    """Merge two sorted lists of {items} into one and keep the first {n}."""
    merged = []
    i = j = 0
    while len(merged) < limit and i <''',
    '''def count_{items}_per_{key}({self}{items}, minimum={n}):
    """Return how often each {item} occurs, without those below the minimum."""
    counts = {{}}
    for {item} in {items}:
        counts[{item}] =''',
    '''def split_{items}_at_{key}({self}{items}, {key}):
    """Split a list of {items} in two: those below the {key} and the rest."""
    below, rest = [], []
    for {item} in {items}:
        if {item} <''',
    '''def rotate_{items}_until_{key}({self}{items}, is_{key}, limit={n}):
    """Rotate {items} to the left until the first one is a {key}; give up after {n} turns."""
    turns = 0
    while {items} and not is_{key}({items}[0]) and turns <''',
    '''def nearest_{item}_to_{key}({self}{items}, {key}):
    """Return the {item} whose distance to {key} is smallest."""
    best = None
    best_distance = float("inf")
    for {item} in {items}:
        distance =''',
    '''def pair_{items}_with_{key}({self}{items}, {key}_values, fill={n}):
    """Return a list of pairs; missing {key} values become {n}."""
    pairs = []
    for index, {item} in enumerate({items}):
        if index <''',
    '''def window_{items}_over_{key}({self}{items}, width={n}):
    """Return the mean of every window of {n} neighbouring {items}."""
    means = []
    total = sum({items}[:width])
    for index in range(width, len({items})):
        means.append(total / width)
        total =''',
    '''def check_{item}_{key}_table({self}table, columns={n}):
    """Raise ValueError unless every row of the table has {n} columns."""
    for number, row in enumerate(table):
        if len(row) !=''',
    '''def flatten_{key}_{items}({self}{items}, depth={n}):
    """Return nested lists of {items} as one flat list, at most {n} levels deep."""
    flat = []
    for {item} in {items}:
        if isinstance({item}, list) and depth >''',
    '''def rename_{item}_{key}_fields({self}record, mapping, prefix="{item}_"):
    """Return a copy of the record with its fields renamed by the mapping."""
    renamed = {{}}
    for field, value in record.items():
        if field in mapping:
            renamed[mapping[field]] =''',
    '''def encode_{items}_as_{key}({self}{items}, base={n}):
    """Return the {items} as one number in the given base, most significant first."""
    if base < 2:
        raise ValueError("base must be at least 2")
    number = 0
    for {item} in {items}:
        if not 0 <= {item} < base:
            raise ValueError(f"bad {item}: {{{item}!r}}")
        number =''',
    '''def retry_{item}_{key}({self}action, attempts={n}, delay=0.5):
    """Call an action until it succeeds; raise its last error after {n} attempts."""
    last_error = None
    for attempt in range(attempts):
        try:
            outcome =''',
    '''def diff_{items}_by_{key}({self}old, new):
    """Return the {items} that were added and those that were removed, both sorted."""
    old_{items} = set(old)
    new_{items} = set(new)
    added = sorted(new_{items} -''',
    '''def cache_{item}_{key}({self}cache, {key}, compute, size={n}):
    """Return the cached {item}, computing it first if it is missing; keep {n} entries."""
    if {key} in cache:
        cache.move_to_end({key})
        return cache[{key}]
    {item} =''',
)  # fmt: skip


def invented_stub(corpus: Corpus, before: str, *, name: str, indent: int, method: bool) -> str:
    """Return the stub of a function that occurs nowhere in the corpus.

    Args:
        corpus: where it must not occur.
        before: the text that stands in front of it; its frequent words are used.
        name: what the choice is drawn from; equal names give equal stubs.
        indent: blanks in front of every line.
        method: whether the function takes `self`.

    Raises:
        Problem: no choice was new, which a corpus made of such stubs would bring about.
    """
    words = _frequent_words(before)
    for attempt in range(100):
        draw = int.from_bytes(hashlib.sha256(f"{name} {attempt}".encode()).digest()[:12], "big")
        draw, task = divmod(draw, len(_TASKS))
        draw, item = divmod(draw, len(words))
        draw, step = divmod(draw, len(words) - 1)
        key = words[(item + 1 + step) % len(words)]
        stub = _TASKS[task].format(
            item=words[item],
            items=f"{words[item]}s",
            key=key,
            n=2 + draw % 61,
            self="self, " if method else "",
        )
        if not corpus.holds(stub.partition("(")[0]):
            return "\n".join(" " * indent + line for line in stub.split("\n"))
    raise Problem(f"no function name for {name} is absent from the {corpus.title}", expected="text of another kind")


def _frequent_words(text: str) -> list[str]:
    words = (word for word in _WORD.findall(text) if not word.endswith("s") and word not in _EMPTY_WORDS)
    frequent = [word for word, _ in sorted(Counter(words).items(), key=lambda entry: (-entry[1], entry[0]))[:24]]
    return frequent if len(frequent) >= 8 else [*frequent, "record", "channel", "sample", "marker", "weight", "token"]
