"""The chapter of the published tables: what the two cards print, table by table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from analysis.evidence import cells, claims, published
from analysis.evidence.published import Row
from analysis.publish.cards.marks import BARS, CLICK, NAMES, bars_and_points, values_frame
from analysis.publish.chart import Chart
from analysis.publish.cited import Cell, Cite, cite, cited_table, cited_text, corrected, use_data
from analysis.publish.marks import sentences
from analysis.publish.style import HEIGHT, order_of
from analysis.publish.tables import Html

REGIMES = ("invention", "continuation", "recall", "prose")
NOT_PRINTED = "not printed"
DEEP = "176000"


@dataclass(frozen=True)
class TablesPage:
    """The tables and charts of the chapter."""

    rows: Mapping[str, Row]

    def sentence(self) -> Html:
        """Return how much the cards print, in words."""
        counts = {card: sum(row.card == card for row in self.rows.values()) for card in "AB"}
        return cited_text(
            f"Card A prints {counts['A']} measured values, card B {counts['B']}. ",
            "Every number below leads to its row: its quote, its section and the factors that the card states. "
            "A small number behind a value is a correction; it stands beside the table.",
            name="tables-sentence",
        )

    def regime_chart(self) -> Chart:
        """Return card A's acceptance by depth and kind of text."""
        frame = values_frame(self._regimes())
        frame["where"] = [f"{int(tokens):,} tokens" for tokens in frame["tokens"]]
        order = order_of(frame["regime"])
        drawing = bars_and_points(
            frame,
            series="regime",
            order=order,
            along=alt.X("where:N", title="depth", sort=list(dict.fromkeys(frame.sort_values("tokens")["where"]))),
            across=alt.Y("centre:Q", title="acceptance", scale=alt.Scale(domain=[0, 1])),
            offset=alt.XOffset("regime:N", scale=alt.Scale(domain=order, paddingOuter=1)),
        )
        words = "; ".join(f"{r.regime} at {r.where} {r.printed}" for r in frame.itertuples())
        return Chart(
            drawing.properties(height=HEIGHT),
            title="Card A: acceptance by depth and kind of text",
            alt=f"Acceptance of card A's drafter: {words}.",
            name="card-a-regime",
            note=sentences(BARS, CLICK, corrected(frame["id"])),
        )

    def regime_table(self) -> Html:
        """Return the same as a table, depth by kind of text."""
        found = self._regimes()
        depths = sorted({int(row.factors["depth"]) for row in found})
        by_cell = {(row.factors["regime"], int(row.factors["depth"])): row.id for row in found}
        lines: list[list[Cell]] = [
            [regime, *(_or_nothing(by_cell.get((regime, depth))) for depth in depths)] for regime in REGIMES
        ]
        caption = "Card A, acceptance by kind of text and depth (accepted over drafted tokens)"
        return cited_table(lines, ["kind of text", *(f"{d:,} tokens" for d in depths)], caption, "table-a-regime")

    def deep_chart(self) -> Chart:
        """Return card A's decode rates at its greatest depth."""
        return _cells_chart(self._deep(), "Card A at its greatest depth: decode rate", "card-a-deep", named="regime")

    def short_chart(self) -> Chart:
        """Return card A's decode rates at short context."""
        return _cells_chart(self._short(), "Card A at short context: decode rate", "card-a-short", named="prompt")

    def deep_table(self) -> Html:
        """Return card A's cells at its greatest depth: acceptance, decode rate, gain."""
        return _cells_table(
            self._deep(),
            "Card A at its greatest depth, drafted against raw decoding (tokens/s)",
            "table-a-deep",
            named="regime",
        )

    def short_table(self) -> Html:
        """Return card A's cells at short context."""
        return _cells_table(
            self._short(),
            "Card A at short context, drafted against raw decoding (tokens/s)",
            "table-a-short",
            named="prompt",
        )

    def depth_chart(self) -> Chart:
        """Return card B's decode rate by depth, raw and drafted, for both builds."""
        frame = values_frame(self._by_depth())
        frame["leg"] = [_leg(self.rows[name]) for name in frame["id"]]
        order = list(dict.fromkeys(frame["leg"]))
        frame["depth"] = [f"{int(tokens):,}" for tokens in frame["tokens"]]
        drawing = bars_and_points(
            frame,
            series="leg",
            order=order,
            along=alt.X("depth:N", title="prompt tokens", sort=list(dict.fromkeys(frame["depth"]))),
            across=alt.Y("centre:Q", title="decode rate (tokens/s)", scale=alt.Scale(zero=True)),
            connected=True,
        )
        ends = frame.groupby("leg", sort=False)["printed"].agg(["first", "last"])
        words = "; ".join(f"{leg} from {first} to {last}" for leg, first, last in ends.itertuples())
        return Chart(
            drawing.properties(height=HEIGHT),
            title="Card B: decode rate by depth",
            alt=f"Tokens a second by depth: {words}.",
            name="card-b-depth",
            note=sentences(
                BARS, CLICK, f"Machine: {self.rows['b_12k_raw'].factors['machine']}.", corrected(frame["id"])
            ),
        )

    def depth_table(self) -> Html:
        """Return card B's decode rates by depth, with the printed and the computed gains."""
        known = claims.claims()
        lines: list[list[Cell]] = []
        for name in ("cached", "12k", "25k", "40k", "85k"):
            depth = self.rows[f"b_{name}_raw"]
            line: list[Cell] = [f"{int(depth.factors['depth']):,}"]
            for build in ("", "_hip"):
                ids = (f"b_{name}{build}_draft", f"b_{name}{build}_raw")
                printed = f"b_c_gain_{name}"
                gain = cite(printed) if not build and printed in known else _gain(self.rows, *ids)
                line += [cite(ids[1]), cite(ids[0]), gain]
            lines.append(line)
        headings = ["tokens", "mainline raw", "drafted", "gain", "hipCUB raw", "drafted", "gain, computed"]
        return cited_table(
            lines,
            headings,
            f"Card B, decode rate (tokens/s) by depth, n_max 2, on {depth.factors['machine']}",
            "table-b-depth",
        )

    def n_max_chart(self) -> Chart:
        """Return card B's decode rate by n_max, from both of its tables."""
        frame = values_frame(row for row in self.rows.values() if _in_n_max_table(row))
        frame["table"] = [_n_max_table(self.rows[name]) for name in frame["id"]]
        order = list(dict.fromkeys(frame["table"]))
        drawing = bars_and_points(
            frame,
            series="table",
            order=order,
            along=alt.X("n_max:O", title="n_max"),
            across=alt.Y("centre:Q", title="decode rate (tokens/s)", scale=alt.Scale(zero=True)),
            connected=True,
        )
        words = "; ".join(f"{r.table}, n_max {r.n_max}: {r.printed}" for r in frame.itertuples())
        return Chart(
            drawing.properties(height=HEIGHT),
            title="Card B: decode rate by n_max",
            alt=f"Tokens a second by n_max: {words}.",
            name="card-b-n-max",
            note=sentences(BARS, CLICK, corrected(frame["id"])),
        )

    def n_max_table(self) -> Html:
        """Return decode rate and acceptance by n_max."""
        lines: list[list[Cell]] = [["none", cite("b_n0_decode"), NOT_PRINTED, NOT_PRINTED]]
        lines += [
            [
                n,
                _or_nothing(_known(self.rows, f"b_n{n}_decode")),
                _or_nothing(_known(self.rows, f"b_n{n}_acceptance")),
                _or_nothing(_known(self.rows, f"b_depth_n{n}")),
            ]
            for n in sorted({int(row.factors["n_max"]) for row in self.rows.values() if _in_n_max_table(row)})
        ]
        return cited_table(
            lines,
            ["n_max", "short prompt", "acceptance", f"{self._depth_of_n_max()} tokens"],
            "Card B, decode rate (tokens/s) and acceptance by n_max",
            "table-b-n-max",
        )

    def files_table(self) -> Html:
        """Return card B's drafter files: size and decode rate."""
        names = ("q2k", "bf16", "q3k", "iq2")
        lines: list[list[Cell]] = [
            [
                self.rows[f"b_{name}_12k"].factors["drafter_file"],
                _or_nothing(_known(self.rows, f"b_{name}_size")),
                cite(f"b_{name}_12k"),
                _or_nothing(_known(self.rows, f"b_{name}_768")),
            ]
            for name in names
        ]
        return cited_table(
            lines,
            ["drafter file", "size", "decode at n_max 2", "decode at n_max 3"],
            "Card B, drafter files",
            "table-b-files",
        )

    def files_chart(self) -> Chart:
        """Return card B's decode rate by drafter file."""
        found = [row for row in self.rows.values() if row.section == self.rows["b_q2k_12k"].section]
        frame = values_frame(row for row in found if row.quantity == "decode")
        frame["n_max"] = [f"n_max {row}" if isinstance(row, str) else "n_max not stated" for row in frame["n_max"]]
        frame["drafter_file"] = [_short_name(name) for name in frame["drafter_file"]]
        order = list(dict.fromkeys(frame["n_max"]))
        drawing = bars_and_points(
            frame,
            series="n_max",
            order=order,
            along=alt.Y("drafter_file:N", title=None, sort=list(dict.fromkeys(frame["drafter_file"])), axis=NAMES),
            across=alt.X("centre:Q", title="decode rate (tokens/s)", scale=alt.Scale(zero=False, padding=12)),
            vertical=False,
        )
        words = "; ".join(f"{r.drafter_file}, {r.n_max}: {r.printed}" for r in frame.itertuples())
        return Chart(
            drawing.properties(height=150),
            title="Card B: decode rate by drafter file",
            alt=f"Tokens a second by drafter file: {words}.",
            name="card-b-files",
            note=sentences(BARS, CLICK, corrected(frame["id"])),
        )

    def _deep(self) -> list[cells.Drafted]:
        return [c for c in self._of_a() if c.row.factors.get("depth") == DEEP]

    def _short(self) -> list[cells.Drafted]:
        return [c for c in self._of_a() if c.row.factors.get("depth") != DEEP]

    def _of_a(self) -> list[cells.Drafted]:
        return [c for c in cells.drafted(self.rows) if c.row.card == "A"]

    def _depth_of_n_max(self) -> str:
        return f"{int(self.rows['b_depth_n2'].factors['depth']):,}"

    def _regimes(self) -> list[Row]:
        return [
            row
            for row in self.rows.values()
            if row.card == "A" and row.quantity == "acceptance" and row.factors.get("regime") in REGIMES
        ]

    def _by_depth(self) -> list[Row]:
        section = self.rows["b_cached_raw"].section
        found = [row for row in self.rows.values() if row.section == section and row.quantity == "decode"]
        return sorted(found, key=lambda row: (_leg(row), int(row.factors["depth"])))


def published_tables(data: str = "") -> TablesPage:
    """Return the chapter's page; `data` is another folder of data than the checkout's.

    Raises:
        Problem: a published table has a bad row (file, line, reason).
    """
    use_data(data)
    return TablesPage(published.rows())


def _cells_table(found: Iterable[cells.Drafted], caption: str, name: str, *, named: str) -> Html:
    lines: list[list[Cell]] = []
    for cell in found:
        factors = cell.row.factors
        label = factors.get(named) or factors.get("prompt") or factors.get("target", "")
        gain = None if cell.raw is None else _ratio(cell)
        lines.append(
            [
                label,
                factors.get("build", "not stated"),
                cite(cell.acceptance.id) if cell.acceptance else NOT_PRINTED,
                cite(cell.row.id),
                cite(cell.raw.id) if cell.raw else NOT_PRINTED,
                gain,
            ]
        )
    headings = ["text", "build", "acceptance", "drafted", "raw", "drafted / raw, computed"]
    return cited_table(lines, headings, caption, name)


def _cells_chart(found: Sequence[cells.Drafted], title: str, name: str, *, named: str) -> Chart:
    """Return decode rates, raw and drafted, of the cells by text and build."""
    raw = {cell.raw.id: cell.raw for cell in found if cell.raw is not None}
    frame = values_frame([*raw.values(), *(cell.row for cell in found)])
    labels = {cell.row.id: _label(cell, named) for cell in found}
    labels |= {cell.raw.id: f"raw, {_raw_label(cell.raw)}" for cell in found if cell.raw is not None}
    frame["cell"] = [labels[row] for row in frame["id"]]
    frame["leg"] = ["raw" if row in raw else "drafted" for row in frame["id"]]
    drawing = bars_and_points(
        frame,
        series="leg",
        order=["raw", "drafted"],
        along=alt.Y("cell:N", title=None, sort=list(dict.fromkeys(frame["cell"])), axis=NAMES),
        across=alt.X("centre:Q", title="decode rate (tokens/s)", scale=alt.Scale(zero=False, padding=12)),
        vertical=False,
    )
    words = "; ".join(f"{r.cell} {r.printed}" for r in frame.itertuples())
    machines = {cell.row.factors["machine"] for cell in found if "machine" in cell.row.factors}
    return Chart(
        drawing.properties(height=24 * frame["cell"].nunique() + 20),
        title=title,
        alt=f"Tokens a second: {words}.",
        name=name,
        note=sentences(BARS, CLICK, f"Machine: {', '.join(sorted(machines))}.", corrected(frame["id"])),
    )


def _label(cell: cells.Drafted, named: str) -> str:
    factors = cell.row.factors
    text = factors.get(named) or factors.get("prompt") or _short_name(factors.get("target", ""))
    build = "rollback" if "rollback" in factors.get("build", "") else factors.get("build", "").partition(" ")[0]
    return f"{text}, {build}" if named == "prompt" and build else text


def _raw_label(row: Row) -> str:
    if row.factors.get("depth") in (DEEP, "short"):
        return row.factors.get("backend", "")
    return _short_name(row.factors.get("target", ""))


def _short_name(name: str) -> str:
    """Return a file's or target's name without what all of them have in common."""
    return name.removesuffix(".gguf").rpartition("DSpark-")[2].removeprefix("DeepSeek-V4-Flash-")


def _ratio(cell: cells.Drafted) -> Cite | None:
    if cell.raw is None:
        return None
    ratio = cell.row.printed.interval / cell.raw.printed.interval
    low, high = f"{float(ratio.low):.2f}", f"{float(ratio.high):.2f}"
    return Cite(low if low == high else f"{low} to {high}", (cell.row.id, cell.raw.id))


def _gain(rows: Mapping[str, Row], drafted: str, raw: str) -> Cite:
    gain = (rows[drafted].printed.interval / rows[raw].printed.interval - 1) * 100
    return Cite(f"{float(gain.centre):+.1f} %", (drafted, raw))


def _leg(row: Row) -> str:
    build = "hipCUB" if "hipCUB" in row.factors["build"] else "mainline"
    return f"{build} {'raw' if cells.is_raw(row) else 'drafted'}"


def _in_n_max_table(row: Row) -> bool:
    return (
        row.card == "B"
        and row.quantity == "decode"
        and row.id.startswith(("b_n", "b_depth_n"))
        and "n_max" in row.factors
    )


def _n_max_table(row: Row) -> str:
    depth = row.factors["depth"]
    return "short prompt" if depth == "short" else f"{int(depth):,} tokens"


def _known(rows: Mapping[str, Row], name: str) -> str | None:
    return name if name in rows else None


def _or_nothing(name: str | None) -> Cell:
    return NOT_PRINTED if name is None else cite(name)
