"""What a changed file costs in quality: its perplexity beside its reference's, over the text that prompts are cut from.

A quantized target that decodes faster is no gain if it predicts worse, so this stands beside every speed of one.
"""

import json
from itertools import zip_longest
from pathlib import Path

from analysis.convert.files import whole_file
from analysis.convert.gguf import read_gguf
from analysis.launch import resolve_engine
from analysis.measure.corpus import Corpus
from analysis.measure.exact.perplexity import Quality, compare_perplexity
from analysis.measure.life import now
from analysis.measure.provenance import commit, file_hashes
from analysis.records import Engine, FileHash, Problem
from analysis.records.base import parse, plain, record

CONTEXT = 256
CHUNKS = 40
LEAST = 256  # tokens, of which the tool predicts half; below a hundred it keeps its result to itself
PASSAGE = 2000  # characters taken from the beginning of each text, so that no long file has the greatest say


@record
class RecordedQuality:
    """A comparison and what it was made with; `context` and `chunks` are those of llama-perplexity."""

    reference: FileHash
    changed: FileHash
    corpus: str
    corpus_sha256: str
    context: int
    chunks: int
    engine: Engine
    at: str
    commit: str
    dirty: bool
    quality: Quality


def measure_quality(
    reference: Path, changed: Path, corpus: Corpus, *, context: int = CONTEXT, chunks: int = CHUNKS
) -> RecordedQuality:
    """Compare the perplexity of two files over a corpus.

    Args:
        reference: the file to compare with.
        changed: the file that was changed.
        corpus: what to predict; passages of code and prose take turns.
        context: tokens a chunk.
        chunks: how many chunks at most.

    Raises:
        Problem: a file is missing or damaged, there are too few tokens for the tool, or see `compare_perplexity`.
    """
    if context * chunks < LEAST:
        raise Problem(
            f"{chunks} chunks of {context} tokens are too few for llama-perplexity to compare",
            expected=f"at least {LEAST} tokens in all",
        )
    for file in (reference, changed):
        read_gguf(file)  # the tool works through all of the reference before it opens the other
    files = file_hashes([reference, changed])
    found = resolve_engine()
    # No tokenizer gives fewer than a token for eight characters of such text; more than enough is no harm.
    text = passages(corpus, 8 * context * (chunks + 2))
    quality = compare_perplexity(found, reference, changed, text, context=context, chunks=chunks)
    head, dirty = commit()
    return RecordedQuality(
        reference=files[0],
        changed=files[1],
        corpus=corpus.title,
        corpus_sha256=corpus.sha256,
        context=context,
        chunks=chunks,
        engine=found.engine,
        at=now(),
        commit=head,
        dirty=dirty,
        quality=quality,
    )


def passages(corpus: Corpus, characters: int) -> str:
    """Return the beginnings of the corpus' texts, code and prose in turn, up to a number of characters."""
    pairs = zip_longest(corpus.of_kind("code"), corpus.of_kind("prose"))
    parts = (text.content[:PASSAGE] for pair in pairs for text in pair if text is not None)
    return "\n\n".join(parts)[:characters]


def save_quality(found: RecordedQuality, path: Path) -> None:
    """Write a comparison as JSON.

    Raises:
        Problem: the disk is full.
    """
    with whole_file(path) as unfinished:
        unfinished.write_text(json.dumps(plain(found), indent=1) + "\n", encoding="utf-8")


def load_quality(path: Path) -> RecordedQuality:
    """Return a comparison that `save_quality` wrote.

    Raises:
        Problem: the file is missing, or is no such record.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Problem(
            f"{path} is no record of a quality: {error}", expected="what `specbook perplexity` wrote"
        ) from None
    return parse(RecordedQuality, data, where=str(path))
