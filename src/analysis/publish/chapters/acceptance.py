"""Chapter 03: acceptance by draft position, and what the emitted text really was."""

from dataclasses import dataclass

import pandas as pd

from analysis.evidence.references import load_reference
from analysis.measure.estimate import acceptance_frame, acceptance_of, acceptance_points, cells_of, labels_frame
from analysis.measure.plan import DRAFTED
from analysis.measure.study import Study
from analysis.publish import charts
from analysis.publish.chapters import loops, reference
from analysis.publish.chapters.common import in_words, made_how, provenance, study_of
from analysis.publish.chart import Chart
from analysis.publish.tables import Markdown, emitted, table
from analysis.records import Sample

NOTHING_DRAFTS = (
    "Nothing drafts in this pair, so there is nothing to accept. Choose a pair that drafts: `specbook pairs`."
)
PUBLISHED = "dspark-paper"


@dataclass(frozen=True)
class AcceptancePage:
    """The tables and the chart of the chapter."""

    study: Study
    frame: pd.DataFrame

    @property
    def depth(self) -> int:
        """Return the depth that the page shows, in tokens."""
        return int(self.frame["depth"].min())

    def sentence(self) -> Markdown:
        """Return the first position's survival per regime, in words."""
        if self.frame.empty:
            return Markdown(NOTHING_DRAFTS)
        first = self.frame[(self.frame["position"] == 1) & (self.frame["meaning"] == "survival")]
        words = "; ".join(f"{row['regime']} {in_words(row)}" for row in first.to_dict("records"))
        return Markdown(f"At depth {self.depth}, the first drafted token survives verification in: {words}.")

    def chart(self) -> Chart | Markdown:
        """Return acceptance against draft position, with the prompts' own values."""
        if self.frame.empty or (self.frame["refused"] != "").all():
            return Markdown("No regime may be shown; the table below says why.")
        return charts.acceptance_by_position(
            self.frame.drop(columns=["note", "successes", "trials"], errors="ignore"),
            name="acceptance-by-position",
            points=self._points(),
            note=f"Intervals: {made_how(self.frame)}.",
        )

    def table(self) -> Markdown:
        """Return every position in every meaning, with counts."""
        if self.frame.empty:
            return Markdown(NOTHING_DRAFTS)
        shown = self.frame.assign(
            value=[in_words(row) for row in self.frame.to_dict("records")],
            steps=[f"{s} of {t}" for s, t in zip(self.frame["successes"], self.frame["trials"], strict=True)],
        )
        wide = shown.pivot(index=["regime", "position"], columns="meaning", values="value").reset_index()
        counts = shown[shown["meaning"] == "survival"][["regime", "position", "steps"]]
        wide = wide.merge(counts, on=["regime", "position"], how="left")
        order = list(dict.fromkeys(self.frame["regime"]))
        wide = wide.sort_values("regime", key=lambda column: column.map(order.index), kind="stable")
        headings = {
            "regime": "regime",
            "position": "position",
            "survival": "survival",
            "steps": "steps that survived",
            "proposal rate": "proposal rate",
            "conditional": "conditional",
        }
        caption = f"Acceptance by draft position; {made_how(self.frame)}"
        return table(wide, caption, "acceptance-by-position", columns=headings)

    def counts_table(self) -> Markdown:
        """Return the verification steps and the evaluations without a draft."""
        rows = []
        for cell in cells_of(self.study, DRAFTED):
            if self.frame.empty or cell.depth != self.depth:
                continue
            samples = [sample for sample in self.study.publishable if sample.cell == cell.id]
            if not samples:
                continue
            found = acceptance_of(samples, cell)
            rows.append(
                {
                    "regime": cell.regime,
                    "prompts": len(samples),
                    "verification steps": found.steps,
                    "evaluations without a draft": found.undrafted,
                    "drafted tokens": found.drafted,
                    "accepted tokens": found.accepted,
                }
            )
        if not rows:
            return Markdown("There are no samples to count.")
        return table(pd.DataFrame(rows), "What stands behind the shares above", "acceptance-counts")

    def labels_table(self) -> Markdown:
        """Return how many emissions bear which label."""
        frame = labels_frame(self.study)
        headings = {"regime": "regime", "label": "what was written", "samples": "samples", "kept": "kept"}
        return table(frame, "What the emitted text was, all depths together", "labels", columns=headings)

    def left_out(self) -> Markdown | object:
        """Return an emission that was left out, for the reader to see why."""
        left_out = self._left_out()
        if left_out is None:
            return Markdown("No emission was left out for its label.")
        return emitted(left_out.text, label=f"an emission left out: {left_out.label.why}")

    def loops_sentence(self) -> Markdown:
        """Return how much loops would add, in words."""
        return Markdown("") if self.frame.empty else loops.loops_sentence(self.study, self.depth)

    def loops_table(self) -> Markdown:
        """Return mean accepted length with and without loops, and of loops alone."""
        return Markdown(NOTHING_DRAFTS) if self.frame.empty else loops.loops_table(self.study, self.depth)

    def reference_sentence(self) -> Markdown:
        """Return what the published figures are of."""
        return reference.reference_sentence(load_reference(PUBLISHED))

    def reference_table(self) -> Markdown:
        """Return this pair above the published figures of another."""
        if self.frame.empty:
            return Markdown(NOTHING_DRAFTS)
        return reference.reference_table(self.study, self.depth, load_reference(PUBLISHED))

    def provenance(self) -> Markdown:
        """Return where the numbers come from."""
        return provenance(self.study, "03_acceptance")

    def _points(self) -> pd.DataFrame:
        """Return the prompts' own values where too few stand behind a row for an interval; the others have bars."""
        keys = ["regime", "depth", "meaning", "position"]
        bare = self.frame.loc[self.frame["low"].isna() & (self.frame["refused"] == ""), keys]
        return acceptance_points(self.study).merge(bare, on=keys)

    def _left_out(self) -> Sample | None:
        kept = {sample.index for sample in self.study.publishable}
        cells = {cell.id for cell in cells_of(self.study, DRAFTED) or self.study.run.cells}
        left_out = (s for s in self.study.samples if s.index not in kept and s.cell in cells)
        return next((sample for sample in left_out if sample.label.kind != "empty"), None)


def acceptance(**parameters: object) -> AcceptancePage:
    """Measure, or open, what the chapter shows; the parameters are the notebook's.

    Raises:
        Problem: see `measure_study`.
    """
    study = study_of(parameters, raw=False)
    frame = acceptance_frame(study)
    if len(frame):
        shallowest = frame["depth"].min()
        frame = frame[frame["depth"] == shallowest].reset_index(drop=True)
    return AcceptancePage(study, frame)
