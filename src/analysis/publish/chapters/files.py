"""Chapter 01: which files take part, and what they say of themselves."""

from dataclasses import dataclass
from pathlib import Path

import altair as alt
import pandas as pd

from analysis.convert.fetch import fetch
from analysis.convert.gguf import GGUFFile, read_gguf
from analysis.convert.pairs import load_pair
from analysis.convert.summary import summarise
from analysis.publish.chart import Chart
from analysis.publish.style import colour, order_of
from analysis.publish.tables import Markdown, escape_text, table
from analysis.records import Pair, Source

MIB = 2**20


@dataclass(frozen=True)
class ModelFile:
    """A file of a pair: its part in it, where it came from, and its header."""

    part: str
    source: Source
    path: Path
    header: GGUFFile


@dataclass(frozen=True)
class FilesPage:
    """The tables and the chart of the chapter."""

    pair: Pair
    files: tuple[ModelFile, ...]

    def pair_table(self) -> Markdown:
        """Return what the pair is."""
        pair = self.pair
        rows = [
            ("name", pair.name),
            ("what it is", pair.title),
            ("speculation", pair.spec_type),
            ("drafted tokens a step, at most", str(pair.n_max) if pair.spec_type != "none" else "none"),
            ("context of the server", f"{pair.context} tokens"),
        ]
        return _facts(rows, f"The pair {pair.name}", "pair")

    def files_table(self) -> Markdown:
        """Return every file with its size, hash and licence."""
        frame = pd.DataFrame(
            {
                "part": item.part,
                "file": item.path.name,
                "from": item.source.package or item.source.repo or item.source.kind,
                "MiB": item.header.size / MIB,
                "sha256": item.source.sha256[:16] or "not published",
                "checked": "equal" if item.source.sha256 else "recorded only",
                "licence": item.source.licence or "not stated",
            }
            for item in self.files
        )
        headings = {name: name for name in frame.columns} | {"sha256": "SHA-256 (first 16)"}
        return table(frame, "The files of the pair", "files", columns=headings, digits=1, code=("file", "sha256"))

    def facts_table(self) -> Markdown:
        """Return what the headers say."""
        rows = []
        for item in self.files:
            header = item.header
            rows += [
                (f"{item.part}: architecture", header.architecture or "not stated"),
                (f"{item.part}: blocks", _number(header.block_count)),
                (f"{item.part}: trained context", f"{_number(header.context_length)} tokens"),
                (f"{item.part}: vocabulary", f"{_number(header.vocabulary_size)} tokens"),
                (f"{item.part}: vocabulary's SHA-256", header.tokens_sha256[:16] or "no vocabulary"),
                (f"{item.part}: parameters", f"{header.parameters / 1e6:.1f} million"),
                (f"{item.part}: tensors", str(len(header.tensors))),
                (f"{item.part}: chat template", "present" if header.has_chat_template else "absent"),
            ]
        return _facts(rows, "What the headers say", "facts")

    def bytes_chart(self) -> Chart:
        """Return the bytes of each group of tensors."""
        frame = self._groups()
        drawing = (
            alt.Chart(frame)
            .mark_bar()
            .encode(
                x=alt.X("mib:Q", title="MiB"),
                y=alt.Y("group:N", title=None, sort="-x"),
                color=colour("part", order_of(frame["part"])),
                tooltip=[
                    "part",
                    "group",
                    "tensors",
                    "types",
                    alt.Tooltip("bits:Q", format=".2f", title="bits a weight"),
                ],
            )
            .properties(height=26 * frame["group"].nunique())
        )
        words = "; ".join(f"{row['part']} {row['group']} {row['mib']:.1f} MiB" for row in frame.to_dict("records"))
        return Chart(drawing, title="Where the bytes are", alt=f"Bytes by group of tensors: {words}.", name="bytes")

    def groups_table(self) -> Markdown:
        """Return the groups of tensors with types and bits per weight."""
        headings = {
            "part": "part",
            "group": "tensors",
            "tensors": "number",
            "types": "types",
            "parameters": "parameters (million)",
            "mib": "MiB",
            "bits": "bits a weight",
        }
        return table(self._groups(), "Tensors by what they are for", "groups", columns=headings, digits=2)

    def sentence(self) -> Markdown:
        """Return what to remember of the files, in words."""
        texts = []
        for item in self.files:
            largest = summarise(item.header)[0]
            share = largest.nbytes / sum(tensor.nbytes for tensor in item.header.tensors)
            texts.append(
                f"The {item.part} holds {item.header.parameters / 1e6:.0f} million parameters in "
                f"{item.header.size / MIB:.0f} MiB, {8 * item.header.size / item.header.parameters:.2f} bits each; "
                f"{escape_text(largest.name)} takes {100 * share:.0f} % of it."
            )
        if len(self.files) == 1:
            texts.append("Nothing else is loaded: what drafts here, if anything does, needs no weights.")
        return Markdown(" ".join(texts))

    def _groups(self) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "part": item.part,
                "group": group.name,
                "tensors": group.tensors,
                "types": ", ".join(group.types),
                "parameters": group.parameters / 1e6,
                "mib": group.nbytes / MIB,
                "bits": group.bits_per_weight,
            }
            for item in self.files
            for group in summarise(item.header)
        )


def files(pair: str) -> FilesPage:
    """Fetch and check the files of a pair and read their headers.

    Raises:
        Problem: the pair is unknown, or a file cannot be had, is not the one named, or is damaged.
    """
    definition = load_pair(pair)
    parts = [("target", definition.target)] + ([("drafter", definition.drafter)] if definition.drafter else [])
    return FilesPage(definition, tuple(_model_file(part, source) for part, source in parts))


def _model_file(part: str, source: Source) -> ModelFile:
    path = fetch(source)
    return ModelFile(part, source, path, read_gguf(path))


def _facts(rows: list[tuple[str, str]], caption: str, name: str) -> Markdown:
    return table(pd.DataFrame(rows, columns=["fact", "value"]), caption, name, columns={"fact": "", "value": "value"})


def _number(value: int | None) -> str:
    return "not stated" if value is None else f"{value}"
