"""Tables on disk: parquet or CSV, written while a file is read."""

from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from analysis.ingest.frames import Row, position_rows, report_row, step_rows
from analysis.ingest.model import Reading
from analysis.ingest.text import cell
from analysis.records import Problem

Format = Literal["parquet", "csv"]

BATCH = 5_000
"""Rows of a table that are held before they are written."""

_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()

SCHEMAS: dict[str, pa.Schema] = {
    "reports": pa.schema(
        [(name, _TEXT) for name in ("source", "format", "scope", "server", "spec_type", "label", "steps_known")]
        + [
            (name, _WHOLE)
            for name in ("line", "slot", "task", "drafted", "accepted", "steps_low", "steps_high", "n_max", "emitted",
                         "prompt_n", "cache_n", "depth", "restored")
        ]
        + [(name, _REAL) for name in ("printed_rate", "printed_mean_length", "prompt_ms", "predicted_ms",
                                 "prompt_per_s", "predicted_per_s")]
        + [("problems", _TEXT)]
    ),
    "positions": pa.schema(
        [("source", _TEXT), ("line", _WHOLE), ("position", _WHOLE), ("meaning", _TEXT), ("value", _REAL),
         ("steps_surviving", _WHOLE), ("steps", _WHOLE)]
    ),
    "steps": pa.schema(
        [("source", _TEXT), ("line", _WHOLE), ("index", _WHOLE), ("drafted", _WHOLE), ("accepted", _WHOLE)]
    ),
}  # fmt: skip


class Tables:
    """Writes every report as it comes; a table has its final name only when it is whole."""

    def __init__(self, folder: Path, kind: Format) -> None:
        self.folder, self.kind = folder, kind
        self.rows: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
        self.writers: dict[str, Any] = {}

    def __enter__(self) -> Self:
        """Create the folder.

        Raises:
            Problem: it cannot be created.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Problem(f"{self.folder} cannot be created: {error.strerror}", expected="a folder to write") from None
        return self

    def add(self, reading: Reading) -> None:
        """Write a report, its curve and its steps."""
        self.rows["reports"].append(report_row(reading))
        self.rows["positions"] += position_rows(reading)
        self.rows["steps"] += step_rows(reading)
        for name, rows in self.rows.items():
            if len(rows) >= BATCH:
                self._flush(name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the tables, or take them away if reading failed."""
        for name in SCHEMAS:
            if kind is None:
                self._flush(name)
            if name in self.writers:
                self.writers[name].close()
                partial = self._path(name, ".partial")
                partial.unlink() if kind is not None else partial.replace(self._path(name))

    def finish(self, frames: dict[str, pd.DataFrame]) -> list[Path]:
        """Write the small tables and return all files that were written."""
        small = [name for name, frame in frames.items() if len(frame)]
        for name in small:
            table = pa.Table.from_pandas(frames[name], preserve_index=False)
            _write(table if self.kind == "parquet" else _safe(table), self._path(name), self.kind)
        return sorted(self._path(name) for name in (*self.writers, *small))

    def _flush(self, name: str) -> None:
        rows, self.rows[name] = self.rows[name], []
        if not rows:
            return
        table = pa.Table.from_pylist(rows, schema=SCHEMAS[name])
        if self.kind == "csv":
            table = _safe(table)
        if name not in self.writers:
            make = pq.ParquetWriter if self.kind == "parquet" else pacsv.CSVWriter
            self.writers[name] = make(self._path(name, ".partial"), table.schema)
        self.writers[name].write_table(table)

    def _path(self, name: str, suffix: str = "") -> Path:
        return self.folder / f"{name}.{self.kind}{suffix}"


def _write(table: pa.Table, path: Path, kind: Format) -> None:
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        pacsv.write_csv(table, path)


def _safe(table: pa.Table) -> pa.Table:
    """Return a table whose text starts no formula in a spreadsheet."""
    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            texts = [None if text is None else cell(text) for text in table.column(index).to_pylist()]
            table = table.set_column(index, field, pa.array(texts, type=field.type))
    return table
