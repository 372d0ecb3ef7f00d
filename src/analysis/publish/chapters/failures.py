"""Chapter 07: speculation that goes wrong without a word: its curve, what a user sees, what catches it."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import pandas as pd

from analysis.convert.fetch import fetch
from analysis.convert.fit import check_fit
from analysis.convert.gguf import read_gguf
from analysis.convert.pairs import load_pair
from analysis.gates.canary import DeeperPositionsHold, FirstPositionAlive, SecondPositionHolds
from analysis.measure.estimate import acceptance_of, interval_columns
from analysis.measure.failures import MODES, PAIR, Mode, measure_failures
from analysis.measure.foreign import Foreign, foreign_drafter
from analysis.measure.study import Study, open_study
from analysis.publish.chapters.common import in_words, provenance
from analysis.publish.chart import Chart
from analysis.publish.style import HEIGHT, colour, shape
from analysis.publish.tables import Markdown, table
from analysis.records import Sample
from analysis.stats import mean_t

CANARIES = (FirstPositionAlive.name, SecondPositionHolds.name, DeeperPositionsHold.name)


@dataclass(frozen=True)
class FailuresPage:
    """The tables and charts of the chapter."""

    study: Study
    foreign: tuple[Foreign, ...]

    def modes(self) -> list[Mode]:
        """Return the modes that the run holds, in the order of the chapter."""
        legs = {sample.leg for sample in self.study.samples}
        return [mode for mode in MODES if mode.name in legs]

    def frame(self, meaning: str) -> pd.DataFrame:
        """Return acceptance by mode and position, in one meaning: `survival` or `conditional`."""
        rows = []
        for mode in self.modes():
            samples = self._samples(mode)
            found = acceptance_of(samples, self.study.cells[samples[0].cell])
            for position, rate in enumerate(getattr(found, meaning), 1):
                if rate.trials:
                    keys = {"mode": mode.name, "beside": mode.beside, "position": position}
                    rows.append(keys | interval_columns(rate.interval, ""))
        return pd.DataFrame(rows)

    def chart(self, *names: str) -> Chart | Markdown:
        """Return the survival of some modes by position."""
        frame = self.frame("survival")
        rows = frame[frame["mode"].isin(names)].copy()
        rows["acceptance"] = [in_words(row) for row in rows.to_dict("records")]
        order = [name for name in names if name in set(rows["mode"])]
        if not order:
            return Markdown("This run holds none of these modes.")
        base = alt.Chart(rows[["mode", "position", "estimate", "low", "high", "acceptance"]]).encode(
            x=alt.X("position:O", title="draft position"), color=colour("mode", order)
        )
        y = alt.Y("estimate:Q", title="survival", scale=alt.Scale(domain=[0, 1]))
        spread = alt.XOffset("mode:N", scale=alt.Scale(domain=order, paddingOuter=1))
        bars = base.transform_filter("isValid(datum.low)").mark_rule().encode(y="low:Q", y2="high:Q", xOffset=spread)
        dots = base.mark_point().encode(
            y=y, xOffset=spread, shape=shape("mode", order), tooltip=["mode", "position", "acceptance"]
        )
        lines = base.mark_line().encode(y=y, xOffset=spread)
        words = "; ".join(
            f"{name} {', '.join(f'{value:.2f}' for value in rows[rows['mode'] == name]['estimate'])}" for name in order
        )
        return Chart(
            alt.layer(lines, bars, dots).properties(height=HEIGHT),
            title=f"Survival by draft position: {', '.join(order)}",
            alt=f"Survival at draft positions 1 to {rows['position'].max()}: {words}.",
            name=f"failures-{order[-1]}",
            note="Bars are 95 % intervals over prompts.",
        )

    def table(self) -> Markdown:
        """Return every mode with its first two positions, its mean accepted length, and what catches it."""
        rows = []
        for mode in self.modes():
            samples = self._samples(mode)
            found = acceptance_of(samples, self.study.cells[samples[0].cell])
            rows.append(
                {
                    "mode": mode.name,
                    "what": mode.title,
                    "first": in_words(interval_columns(found.survival[0].interval, "")),
                    "second": in_words(interval_columns(found.conditional[1].interval, "")),
                    "length": in_words(interval_columns(found.mean_length, "")),
                    "same": self._same_text(mode),
                    "caught": self.caught(mode),
                }
            )
        headings = {"mode": "mode", "what": "what is wrong", "first": "position 1", "second": "position 2, given 1"}
        headings |= {"length": "mean accepted length", "same": "same text", "caught": "caught by"}
        caption = "Failure modes beside the sound drafter; 95 % over prompts"
        return table(pd.DataFrame(rows), caption, "failures", columns=headings)

    def caught(self, mode: Mode) -> str:
        """Return what tells of a mode: the check of its files, a gate's warning, a comparison with the sound way."""
        found = _misfits(mode)
        cell = self._samples(mode)[0].cell
        warned = {f.gate for f in self.study.findings if f.where.id == cell and f.level in ("warn", "refuse")}
        found += [f"gate {name}" for name in CANARIES if name in warned]
        if mode.stale:
            found.append("its cell says `restored`; grids never restore")
        if not found and mode.name != mode.beside and self._below(mode):
            found.append("comparison with the sound drafter only")
        return "; ".join(found) or ("–" if mode.name == mode.beside else "nothing")

    def refusal(self) -> Markdown:
        """Return what the fit check says of the wrong speculation type, from the files of the pair."""
        pair = load_pair(PAIR)
        if pair.drafter is None:
            return Markdown("The pair has no drafter.")
        headers = read_gguf(fetch(pair.target)), read_gguf(fetch(pair.drafter))
        fit = check_fit(*headers, spec_type="draft-dflash")
        frame = pd.DataFrame({"check": f.check, "saw": f.saw, "expected": f.expected} for f in fit.refused)
        return table(frame, "What specbook check says of the sound drafter as draft-dflash", "failures-refusal")

    def foreign_table(self) -> Markdown:
        """Return a drafter of the same shape and vocabulary with its own target and with another."""
        frame = pd.DataFrame(
            {
                "drafter": one.title,
                "fit": "fits" if one.fits else "refused",
                "drafted": one.drafted,
                "accepted": one.accepted,
                "share": one.accepted / one.drafted,
                "same": f"{one.same_text} of {one.prompts}",
            }
            for one in self.foreign
        )
        headings = {"drafter": "drafter", "fit": "headers", "drafted": "drafted", "accepted": "accepted"}
        headings |= {"share": "accepted over drafted", "same": "same text as without a drafter"}
        caption = "A drafter of another target, on the synthetic DeepSeek-V4 pair"
        return table(frame, caption, "failures-foreign", columns=headings)

    def provenance(self) -> Markdown:
        """Return where the numbers come from."""
        return provenance(self.study, "07_failures", "-p run ''")

    def _samples(self, mode: Mode) -> list[Sample]:
        """Return a mode's samples, without those that are refused for what they are whatever drafts."""
        kept = {sample.index for sample in self.study.publishable}
        own = [sample for sample in self.study.samples if sample.leg == mode.name]
        return [sample for sample in own if sample.index in kept] or own

    def _same_text(self, mode: Mode) -> str:
        beside = {sample.prompt_id: sample.tokens for sample in self.study.samples if sample.leg == mode.beside}
        own = [sample for sample in self.study.samples if sample.leg == mode.name]
        same = sum(sample.tokens == beside.get(sample.prompt_id) for sample in own)
        return f"{same} of {len(own)}"

    def _below(self, mode: Mode) -> bool:
        """Return whether accepted tokens a step lie below the sound way's, paired by prompt, at 95 %."""
        beside = {s.prompt_id: _mean(s) for s in self.study.samples if s.leg == mode.beside}
        apart = [_mean(s) - beside[s.prompt_id] for s in self.study.samples if s.leg == mode.name]
        found = mean_t(apart)
        return found.high is not None and found.high < 0


def failures(*, run: str = "", prompts: int = 6) -> FailuresPage:
    """Open a recorded run of failure modes, or measure one; the parameters are the notebook's.

    Raises:
        Problem: see `measure_failures`.
    """
    study = open_study(run) if run else measure_failures(prompts=prompts)
    return FailuresPage(study, foreign_drafter())


def _misfits(mode: Mode) -> list[str]:
    """Return what `specbook check` says against a mode's drafter, made anew; a fault of an engine is in no file."""
    pair = load_pair(PAIR)
    if mode.fault is not None or pair.drafter is None:
        return []
    with tempfile.TemporaryDirectory(prefix="specbook-") as scratch:
        drafter = fetch(pair.drafter)
        if mode.make is not None:
            sound, drafter = drafter, Path(scratch) / f"{mode.name}.gguf"
            mode.make(sound, drafter)
        fit = check_fit(read_gguf(fetch(pair.target)), read_gguf(drafter), spec_type=mode.spec_type)
    return [f"fit check: {found.check}" for found in (*fit.refused, *fit.warned)]


def _mean(sample: Sample) -> float:
    return sum(sample.accepted) / max(1, len(sample.accepted))
