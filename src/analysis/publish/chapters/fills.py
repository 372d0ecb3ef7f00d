"""Ways to fill a context, for chapter 07: what each does to acceptance, and what that may mean for a published row."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from analysis.evidence.published import constants
from analysis.measure.estimate import acceptance_of, interval_columns
from analysis.measure.fills import FIRST, WAYS, Way, measure_fills
from analysis.measure.study import Study, open_study
from analysis.publish.chapters.common import in_words, provenance
from analysis.publish.chart import Chart
from analysis.publish.marks import interval_bars
from analysis.publish.style import GREY, HEIGHT, colour, shape
from analysis.publish.tables import Markdown, escape_text, table
from analysis.records import Sample
from analysis.records.places import data_dir
from analysis.stats import Interval, mean_t

SPANS = 3
"""Parts of equal length into which a generation is cut to see whether acceptance comes back."""

TINY, TINY_DEPTH = "dsv4-tiny", 512
LOCAL = "smollm2-dspark"
ELSEWHERE, WHOLE, COLD = "restored-elsewhere", "restored-whole", "cold"


@dataclass(frozen=True)
class FillsPage:
    """The tables and the chart of one pair."""

    study: Study

    @property
    def pair(self) -> str:
        """Return the name of the pair."""
        return self.study.run.cells[0].pair

    def ways(self) -> list[Way]:
        """Return the ways that the run holds, in their usual order."""
        legs = {sample.leg for sample in self.study.samples}
        return [way for way in WAYS if way.name in legs]

    def prompts(self) -> list[str]:
        """Return the prompts that are compared: those kept in every way, or all where no text is of its kind."""
        kept = {(sample.leg, sample.prompt_id) for sample in self.study.publishable}
        every = list(dict.fromkeys(sample.prompt_id for sample in self.study.samples))
        common = [prompt for prompt in every if all((way.name, prompt) in kept for way in self.ways())]
        return common or every

    def table(self) -> Markdown:
        """Return acceptance in every way, and how far it lies from that of a prefix reused in a living slot."""
        rows = []
        for way in self.ways():
            samples = self._samples(way)
            found = acceptance_of(samples, self.study.cells[samples[0].cell])
            apart = "–" if way == FIRST else in_words(interval_columns(self.apart(way, _a_step), ""))
            rows.append(
                {
                    "way": way.title,
                    "evaluated": int(median(sample.prompt_n for sample in samples)),
                    "share": in_words(interval_columns(found.aggregate, "")),
                    "step": in_words(interval_columns(found.mean_length, "")),
                    "apart": apart,
                    "same": self._same_text(way),
                }
            )
        headings = {"way": "before each sample", "evaluated": "tokens evaluated", "share": "accepted over drafted"}
        headings |= {"step": "mean accepted length", "apart": "less that of the first row", "same": "same text"}
        cell = self.study.run.cells[0]
        caption = (
            f"{self.pair} at depth {cell.depth}: acceptance by the way the context was filled; 95 % over prompts, "
            "differences paired by prompt"
        )
        return table(pd.DataFrame(rows), caption, f"fills-{_anchor(self.pair)}", columns=headings)

    def frame(self) -> pd.DataFrame:
        """Return, by way and part of the generation, accepted tokens a step less those of the first way."""
        tokens = self.study.run.cells[0].n_predict
        edges = [round(place * tokens / SPANS) for place in range(SPANS + 1)]
        rows: list[dict[str, Any]] = []
        for way in self.ways():
            if way.name not in (COLD, ELSEWHERE, WHOLE):
                continue
            for begin, end in pairwise(edges):
                found = self.apart(way, partial(_a_step, begin=begin, end=end))
                rows.append({"way": way.name, "tokens": f"{begin + 1} to {end}"} | interval_columns(found, ""))
        return pd.DataFrame(rows)

    def chart(self) -> Chart | Markdown:
        """Return whether the difference from a reused prefix passes while the model goes on decoding."""
        frame = self.frame()
        if frame.empty:
            return Markdown("This run holds no way that is drawn here.")
        frame["difference"] = [in_words(row) for row in frame.to_dict("records")]
        ways, spans = list(dict.fromkeys(frame["way"])), list(dict.fromkeys(frame["tokens"]))
        base = alt.Chart(frame[["way", "tokens", "estimate", "low", "high", "difference"]]).encode(
            x=alt.X("tokens:N", title="generated tokens", sort=spans),
            xOffset=alt.XOffset("way:N", scale=alt.Scale(domain=ways, paddingOuter=1)),
            color=colour("way", ways),
        )
        y = alt.Y("estimate:Q", title="accepted tokens a step, less reused")
        dots = base.mark_point().encode(y=y, shape=shape("way", ways), tooltip=["way", "tokens", "difference"])
        bars = interval_bars(base, frame["low"], y=alt.Y("low:Q", title=y["title"]), y2="high:Q")
        zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color=GREY, strokeDash=[5, 4])
        zero = zero.encode(y=alt.Y("zero:Q", title=y["title"]))
        words = "; ".join(
            f"{row['way']}, tokens {row['tokens']}: {row['difference']}" for row in frame.to_dict("records")
        )
        return Chart(
            alt.layer(zero, *bars, dots).properties(height=HEIGHT - 60),
            title=f"Accepted tokens a step, less those after a reused prefix: {self.pair}",
            alt=f"Difference in accepted tokens a step by part of the generation. {words}.",
            name=f"fills-{_anchor(self.pair)}",
            note="Bars are 95 % intervals over prompts, paired. The cold fill is the control: there nothing was lost.",
        )

    def apart(self, way: Way, value: Callable[[Sample], float]) -> Interval:
        """Return how far a way lies from the first in a quantity of samples, paired by prompt."""
        first = {sample.prompt_id: value(sample) for sample in self._samples(FIRST)}
        apart = np.array([value(sample) - first[sample.prompt_id] for sample in self._samples(way)])
        return mean_t(apart[~np.isnan(apart)])

    def sentence(self) -> Markdown:
        """Return what the controls and the restored slots showed, in words."""
        named = {way.name: way for way in self.ways()}
        parts = []
        for name, words in ((COLD, "filled cold"), (ELSEWHERE, "restored elsewhere"), (WHOLE, "restored whole")):
            if name in named:
                found = self.apart(named[name], _a_step)
                parts.append(f"{words} {in_words(interval_columns(found, ''))}, {_beside_zero(found)}")
        return Markdown(
            f"`{escape_text(self.pair)}`, accepted tokens a step less those after a reused prefix: {'; '.join(parts)}."
        )

    def card_a(self) -> Markdown:
        """Return what a lost context can and cannot mean for the rows that card A took from a restored slot."""
        window, blocks = (int(constants()[name].interval.centre) for name in ("v4_window", "v4_draft_blocks"))
        asked = self.study.run.cells[0].local_tokens
        return Markdown(
            f"Card A's deep rows were taken from a restored slot. Its drafter's attention reaches {window} tokens "
            f"back. After {window} newly evaluated or decoded tokens nothing that the restore lost is in reach of "
            f"a layer ({window * blocks} if what its {blocks} layers reach adds up): acceptance is that of an "
            "unbroken context. Before that, it drafts with a shorter context than it would have had. The card "
            "states neither how many tokens were evaluated after the restore nor how many were generated. Where a "
            f"question of that length followed the restored text, as {asked} tokens do above wherever the shared "
            "text alone is restored, the loss was over before the first draft. Where only a short stub followed, "
            "it touched the first tokens of each sample. The local drafter has no window, so that what it lost "
            "stays lost: its rows are no estimate of card A's."
        )

    def provenance(self) -> Markdown:
        """Return where the numbers come from."""
        parameter = "fills_tiny" if self.pair == TINY else "fills_local"
        return provenance(self.study, "07_failures", f"-p {parameter} ''")

    def _samples(self, way: Way) -> list[Sample]:
        wanted = set(self.prompts())
        return [sample for sample in self.study.samples if sample.leg == way.name and sample.prompt_id in wanted]

    def _same_text(self, way: Way) -> str:
        first = {sample.prompt_id: sample.tokens for sample in self._samples(FIRST)}
        own = self._samples(way)
        return f"{sum(sample.tokens == first[sample.prompt_id] for sample in own)} of {len(own)}"


def fills(run: str, run_tiny: str) -> tuple[FillsPage, FillsPage]:
    """Open recorded runs of the local pair and of the synthetic DeepSeek-V4 pair, or measure what is not named.

    Raises:
        Problem: see `measure_fills`.
    """
    local = open_study(run) if run else measure_fills(LOCAL)
    return FillsPage(local), FillsPage(_tiny(run_tiny) if run_tiny else measure_fills(TINY, depth=TINY_DEPTH))


def _tiny(run: str) -> Study:
    """Open a run of the synthetic pair; published ones lie in `data/fills`.

    Its prompts are random tokens, so that the gates find no text of a regime in it: it is no run to publish numbers of
    speed from, and does not lie among those.
    """
    published = data_dir() / "fills" / run
    return open_study(str(published) if published.is_dir() else run)


def _a_step(sample: Sample, begin: int = 0, end: int | None = None) -> float:
    """Return accepted tokens a verification step, of the steps that began among some generated tokens; NaN: none."""
    drafted, accepted = np.array(sample.drafted), np.array(sample.accepted)
    before = 1 + np.concatenate([[0], np.cumsum(accepted + 1)[:-1]]) if len(accepted) else accepted
    inside = (drafted > 0) & (before > begin) & (before <= (end or before.max(initial=0)))
    return float(accepted[inside].mean()) if inside.any() else float("nan")


def _beside_zero(found: Interval) -> str:
    if found.limits is None:
        return found.note or "no interval"
    return "an interval that holds 0" if found.contains(0.0) else "an interval that does not hold 0"


def _anchor(pair: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", pair.lower())
