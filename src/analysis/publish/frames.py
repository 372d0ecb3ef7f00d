"""The tables that charts and pages are made from: plain columns, validated where they enter.

Every frame of estimates has one row an estimate:

| column | what it holds |
|--|--|
| `estimate` | the value; NaN only where the row is refused |
| `low`, `high` | its interval; both NaN where too few prompts stand behind it to give one |
| `n` | units of replication behind it: prompts for acceptance, blocks of legs for speed |
| `method` | how the interval was made: `t`, `bca`, `exact`; empty where there is none |
| `refused` | the gate's reason; empty where the row may be shown |

`method` and `refused` may be left out. Columns that a schema does not name are kept.
"""

from typing import Any

import pandas as pd
import pandera.pandas as pa
from pandera.errors import SchemaErrors

from analysis.publish.formats import format_interval
from analysis.records import Problem

MEANINGS = ("survival", "proposal rate", "conditional")

_AT_LEAST_ONE = pa.Check.ge(1, error="must be at least 1")
_NOT_NEGATIVE = pa.Check.ge(0, error="must not be negative")
_POSITIVE = pa.Check.gt(0, error="must be above 0")
_SHARE = pa.Check.in_range(0, 1, error="must lie between 0 and 1")


def _ordered(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows have an interval with two ends in order, or none.

    The estimate may lie outside: an interval that corrects for bias (BCa) can leave it there.
    """
    absent = frame["low"].isna() & frame["high"].isna()
    return absent | (frame["low"] <= frame["high"])


_INTERVALS = (
    pa.Check(
        lambda frame: _ordered(frame) | (frame["refused"] != ""),
        error="an interval has two ends in order, or none",
    ),
    pa.Check(
        lambda frame: frame["estimate"].notna() | (frame["refused"] != ""),
        error="an estimate is missing only where the row is refused",
    ),
)


def _schema(name: str, keys: dict[str, Any], *, value: pa.Check | None = None) -> pa.DataFrameSchema:
    """Return the schema of a frame of estimates: `keys` name a row, `value` bounds estimate, low and high."""

    def number() -> Any:
        return pa.Column(float, checks=value, nullable=True)

    return pa.DataFrameSchema(
        {
            **keys,
            "estimate": number(),
            "low": number(),
            "high": number(),
            "n": pa.Column(int, _NOT_NEGATIVE),
            "method": pa.Column(str, default="", nullable=False),
            "refused": pa.Column(str, default="", nullable=False),
        },
        checks=list(_INTERVALS),
        unique=list(keys) or None,
        name=name,
        coerce=True,
        add_missing_columns=True,
    )


def _text() -> Any:
    return pa.Column(str)


def _count(check: pa.Check = _NOT_NEGATIVE) -> Any:
    return pa.Column(int, check)


# Acceptance by draft position, in each of its three meanings.
ACCEPTANCE = _schema(
    "acceptance by position",
    {
        "regime": _text(),
        "depth": _count(),
        "meaning": pa.Column(str, pa.Check.isin(MEANINGS, error=f"must be one of {', '.join(MEANINGS)}")),
        "position": _count(_AT_LEAST_ONE),
    },
    value=_SHARE,
)

# Any one quantity by depth and regime: mean accepted length, acceptance, decode rate.
DEPTH = _schema("estimates by depth and regime", {"regime": _text(), "depth": _count()}, value=_NOT_NEGATIVE)

# Milliseconds of a step that accepted so many tokens. `series` names what the line stands for ("depth 256").
STEP_COST = _schema("step cost", {"series": _text(), "accepted": _count()}, value=_POSITIVE)

# Speed of drafted over raw decoding (1 = equal), with the verdict that its interval gives.
VERDICTS = ("pays", "undecided", "loses")
RATIO = _schema("speed ratio", {"regime": _text(), "depth": _count()}, value=_POSITIVE).add_columns(
    {"verdict": pa.Column(str, pa.Check.isin(VERDICTS, error=f"must be one of {', '.join(VERDICTS)}"))}
)

# The parts of a speed ratio at each value of a factor that was varied alone.
SWEEP = _schema("sweep", {"regime": _text(), "value": _text(), "part": _text()}, value=_POSITIVE)

# A paired difference of two shares: acceptance on one machine less that on another.
DIFFERENCE = _schema(
    "differences by depth and regime",
    {"regime": _text(), "depth": _count()},
    value=pa.Check.in_range(-1, 1, error="must lie between -1 and 1"),
)

# Speed ratios at each value of a factor, on two machines.
MACHINES = _schema(
    "speed ratios on two machines", {"regime": _text(), "value": _text(), "machine": _text()}, value=_POSITIVE
)

# Decode rate (tokens/s) as measured, beside the mean accepted length (tokens) of the same samples.
RATE_BY_LENGTH = _schema(
    "decode rate by mean accepted length",
    {"regime": _text(), "depth": _count()},
    value=_POSITIVE,
).add_columns(
    {
        "length": pa.Column(float, _AT_LEAST_ONE, nullable=True),
        "length_low": pa.Column(float, _NOT_NEGATIVE, nullable=True),
        "length_high": pa.Column(float, _NOT_NEGATIVE, nullable=True),
    }
)

# The decode rate (tokens/s) that the step cost implies at each mean accepted length.
RATE_CURVE = pa.DataFrameSchema(
    {
        "length": pa.Column(float, _AT_LEAST_ONE),
        "estimate": pa.Column(float, _POSITIVE),
        "low": pa.Column(float, _POSITIVE, nullable=True),
        "high": pa.Column(float, _POSITIVE, nullable=True),
    },
    checks=pa.Check(_ordered, error="a band has two ends in order, or none"),
    unique=["length"],
    name="decode rate curve",
    coerce=True,
)

# Decode rate (tokens/s) at each chosen acceptance (the chance of a drafted token), with the accepted tokens a step.
RATE_AT_ACCEPTANCE = _schema(
    "decode rate at chosen acceptances", {"acceptance": pa.Column(float, _SHARE)}, value=_POSITIVE
).add_columns(
    {
        "accepted": pa.Column(float, _NOT_NEGATIVE),
        "accepted_low": pa.Column(float, _NOT_NEGATIVE, nullable=True),
        "accepted_high": pa.Column(float, _NOT_NEGATIVE, nullable=True),
    }
)

# One value with its interval and nothing that names a row: a raw decode rate, a crossing.
SINGLE = _schema("single estimate", {}, value=_POSITIVE)


def points_of(schema: pa.DataFrameSchema) -> pa.DataFrameSchema:
    """Return the schema of the raw points behind a frame: its keys, `prompt` and `value`."""
    keys = {name: schema.columns[name] for name in schema.unique or []}
    return pa.DataFrameSchema(
        {**keys, "prompt": pa.Column(str), "value": pa.Column(float)},
        name=f"points behind {schema.name}",
        coerce=True,
    )


def checked(frame: pd.DataFrame, schema: pa.DataFrameSchema) -> pd.DataFrame:
    """Return the frame with its columns coerced, absent optional ones added, and its rows numbered anew.

    Raises:
        Problem: a column is missing or a value is out of range; the message names the first.
    """
    missing = [name for name, column in schema.columns.items() if name not in frame and column.default is None]
    if missing:
        raise Problem(
            f"the table of {schema.name} has no column {missing[0]}",
            expected=", ".join(schema.columns),
            remedy=f"it has {', '.join(map(str, frame.columns))}",
        )
    try:
        return schema.validate(frame.reset_index(drop=True), lazy=True)
    except SchemaErrors as errors:
        raise Problem(f"the table of {schema.name} is not valid: {_first(errors)}") from None


def interval_texts(rows: pd.DataFrame, *, digits: int = 2, unit: str = "") -> list[str]:
    """Return each row's estimate with its interval as text, or its refusal (see `format_interval`)."""
    return [
        format_interval(
            row["estimate"], row["low"], row["high"], row["n"], digits=digits, unit=unit, refused=row.get("refused", "")
        )
        for row in rows.to_dict("records")
    ]


def _first(errors: SchemaErrors) -> str:
    case = errors.failure_cases.iloc[0]
    check = {
        "multiple_fields_uniqueness": "two rows have the same key",
        "not_nullable": "must not be empty",
    }.get(str(case["check"]), str(case["check"]))
    about_a_column = case["schema_context"] == "Column"
    column = f"column {case['column']}" if about_a_column else ""
    row = "" if pd.isna(case["index"]) else f"row {int(case['index'])}"
    where = ", ".join(part for part in (column, row) if part)
    saw = f" (saw {case['failure_case']})" if about_a_column else ""
    return f"{where}: {check}{saw}" if where else f"{check}{saw}"
