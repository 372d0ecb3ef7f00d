"""Ways to fill a context, on a recorded run that was made to differ: what the controls and the restored slots show."""

from dataclasses import replace

import pytest

from analysis.evidence.published import constants
from analysis.measure.fills import WAYS
from analysis.measure.study import Study, open_study
from analysis.publish.chapters.fills import FillsPage

RUN = "smollm2-dspark-quick-5e2435"


class _Directory:
    def __init__(self, run):
        self.run = run

    def blocks(self):
        return ()


def made(study: Study) -> Study:
    """One drafted cell as if filled in every way; where everything is restored, the first steps accept nothing."""
    cell = next(c for c in study.run.cells if c.spec_type != "none")
    own = [s for s in study.samples if s.cell == cell.id]
    cells = {way.name: replace(cell, fill=way.fill) for way in WAYS}
    samples = []
    for way in WAYS:
        for sample in own:
            lost = 4 if way.name == "restored-whole" else 0
            accepted = (0,) * lost + sample.accepted[lost:]
            samples.append(replace(sample, leg=way.name, cell=cells[way.name].id, accepted=accepted))
    run = replace(study.run, cells=tuple(dict.fromkeys(cells.values())))
    return replace(study, directory=_Directory(run), samples=tuple(samples), findings=())


@pytest.fixture(scope="module")
def page() -> FillsPage:
    return FillsPage(made(open_study(RUN)))


def test_every_way_has_its_row_beside_the_first(page):
    text = page.table().text
    for way in WAYS:
        assert f"| {way.title} |" in text
    assert text.replace("\xa0", " ").count("0.00 (n = ") == 4, (
        "what was filled otherwise and decoded alike does not differ"
    )


def test_a_loss_is_told_with_its_interval(page):
    text = page.sentence().text
    assert "filled cold 0.00" in text
    whole = page.apart(page.ways()[-1], lambda sample: sum(sample.accepted) / len(sample.accepted))
    assert whole.estimate < 0
    assert "restored whole -" in text


def test_the_loss_stands_where_it_happened(page):
    frame = page.frame().set_index(["way", "tokens"])["estimate"]
    spans = list(dict.fromkeys(frame.index.get_level_values("tokens")))
    assert frame["restored-whole", spans[0]] < 0
    assert page.frame()["way"].nunique() == 3
    assert "Difference in accepted tokens a step" in page.chart().alt


def test_prompts_are_compared_only_where_every_way_kept_them(page):
    gone = page.study.samples[0]
    fewer = tuple(s for s in page.study.samples if s is not gone)
    one_less = FillsPage(replace(page.study, samples=fewer))
    assert len(one_less.prompts()) == len(page.prompts()) - 1
    assert gone.prompt_id not in one_less.prompts()


def test_the_card_is_told_by_the_published_window(page):
    text = page.card_a().text
    window = int(constants()["v4_window"].interval.centre)
    assert f"reaches {window} tokens back" in text
    assert f"as {page.study.run.cells[0].local_tokens} tokens do above" in text
