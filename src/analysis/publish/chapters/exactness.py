"""Chapter 06: a synthetic DeepSeek-V4 pair from nothing to measured, and what is exact about its cache and output."""

from dataclasses import dataclass

import pandas as pd

from analysis.convert.fit import gib
from analysis.measure.exact.perplexity import TOLERANCE
from analysis.measure.exact.study import GREEDY_TOKENS, ExactStudy, study_exactness
from analysis.publish.formats import format_interval
from analysis.publish.tables import Markdown, escape_text, table
from analysis.stats import Interval

MIB = 2**20
YES = {True: "yes", False: "no"}


@dataclass(frozen=True)
class ExactnessPage:
    """The tables and sentences of the chapter."""

    study: ExactStudy

    def files_table(self) -> Markdown:
        """Return the files that were made."""
        frame = pd.DataFrame(
            {"what": what, "MiB": file.size / MIB, "tensors": len(file.tensors), "types": ", ".join(file.bytes_by_type)}
            for what, file in self.study.pair.files.items()
        )
        return table(frame, "The files of the synthetic pair", "exact-files")

    def changes_table(self) -> Markdown:
        """Return what quantizing did to the drafter, by group of tensors."""
        frame = pd.DataFrame(
            {
                "group": change.name,
                "tensors": change.tensors,
                "types": f"{', '.join(change.types_before)} to {', '.join(change.types_after)}",
                "before": change.bits_before,
                "after": change.bits_after,
                "rms": change.rms,
            }
            for change in self.study.pair.changes
        )
        headings = {"group": "group", "tensors": "tensors", "types": "types", "before": "bits a weight before"}
        headings |= {"after": "after", "rms": "rms error, relative"}
        return table(frame, "What quantizing changed in the drafter", "exact-changes", columns=headings, digits=3)

    def fit_table(self) -> Markdown:
        """Return what the fit check saw."""
        fit = self.study.pair.fit
        frame = pd.DataFrame({"check": f.check, "verdict": f.verdict, "saw": f.saw} for f in fit.findings)
        return table(frame, "Target and quantized drafter, checked from their headers", "exact-fit")

    def served_table(self) -> Markdown:
        """Return what the server drafted and accepted, prompt by prompt, beside what the tables say."""
        frame = pd.DataFrame(
            {
                "first token": served.prompt,
                "emitted": len(served.completion.tokens),
                "steps": len(served.completion.drafted),
                "drafted": sum(served.completion.drafted),
                "accepted": sum(served.completion.accepted),
                "expected": sum(kept for _, kept in served.expected),
                "every step": YES[served.as_expected],
            }
            for served in self.study.served
        )
        headings = {name: name for name in frame.columns}
        headings |= {"expected": "accepted by the tables", "every step": "every step as the tables say"}
        return table(frame, "Measured on a real llama-server", "exact-served", columns=headings)

    def served_sentence(self) -> Markdown:
        """Return how acceptance compares with the tables, in words."""
        drafted = sum(sum(one.completion.drafted) for one in self.study.served)
        accepted = sum(sum(one.completion.accepted) for one in self.study.served)
        same = sum(one.as_expected for one in self.study.served)
        return Markdown(
            f"{accepted} of {drafted} drafted tokens were accepted ({accepted / drafted:.2f}). "
            f"Of {len(self.study.served)} prompts, {same} went step by step as the tables of successors say."
        )

    def rollback_table(self) -> Markdown:
        """Return every case of the rollback gate."""
        frame = pd.DataFrame(
            {
                "multiple of": case.boundary,
                "from position": case.start,
                "spans": case.spans,
                "attempts": case.attempts,
                "taken back": YES[case.allowed],
                "difference": _logits(case.difference),
                "control": _logits(case.control),
                "beyond": _logits(case.control_beyond),
            }
            for case in self.study.rollbacks
        )
        headings = {name: name for name in frame.columns}
        headings |= {
            "attempts": "wrong tails a span",
            "difference": "largest logit difference",
            "control": "control: one wrong token left",
            "beyond": "control, beyond the window",
        }
        return table(frame, "The rollback gate", "exact-rollback", columns=headings)

    def rollback_sentence(self) -> Markdown:
        """Return the gate's verdict."""
        exact = sum(case.exact for case in self.study.rollbacks)
        return Markdown(f"Exact in {exact} of {len(self.study.rollbacks)} cases, with a control that was seen.")

    def limits_table(self) -> Markdown:
        """Return what the cache allows."""
        limits = self.study.undoing.limits
        rows = [
            (f"take back {limits.rows} tokens, with a state kept for {limits.rows}", limits.within),
            ("take back one more", limits.beyond),
            ("take back again before anything was evaluated", limits.twice),
            ("cut a token out of the middle", limits.middle),
            ("take back one token where no state is kept", limits.bare),
        ]
        frame = pd.DataFrame({"": what, "allowed": YES[allowed]} for what, allowed in rows)
        return table(frame, "What this cache allows", "exact-limits")

    def costs_table(self) -> Markdown:
        """Return what a checkpoint costs by depth, beside a rollback."""
        frame = pd.DataFrame(
            {
                "depth": cost.depth,
                "KiB": cost.nbytes / 1024,
                "take": cost.take_ms,
                "bring": cost.bring_back_ms,
                "roll": cost.roll_back_ms,
            }
            for cost in self.study.undoing.costs
        )
        headings = {"depth": "depth", "KiB": "checkpoint, KiB", "take": "take it, ms", "bring": "bring it back, ms"}
        headings |= {"roll": "roll back instead, ms"}
        return table(frame, f"A checkpoint and a rollback; {self._where()}", "exact-costs", columns=headings, digits=3)

    def ways_table(self) -> Markdown:
        """Return decode rates both ways, by how much of a draft is right."""
        frame = pd.DataFrame(
            {
                "accepted": f"{ways.kept} of {ways.drafted}",
                "rollback": ways.rollback,
                "checkpoint": ways.checkpoint,
                "ratio": _interval(ways.ratio),
            }
            for ways in self.study.undoing.ways
        )
        headings = {"accepted": "accepted a step", "rollback": "rollback, tokens/s"}
        headings |= {"checkpoint": "checkpoint and replay, tokens/s", "ratio": "rollback over checkpoint"}
        first = self.study.undoing.ways[0]
        caption = f"Both ways of undoing a draft at depth {first.depth}, paired by block of steps; {self._where()}"
        return table(frame, caption, "exact-ways", columns=headings, digits=0)

    def slots_table(self) -> Markdown:
        """Return what saving and restoring a slot costs, and whether it comes back as it was."""
        frame = pd.DataFrame(
            {
                "depth": slot.depth,
                "MiB": slot.nbytes / MIB,
                "save": slot.save_ms_per_mib,
                "restore": slot.restore_ms_per_mib,
                "difference": _logits(slot.difference),
            }
            for slot in self.study.undoing.slots
        )
        headings = {"depth": "depth", "MiB": "MiB", "save": "save, ms a MiB", "restore": "restore, ms a MiB"}
        headings |= {"difference": "largest logit difference afterwards"}
        return table(frame, f"Saving and restoring a whole sequence; {self._where()}", "exact-slots", columns=headings)

    def greedy_table(self) -> Markdown:
        """Return the share of prompts whose greedy output differs with a drafter."""
        frame = pd.DataFrame(
            {
                "target": found.title,
                "differ": f"{len(found.differing)} of {len(found.outcomes)}",
                "share": _interval(found.share),
                "spread": _logits(found.spread),
                "narrowest": min(outcome.narrowest for outcome in found.outcomes),
                "accepted": found.accepted,
            }
            for found in self.study.greedy
        )
        headings = {"target": "target", "differ": "prompts that differ", "share": "share"}
        headings |= {"spread": "largest logit difference, batch against single rows"}
        headings |= {"narrowest": "narrowest lead of all tokens (logits)", "accepted": "accepted over drafted"}
        caption = f"Greedy output of {GREEDY_TOKENS} tokens with and without the drafter"
        return table(frame, caption, "exact-greedy", columns=headings, digits=3)

    def divergences_table(self) -> Markdown:
        """Return where outputs part, and by how narrow a margin."""
        frame = pd.DataFrame(
            {
                "target": found.title,
                "prompt": outcome.prompt,
                "first": outcome.first,
                "margin": outcome.margin,
                "narrowest": outcome.narrowest,
            }
            for found in self.study.greedy
            for outcome in found.differing
        )
        if frame.empty:
            return Markdown("No output differed.")
        headings = {"target": "target", "prompt": "prompt", "first": "first token that differs"}
        headings |= {"margin": "lead there (logits)", "narrowest": "narrowest lead of the prompt"}
        return table(frame, "Where outputs part", "exact-divergences", columns=headings, digits=6)

    def quality_table(self) -> Markdown:
        """Return the perplexity of changed files against the reference."""
        frame = pd.DataFrame(
            {
                "file": name,
                "reference": f"{quality.reference[0]:.3f}",
                "changed": f"{quality.changed[0]:.3f}",
                "ratio": f"{quality.ratio[0]:.4f} [{quality.interval[0]:.4f}, {quality.interval[1]:.4f}]",
                "divergence": f"{quality.divergence[0]:.5f}",
                "top": quality.same_top[0],
                "verdict": quality.verdict(),
            }
            for name, quality in self.study.qualities.items()
        )
        headings = {"file": "file", "reference": "reference's perplexity", "changed": "its own", "ratio": "ratio"}
        headings |= {"divergence": "divergence, nats", "top": "same favourite, %", "verdict": "quality"}
        caption = f"Perplexity as a gate: at most {TOLERANCE:.0%} above the reference at 95 %"
        return table(frame, caption, "exact-quality", columns=headings, digits=1)

    def provenance(self) -> Markdown:
        """Return what the numbers were measured on."""
        pair, memory = self.study.pair, self.study.pair.fit.memory
        room = f" The pair needs about {gib(memory.total)}." if memory else ""
        return Markdown(
            escape_text(
                f"Made with seed {pair.recipe.seed}; target and drafter agree on {pair.recipe.agree:.0%} of tokens. "
                f"Times were taken on {self.study.machine.cpu}, one thread in process.{room}"
            )
        )

    def _where(self) -> str:
        return self.study.machine.cpu


def exactness(**parameters: object) -> ExactnessPage:
    """Make a synthetic pair and measure it; the parameters are the notebook's.

    Raises:
        Problem: see `study_exactness`.
    """
    return ExactnessPage(study_exactness(**parameters))  # type: ignore[arg-type]  # the notebook declares their types


def _logits(value: float) -> str:
    return "0" if value == 0 else f"{value:.3g}"


def _interval(found: Interval) -> str:
    low, high = (float("nan") if end is None else end for end in (found.low, found.high))
    return format_interval(found.estimate, low, high, found.n)
