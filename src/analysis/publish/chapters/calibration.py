"""Chapter 20: how often the intervals of this book hold the truth, where the truth is known."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.measure.calibration.coverage import Coverage
from analysis.measure.calibration.population import ENOUGH, OVER_PROMPTS, OVER_STEPS, QUANTITIES
from analysis.measure.calibration.result import Calibration, read_calibration
from analysis.publish.tables import Markdown, escape_text, table

NOT_RUN = "This part of the calibration has not been run."
TITLES = {
    "survival": "survival at position",
    "proposal": "proposal rate at position",
    "conditional": "conditional acceptance at position",
}


@dataclass(frozen=True)
class CalibrationPage:
    """The tables of the chapter."""

    found: Calibration

    def sentence(self) -> Markdown:
        """Return coverage in one sentence: how many cells, how many intervals, how many held the truth."""
        rows = self.found.coverage
        shown, covered = sum(row.shown for row in rows), sum(row.covered for row in rows)
        if not shown:
            return Markdown(NOT_RUN)
        most = max(row.prompts for row in rows)
        length = next(row for row in rows if row.quantity == "mean accepted length" and row.prompts == most)
        return Markdown(
            f"In {self.found.cells} cells of {self.found.requests} requests each, on a real `llama-server` that "
            f"accepted by coins of known bias, {covered / shown:.1%} of {shown} intervals of 95 % held the truth. "
            f"The mean accepted length from {most} requests was held in {_share(length)}."
        )

    def coverage_table(self) -> Markdown:
        """Return coverage by quantity and number of requests."""
        if not self.found.coverage:
            return Markdown(NOT_RUN)
        return table(
            _wide(self.found.coverage, _title),
            "How often a 95 % interval held the known truth (%), by requests a cell, with the share's own interval. "
            "Intervals that the library refuses to show are not counted",
            "coverage-synthetic",
        )

    def refused_table(self) -> Markdown:
        """Return how many intervals the library showed."""
        if not self.found.coverage:
            return Markdown(NOT_RUN)
        rows = [
            {"quantity": _title(row.quantity), "requests": f"{row.prompts}", "shown": f"{row.shown} of {row.cells}"}
            for row in self.found.coverage
        ]
        wide = _pivot(rows, "quantity", "requests", "shown")
        return table(wide, "How many of these intervals the library showed", "coverage-shown")

    def stopping_table(self) -> Markdown:
        """Return what stopping when an interval is narrow enough does to coverage, and what validity costs."""
        rows = [
            {
                "narrow enough at": f"{row.width:g}",
                "valid, where it stopped": _percent(row.covered, row.cells),
                "valid, at every look": _percent(row.held, row.cells),
                "plain, where it stopped": _percent(row.fixed_covered, row.cells),
                "requests (valid)": f"{row.prompts:.1f}",
                "requests (plain)": f"{row.fixed_prompts:.1f}",
                "width, valid over plain": f"{row.price:.2f}",
            }
            for row in self.found.stopping
        ]
        if not rows:
            return Markdown(NOT_RUN)
        caption = (
            "Looking after every request and stopping once the interval is narrow enough or "
            f"{self.found.stopping_requests} requests are spent, {self.found.stopping[0].cells} cells: how often the "
            "mean over requests was held"
        )
        return table(pd.DataFrame(rows), caption, "coverage-stopping")

    def population_table(self) -> Markdown:
        """Return coverage of cells drawn from real prompts, by what was taken for a replication."""
        drawn = self.found.population
        if drawn is None:
            return Markdown(NOT_RUN)
        few = (
            "" if drawn.prompts >= ENOUGH else f" ({ENOUGH} were wanted: cells share prompts, which flatters all rows)"
        )
        caption = (
            f"Cells of real prompts, {drawn.replications} drawn of each size from {drawn.prompts} prompts{few} of "
            f"{drawn.pair}, {drawn.regime} at depth {drawn.depth}: how often 95 % intervals held the value of all "
            "prompts (%)"
        )
        return table(_by_replication(drawn.coverage), caption, "coverage-population")

    def population_sentence(self) -> Markdown:
        """Return what taking steps for replications does, in words."""
        drawn = self.found.population
        if drawn is None:
            return Markdown(NOT_RUN)
        most = max(row.prompts for row in drawn.coverage)
        share = {over: _pooled(drawn.coverage, over, most) for over in (OVER_PROMPTS, OVER_STEPS)}
        return Markdown(
            f"With {most} prompts a cell, intervals over prompts hold the truth in {share[OVER_PROMPTS]}, intervals "
            f"that take every step for a replication in {share[OVER_STEPS]}."
        )

    def duels_sentence(self) -> Markdown:
        """Return how often a server was as fast as itself."""
        row = self.found.duels
        if row is None:
            return Markdown(NOT_RUN)
        ground = self.found.duels_machine or self.found.machine
        where = f"{escape_text(ground.cpu)} ({ground.cores} cores)"
        return Markdown(
            f"In {row.cells} duels of {row.prompts} blocks, in which two servers of one setting fought on {where}, "
            f"{_share(row)} of the intervals of the speed ratio held 1. Their median width was {row.width:.3f}."
        )

    def provenance(self) -> Markdown:
        """Return where the numbers come from."""
        found = self.found
        dirty = ", with uncommitted changes" if found.dirty else ""
        rates = "; ".join(" ".join(f"{rate:g}" for rate in rates) for rates in found.rates)
        rows = [
            ("machine", f"{found.machine.cpu}, {found.machine.cores} cores"),
            ("engine", f"llama-server {found.engine.version}, commit {found.engine.commit}, {found.engine.backend}"),
            ("pair", f"the synthetic DeepSeek-V4 pair, {found.emitted} tokens a request, a seed a request"),
            ("rates", f"P(accepted ≥ k) by position, cells in turn: {rates}"),
            ("counted", f"{found.at}, at commit {found.commit[:12] or 'unknown'}{dirty}"),
        ]
        lines = "\n".join(f"{name}\n: {escape_text(value)}\n" for name, value in rows)
        duels = f" --duels {found.duels.cells}" if found.duels else ""
        drawn = f" --population {found.population.run}" if found.population else ""
        command = f"specbook calibrate --cells {found.cells}{duels}{drawn} --write"
        return Markdown(
            f"````{{admonition}} Where these numbers come from\n:class: provenance\n{lines}\n"
            f"To measure them again:\n```console\n$ {command}\n```\n````"
        )


def calibration(result: str = "") -> CalibrationPage:
    """Open a calibration: the published one, or that of a file.

    Raises:
        Problem: there is none, or it is damaged.
    """
    return CalibrationPage(read_calibration(Path(result) if result else None))


def _wide(rows: Iterable[Coverage], title: Callable[[str], str]) -> pd.DataFrame:
    cells = [
        {
            "quantity": title(row.quantity),
            "requests": f"{row.prompts}",
            "share": _share(row).removesuffix(" %") if row.shown else "none shown",
        }
        for row in rows
    ]
    return _pivot(cells, "quantity", "requests", "share")


def _by_replication(rows: Iterable[Coverage]) -> pd.DataFrame:
    """Return intervals over prompts and over steps side by side, a row a quantity and size of cell."""
    lines: dict[tuple[str, int], dict[str, str]] = {}
    for row in rows:
        quantity, over = row.quantity.rsplit(", ", 1)
        lines.setdefault((quantity, row.prompts), {})[over] = _share(row).removesuffix(" %") if row.shown else "–"
    return pd.DataFrame(
        [
            {"quantity": _title(quantity), "prompts a cell": f"{prompts}"} | shares
            for (quantity, prompts), shares in sorted(lines.items(), key=lambda line: QUANTITIES.index(line[0][0]))
        ]
    )


def _pivot(rows: Sequence[dict[str, str]], rows_by: str, columns_by: str, value: str) -> pd.DataFrame:
    names = list(dict.fromkeys(row[rows_by] for row in rows))
    columns = list(dict.fromkeys(row[columns_by] for row in rows))
    values = {(row[rows_by], row[columns_by]): row[value] for row in rows}
    return pd.DataFrame([{rows_by: name} | {c: values.get((name, c), "–") for c in columns} for name in names])


def _share(row: Coverage) -> str:
    return row.share.format(decimals=1, percent=True)


def _percent(count: int, of: int) -> str:
    return f"{count / of:.1%}"


def _pooled(rows: Iterable[Coverage], over: str, prompts: int) -> str:
    chosen = [row for row in rows if row.prompts == prompts and row.quantity.endswith(over)]
    shown = sum(row.shown for row in chosen)
    return f"{sum(row.covered for row in chosen) / shown:.0%}" if shown else "none"


def _title(quantity: str) -> str:
    meaning, _, position = quantity.partition(" ")
    return f"{TITLES[meaning]} {position}" if meaning in TITLES else quantity
