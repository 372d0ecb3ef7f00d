"""The chapter of the calculator: pick an acceptance, give your machine, read the verdict."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

import altair as alt
import pandas as pd

from analysis.evidence import published, step_model
from analysis.evidence.choices import Choice, choices
from analysis.evidence.corrections import notes_for
from analysis.evidence.interval import Interval
from analysis.evidence.published import Row
from analysis.evidence.step_model import Model
from analysis.measure.estimate import depth_frame
from analysis.measure.study import Study, open_study, raw_beside_drafted
from analysis.publish.cards.marks import BARS, CLICK, NAMES, bars_and_points, equal_line, short_label
from analysis.publish.chart import Chart
from analysis.publish.cited import Cell, chart_columns, cite, cited_table, cited_text, corrected, source_link, use_data
from analysis.publish.formats import visible
from analysis.publish.marks import interval_bars, said_of_intervals, sentences
from analysis.publish.style import colour, order_of, shape
from analysis.publish.tables import Html, Markdown, table
from analysis.records.places import data_dir
from analysis.stats.economics import break_even_acceptance, break_even_length

PRINTED = "Its interval is what the printed digits, or the printed range of repeats, leave open."
FIRST = "a_code176_acceptance"


@dataclass(frozen=True)
class CalculatorPage:
    """The calculator, and what it says of each row without scripts."""

    rows: Mapping[str, Row]
    choices: Sequence[Choice]
    local: pd.DataFrame

    def calculator(self) -> Html:
        """Return the calculator."""
        offered = self.offered()
        data = json.dumps(self._data(offered), sort_keys=True, allow_nan=False).replace("<", "\\u003c")
        options = []
        for group, members in groupby(offered.items(), key=lambda item: str(item[1]["group"])):
            inner = "".join(
                f'<option value="{escape(name)}"{" selected" * (name == FIRST)}>{_safe(str(row["label"]))}</option>'
                for name, row in members
            )
            options.append(f'<optgroup label="{_safe(group)}">{inner}</optgroup>')
        return Html(
            _PAGE.format(data=data, options="".join(options), fields=_fields()), "A calculator; it needs scripts."
        )

    def offered(self) -> dict[str, dict[str, Any]]:
        """Return the rows that the calculator offers, by id."""
        offered = {choice.row.id: _offer(choice) for choice in self.choices}
        for row in self.local.to_dict("records"):
            name = f"{row['run']}/{row['regime']}/{row['depth']}"
            offered[name] = {
                "id": name,
                "group": f"Measured: {row['run']}",
                "label": f"{row['regime']}, {row['depth']:,} tokens",
                "n": int(row["n_max"]),
                "length": [_number(row["low"]), float(row["estimate"]), _number(row["high"])],
                "raw": _number(row["raw"]),
                "step": _number(row["step"]),
                "href": "04_depth_regime.html",
                "how": f"Mean accepted length, 95 % over {row['n']} prompts."
                if row["method"]
                else f"Mean accepted length of {row['n']} prompts, too few for an interval.",
            }
        return offered

    def error_sentence(self) -> Html:
        """Return how far a prediction from a bandwidth is to be trusted."""
        found = step_model.compare(self.rows)
        factor = step_model.missed_by(found)
        machines = " and ".join(sorted({p.cell.row.factors.get("machine", "") for p in found} - {""}))
        return cited_text(
            f"A predicted step is multiplied by {float(factor.low):.2f} to {float(factor.high):.2f}: by so much the "
            f"{len(found)} published cells missed it. All of them were measured on one kind of machine ({machines}). "
            "On another kind, with other kernels, it may be further off, and nothing here says by how much.",
            name="calculator-error",
        )

    def cards_chart(self) -> Chart:
        """Return drafted over raw of each acceptance row whose own cell has a raw rate and a step."""
        frame = chart_columns(
            pd.DataFrame(_ratio_line(c) for c in self.choices if c.raw is not None and c.step is not None)
        )
        drawing = bars_and_points(
            frame,
            series="verdict",
            order=order_of(frame["verdict"]),
            along=alt.Y("row:N", title=None, sort=list(frame["row"]), axis=NAMES),
            across=alt.X(
                "centre:Q", title="drafted / raw (1 = as fast as raw)", scale=alt.Scale(zero=False, padding=12)
            ),
            vertical=False,
        )
        words = "; ".join(f"{r.row}: {r.centre:.2f}, {r.verdict}" for r in frame.itertuples())
        return Chart(
            alt.layer(equal_line(1.0, "x"), drawing).properties(height=20 * len(frame) + 20),
            title="Each acceptance row with the raw rate and the step of its own cell",
            alt=f"Ratio of drafted to raw decode rate: {words}.",
            name="calculator-cards",
            note=sentences("The dashed line is raw decoding.", BARS, CLICK, corrected(frame["id"])),
        )

    def local_chart(self) -> Chart | Markdown:
        """Return the mean accepted length of each cell of a recorded run."""
        if self.local.empty:
            return Markdown("")
        frame = self.local.assign(
            cell=[f"{depth:,} tokens, {str(run)[-6:]}" for depth, run in self.local[["depth", "run"]].to_numpy()]
        )
        base = alt.Chart(frame[["cell", "regime", "estimate", "low", "high"]]).encode(
            y=alt.Y("cell:N", title=None, sort=list(dict.fromkeys(frame["cell"])), axis=NAMES),
            yOffset=alt.YOffset("regime:N", scale=alt.Scale(domain=order_of(frame["regime"]), paddingOuter=1)),
            color=colour("regime", order_of(frame["regime"])),
        )
        title = "mean accepted length (tokens)"
        bars = interval_bars(base, frame["low"], x=alt.X("low:Q", title=title), x2="high:Q")
        points = base.mark_point().encode(
            x=alt.X("estimate:Q", title=title, scale=alt.Scale(zero=False)),
            shape=shape("regime", order_of(frame["regime"])),
        )
        words = "; ".join(f"{r.regime} at {r.cell} {r.estimate:.2f}" for r in frame.itertuples())
        return Chart(
            alt.layer(*bars, points).properties(height=60 * frame["cell"].nunique() + 20),
            title="Mean accepted length of the recorded runs",
            alt=f"Mean accepted length by kind of text, depth and run: {words}.",
            name="calculator-runs",
            note=said_of_intervals(frame),
        )

    def cards_table(self) -> Html:
        """Return each acceptance row of the cards with its own raw rate and step, and what follows."""
        lines: list[list[Cell]] = []
        for choice in self.choices:
            line: list[Cell] = [
                f"{choice.row.card}: {_where(choice.row)}",
                cite(choice.row.id),
                choice.n,
                _text(choice.length, 2),
            ]
            lines.append([*line, *_economics(choice)])
        headings = ["row", "acceptance", "n", "length", "raw (tokens/s)", "step (ms)", "acceptance needed", "verdict"]
        caption = "The cards' acceptance rows with the raw rate and the step of their own cell, where there are any"
        return cited_table(lines, headings, caption, "calculator-cards")

    def local_table(self) -> Markdown:
        """Return the rows of recorded runs."""
        if self.local.empty:
            return Markdown("No run is recorded in `data/runs`.")
        columns = {
            "run": "run",
            "regime": "kind of text",
            "depth": "depth",
            "n_max": "n",
            "estimate": "length",
            "raw": "raw (tokens/s)",
            "step": "step (ms)",
            "n": "prompts",
        }
        return table(
            self.local, "Recorded runs: mean accepted length, raw rate and step", "calculator-runs", columns=columns
        )

    def _data(self, offered: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        sizes = step_model.models()
        missed = step_model.missed_by(step_model.compare(self.rows))
        return {
            "rows": offered,
            "targets": {name: _sizes(model) for name, model in sizes.items() if model.role == "target"},
            "drafters": {name: _sizes(model) for name, model in sizes.items() if model.role == "drafter"},
            "block": int(published.constants()["v4_draft_block_size"].interval.centre),
            "missed": [float(missed.low), float(missed.centre), float(missed.high)],
        }


def calculator(data: str = "") -> CalculatorPage:
    """Return the chapter's page; `data` is another folder of data than the checkout's.

    Raises:
        Problem: a published table has a bad row, or a recorded run is damaged.
    """
    use_data(data)
    rows = published.rows()
    return CalculatorPage(rows, choices(rows), local_lengths())


def local_lengths() -> pd.DataFrame:
    """Return the mean accepted length of every cell of committed runs, with raw rate and step of the same cell.

    Of each pair the newest run with both legs is taken: a row without a raw rate answers nothing here.

    Columns: run, regime, depth, n_max, estimate, low, high, n, method, raw (tokens/s), step (ms). Refused cells are
    left out.
    """
    frames = []
    for study in _newest_of_each_pair():
        lengths = depth_frame(study, "mean accepted length")
        if lengths.empty:
            continue
        n_max = {cell.n_max for cell in study.run.cells if cell.spec_type != "none"}
        kept = lengths[lengths["refused"] == ""].assign(run=study.run.id, n_max=max(n_max))
        for column, quantity in (("raw", "raw decode rate"), ("step", "step")):
            beside = depth_frame(study, quantity)
            values = (
                beside.rename(columns={"estimate": column})
                if len(beside)
                else pd.DataFrame(columns=["regime", "depth", column])
            )
            kept = kept.merge(values[["regime", "depth", column]], on=["regime", "depth"], how="left")
        frames.append(kept)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _newest_of_each_pair() -> list[Study]:
    found: dict[str, Study] = {}
    for folder in sorted(path.parent for path in (data_dir() / "runs").glob("*/run.json")):
        study = open_study(str(folder))
        if not raw_beside_drafted(study.run):
            continue
        pair = study.run.id.removesuffix(f"-{study.run.profile}-{study.run.id.rsplit('-', 1)[-1]}")
        if pair not in found or found[pair].run.created < study.run.created:
            found[pair] = study
    return [found[pair] for pair in sorted(found)]


def _offer(choice: Choice) -> dict[str, Any]:
    notes = notes_for([choice.row.id]).get(choice.row.id, ())
    corrected_by = "".join(f" Correction: {note.replaced_by}" for note in notes)
    how = f"Mean accepted length: {choice.length_from}; n: the card's {choice.n_from}. {PRINTED}{corrected_by}"
    return {
        "id": choice.row.id,
        "group": f"Card {choice.row.card}",
        "label": _label(choice.row),
        "n": choice.n,
        "length": [float(choice.length.low), float(choice.length.centre), float(choice.length.high)],
        "raw": None if choice.raw is None else float(choice.raw.centre),
        "step": None if choice.step is None else float(choice.step.centre),
        "href": source_link(choice.row.id),
        "how": how,
    }


def _label(row: Row) -> str:
    return f"{row.printed.text}, {_where(row)}"


def _where(row: Row) -> str:
    factors = row.factors
    depth = factors.get("depth", "several depths")
    text = factors.get("regime") or factors.get("prompt") or "text not stated"
    n_max = f"n_max {factors['n_max']}" if "n_max" in factors else ""
    return ", ".join(part for part in (text, f"{int(depth):,} tokens" if depth.isdigit() else depth, n_max) if part)


def _ratio_line(choice: Choice) -> dict[str, Any]:
    assert choice.raw is not None
    assert choice.step is not None
    ratio = choice.length / (choice.raw * choice.step / 1000)
    return {
        "id": choice.row.id,
        "row": short_label(choice.row),
        "printed": choice.row.printed.text,
        "verdict": step_model.verdict(ratio),
        "low": float(ratio.low),
        "centre": float(ratio.centre),
        "high": float(ratio.high),
    }


def _economics(choice: Choice) -> list[Cell]:
    if choice.raw is None or choice.step is None:
        return [None, None, None, "none: the card gives no raw rate or step"]
    raw, step = float(choice.raw.centre), float(choice.step.centre)
    ratio = choice.length / (choice.raw * choice.step / 1000)
    needed = break_even_acceptance(raw, step, choice.n)
    if choice.length_from == "printed":  # p_min cuts drafts: only a length has a break-even
        return [f"{raw:.2f}", f"{step:.1f}", f"length {break_even_length(raw, step):.2f}", step_model.verdict(ratio)]
    return [f"{raw:.2f}", f"{step:.1f}", f"{needed:.2f}", step_model.verdict(ratio)]


def _sizes(model: Model) -> dict[str, Any]:
    one_expert = model.layers * model.expert_parameters * model.expert_bits / 8
    return {
        "title": model.title,
        "experts": model.experts,
        "used": model.experts_used,
        "expert_bytes": float(one_expert),
        "dense_bytes": float(model.dense_bytes),
        "cache_bytes": model.cache_bytes_per_token,
    }


def _number(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)


def _text(value: Interval, digits: int) -> str:
    return f"{float(value.centre):.{digits}f} ({float(value.low):.{digits}f} to {float(value.high):.{digits}f})"


def _safe(text: str) -> str:
    return escape(visible(text))


@dataclass(frozen=True)
class _Slider:
    name: str
    label: str
    least: float
    most: float
    step: float
    value: float

    def html(self) -> str:
        span = f'min="{self.least:g}" max="{self.most:g}" step="{self.step:g}" value="{self.value:g}"'
        return (
            f'<div class="calculator-field"><label for="calculator-{self.name}">{escape(self.label)}</label>'
            f'<input type="range" id="calculator-{self.name}" data-follows="{self.name}" {span}>'
            f'<input type="number" name="{self.name}" aria-label="{escape(self.label)}, exact" min="{self.least:g}" '
            f'step="any" value="{self.value:g}" inputmode="decimal"></div>'
        )


_N = _Slider("n", "n, tokens drafted a step", 1, 16, 1, 5)
_MEASURED = (
    _Slider("raw", "Raw decode rate (tokens/s)", 0.5, 200, 0.5, 13),
    _Slider("step", "Step cost (ms)", 1, 600, 1, 390),
    _Slider("unsure", "Uncertainty of either (± %)", 0, 20, 0.5, 0),
)
_PREDICTED = (
    _Slider("bandwidth", "Memory bandwidth (GB/s)", 20, 4000, 10, 120),
    _Slider("depth", "Depth (tokens)", 0, 200000, 1000, 0),
    _Slider("fixed", "Fixed cost of a target evaluation (ms)", 0, 50, 0.5, 0),
    _Slider("draft", "Fixed cost of a draft (ms)", 0, 50, 0.5, 0),
)


def _fields() -> str:
    measured, predicted = ("".join(slider.html() for slider in sliders) for sliders in (_MEASURED, _PREDICTED))
    selects = "".join(
        f'<div class="calculator-field"><label for="calculator-{role}">{role.capitalize()}</label>'
        f'<select id="calculator-{role}" name="{role}">'
        + "".join(
            f'<option value="{escape(name)}">{_safe(model.title)}</option>'
            for name, model in step_model.models().items()
            if model.role == role
        )
        + "</select></div>"
        for role in ("target", "drafter")
    )
    return (
        f"{_N.html()}<fieldset><legend>Raw rate and step</legend>"
        '<label><input type="radio" name="source" value="measured" checked> as I measured them</label> '
        '<label><input type="radio" name="source" value="bandwidth"> predicted from a memory bandwidth</label>'
        "</fieldset>"
        f'<div class="calculator-measured">{measured}</div>'
        f'<div class="calculator-bandwidth" hidden>{selects}{predicted}</div>'
    )


_RESULTS = "".join(
    f'<div><dt>{label}</dt><dd data-result="{name}">–</dd></div>'
    for name, label in (
        ("ratio", "Drafted / raw"),
        ("decode", "Decode rate, drafted"),
        ("raw", "Decode rate, raw"),
        ("step", "Step"),
        ("length", "Mean accepted length"),
        ("needed", "Break-even length"),
        ("acceptance", "Break-even acceptance"),
    )
)
_PAGE = (
    '<div class="calculator"><script type="application/json">{data}</script>\n'
    "<noscript><p>The calculator needs scripts. The tables and the formulas below do not.</p></noscript>\n"
    '<form hidden data-needs-scripts aria-label="Calculator"><div class="calculator-field">'
    '<label for="calculator-row">Acceptance</label><select id="calculator-row" name="row">{options}</select></div>'
    "{fields}</form>\n"
    '<div class="calculator-result" hidden data-needs-scripts role="status" aria-live="polite" aria-atomic="true">'
    '<p><strong class="calculator-verdict" data-result="verdict">–</strong> for '
    '<a class="calculator-row" href="#">this row</a></p>'
    '<div class="calculator-bar" aria-hidden="true"><span class="calculator-span"></span>'
    '<span class="calculator-point"></span><span class="calculator-one"></span></div>'
    '<div class="calculator-scale" aria-hidden="true"><span>¼ ×</span><span>½ ×</span><span>1 ×</span><span>2 ×</span>'
    "<span>4 ×</span></div>"
    f"<dl>{_RESULTS}</dl>"
    '<p class="chart-note" data-result="how"></p></div></div>'
)
