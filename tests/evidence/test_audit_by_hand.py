"""Verdicts recomputed by hand, from the cards' printed digits, without the code under test.

Beside each stands the arithmetic: the quotient of the printed digits, then its range when every printed digit is
uncertain by half a unit of its last place. Ten of each kind, or all where there are fewer.
"""

import pytest

from analysis.evidence.audit import audit


@pytest.fixture(scope="module")
def results():
    return {result.claim.id: result for result in audit()}


REPRODUCES = [
    # 13.55 / 7.56 = 1.7923; 13.545 / 7.565 = 1.79048, 13.555 / 7.555 = 1.79418; printed +79 %
    ("a_c_raw_gain", 79.048, 79.418),
    # 4.0902 / 4.0926 - 1 = -0.05864 %; 4.09015 / 4.09265, 4.09025 / 4.09255; printed -0.059 %
    ("a_c_ppl", -0.061085, -0.0562),
    # 80 / 6.4 = 12.5; 79.5 / 6.45, 80.5 / 6.35; printed 12, which may mean 11.5 to 12.5
    ("a_c_checkpoint_slower", 12.3256, 12.6772),
    # 1 - 9.75 / 12.53 = 22.19 %; 1 - 9.755 / 12.525, 1 - 9.745 / 12.535; printed 22 %
    ("a_c_lru_port", 22.1158, 22.2577),
    # 14.95 / 12.53 = 1.1931; 14.945 / 12.535, 14.955 / 12.525; printed +19 %
    ("a_c_repeat_gain", 19.2262, 19.4012),
    # (13.32 x 0.379 - 1) / 5 = 0.8097 and (13.41 x 0.425 - 1) / 5 = 0.9399; printed 0.81-0.94.
    # Ends: (13.315 x 0.3785 - 1) / 5, (13.415 x 0.426 - 1) / 5, as "~380-425" leaves 425 a whole unit
    ("a_c_break_even", 0.807945, 0.942958),
    # 6.1 / 13.365 = 0.4564, 7.0 / 13.365 = 0.5238; 6.05 / 13.415, 7.05 / 13.315; printed 0.46-0.52
    ("a_c_prose_ratio", 0.450988, 0.529478),
    # (1 + 5 x 0.78) / 0.391 = 12.53, (1 + 5 x 0.83) / 0.391 = 13.17; 4.875 / 0.3915, 5.175 / 0.3905; printed 12.5-13.2
    ("a_c_superseded", 12.4521, 13.2522),
    # 1 - 0.746 / 0.78 = 4.36 %, 1 - 0.714 / 0.83 = 13.98 %; 1 - 0.7465 / 0.775, 1 - 0.7135 / 0.835; printed 4-14 %
    ("a_c_continuation_edge", 3.67742, 14.5509),
    # 24.04 / 15.57 = 1.54400; 24.035 / 15.575, 24.045 / 15.565; printed +54.4 %
    ("a_c_vision_gain", 54.3178, 54.4812),
    # 2.81 / 24.04 = 116.89 ms; 2.805 / 24.045, 2.815 / 24.035; printed 117 ms
    ("a_c_vision_step", 116.656, 117.121),
    # 19.47 / 13.61 = 1.43057; 19.465 / 13.615, 19.475 / 13.605; printed +43 %
    ("b_c_gain_cached", 42.9673, 43.1459),
    # 10.15 - 7.83 = 2.32; 10.145 - 7.835, 10.155 - 7.825; printed 2.3
    ("b_c_smaller", 2.31, 2.33),
    # 16.5 / 15.2 = 1.08553; 16.45 / 15.25, 16.55 / 15.15; printed ~8 %, 7 to 9
    ("b_c_faster", 7.86885, 9.24092),
    # 10.67 / 9.48 = 1.12553; 10.665 / 9.485, 10.675 / 9.475; printed +13 %
    ("b_c_hip_raw_40k", 12.4407, 12.6649),
    # 0.801 > 0.759 > 0.591 > 0.540 > 0.439: smallest fall 0.801 - 0.759 = 0.042; 0.8005 - 0.7595, 0.8015 - 0.7585
    ("b_c_falls", 0.041, 0.043),
]

ROUNDING = [
    # 9.44 / 13.365 = 0.7063 prints as 0.71; 9.365 / 13.415 = 0.6981, 9.515 / 13.315 = 0.7146; printed 0.70
    ("a_c_code_ratio", 0.698099, 0.714608),
    # steps 379, 385, 391, ~423; printed ~380-425. 423 +- 1 and 425 +- 1 meet at 424
    ("a_c_step_range", 378.5, 424),
    # 13.41 / 13.32 = 1.00676; 13.405 / 13.325 = 1.00600, 13.415 / 13.315 = 1.00751; printed 0.63 %
    ("a_c_raw_span", 0.600375, 0.751033),
    # (1 + 5 x 0.54) / 9.44 = 391.9 ms prints as 392; (1 + 5 x 0.5365) / 9.515, (1 + 5 x 0.5435) / 9.365; printed 391
    ("a_c_text_step", 387.02, 396.957),
    # 13.65 / 9.38 = 1.45522 prints as +46; 13.645 / 9.385 = 1.45392, 13.655 / 9.375 = 1.45653; printed +45
    ("b_c_gain_25k", 45.3916, 45.6533),
    # 9.05 / 7.45 = 1.21477 prints as +21; 9.045 / 7.455 = 1.21328, 9.055 / 7.445 = 1.21625; printed +22
    ("b_c_hip_raw_85k", 21.328, 21.6253),
]

FAILS = [
    # 0.921 against 1.00 ("count to 120"): short by 0.079
    *(
        (claim, -0.0845, -0.0735, 0.079)
        for claim in (
            "a_c_best_ever",
            "a_c_highest_table",
            "a_c_highest_project",
            "a_c_highest_posted",
        )
    ),
    # break-even at 423 ms (13.365 x 0.423 - 1) / 5 = 0.93068 against 1.00: short by 0.06932
    ("a_c_above_everything", -0.081214, -0.057408, 0.06932),
    # 0.19-0.23 and 0.27-0.33 leave 0.27 - 0.23 = 0.04 between them
    *((claim, -0.05, -0.03, 0.04) for claim in ("a_c_prose_alone", "a_c_no_effect")),
    # 0.714 against 0.72: 0.7145 is the most that 0.714 may mean, 0.715 the least that 0.72 may
    ("a_c_invention_rounded", 0.7135, 0.7465, 0.0005),
    # 10.95 / 9.05 = +20.99 %, which would have to print as at least +41, so at least 40.5: short by 19.5
    ("b_c_every_depth_hip", -19.6276, -19.3834, 19.5055),
    # +20.99 % at the greatest depth, 19.31 / 13.50 = +43.04 % at the smallest: short by 22.04
    ("b_c_not_fading_hip", -22.2546, -21.8304, 22.0426),
    # 13.61 / 13.50 = 0.815 % apart, 19.47 / 19.31 = 0.829 %; the larger of the two is at most
    # 13.615 / 13.495 = 0.889 % and at least 19.465 / 19.315 = 0.777 %
    ("b_c_identical", -0.889218, -0.776598, 0.828586),
    # 90.9 against 90: 90.85 is the least that 90.9 may mean, 90.5 the most that 90 may
    ("b_c_90gib", 90.85, 90.95, 0.35),
]

UNDERDETERMINED = [
    # no per-position number in the text
    ("a_c_flat_curve", None, None),
    # no comparison of outputs is reported
    ("a_c_identical_tokens", None, None),
    # 3.03 % / 1.38 % would be 2.2, but the 1.38 % belong to another backend and depth;
    # (1 - 12.155 / 12.525) / (13.555 / 13.315 - 1), (1 - 12.145 / 12.535) / (13.545 / 13.415 - 1)
    ("a_c_noise", 1.63891, 3.21061),
    # one machine
    ("a_c_pair_property", None, None),
    # the forward pass is not timed
    ("a_c_forward_fraction", None, None),
    # no drafted rate of the 7.56 t/s build
    ("a_c_case_worse", None, None),
    # the step's parts are not timed
    ("a_c_five_forwards", None, None),
    # the short cell's build, n_max and way of filling are not stated
    ("a_c_one_variable", None, None),
    # neither bytes nor bandwidth
    ("b_c_bandwidth", None, None),
    # the variants' acceptance is not printed
    ("b_c_error_sensitive", None, None),
    # no acceptance by cell
    ("b_c_acceptance_range", None, None),
    # +10 % at 24,530 and -2 % at 39,628, nothing between
    ("b_c_up_to_32k", 24530, 39628),
    # upper end of the range (13.41 x 0.425 - 1) / 5 = 0.93985 against 1.00; the step at 1.00 is not printed
    *((claim, -0.068256, -0.052042) for claim in ("a_c_no_acceptance", "a_c_nothing_clears")),
    # the sort is not timed
    ("b_c_cost_grows", None, None),
    # 13.12 / 13.35 = -1.7 %: no repeats
    ("b_c_neutral", None, None),
]


@pytest.mark.parametrize(("claim", "low", "high"), REPRODUCES)
def test_reproduces(results, claim, low, high):
    assert results[claim].verdict == "reproduces"
    assert (float(results[claim].low), float(results[claim].high)) == pytest.approx((low, high), rel=2e-5)


@pytest.mark.parametrize(("claim", "low", "high"), ROUNDING)
def test_reproduces_within_rounding_only(results, claim, low, high):
    assert results[claim].verdict == "rounding"
    assert (float(results[claim].low), float(results[claim].high)) == pytest.approx((low, high), rel=2e-5)


@pytest.mark.parametrize(("claim", "low", "high", "off"), FAILS)
def test_fails(results, claim, low, high, off):
    assert results[claim].verdict == "fails"
    assert float(results[claim].off) == pytest.approx(off, rel=2e-4)
    if low is not None:
        assert (float(results[claim].low), float(results[claim].high)) == pytest.approx((low, high), rel=2e-4)


@pytest.mark.parametrize(("claim", "low", "high"), UNDERDETERMINED)
def test_underdetermined(results, claim, low, high):
    assert results[claim].verdict == "underdetermined"
    if low is not None:
        assert (float(results[claim].low), float(results[claim].high)) == pytest.approx((low, high), rel=1e-3)


def test_at_least_ten_of_each_kind_or_all(results):
    for verdict, checked in (
        ("reproduces", REPRODUCES),
        ("rounding", ROUNDING),
        ("fails", FAILS),
        ("underdetermined", UNDERDETERMINED),
    ):
        existing = sum(result.verdict == verdict for result in results.values())
        assert len(checked) >= min(10, existing)
