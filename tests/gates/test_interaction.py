from evidence_for_tests import drafted_sample, make_evidence

from analysis.gates.interaction import InteractionInOneRow
from factories import make_cell, make_run

RARE, OFTEN = ((1, 0, 1), (0, 1, 0), (1, 1, 0)), ((3, 2, 3), (2, 3, 3), (3, 3, 1))


def judged(table):
    """Evidence of cells {(regime, depth): accepted tokens of each of six prompts}, and what the gate says of it."""
    cells, samples = [], []
    for (regime, depth), accepted in table.items():
        cell = make_cell(regime=regime, depth=depth)
        cells.append(cell)
        for prompt in range(6):
            steps = accepted[prompt % 3]
            samples.append(
                drafted_sample(
                    len(samples), cell, prompt_id=f"prompt-{prompt}", accepted=steps, drafted=(4, 4, 4), tokens=()
                )
            )
    evidence = make_evidence(run=make_run(cells=tuple(cells)), samples=samples)
    return [(f.level, f.saw) for f in InteractionInOneRow().check(evidence)]


def test_depth_that_changes_one_regime_alone_asks_for_its_label():
    ((level, saw),) = judged(
        {
            ("invention", 256): RARE,
            ("invention", 2048): OFTEN,
            ("recall", 256): OFTEN,
            ("recall", 2048): OFTEN[::-1],
        }
    )
    assert level == "warn"
    assert "in invention and not in recall: check that row's label" in saw


def test_depth_that_changes_every_regime_is_an_effect_of_depth():
    table = {
        (regime, depth): OFTEN if depth == 256 else RARE for regime in ("prose", "recall") for depth in (256, 2048)
    }
    assert judged(table) == []


def test_one_regime_alone_is_no_table():
    assert judged({("recall", 256): OFTEN, ("recall", 2048): RARE}) == []
