"""A model that wants a token in front of every context gets it, and the depth stays exact."""

from pathlib import Path

import pytest

from analysis.launch import Server, ServerConfig, read_machine
from analysis.measure.corpus import Corpus
from analysis.measure.grid import Setting, measure_grid
from analysis.measure.plan import RAW, Grid, LegPlan
from analysis.measure.prompts import build_prompts
from analysis.measure.vocabulary import tokenizer_of
from analysis.records import Pair, Source
from analysis.records.store import RunDir
from factories import make_run

pytestmark = pytest.mark.engine
KEY = b"tokenizer.ggml.add_bos_token" + (7).to_bytes(4, "little")  # 7: GGUF's boolean
GRID = Grid(title="two depths", depths=(48, 64), regimes=("prose",), prompts=2, n_predict=4, local_tokens=48)


@pytest.fixture(scope="module")
def beginning_target(dsv4_target: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The synthetic target with the one bit set by which a vocabulary asks for a token in front."""
    content = dsv4_target.read_bytes()
    assert content.count(KEY + b"\0") == 1
    file = tmp_path_factory.mktemp("beginning") / "target.gguf"
    file.write_bytes(content.replace(KEY + b"\0", KEY + b"\1"))
    return file


def test_the_server_says_what_it_puts_in_front_of_text(engine, dsv4_target: Path, beginning_target: Path):
    for target in (dsv4_target, beginning_target):
        with Server(engine, ServerConfig(model=target, context=128)) as server:
            assert server.client.beginning() == tokenizer_of(target).bos
    assert len(tokenizer_of(beginning_target).bos) == 1


@pytest.mark.parametrize("wanted", [False, True])
def test_depth_is_exact_with_and_without_a_token_in_front(
    engine, dsv4_target: Path, beginning_target: Path, tmp_path: Path, wanted: bool
):
    target = beginning_target if wanted else dsv4_target
    pair = Pair(name="tiny", title="synthetic", target=Source(kind="path", file=str(target)))
    leg = LegPlan(leg=RAW, pair=pair, config=ServerConfig(model=target, context=128))
    setting = Setting(machine=read_machine(), engine=engine.engine, found=engine, corpus=Corpus.standard_library())
    run = RunDir.create(tmp_path / "run", make_run(cells=()))
    assert measure_grid(run, [leg], GRID, setting) == 4
    cells = {cell.id: cell for cell in leg.cells(GRID, machine=setting.machine, engine=setting.engine)}
    for sample in run.samples():
        assert sample.cache_n + sample.prompt_n == cells[sample.cell].depth

    words = tokenizer_of(target)
    prompts = build_prompts(
        setting.corpus, words, regime="prose", depths=GRID.depths, count=2, local_tokens=48, bos=words.bos
    )
    expected = {prompt.sha256(depth) for prompt in prompts for depth in GRID.depths}
    assert {sample.prompt_sha256 for sample in run.samples()} == expected
