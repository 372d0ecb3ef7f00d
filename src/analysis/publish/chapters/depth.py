"""Chapter 04: one quantity after the other by depth and kind of text."""

from dataclasses import dataclass

import pandas as pd

from analysis.gates import Finding
from analysis.gates.grouped import kind_of
from analysis.measure.estimate import depth_frame, depth_points
from analysis.measure.plan import CONTROL, DRAFTED, RAW
from analysis.measure.study import Study
from analysis.publish import charts
from analysis.publish.chapters.common import in_words, made_how, provenance, refusals, study_of
from analysis.publish.chart import Chart
from analysis.publish.tables import Markdown, interval_table, table

NOT_DRAFTED = "Nothing drafts in this pair."


@dataclass(frozen=True)
class DepthPage:
    """The tables and charts of the chapter."""

    study: Study

    def sentence(self) -> Markdown:
        """Return, in words, what depth does to the mean accepted length of each regime."""
        frame = depth_frame(self.study, "mean accepted length")
        if frame.empty:
            return Markdown(NOT_DRAFTED)
        shallow, deep = frame["depth"].min(), frame["depth"].max()
        words = []
        for regime in dict.fromkeys(frame["regime"]):
            rows = frame[frame["regime"] == regime].set_index("depth")
            ends = [
                in_words(rows.loc[depth].to_dict()) for depth in dict.fromkeys((shallow, deep)) if depth in rows.index
            ]
            words.append(f"{regime} {' and '.join(ends)}")
        depths = f"depth {shallow}" if shallow == deep else f"depths {shallow} and {deep}"
        return Markdown(
            f"Mean accepted length at {depths}, in tokens a verification step, the bonus token included: "
            f"{'; '.join(words)}."
        )

    def length_chart(self) -> Chart | Markdown:
        """Return the mean accepted length against depth."""
        frame = depth_frame(self.study, "mean accepted length")
        if frame.empty or (frame["refused"] != "").all():
            return Markdown("No cell may be shown; the tables below say why.")
        return charts.depth_by_regime(
            frame,
            name="mean-accepted-length",
            quantity="mean accepted length (tokens)",
            points=depth_points(self.study, "mean accepted length"),
            note=f"Intervals: {made_how(frame)}.",
        )

    def length_table(self) -> Markdown:
        """Return the mean accepted length by depth and regime."""
        return self._table("mean accepted length", "Mean accepted length (tokens)", "length-by-depth")

    def aggregate_table(self) -> Markdown:
        """Return accepted over drafted tokens by depth and regime."""
        return self._table("acceptance", "Accepted over drafted tokens", "aggregate-by-depth")

    def refused_table(self) -> Markdown:
        """Return what gates refused or warned about, counted by the kind of what they saw.

        This chapter shows the drafted leg, so what is said of raw samples and cells alone is left to chapter 05.
        """
        found = [f for f in refusals(self.study, "refuse") + refusals(self.study, "warn") if not self._is_raw(f)]
        if not found:
            return Markdown("Nothing was refused, and no gate warned.")
        frame = pd.DataFrame(
            {"gate": f.gate, "level": f.level, "kind": kind_of(f.saw), "saw": f.saw, "expected": f.expected}
            for f in found
        )
        counted = frame.groupby(["gate", "level", "expected", "kind"], as_index=False, sort=False).agg(
            saw=("saw", "first"), times=("saw", "size")
        )
        headings = {"gate": "gate", "level": "level", "times": "times"}
        headings |= {"saw": "saw (first of its kind)", "expected": "expected"}
        return table(counted, "What the gates say of the drafted leg and of the whole run", "refused", columns=headings)

    def _is_raw(self, found: Finding) -> bool:
        if found.where.kind == "sample":
            legs = {str(sample.index): sample.leg for sample in self.study.samples}
            return DRAFTED in legs.values() and legs.get(found.where.id) in (RAW, CONTROL)
        raw = {cell.id for cell in self.study.run.cells if cell.spec_type == "none"}
        return found.where.kind == "cell" and found.where.id in raw and len(raw) < len(self.study.run.cells)

    def provenance(self) -> Markdown:
        """Return where the numbers come from."""
        return provenance(self.study, "04_depth_regime")

    def _table(self, quantity: str, caption: str, name: str) -> Markdown:
        frame = depth_frame(self.study, quantity)
        if frame.empty:
            return Markdown(NOT_DRAFTED)
        return interval_table(frame, f"{caption} by depth and regime; {made_how(frame)}", name)


def depth_regime(**parameters: object) -> DepthPage:
    """Measure, or open, what the chapter shows; the parameters are the notebook's.

    Raises:
        Problem: see `measure_study`.
    """
    return DepthPage(study_of(parameters, raw=False))
