"""Chapter 09: one factor at a time, and whether acceptance or the cost of a step makes the knee."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas as pd

from analysis.measure.exact.perplexity import TOLERANCE
from analysis.measure.knee import Factor, RecordedSweep, change, load_sweep, open_factors, parts_frame, rates_frame
from analysis.measure.quality import RecordedQuality, load_quality
from analysis.publish import charts
from analysis.publish.chapters.common import in_words, made_how, provenance
from analysis.publish.chart import Chart
from analysis.publish.tables import Markdown, escape_text, table
from analysis.records.places import data_dir
from analysis.stats import Interval

MADE = "95 %, paired t (log), over prompts"
PER_CENT = 100.0
_RATES = {"decode rate": "a request", "throughput": "all requests"}


@dataclass(frozen=True)
class SweepsPage:
    """The tables and charts of the chapter.

    Each method that takes a name shows the factor of that name, or one sentence where the sweep did not vary it.
    """

    sweep: RecordedSweep
    factors: tuple[Factor, ...]
    qualities: tuple[RecordedQuality, ...] = ()

    @property
    def machine(self) -> str:
        """Return what the numbers were measured on."""
        return self.factors[0].points[0].drafted.run.machine.cpu

    def sentence(self) -> Markdown:
        """Return what was varied, on what, and over how many prompts."""
        names = ", ".join(escape_text(factor.title) for factor in self.factors)
        first = self.factors[0].points[0].drafted
        cell = first.run.cells[0]
        prompts = len({sample.prompt_id for sample in first.samples})
        cores = first.run.machine.cores
        return Markdown(
            f"{escape_text(self.sweep.title)}: {names}. Measured on {escape_text(self.machine)} with {cores} cores, at "
            f"depth {cell.depth}, {cell.n_predict} tokens a sample, {prompts} prompts a run over all kinds of text. "
            f"{escape_text(self.sweep.note)}"
        )

    def chart(self, name: str) -> Chart | Markdown:
        """Return tokens, cost and ratio against the values of a factor; the reader picks which."""
        if not self._varied(name):
            return self._not_varied(name)
        factor = self._factor(name)
        frame = parts_frame(factor)
        if (frame["refused"] != "").all():
            return Markdown("No value may be shown; the table below says why.")
        return charts.sweep_parts(
            frame,
            name=f"sweep-{_anchor(name)}",
            factor=factor.title,
            values=[point.value for point in factor.points],
            machine=self.machine,
        )

    def table(self, name: str) -> Markdown:
        """Return the parts of the speed ratio at every value of a factor."""
        if not self._varied(name):
            return self._not_varied(name)
        factor = self._factor(name)
        frame = parts_frame(factor)
        rows = []
        for (value, regime), group in frame.groupby(["value", "regime"], sort=False):
            parts = {row["part"]: in_words(row) for row in group.to_dict("records")}
            rows.append({"value": value, "regime": regime, "verdict": group["verdict"].iloc[0]} | parts)
        headings = {
            "value": factor.title,
            "regime": "regime",
            "tokens an evaluation": "tokens an evaluation",
            "cost of an evaluation": "cost, in raw evaluations",
            "ratio": "drafted / raw",
            "verdict": "verdict",
        }
        caption = f"Speed ratio and its two parts, on {self.machine}; {MADE}"
        return table(pd.DataFrame(rows), caption, f"sweep-{_anchor(name)}", columns=headings)

    def explanation(self, name: str) -> Markdown:
        """Return, in words, where the ratio is best and how its parts change beyond, or what each value changes."""
        if not self._varied(name):
            return Markdown("")
        factor = self._factor(name)
        frame = parts_frame(factor)
        ratios = frame[(frame["part"] == "ratio") & (frame["refused"] == "")]
        tell = _knee if factor.ordered else _against_first
        lines = [tell(factor, regime, ratios[ratios["regime"] == regime]) for regime in dict.fromkeys(ratios["regime"])]
        return Markdown("\n".join(f"- {line}" for line in lines))

    def at_once(self) -> Markdown:
        """Return parts and rates of the factor `parallel`, or one sentence where the sweep did not vary it."""
        if not self._varied("parallel"):
            return Markdown("This sweep made one request at a time; `--vary parallel=1,4` measures several at once.")
        shown = (self.table("parallel"), self.explanation("parallel"), self._rates("parallel"))
        return Markdown("\n\n".join(part.text for part in shown))

    def _rates(self, name: str) -> Markdown:
        """Return the decode rate of a request and the throughput of all at once, raw and drafted."""
        frame = rates_frame(self._factor(name))
        rows = []
        for (value, regime), group in frame.groupby(["value", "regime"], sort=False):
            found = {f"{row['leg']} {row['quantity']}": in_words(row, digits=1) for row in group.to_dict("records")}
            rows.append({"value": value, "regime": regime} | found)
        headings = {"value": "requests at once", "regime": "regime"}
        headings |= {f"{leg} {what}": f"{leg}, {said}" for what, said in _RATES.items() for leg in ("raw", "drafted")}
        caption = f"Decode rate of a request and throughput of all, tokens/s, on {self.machine}; {made_how(frame)}"
        return table(pd.DataFrame(rows), caption, "sweep-at-once", columns=headings)

    def best(self) -> Markdown:
        """Return the setting with the highest ratio of each kind of text, over everything that was tried."""
        every = pd.concat([_unseen(self.factors, place) for place in range(len(self.factors))], ignore_index=True)
        ratios = every[(every["part"] == "ratio") & (every["refused"] == "")]
        if ratios.empty:
            return Markdown("No ratio may be shown.")
        rows = []
        for regime, group in ratios.groupby("regime", sort=False):
            top = max(group.to_dict("records"), key=lambda row: row["estimate"])
            rows.append(
                {"regime": regime, "setting": f"{top['factor']}: {top['value']}", "ratio": in_words(top)}
                | {"verdict": top["verdict"], "tried": len(group)}
            )
        headings = {"regime": "regime", "setting": "best setting", "ratio": "drafted / raw", "verdict": "verdict"}
        headings["tried"] = "settings tried"
        caption = f"The best of everything tried on {self.machine}; {MADE}; the best of many is flattered by chance"
        return table(pd.DataFrame(rows), caption, "sweep-best", columns=headings)

    def quality_table(self) -> Markdown:
        """Return what the changed targets of the sweep cost in perplexity; a speed gain is read beside it."""
        if not self.qualities:
            return Markdown("No changed target of this sweep was held against its reference.")
        rows = []
        for found in self.qualities:
            quality = found.quality
            low, high = quality.interval
            rows.append(
                {
                    "file": PurePosixPath(found.changed.path).name,
                    "perplexity": f"{quality.changed[0]:.2f}",
                    "reference": f"{quality.reference[0]:.2f}",
                    "ratio": f"{quality.ratio[0]:.3f} [{low:.3f}, {high:.3f}]",
                    "top": f"{quality.same_top[0]:.1f} %",
                    "verdict": quality.verdict(),
                }
            )
        headings = {"file": "changed target", "perplexity": "its perplexity", "reference": "reference's"}
        headings |= {"ratio": "ratio", "top": "same favourite", "verdict": "quality"}
        first = self.qualities[0]
        caption = (
            f"Perplexity over {first.chunks} chunks of {first.context} tokens ({first.corpus}); ratio paired by token, "
            f"95 %; kept means at most {TOLERANCE:.0%} above the reference"
        )
        return table(pd.DataFrame(rows), caption, "sweep-quality", columns=headings, code=("file",))

    def provenance(self) -> Markdown:
        """Return where the numbers come from: the first run's box, and the names of all."""
        studies = {
            study.run.id: study
            for factor in self.factors
            for point in factor.points
            for study in (point.raw, point.drafted)
        }
        factor = self.factors[0]
        first = factor.points[0].drafted
        values = ",".join(point.value for point in factor.points)
        command = f"specbook sweep {first.run.cells[0].pair} --vary {factor.name}={values}"
        box = provenance(first, "09_sweeps", f"-p sweep {self.sweep.name}")
        names = ", ".join(f"`{name}`" for name in studies)
        return Markdown(
            f"{box.text}\n\nAll {len(studies)} runs of this chapter: {names}. Such runs are measured by `{command}`."
        )

    def _varied(self, name: str) -> bool:
        return name in {factor.name for factor in self.factors}

    def _not_varied(self, name: str) -> Markdown:
        return Markdown(f"The sweep `{self.sweep.name}` did not vary {escape_text(name)}.")

    def _factor(self, name: str) -> Factor:
        return next(factor for factor in self.factors if factor.name == name)


def sweeps(sweep: str) -> SweepsPage:
    """Open a recorded sweep, by the name of its file in `data/sweeps` or by path.

    Raises:
        Problem: there is no such sweep, or one of its runs is missing or does not belong to it.
    """
    recorded = load_sweep(sweep)
    folder = Path(sweep).parent if sweep.endswith(".toml") else data_dir() / "sweeps"
    qualities = tuple(load_quality(file) for file in sorted(folder.glob(f"{recorded.name}-*.json")))
    return SweepsPage(recorded, open_factors(recorded), qualities)


def _unseen(factors: tuple[Factor, ...], place: int) -> pd.DataFrame:
    """Return the parts of one factor, less the settings that a factor before it has: all share the default."""
    before = {point.drafted.run.id for factor in factors[:place] for point in factor.points}
    factor = factors[place]
    new = [point.value for point in factor.points if point.drafted.run.id not in before]
    frame = parts_frame(factor)
    return frame[frame["value"].isin(new)].assign(factor=factor.title)


def _knee(factor: Factor, regime: str, ratios: pd.DataFrame) -> str:
    best = max(ratios.to_dict("records"), key=lambda row: row["estimate"])
    values = [point.value for point in factor.points if point.value in set(ratios["value"])]
    place = values.index(str(best["value"]))
    told = f"**{regime}**: the ratio is highest at {best['value']}, {in_words(best)}."
    if place + 1 == len(values):
        return f"{told} That is the last value measured, so no knee was seen."
    nearest, last = values[place + 1], values[-1]
    parts = [
        _grown(change(factor, str(best["value"]), value, regime), value) for value in dict.fromkeys((nearest, last))
    ]
    return f"{told} {' '.join(parts)}"


def _against_first(factor: Factor, regime: str, ratios: pd.DataFrame) -> str:
    first = factor.points[0].value
    others = [point.value for point in factor.points[1:] if point.value in set(ratios["value"])]
    parts = [_grown(change(factor, first, value, regime), value) for value in others]
    return f"**{regime}**, against {first}: {' '.join(parts) or 'nothing that may be shown.'}"


def _grown(parts: dict[str, Interval], value: str) -> str:
    tokens, cost, ratio = (parts[name] for name in ("tokens an evaluation", "cost of an evaluation", "ratio"))
    return (
        f"At {value} an evaluation gives {_per_cent(tokens)} tokens and costs {_per_cent(cost)}, so the ratio changes "
        f"by {_per_cent(ratio)}."
    )


def _per_cent(ratio: Interval) -> str:
    shown = ratio.map(lambda value: PER_CENT * (value - 1))
    if shown.low is None or shown.high is None:
        return f"{shown.estimate:+.0f} % (n = {shown.n})"
    return f"{shown.estimate:+.0f} % [{shown.low:+.0f}, {shown.high:+.0f}] (n = {shown.n})"


def _anchor(name: str) -> str:
    return name.lower().replace("_", "-")
