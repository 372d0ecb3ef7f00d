import pytest
from evidence_for_tests import make_evidence, raw_sample

from analysis.gates.control import ControlHoldsOne, noise_floor


def run_with_control(factor=1.0):
    """Six raw samples and the same prompts on a second raw server that is `factor` times as fast."""
    raw = [raw_sample(number) for number in range(6)]
    control = [
        raw_sample(
            number,
            index=number + 6,
            server="control-1",
            leg="control",
            step_ms=tuple(ms / factor * (1 + 0.01 * (-1) ** number) for ms in raw[number].step_ms),
        )
        for number in range(6)
    ]
    return make_evidence(samples=[*raw, *control])


def judged(evidence):
    return [(f.level, f.saw) for f in ControlHoldsOne().check(evidence)]


def test_a_control_that_holds_1_tells_the_noise_floor():
    ((level, saw),) = judged(run_with_control())
    assert level == "pass"
    assert saw.startswith("control over raw 1.000 [0.9")
    assert "from 6 prompts: a noise floor of 1." in saw


@pytest.mark.parametrize("factor", [1.1, 0.9])
def test_a_control_that_does_not_is_a_warning(factor):
    ((level, _),) = judged(run_with_control(factor))
    assert level == "warn"


def test_a_run_without_one_is_unchecked():
    assert judged(make_evidence()) == [("unchecked", "no control leg")]
    assert noise_floor(make_evidence().samples).n == 0
