"""Chapter 08: the same pair, prompts and cells on two machines, beside each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from analysis.gates.control import noise_floor
from analysis.measure.estimate import acceptance_frame
from analysis.measure.knee import Factor, load_sweep, open_factors
from analysis.measure.study import Study, open_study
from analysis.measure.travel import (
    MARGIN,
    acceptance_differences,
    against,
    pooled_difference,
    ratios_beside,
    raw_again,
    step_cost_ratios,
    verdicts_beside,
)
from analysis.publish import charts
from analysis.publish.chapters.common import in_words, provenance, refusals
from analysis.publish.chart import Chart
from analysis.publish.frames import interval_texts
from analysis.publish.tables import Markdown, escape_text, table
from analysis.records import Problem

NO_SWEEPS = "No sweep on both machines was named, so there is nothing to show of how many tokens to draft."


@dataclass(frozen=True)
class TravelsPage:
    """The tables of the chapter. `margin` is in accepted over drafted tokens."""

    first: Study
    second: Study
    margin: float
    differences: pd.DataFrame
    sweeps: Mapping[str, tuple[Factor, Factor]] = field(default_factory=dict)

    def machines_table(self) -> Markdown:
        """Return what the two runs ran on."""
        rows = []
        for study in (self.first, self.second):
            run = study.run
            rows.append(
                {
                    "run": run.id,
                    "machine": f"{run.machine.cpu}, {run.machine.cores} cores",
                    "devices": ", ".join(run.engine.devices) or "none",
                    "engine": f"{run.engine.version}, {run.engine.commit}, {run.engine.backend}",
                    "samples": len(study.samples),
                    "kept": len(study.publishable),
                }
            )
        return table(pd.DataFrame(rows), "The two runs", "travel-machines", code=("run",))

    def sentence(self) -> Markdown:
        """Return, in words, whether acceptance travelled: over all prompts, and in how many cells."""
        frame = self.differences
        counts = frame["travels"].value_counts()
        words = ", ".join(f"{name} in {count}" for name, count in counts.items())
        same = " Both runs are of one machine, so this is what repeating alone does." if self._one_machine() else ""
        equal, pairs = int(frame["equal_text"].sum()), int(frame["pairs"].sum())
        pooled = pooled_difference(self.first, self.second)
        return Markdown(
            f"The margin was set at {self.margin:g} of accepted over drafted tokens. Over all cells together, the "
            f"paired difference is {pooled.format(decimals=3)} ({pooled.n} prompts): "
            f"**{against(pooled, self.margin)}**. Of the {len(frame)} cells by themselves it is {words}. {equal} of "
            f"{pairs} prompts emitted the same tokens in both runs.{same}"
        )

    def acceptance_chart(self) -> Chart | Markdown:
        """Return the paired differences beside the margin."""
        if (self.differences["refused"] != "").all():
            return Markdown("No difference may be shown; the table below says why.")
        return charts.differences(
            self.differences, name="travel-differences", margin=self.margin, machines="second less first machine"
        )

    def acceptance_table(self) -> Markdown:
        """Return the paired difference of acceptance by cell, with what it says of the margin."""
        frame = self.differences.assign(
            difference=interval_texts(self.differences, digits=3),
            equal=[
                f"{equal} of {pairs}"
                for equal, pairs in zip(self.differences["equal_text"], self.differences["pairs"], strict=True)
            ],
        )
        headings = {
            "regime": "regime",
            "depth": "depth",
            "difference": "second less first",
            "travels": "against the margin",
            "equal": "prompts with equal text",
        }
        caption = f"Accepted over drafted tokens, paired by prompt; 95 %, t; margin {self.margin:g}"
        return table(frame, caption, "travel-acceptance", columns=headings)

    def positions_table(self) -> Markdown:
        """Return acceptance by draft position in both runs, at the shallowest depth."""
        frames = []
        for side, study in (("first", self.first), ("second", self.second)):
            frame = acceptance_frame(study)
            if frame.empty:
                return Markdown("One of the runs has no leg that drafts.")
            frame = frame[(frame["depth"] == frame["depth"].min()) & frame["meaning"].isin(("survival", "conditional"))]
            values = [in_words(row) for row in frame.to_dict("records")]
            named = frame.assign(value=values, column=[f"{side}: {meaning}" for meaning in frame["meaning"]])
            frames.append(named[["regime", "position", "column", "value"]])
        both = pd.concat(frames)
        wide = both.pivot(index=["regime", "position"], columns="column", values="value").reset_index()
        order = list(dict.fromkeys(both["regime"]))
        wide = wide.sort_values("regime", key=lambda column: column.map(order.index), kind="stable")
        names = [f"{side}: {meaning}" for side in ("first", "second") for meaning in ("survival", "conditional")]
        caption = (
            f"Acceptance by draft position at depth {self.first.run.cells[0].depth}, both runs ({self._named()}); "
            "95 %, over prompts"
        )
        headings = {"regime": "regime", "position": "position"} | {name: name for name in names}
        return table(wide, caption, "travel-positions", columns=headings)

    def cost_table(self) -> Markdown:
        """Return how many times as long a verification step takes in the second run."""
        frame = step_cost_ratios(self.first, self.second)
        frame = frame.assign(ratio=interval_texts(frame, digits=3))
        headings = {"regime": "regime", "depth": "depth", "ratio": "second / first"}
        caption = f"Duration of a verification step, second run over first ({self._named()}); 95 %, paired t (log)"
        return table(frame, caption, "travel-cost", columns=headings)

    def verdict_table(self) -> Markdown:
        """Return both verdicts of every cell."""
        frame = verdicts_beside(self.first, self.second)
        if frame.empty:
            return Markdown(f"There are no verdicts of both runs to compare: {self._why_not()}.")
        caption = f"Does the pair pay? Both runs ({self._named()}); 95 %, paired t (log), over prompts"
        return _verdicts(frame, caption, "travel-verdicts", first="first", second="second")

    def noise_table(self) -> Markdown:
        """Return, by machine, how fast other raw servers were beside the grid's: nothing acts between them."""
        rows = []
        for side, (machine, study) in enumerate(zip(self._machine_names(), (self.first, self.second), strict=True)):
            raws = {f[side].points[0].raw.run.id: f[side].points[0].raw for f in self.sweeps.values()}
            found = {"its own control leg": noise_floor(study.publishable)}
            found |= {f"raw leg of {name}": raw_again(study, later) for name, later in raws.items()}
            for name, one in found.items():
                if one.n:
                    ratio = f"{one.format(decimals=2)} (n = {one.n})"
                    rows.append({"machine": machine, "grid": study.run.id, "other": name, "ratio": ratio})
        if not rows:
            return Markdown("Neither grid has a control leg, nor a cell in common with the raw leg of a sweep.")
        headings = {"machine": "machine", "grid": "raw leg of", "other": "beside it", "ratio": "other / raw leg"}
        caption = "Negative control: raw decoding over raw decoding; 95 %, paired t (log), over prompts"
        return table(pd.DataFrame(rows), caption, "travel-noise", columns=headings, code=("grid",))

    def sweep_chart(self, name: str = "n_max") -> Chart | Markdown:
        """Return the speed ratios of a swept factor on both machines."""
        if name not in self.sweeps:
            return Markdown(NO_SWEEPS)
        frame, factor = self._ratios(self.sweeps[name]), self.sweeps[name][0]
        if (frame["refused"] != "").all():
            return Markdown("No ratio may be shown; the table below says why.")
        values = [point.value for point in factor.points]
        anchor = f"travel-ratios-{name.replace('_', '-')}"
        return charts.ratios_of_machines(frame, name=anchor, factor=factor.title, values=values)

    def sweep_table(self, name: str = "n_max") -> Markdown:
        """Return the speed ratios of a swept factor and the verdicts, both machines in one row."""
        if name not in self.sweeps:
            return Markdown("")
        frame, factor = self._ratios(self.sweeps[name]), self.sweeps[name][0]
        rows = []
        for (regime, value), group in frame.groupby(["regime", "value"], sort=False):
            row: dict[str, object] = {"regime": regime, "value": value}
            for of_machine in group.to_dict("records"):
                row[of_machine["machine"]] = in_words(of_machine)
                row[f"{of_machine['machine']}: verdict"] = of_machine["verdict"]
            rows.append(row)
        columns = {"regime": "regime", "value": factor.title}
        for machine in self._machine_names():
            columns |= {machine: f"{machine}: drafted / raw", f"{machine}: verdict": "verdict"}
        caption = f"Speed ratio by {factor.title} on both machines; 95 %, paired t (log), over prompts"
        return table(pd.DataFrame(rows), caption, f"travel-sweep-{name.replace('_', '-')}", columns=columns)

    def other_drafter(self, run: str, *, on: Literal["first", "second"]) -> Markdown:
        """Return the verdicts of another drafter's run of the same grid, beside those of one of the two machines.

        Raises:
            Problem: there is no such run, or it was measured on another machine or target.
        """
        if not run:
            return Markdown("No run of another drafter was named.")
        mine, other = self.first if on == "first" else self.second, open_study(run)
        _require_same_target(mine, other)
        frame = verdicts_beside(mine, other)
        if frame.empty:
            return Markdown(f"There are no verdicts of `{run}` and of `{mine.run.id}` to compare.")
        title = other.run.title.removesuffix(f", {other.run.profile}")
        caption = f"{title} ({other.run.id}), beside the shipped drafter, both on {other.run.machine.cpu}"
        caption += "; 95 %, paired t (log), over prompts"
        return _verdicts(frame, caption, f"travel-other-{on}", first="shipped", second="other")

    def provenance(self) -> Markdown:
        """Return the boxes of both runs, and the names of the swept ones."""
        boxes = "\n\n".join(provenance(study, "05_economics").text for study in (self.first, self.second))
        if not self.sweeps:
            return Markdown(boxes)
        swept = [factor for pair in self.sweeps.values() for factor in pair]
        ids = {study.run.id for factor in swept for point in factor.points for study in (point.raw, point.drafted)}
        return Markdown(f"{boxes}\n\nThe swept runs: {', '.join(f'`{name}`' for name in sorted(ids))}.")

    def _ratios(self, sweeps: tuple[Factor, Factor]) -> pd.DataFrame:
        names = dict(zip(("first", "second"), self._machine_names(), strict=True))
        return ratios_beside(*sweeps).replace({"machine": names})

    def _machine_names(self) -> tuple[str, str]:
        """Return what tells the machines apart in a chart: the backend, or the processor where that is the same."""
        first, second = (study.run for study in (self.first, self.second))
        if first.engine.backend != second.engine.backend:
            return first.engine.backend, second.engine.backend
        return f"1: {first.machine.cpu}", f"2: {second.machine.cpu}"

    def _why_not(self) -> str:
        """Return why a raw leg cannot be used: what the gates saw of its server, or that there is none."""
        found = [
            f"{finding.where.id} of `{study.run.id}` is refused, {escape_text(f'{finding.gate}: {finding.saw}')}"
            for study in (self.first, self.second)
            for finding in refusals(study, "refuse")
            if finding.where.kind == "server"
        ]
        return "; ".join(found) or "one of them has no raw leg that may be published"

    def _named(self) -> str:
        return f"{self.first.run.machine.cpu} and {self.second.run.machine.cpu}"

    def _one_machine(self) -> bool:
        return self.first.run.machine == self.second.run.machine


def _verdicts(frame: pd.DataFrame, caption: str, anchor: str, *, first: str, second: str) -> Markdown:
    """Return the ratios and verdicts of `verdicts_beside` as a table; the sides are called as is said."""
    headings = {"regime": "regime", "depth": "depth"}
    for side, name in (("first", first), ("second", second)):
        frame[f"ratio_{side}"] = [
            in_words({part: row[f"{part}_{side}"] for part in ("estimate", "low", "high", "n", "refused")})
            for row in frame.to_dict("records")
        ]
        headings |= {f"ratio_{side}": f"{name}: drafted / raw", f"verdict_{side}": f"{name}: verdict"}
    return table(frame, caption, anchor, columns=headings)


def _require_same_target(mine: Study, other: Study) -> None:
    first, second = (
        next((cell for cell in study.run.cells if cell.spec_type == "none"), None) for study in (mine, other)
    )
    if first is None or second is None:
        raise Problem(f"{(mine if first is None else other).run.id} has no raw leg", expected="a grid with both legs")
    differing = [name for name in first.factors_that_differ(second) if name != "pair"]
    if differing:
        raise Problem(
            f"the raw legs of {mine.run.id} and {other.run.id} differ in {', '.join(differing)}",
            expected="one machine, engine, target and grid",
        )


def travels(
    first: str, second: str, *, first_sweep: str = "", second_sweep: str = "", margin: float = MARGIN
) -> TravelsPage:
    """Open two recorded runs, by id or path, and compare them.

    Args:
        first: a run.
        second: a run of the same grid on another machine.
        first_sweep: a recorded sweep on the first machine.
        second_sweep: one on the second machine; the factors that both have can be shown.
        margin: in accepted over drafted tokens.

    Raises:
        Problem: there is no such run or sweep, or the two differ in more than the machine.
    """
    studies = open_study(first), open_study(second)
    swept: dict[str, tuple[Factor, Factor]] = {}
    if first_sweep and second_sweep:
        one, other = (
            {factor.name: factor for factor in open_factors(load_sweep(name))} for name in (first_sweep, second_sweep)
        )
        swept = {name: (one[name], other[name]) for name in one if name in other}
    return TravelsPage(*studies, margin, acceptance_differences(*studies, margin=margin), swept)
