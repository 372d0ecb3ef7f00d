"""What a synthetic pair must do, from its tables alone: the tokens it emits, and what becomes of each draft."""

from collections.abc import Sequence

from analysis.convert.dsv4.shape import Shape
from analysis.convert.dsv4.tokenizer import byte_letters, ordinary_ids, vocabulary
from analysis.convert.dsv4.write import Recipe, drafter_table, successor_table


def walk(shape: Shape, recipe: Recipe, token: int, count: int) -> list[int]:
    """Return the `count` tokens that follow a token by the table of successors."""
    table = successor_table(shape, recipe)
    found = []
    for _ in range(count):
        token = table[token]
        found.append(token)
    return found


def expected_steps(shape: Shape, recipe: Recipe, token: int, count: int, n_max: int) -> list[tuple[int, int]]:
    """Return (drafted, accepted) of each verification step while `count` tokens are emitted after a token.

    The engine drafts no more than the request still needs.
    """
    right, believed = successor_table(shape, recipe), drafter_table(shape, recipe)
    token, emitted, steps = right[token], 1, []
    while emitted < count:
        drafted, kept = min(n_max, shape.block_size, count - emitted - 1), 0
        while kept < drafted and believed[token] == right[token]:
            token = right[token]
            kept += 1
        token = right[token]
        steps.append((drafted, kept))
        emitted += kept + 1
    return steps


def readable_pairs(shape: Shape, recipe: Recipe) -> list[list[int]]:
    """Return the tokens that are followed, in text too, by their successor: the tokenizer reads both back as they are.

    Letters that meet are read as other tokens, and a blank joins the letter behind it.
    """
    table, known = successor_table(shape, recipe), ordinary_ids(shape.vocabulary)
    texts = {token: text_of([token], shape.vocabulary) for token in known}

    def apart(first: str, second: str) -> bool:
        return not (first[-1].isalpha() and second[0].isalpha()) and first not in (" ", "'") and second != " "

    return [[token, table[token]] for token in known if apart(texts[token], texts[table[token]])]


def text_of(tokens: Sequence[int], size: int) -> str:
    """Return the text of tokens of a vocabulary of `size`."""
    names = {number: name for name, number in vocabulary(size).items()}
    values = {letter: value for value, letter in enumerate(byte_letters())}
    return bytes(values[letter] for token in tokens for letter in names[token]).decode(errors="replace")
