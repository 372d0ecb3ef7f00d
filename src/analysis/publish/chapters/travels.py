"""What travels: the same pair, prompts and cells on two machines, beside each other."""

from dataclasses import dataclass

import pandas as pd

from analysis.measure.study import Study, open_study
from analysis.measure.travel import MARGIN, acceptance_differences, step_cost_ratios, verdicts_beside
from analysis.publish.chapters.common import in_words
from analysis.publish.frames import interval_texts
from analysis.publish.tables import Markdown, table


@dataclass(frozen=True)
class TravelsPage:
    """The tables of the chapter. `margin` is in accepted over drafted tokens."""

    first: Study
    second: Study
    margin: float
    differences: pd.DataFrame

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
        """Return, in words, in how many cells acceptance travelled."""
        frame = self.differences
        counts = frame["travels"].value_counts()
        words = ", ".join(f"{name} in {count}" for name, count in counts.items())
        same = " Both runs are of one machine, so this is what repeating alone does." if self._one_machine() else ""
        equal, pairs = int(frame["equal_text"].sum()), int(frame["pairs"].sum())
        return Markdown(
            f"The margin was set at {self.margin:g} of accepted over drafted tokens. Of {len(frame)} cells, the paired "
            f"difference is {words}. {equal} of {pairs} prompts emitted the same tokens in both runs.{same}"
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

    def cost_table(self) -> Markdown:
        """Return how many times as long a verification step takes in the second run."""
        frame = step_cost_ratios(self.first, self.second)
        frame = frame.assign(ratio=interval_texts(frame))
        headings = {"regime": "regime", "depth": "depth", "ratio": "second / first"}
        caption = f"Duration of a verification step, second run over first ({self._named()}); 95 %, paired t (log)"
        return table(frame, caption, "travel-cost", columns=headings)

    def verdict_table(self) -> Markdown:
        """Return both verdicts of every cell."""
        frame = verdicts_beside(self.first, self.second)
        if frame.empty:
            return Markdown("One of the runs has no raw leg, so there are no verdicts to compare.")
        for side in ("first", "second"):
            frame[f"ratio_{side}"] = [
                in_words({name: row[f"{name}_{side}"] for name in ("estimate", "low", "high", "n", "refused")})
                for row in frame.to_dict("records")
            ]
        headings = {
            "regime": "regime",
            "depth": "depth",
            "ratio_first": "first: drafted / raw",
            "verdict_first": "first: verdict",
            "ratio_second": "second: drafted / raw",
            "verdict_second": "second: verdict",
        }
        caption = f"Does the pair pay? Both runs ({self._named()}); 95 %, paired t (log), over prompts"
        return table(frame, caption, "travel-verdicts", columns=headings)

    def _named(self) -> str:
        return f"{self.first.run.machine.cpu} and {self.second.run.machine.cpu}"

    def _one_machine(self) -> bool:
        return self.first.run.machine == self.second.run.machine


def travels(first: str, second: str, *, margin: float = MARGIN) -> TravelsPage:
    """Open two recorded runs, by id or path, and compare them.

    Raises:
        Problem: there is no such run, or the two differ in more than the machine.
    """
    studies = open_study(first), open_study(second)
    return TravelsPage(*studies, margin, acceptance_differences(*studies, margin=margin))
