"""Formulas of claims: a few operators and functions over printed values, evaluated in interval arithmetic.

A formula is a Python expression, read with `ast` and evaluated node by node; nothing in it can call, look up or
import anything that is not listed here.
"""

import ast
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from analysis.evidence import predicates
from analysis.evidence.interval import Interval, corners, largest, smallest
from analysis.evidence.predicates import Truth
from analysis.evidence.printed import Printed
from analysis.records.errors import Problem

Value = Interval | Truth


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula: its text, its tree, the names it needs and those that enter more than once."""

    text: str
    tree: ast.expr
    names: frozenset[str]
    repeated: tuple[str, ...]


# Functions of intervals. Each argument occurs once in the arithmetic, so that the ranges are exact.
def gain(new: Interval, old: Interval) -> Interval:
    """Return by how many percent new is above old."""
    return (new / old - 1) * 100


def loss(new: Interval, old: Interval) -> Interval:
    """Return by how many percent new is below old."""
    return (1 - new / old) * 100


def mean_length(acceptance: Interval, n: Interval) -> Interval:
    """Return the mean accepted length 1 + n x acceptance, which holds where every step drafts n tokens."""
    return 1 + n * acceptance


def decode(length: Interval, step_ms: Interval) -> Interval:
    """Return tokens a second: mean accepted length over the step's duration in ms."""
    return 1000 * length / step_ms


def step(length: Interval, rate: Interval) -> Interval:
    """Return the duration of a step in ms that a decode rate in tokens/s implies."""
    return 1000 * length / rate


def ms_per_token(rate: Interval) -> Interval:
    """Return ms a token from tokens a second."""
    return 1000 / rate


def break_even(raw: Interval, step_ms: Interval, n: Interval) -> Interval:
    """Return the acceptance at which drafting n tokens a step of step_ms decodes as fast as raw tokens/s."""
    return (raw * step_ms / 1000 - 1) / n


def spread(printed: Printed) -> Interval:
    """Return by how many percent the upper end of a printed range lies above the lower."""
    return (printed.last / printed.first - 1) * 100


def spread_of_mean(printed: Printed) -> Interval:
    """Return the distance of a printed range's ends in percent of their mean."""
    return corners(lambda a, b: 200 * (b - a) / (a + b), printed.first, printed.last)


def low(printed: Printed) -> Interval:
    """Return the lower printed end with its own rounding."""
    return printed.first


def high(printed: Printed) -> Interval:
    """Return the upper printed end with its own rounding."""
    return printed.last


def minimum(*values: Interval) -> Interval:
    """Return the smallest of several values."""
    return smallest(list(values))


def maximum(*values: Interval) -> Interval:
    """Return the largest of several values."""
    return largest(list(values))


_ON_PRINTED = {f.__name__: f for f in (low, high, spread, spread_of_mean)}
_ON_INTERVALS: dict[str, Callable[..., Value]] = {
    f.__name__: f for f in (gain, loss, mean_length, decode, step, ms_per_token, break_even, minimum, maximum)
}
_PREDICATES: dict[str, Callable[..., Truth]] = {f.__name__: f for f in predicates.PREDICATES}
_PRINTED_ARGUMENTS = {"within": (1,), "apart": (0, 1), "together": (0, 1)}
FUNCTIONS = frozenset({**_ON_PRINTED, **_ON_INTERVALS, **_PREDICATES})

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


def read(text: str) -> Formula:
    """Return a formula from its text.

    Raises:
        Problem: the text is not an expression, or uses something that formulas do not have.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Problem(f"formula {text!r} cannot be read: {type(error).__name__}") from None
    uses: Counter[tuple[str, str]] = Counter()
    try:
        _check(tree, text, uses)
    except RecursionError:
        raise Problem("a formula is nested too deeply", expected="one that a reader can follow") from None
    repeated = tuple(sorted({name for (name, _), count in uses.items() if count > 1}))
    return Formula(text, tree, frozenset(name for name, _ in uses), repeated)


def evaluate(formula: Formula, values: Mapping[str, Printed]) -> Value:
    """Return what a formula gives for printed values.

    Raises:
        Problem: a name is missing, a function gets the wrong kind or number of arguments, or a division by zero.
    """
    try:
        result = _evaluate(formula.tree, values)
    except KeyError as error:
        raise Problem(f"formula {formula.text!r} names {error.args[0]!r}, which no row has") from None
    except (TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise Problem(f"formula {formula.text!r} cannot be evaluated: {error}") from None
    return result.interval if isinstance(result, Printed) else result


def _check(node: ast.expr, text: str, uses: Counter[tuple[str, str]], end: str = "") -> None:
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return
        case ast.Name():
            uses[node.id, end] += 1
        case ast.UnaryOp(op=ast.USub()):
            _check(node.operand, text, uses)
        case ast.BinOp() if type(node.op) in _OPERATORS:
            _check(node.left, text, uses)
            _check(node.right, text, uses)
        case ast.Call(func=ast.Name(id=function), keywords=[]) if function in FUNCTIONS:
            for argument in node.args:
                _check(argument, text, uses, function if function in ("low", "high") else "")
        case _:
            raise Problem(
                f"formula {text!r} uses {ast.unparse(node)!r}",
                expected=f"row ids, numbers, + - * / and {', '.join(sorted(FUNCTIONS))}",
            )


def _evaluate(node: ast.expr, values: Mapping[str, Printed]) -> Any:
    match node:
        case ast.Constant():
            return Interval.exactly(Fraction(repr(node.value)))
        case ast.Name():
            return values[node.id]
        case ast.UnaryOp():
            return -_number(_evaluate(node.operand, values))
        case ast.BinOp():
            left, right = (_number(_evaluate(side, values)) for side in (node.left, node.right))
            return _OPERATORS[type(node.op)](left, right)
        case ast.Call(func=ast.Name(id=function)):
            return _call(function, [_evaluate(argument, values) for argument in node.args])
    raise TypeError(f"{ast.unparse(node)} has no value")


def _call(function: str, arguments: list[Any]) -> Value:
    if function in _ON_PRINTED:
        return _ON_PRINTED[function](*(_printed(argument) for argument in arguments))
    if function == "every":
        return predicates.every(*(_truth(argument) for argument in arguments))
    as_printed = _PRINTED_ARGUMENTS.get(function, ())
    ready = [_printed(a) if i in as_printed else _number(a) for i, a in enumerate(arguments)]
    return {**_ON_INTERVALS, **_PREDICATES}[function](*ready)


def _number(value: Any) -> Interval:
    if isinstance(value, Printed):
        return value.interval
    if isinstance(value, Interval):
        return value
    raise TypeError("a statement stands where a number must stand")


def _printed(value: Any) -> Printed:
    if isinstance(value, Printed):
        return value
    if isinstance(value, Interval):
        return Printed("", value, value)
    raise TypeError("a statement stands where a number must stand")


def _truth(value: Any) -> Truth:
    if isinstance(value, Truth):
        return value
    raise TypeError("a number stands where a statement must stand")
