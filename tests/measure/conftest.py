from pathlib import Path

import pytest

from analysis.measure.corpus import Corpus
from analysis.measure.study import open_study
from analysis.measure.vocabulary import Vocabulary, tokenizer_of
from analysis.records import Label
from analysis.records.store import RunDir
from factories import make_life, make_run, make_sample


@pytest.fixture(scope="session")
def vocabulary(local_target: Path) -> Vocabulary:
    return tokenizer_of(local_target)


@pytest.fixture(scope="session")
def library() -> Corpus:
    return Corpus.standard_library()


@pytest.fixture
def study(tmp_path):
    """A function that records a run of raw and drafted cells and returns its study; of `loops`, all text is a loop."""
    looped = {"label": Label(kind="loop", share=0.9, why="the last 90 % of it repeat themselves")}

    def record(name, *, cells, speed=1.0, corpus="a" * 64, prompts=6, loops=()):
        run = make_run(id=name, cells=tuple(cells), corpus="text", corpus_sha256=corpus)
        directory = RunDir.create(tmp_path / name, run)
        with directory.writing() as writer:
            for cell in cells:
                raw = cell.spec_type == "none"
                for number in range(prompts):
                    wobble = 1 + (0.01 if raw else 0.02) * number
                    steps = {"drafted": (0,) * 7, "accepted": (0,) * 7, "step_ms": (10.0 * wobble,) * 7}
                    if not raw:
                        steps = {"step_ms": tuple(ms * wobble / speed for ms in (20.0, 19.0, 21.0))}
                    writer.append(
                        make_sample(
                            cell=cell.id,
                            leg="raw" if raw else "drafted",
                            prompt_id=f"p-{number}",
                            prompt_sha256=f"{number + 100 * raw:064x}",
                            server="raw-0" if raw else "drafted-0",
                            **(looped if cell in loops else {}),
                            **(steps | ({"draft_n": 0, "draft_n_accepted": 0} if raw else {})),
                        )
                    )
            writer.append_life(make_life())
        return open_study(str(tmp_path / name))

    return record
