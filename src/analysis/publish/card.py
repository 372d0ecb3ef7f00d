"""A Hugging Face model card from a recorded run: header, tables, provenance, gates, corrections, commands."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from huggingface_hub.errors import HFValidationError
from huggingface_hub.repocard import REGEX_YAML_BLOCK
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # not named in its __all__
from yaml import YAMLError  # type: ignore[import-untyped]  # its stubs are a package of their own

from analysis.convert.pairs import load_pair
from analysis.drafter.card import pipe_table
from analysis.evidence.corrections import Correction, corrections
from analysis.measure.estimate import cells_of, depth_frame, ratio_frame
from analysis.measure.plan import RAW
from analysis.measure.study import Study
from analysis.publish.card_tables import EXACT, CardTable, card_tables
from analysis.publish.commands import START_THEM, measure_rows, needs_servers, pair_name, show_again
from analysis.publish.promote import check_anonymous
from analysis.publish.served import UNTOLD, extended_sentence, is_served, settings, speculation, started_sentence
from analysis.publish.tables import escape_text
from analysis.records import Pair, Problem, Run
from analysis.stats.intervals import FEW_CLUSTERS

SAID = 3  # what a gate saw, at most, in a card; `specbook gates` prints all of it
TAGS = ("speculative-decoding", "llama.cpp", "gguf", "specbook")
_LICENCE = re.compile(r"^[a-z0-9][a-z0-9.+-]*$")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# What names a cell apart from the settings that all cells of a run share.
_PLACE = frozenset({"depth", "regime", "spec_type", "n_max", "n_min", "p_min", "pair", "drafter_sha256", "machine"})


@dataclass(frozen=True)
class CardOptions:
    """What a run does not know of itself: names and licence as the Hub writes them. Empty leaves them out."""

    model_name: str = ""
    base_model: str = ""
    licence: str = ""


def card_text(study: Study, options: CardOptions | None = None, *, exact: bool = False) -> str:
    """Return the model card of a run.

    Args:
        study: the run.
        options: names and licence; by default what the run's pair states.
        exact: give estimates 12 decimals instead of rounding them: what the audit of a card compares with.

    Raises:
        Problem: the run holds no number that may be published, or an option is not as the Hub wants it.
    """
    tables = card_tables(study, exact=exact)
    if not tables:
        raise Problem(f"run {study.run.id} holds no cell to report", expected="a run with samples")
    header = _header(study, options or CardOptions(), exact)
    body = "\n\n".join(part for part in _body(study, tables) if part)
    text = f"---\n{header.to_yaml()}\n---\n\n{body}\n"
    check_card(text)
    return text


def check_card(text: str) -> ModelCard:
    """Return a card as the Hub's classes read it, after checking what the Hub would refuse, without a network.

    Raises:
        Problem: the header is no valid metadata, a row of a table has another number of cells than its heading, a
            control character is in the text, or it names this machine.
    """
    if _CONTROL.search(text):
        raise Problem("the card holds a control character", expected="plain text")
    headless = Problem("the card has no header", expected="YAML between two lines of three hyphens")
    if REGEX_YAML_BLOCK.search(text) is None:  # of which the Hub's classes warn, and go on
        raise headless
    try:
        card = ModelCard(text)
    except (ValueError, YAMLError) as error:
        raise Problem(f"the card's header is not valid: {' '.join(str(error).split())}") from None
    if not isinstance(card.data, ModelCardData) or all(value is None for value in vars(card.data).values()):
        raise headless
    _check_header(card.data)
    _check_tables(card.text)
    check_anonymous(text, where="the card")
    return card


def _header(study: Study, options: CardOptions, exact: bool) -> ModelCardData:
    pair = _pair(study.run)
    source = pair.drafter or pair.target if pair else None
    hub = [part.repo for part in (pair.target, pair.drafter) if part and part.repo] if pair else []
    data = ModelCardData(
        license=(options.licence or (source.licence if source else "")).lower() or None,
        base_model=options.base_model or (hub[0] if hub else None),
        pipeline_tag="text-generation",
        tags=list(TAGS),
        model_name=options.model_name or pair_name(study.run),
        eval_results=list(_results(study, exact)) or None,
        specbook={"run": study.run.id, "commit": study.run.commit, "engine": study.run.engine.commit},
    )
    _check_header(data)
    return data


def _results(study: Study, exact: bool) -> Iterator[EvalResult]:
    """Yield mean accepted lengths and speed ratios; a ratio's name says its machine, because it does not travel."""
    lengths = depth_frame(study, "mean accepted length")
    ratios = ratio_frame(study) if cells_of(study, RAW) else lengths.head(0)
    machine = study.run.machine.name
    for frame, metric, name in (
        (lengths, "mean_accepted_length", "mean accepted length"),
        (ratios, "speed_ratio", f"decode rate, drafted over raw, on {machine}"),
    ):
        for row in frame.to_dict("records"):
            if row["refused"]:
                continue
            place = f"{row['regime']} at depth {row['depth']}"
            yield EvalResult(
                task_type="text-generation",
                dataset_type="specbook-prompts",
                dataset_name=f"specbook, {place}",
                dataset_config=f"{row['regime']}-{row['depth']}",  # the Hub groups metrics by it
                metric_type=metric,
                metric_name=f"{name}, {place}, {row['n']} prompts",
                metric_value=round(float(row["estimate"]), EXACT if exact else 4),
            )


def _check_header(data: ModelCardData) -> None:
    if data.license is not None and not (isinstance(data.license, str) and _LICENCE.match(data.license)):
        raise Problem(f"licence {data.license!r}", expected="an identifier such as apache-2.0, or other")
    bases = [data.base_model] if isinstance(data.base_model, str) else data.base_model or []
    for base in bases:
        try:
            validate_repo_id(base)
        except HFValidationError as error:
            raise Problem(f"base model {base!r} is no repository: {error}", expected="owner/name") from None
        if "/" not in base:
            raise Problem(f"base model {base!r} has no owner", expected="owner/name")
    for result in data.eval_results or []:
        if not isinstance(result.metric_value, int | float):
            raise Problem(f"metric {result.metric_type} is {result.metric_value!r}", expected="a number")


def _check_tables(text: str) -> None:
    width = 0
    for number, line in enumerate(text.splitlines(), 1):
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        if width and cells and cells != width:
            raise Problem(f"line {number} of the card has {cells - 1} cells", expected=f"{width - 1}, as above it")
        width = cells


def _body(study: Study, tables: Iterable[CardTable]) -> Iterator[str]:
    run = study.run
    yield f"# {escape_text(run.title)}"
    kept = len(study.publishable)
    yield (
        f"Measured with llama.cpp's own server: run `{run.id}`, {len(study.samples)} samples, {kept} of them in the "
        "numbers below. A value is written with its 95 % interval over prompts and the number of prompts behind it, "
        "`value [low, high] (n = prompts)`; without brackets there were too few prompts for an interval. Fewer than "
        f"{FEW_CLUSTERS} prompts are few: the interval is then easily too narrow."
    )
    yield extended_sentence(study)
    for table in tables:
        yield f"## {table.title}"
        yield table.note
        yield pipe_table(table.headings, table.rows)
        yield f"Shown again from the recorded samples by:\n\n```console\n$ {show_again(run, table.chapter)}\n```"
    yield from _provenance(study)
    yield from _gates(study)
    yield from _corrections(run)
    yield from _commands(run)


def _provenance(study: Study) -> Iterator[str]:
    run = study.run
    engine, machine = run.engine, run.machine
    devices = ", ".join(machine.devices) or (UNTOLD if is_served(run) else "none but the processor")
    rows = [
        ("machine", f"{machine.cpu}, {machine.cores} cores, {machine.memory / 2**30:.0f} GiB, {machine.os}"),
        ("devices", devices),
        ("engine", f"llama-server {engine.version}, build {engine.build}, commit {engine.commit or 'not known'}"),
        ("backend", engine.backend),
        ("text", f"{run.corpus}, SHA-256 {run.corpus_sha256[:16]}"),
        ("measured", f"{run.created} to {run.ended or 'not finished'}"),
        ("specbook", f"commit {run.commit or 'not known'}{', with uncommitted changes' if run.dirty else ''}"),
        *([("servers", started)] if (started := started_sentence(study)) else []),
        *((f"file {number}", f"{f.path}, {f.size} bytes, SHA-256 {f.sha256}") for number, f in enumerate(run.files, 1)),
        *_settings(study),
    ]
    yield "## How it was measured"
    yield pipe_table(("what", "as recorded"), [(name, escape_text(value)) for name, value in rows])


def _settings(study: Study) -> Iterator[tuple[str, str]]:
    cells = study.run.cells
    drafted = [cell for cell in cells if cell.spec_type != "none"]
    yield "speculation", speculation(study)
    yield "legs", "raw and drafted" if drafted and len(drafted) < len(cells) else "drafted" if drafted else "raw"
    yield from settings(study, leave_out=_PLACE)


def _gates(study: Study) -> Iterator[str]:
    levels = Counter(found.level for found in study.findings)
    yield "## Gates"
    yield (
        f"Every sample passed through the gates of specbook: {levels['refuse']} refusals, {levels['warn']} warnings, "
        f"{levels['unchecked']} that could not be checked, {levels['pass']} in order. What is refused enters no number."
    )
    saw: dict[tuple[str, str, str], Counter[str]] = {}
    for found in study.findings:
        saw.setdefault((found.level, found.gate, found.expected), Counter())[found.saw] += 1
    rows = [
        (level, gate, str(seen.total()), escape_text(_most_often(seen)), escape_text(expected))
        for (level, gate, expected), seen in saw.items()
    ]
    yield pipe_table(("level", "gate", "times", "saw", "expected"), rows)


def _most_often(seen: Counter[str]) -> str:
    """Return what a gate saw most often, and how many other things it saw."""
    shown = [f"{text} ({times})" if len(seen) > 1 else text for text, times in seen.most_common(SAID)]
    others = len(seen) - len(shown)
    return "; ".join([*shown, *([f"{others} others"] if others else [])])


def _corrections(run: Run) -> Iterator[str]:
    yield "## Corrections"
    found = corrections_of(run)
    if not found:
        yield "The ledger of corrections (`specbook corrections`) has no entry for this run."
        return
    rows = [(escape_text(c.claimed), escape_text(c.replaced_by), escape_text(c.found)) for c in found]
    yield pipe_table(("claimed", "replaced by", "how it was found"), rows)


def corrections_of(run: Run) -> list[Correction]:
    """Return the ledger's entries that name a run."""
    name = re.compile(rf"(?<![\w.-]){re.escape(run.id)}(?![\w-])")
    return [c for c in corrections().values() if name.search(" ".join((c.claimed, c.replaced_by, c.found, c.source)))]


def _commands(run: Run) -> Iterator[str]:
    yield "## Rebuild every row"
    yield "In a checkout of specbook at the commit above, after `make env`. Check and print the recorded run:"
    yield _console([shlex.join(["specbook", verb, run.id]) for verb in ("validate", "gates", "card")])
    both_legs = len({cell.spec_type == "none" for cell in run.cells}) == 2
    if needs_servers(run):
        yield f"Measure it again. {START_THEM}"
    else:
        yield "Measure a row again, one command a row; what was measured before is not measured twice:"
    yield _console(measure_rows(run, "05_economics" if both_legs else "04_depth_regime"))


def _console(commands: Iterable[str]) -> str:
    return "\n".join(["```console", *(f"$ {command}" for command in commands), "```"])


def _pair(run: Run) -> Pair | None:
    """Return the run's pair where it is one that this checkout knows."""
    try:
        return load_pair(pair_name(run))
    except Problem:
        return None
