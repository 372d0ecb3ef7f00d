"""Chapter 05: does it pay here, what a step costs, and where it would begin to pay."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.gates.control import noise_floor
from analysis.measure.crossing import RecordedCrossing, crossing_frame, crossing_of, load_crossing
from analysis.measure.economics import break_even_frame, drafted_rate_frame, rate_curve
from analysis.measure.estimate import depth_frame, depth_points, interval_columns, ratio_frame, step_frame
from analysis.measure.study import Study
from analysis.publish import charts
from analysis.publish.chapters.common import (
    in_words,
    made_how,
    pair_in_words,
    provenance,
    study_of,
    warned_sentence,
)
from analysis.publish.chart import Chart
from analysis.publish.commands import DECIDED, decide_one, measure_more
from analysis.publish.crossing_chart import measured_crossing
from analysis.publish.frames import interval_texts
from analysis.publish.served import extended_sentence
from analysis.publish.tables import Markdown, code_text, escape_text, interval_table, table
from analysis.stats import Interval

MIB = 2**20
MORE_PROMPTS = 20
# The parts of a break-even, with their decimals.
PARTS = {"raw": 1, "step": 1, "length": 2, "margin": 2}
NOTHING_TO_COMPARE = "There is no pair of legs to compare: this run holds only one of raw and drafted."
NO_CROSSING = "No break-even at chosen acceptances was recorded for this page."


@dataclass(frozen=True)
class EconomicsPage:
    """The tables and charts of the chapter."""

    study: Study
    ratios: pd.DataFrame
    recorded: RecordedCrossing | None = None

    @property
    def machine(self) -> str:
        """Return what the numbers were measured on."""
        return self.study.run.machine.cpu

    def sentence(self) -> Markdown:
        """Return the verdict in words: counts first, then the extremes."""
        shown = self._shown()
        if shown.empty:
            return Markdown(NOTHING_TO_COMPARE)
        counts = shown["verdict"].value_counts()
        words = ", ".join(f"**{name}** in {counts.get(name, 0)}" for name in ("pays", "undecided", "loses"))
        ordered = shown.sort_values("estimate").to_dict("records")
        ends = " and ".join(
            f"{in_words(row)} for {row['regime']} at depth {row['depth']}" for row in (ordered[0], ordered[-1])
        )
        refused = len(self.ratios) - len(shown)
        more = f" ({refused} more {'is' if refused == 1 else 'are'} refused)" if refused else ""
        verdict = (
            f"{pair_in_words(self.study)} On {self.machine}, of {len(shown)} cells{more}, drafting {words}. "
            f"The speed ratio of drafted to raw decoding lies between {ends}."
        )
        care = f"{warned_sentence(self.study)} {extended_sentence(self.study)}".strip()
        return Markdown(
            "\n\n".join(part for part in (verdict, self._noise(), self._needed(), care, self._surer()) if part)
        )

    def ratio_chart(self) -> Chart | Markdown:
        """Return the speed ratio of every cell."""
        if self._shown().empty:
            return Markdown(NOTHING_TO_COMPARE)
        return charts.decode_vs_raw(
            self.ratios, name="ratio", machine=self.machine, note=f"Intervals: {made_how(self.ratios)}."
        )

    def ratio_table(self) -> Markdown:
        """Return the speed ratio and the verdict of every cell."""
        if self.ratios.empty:
            return Markdown(NOTHING_TO_COMPARE)
        frame = self.ratios.assign(
            ratio=interval_texts(self.ratios),
            verdict=np.where(self.ratios["refused"] == "", self.ratios["verdict"], "none"),
            equal=[f"{e} of {p}" for e, p in zip(self.ratios["equal_text"], self.ratios["pairs"], strict=True)],
        )
        headings = {
            "regime": "regime",
            "depth": "depth",
            "ratio": "drafted / raw",
            "verdict": "verdict",
            "equal": "prompts with equal text",
        }
        caption = (
            f"Does it pay on {self.machine}? Only prompts kept on both legs enter, so this is no quotient of the rates "
            f"below; {made_how(self.ratios)}"
        )
        return table(frame, caption, "verdicts", columns=headings)

    def rate_table(self) -> Markdown:
        """Return the decode rates of both legs by depth and regime."""
        frames = []
        for leg, quantity in (("drafted", "decode rate"), ("raw", "raw decode rate")):
            frame = depth_frame(self.study, quantity)
            if len(frame):
                frames.append(frame.assign(row=[f"{depth}, {leg}" for depth in frame["depth"]]))
        if not frames:
            return Markdown("No decode rate was measured.")
        both = pd.concat(frames).sort_values("depth", kind="stable")
        both["row"] = pd.Categorical(both["row"], list(dict.fromkeys(both["row"])), ordered=True)
        caption = f"Decode rate (tokens/s) by depth and leg, on {self.machine}; {made_how(both)}"
        return interval_table(both, caption, "rate-by-depth", rows="row", digits=1)

    def fill_table(self) -> Markdown:
        """Return fill rate and time to first token of both legs, regimes together."""
        rows = []
        for leg, prefix in (("raw", "raw "), ("drafted", "")):
            fill, first = (depth_points(self.study, prefix + quantity) for quantity in ("fill", "ttft"))
            for depth in sorted(set(fill["depth"])):
                rows.append(
                    {
                        "depth": depth,
                        "leg": leg,
                        "samples": int((fill["depth"] == depth).sum()),
                        "fill (tokens/s, median)": float(fill.loc[fill["depth"] == depth, "value"].median()),
                        "first token (ms, median)": float(first.loc[first["depth"] == depth, "value"].median()),
                    }
                )
        if not rows:
            return Markdown("No fill was measured.")
        frame = pd.DataFrame(rows).sort_values(["depth", "leg"], ascending=[True, False])
        caption = "Evaluating the text that is new to the cache, and waiting for the first token"
        return table(frame, caption, "fill-by-depth", digits=0)

    def memory_table(self) -> Markdown:
        """Return the resident memory of each server that was measured."""
        rows = [
            {
                "server": life.id,
                "loaded (MiB)": life.memory_loaded / MIB if life.memory_loaded else None,
                "highest (MiB)": life.memory_peak / MIB if life.memory_peak else None,
                "counters": "agree"
                if life.metrics == life.stream
                else "not checked"
                if life.metrics is None
                else "disagree",
            }
            for life in self.study.lives
        ]
        if not rows:
            return Markdown("No server's life was recorded.")
        return table(
            pd.DataFrame(rows), "Memory of the servers, and their counters beside the stream's", "memory", digits=0
        )

    def step_chart(self) -> Chart | Markdown:
        """Return the duration of a step against the tokens it accepted."""
        frame = step_frame(self.study)
        drafted = frame[frame["kind"] == "drafted"] if len(frame) else frame
        if drafted.empty:
            return Markdown("No step had a draft to verify.")
        return charts.step_cost(drafted, name="step-cost", machine=self.machine)

    def step_table(self) -> Markdown:
        """Return the duration of a step by accepted tokens, beside evaluations without a draft."""
        frame = step_frame(self.study)
        if frame.empty:
            return Markdown("No step was measured.")
        frame = frame.assign(ms=interval_texts(frame, digits=1))
        headings = {
            "depth": "depth",
            "kind": "evaluation",
            "accepted": "accepted tokens",
            "steps": "steps",
            "ms": "milliseconds (n = prompts)",
        }
        return table(
            frame,
            f"Duration of a target evaluation on {self.machine}; {made_how(frame)}",
            "step-cost",
            columns=headings,
        )

    def break_even_chart(self) -> Chart | Markdown:
        """Return the decode rate of drafted steps against mean accepted length, at the shallowest depth."""
        even = break_even_frame(self.study)
        if even.empty or even.iloc[0]["refused"]:
            return Markdown(NOTHING_TO_COMPARE)
        row = even.iloc[0]
        depth = int(row["depth"])
        measured = drafted_rate_frame(self.study)
        return charts.break_even(
            measured[measured["depth"] == depth],
            rate_curve(self.study, depth),
            pd.DataFrame([interval_columns(row["raw"], "")]),
            even.head(1)[["estimate", "low", "high", "n", "method", "refused"]],
            name="break-even",
            machine=self.machine,
            title=f"Where a drafted step begins to pay, depth {depth}",
        )

    def break_even_table(self) -> Markdown:
        """Return raw rate, step cost, break-even and measured length by depth."""
        frame = break_even_frame(self.study)
        if frame.empty:
            return Markdown(NOTHING_TO_COMPARE)
        parts = {name: [_text(value, digits) for value in frame[name]] for name, digits in PARTS.items()}
        frame = frame.assign(break_even=interval_texts(frame), **parts)
        headings = {
            "depth": "depth",
            "raw": "raw (tokens/s)",
            "step": "step (ms)",
            "break_even": "break-even length",
            "length": "measured length",
            "margin": "margin",
        }
        caption = (
            f"Mean accepted length at which a drafted step breaks even on {self.machine}, and what was measured; "
            f"regimes together, over the prompts kept on both legs; {made_how(frame)} for the break-even. "
            "Above a margin of 0 a drafted step pays"
        )
        return table(frame, caption, "break-even", columns=headings)

    def crossing_sentence(self) -> Markdown:
        """Return in words where the recorded legs are equally fast, what that was measured on, and how to do it."""
        if self.recorded is None:
            return Markdown(NO_CROSSING)
        found, meets = self.recorded, crossing_of(self.recorded.samples)
        if not meets.shown:
            verdict = f"They are equally fast nowhere: {escape_text(meets.note or 'no interval')}."
        else:
            verdict = (
                f"They are equally fast at **{meets.format(decimals=2)}** accepted tokens a step, a mean accepted "
                f"length of one more. {_reachable(meets, found.n_max)}"
            )
        command = code_text(f"specbook crossing {found.pair} --depth {found.depth} --write FILE.json")
        dirty = ", with uncommitted changes" if found.dirty else ""
        return Markdown(
            f"`{found.pair}` on {escape_text(found.machine.cpu)}, depth {found.depth}, {found.n_max} tokens a draft, "
            f"{found.n_predict} tokens a sample. {verdict} Recorded {found.at} at commit "
            f"{found.commit[:12] or 'unknown'}{dirty}; {command} measures it for another pair, depth or machine."
        )

    def crossing_chart(self) -> Chart | Markdown:
        """Return the decode rate measured at chosen acceptances, with raw as a line and the crossing's interval."""
        if self.recorded is None:
            return Markdown(NO_CROSSING)
        found, frame = self.recorded, crossing_frame(self.recorded.samples)
        meets = crossing_of(found.samples)
        return measured_crossing(
            frame.iloc[1:],
            frame.head(1),
            pd.DataFrame([interval_columns(meets, meets.note if np.isnan(meets.estimate) else "")]),
            name="measured-crossing",
            machine=found.machine.cpu,
            longest=found.n_max,
            title=f"Measured at chosen acceptances, depth {found.depth}",
        )

    def provenance(self) -> Markdown:
        """Return where the numbers come from."""
        return provenance(self.study, "05_economics")

    def _noise(self) -> str:
        """Return what the negative control shows: how far apart two raw servers look, between which nothing acts."""
        floor = noise_floor(self.study.publishable)
        if floor.n == 0:
            return "This run has no negative control, so that it does not show what noise alone does to a ratio."
        return (
            f"The negative control, a second raw server, decoded {escape_text(floor.format(decimals=3))} times as fast "
            f"as the first (n = {floor.n} prompts): a ratio no further from 1 than that may be noise."
        )

    def _needed(self) -> str:
        """Return what a drafted step yields by depth, what it would have to, and whether its drafts are long enough."""
        longest = {cell.depth: cell.n_max for cell in self.study.run.cells if cell.spec_type != "none"}
        said = []
        for row in break_even_frame(self.study).to_dict("records"):
            drafts = longest.get(int(row["depth"]), 0)
            least = row["low"] if row["low"] == row["low"] else row["estimate"]
            beyond = f", more than a draft of {drafts} can yield" if drafts and least > 1 + drafts else ""
            said.append(
                f"At depth {row['depth']} a drafted step yields {_text(row['length'], 2)} tokens and would have to "
                f"yield {in_words(row)} to be worth its time{beyond}."
            )
        return " ".join(said)

    def _surer(self) -> str:
        """Return how to get more certainty, for all cells and for the undecided one that has the least."""
        run = self.study.run
        if run.profile == DECIDED:
            return "The same `specbook decide` again adds prompts, and more prompts narrow the intervals."
        prompts = max(MORE_PROMPTS, 2 * int(self.ratios["pairs"].max()))
        width = self.ratios["high"] - self.ratios["low"]
        cells = self.ratios.assign(width=width)
        # A refused cell has no interval to narrow: whether other prompts would be kept is another question.
        open_to_more = cells[(cells["refused"] == "") & (cells["verdict"] == "undecided")]
        all_cells = code_text(measure_more(run, "05_economics", prompts))
        if open_to_more.empty:
            return f"More prompts narrow the intervals: {all_cells}."
        least = open_to_more.sort_values(["n", "width"], ascending=[True, False], na_position="first").iloc[0]
        one_cell = code_text(decide_one(run, least["regime"], int(least["depth"])))
        return f"More prompts narrow the intervals: {all_cells}, or an hour for the least certain cell, {one_cell}."

    def _shown(self) -> pd.DataFrame:
        return self.ratios[self.ratios["refused"] == ""] if len(self.ratios) else self.ratios


def economics(**parameters: object) -> EconomicsPage:
    """Measure, or open, what the chapter shows; the parameters are the notebook's.

    Raises:
        Problem: see `measure_study`.
    """
    study = study_of(parameters, raw=True)
    crossing = str(parameters.get("crossing") or "")
    return EconomicsPage(study, ratio_frame(study), load_crossing(crossing) if crossing else None)


def _reachable(meets: Interval, longest: int) -> str:
    """Return whether a draft of that many tokens can bring what is needed."""
    low, high = meets.limits or (meets.estimate, meets.estimate)
    if low > longest:
        return f"A draft has only {longest}, so that here no acceptance would make it pay."
    if high > longest:
        return f"A draft has only {longest}, so that it is open whether any acceptance would make it pay."
    return f"That is {meets.estimate / longest:.0%} of a whole draft."


def _text(interval: Interval, digits: int) -> str:
    return interval.format(decimals=digits)
