"""Failure modes for real: a few prompts, the ones whose sign is plain."""

import pytest

from analysis.gates.canary import FirstPositionAlive
from analysis.measure.failures import MODES, measure_failures, mode_of
from analysis.measure.foreign import foreign_drafter
from analysis.measure.study import open_study
from analysis.publish.chapters.failures import FailuresPage
from analysis.records.places import data_dir

pytestmark = pytest.mark.engine

SHORT = [mode_of(name) for name in ("sound", "wrong-type", "stale-slot", "sound-inside")]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECBOOK_LOCAL", str(tmp_path_factory.mktemp("local")))
        study = measure_failures(prompts=3, modes=SHORT)
        assert measure_failures(prompts=3, modes=SHORT).run.id == study.run.id
        return FailuresPage(study, foreign_drafter(prompts=4))


@pytest.fixture(scope="module")
def published():
    (recorded,) = (data_dir() / "runs").glob("*-failures-*")
    return FailuresPage(open_study(recorded.name), ())


def accepted(page, name):
    samples = [sample for sample in page.study.samples if sample.leg == name]
    assert len(samples) == 3
    return sum(sum(sample.accepted) for sample in samples) / sum(sum(sample.drafted) for sample in samples)


def test_in_process_the_drafter_drafts_as_well_as_in_the_server(page):
    assert accepted(page, "sound-inside") == pytest.approx(accepted(page, "sound"), abs=0.1)


def test_the_wrong_type_accepts_almost_nothing_and_the_fit_check_says_so(page):
    assert accepted(page, "wrong-type") < 0.25 * accepted(page, "sound")
    assert "fit check" in page.caught(mode_of("wrong-type"))


def test_a_gate_warns_of_the_wrong_type_where_there_are_prompts_enough(published):
    # Three prompts, in one of which a token was right by chance, leave its interval too wide for a warning.
    assert FirstPositionAlive.name in published.caught(mode_of("wrong-type"))


def test_a_restored_slot_says_that_all_is_well(page):
    restored = [sample for sample in page.study.samples if sample.leg == "stale-slot"]
    assert all(sample.cache_n >= sample.depth - 1 for sample in restored)
    assert {page.study.cells[sample.cell].fill for sample in restored} == {"restored"}


def test_a_drafter_of_another_target_fits_by_its_header_and_is_nearly_always_wrong(page):
    own, other = page.foreign
    assert own.fits
    assert other.fits
    assert own.accepted / own.drafted > 0.3
    assert other.accepted / other.drafted < 0.05
    assert own.same_text == other.same_text == 4


def test_every_mode_of_the_run_has_its_row(page):
    assert [mode.name for mode in page.modes()] == [mode.name for mode in MODES if mode in SHORT]
    text = page.table().text
    for mode in SHORT:
        assert f"| {mode.name} |" in text


def test_reordered_heads_are_caught_from_the_file_without_a_sound_curve_beside_them(published):
    for name in ("rotary-pairs", "rotary-halves"):
        assert "fit check: order of heads" in published.caught(mode_of(name))
    assert published.caught(mode_of("sound")) == "–"
