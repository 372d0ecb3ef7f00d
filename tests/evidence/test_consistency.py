"""Do the cards' numbers fit together? What each check finds, and that each would notice."""

from dataclasses import replace

import pytest

from analysis.evidence import cells, consistency, published
from analysis.evidence.consistency import factors, files, labels, lengths, steps
from analysis.evidence.printed import parse


@pytest.fixture
def rows():
    return dict(published.rows())


def printed(rows, name, text):
    """The rows with another printed number in one of them."""
    whole = rows[name].unit in published.COUNTING_UNITS
    return rows | {name: replace(rows[name], printed=parse(text, whole=whole))}


def outcomes(findings, card):
    return [found.outcome for found in findings if found.card == card]


def test_every_check_says_why_and_gives_each_finding_a_reason():
    assert all(check.__doc__ for check in consistency.CHECKS)
    for found in consistency.check_all():
        assert found.note
        assert bool(found.ask) == (found.outcome != "holds"), found
        assert found.outcome in consistency.OUTCOMES
        assert found.check in {check.__name__ for check in consistency.CHECKS}


def test_both_cards_are_checked_and_both_have_something_that_holds():
    findings = consistency.check_all()
    for card in "AB":
        assert {"holds", "fails", "underdetermined"} == set(outcomes(findings, card))


# mean accepted length


def test_mean_length_says_how_many_tokens_a_step_drafted(rows):
    (found,) = [f for f in lengths.mean_length_within_bound(rows) if f.card == "A"]
    # (2.81 - 1) / 0.609 = 2.972 of 3: p_min cut little
    assert found.outcome == "holds"
    assert float(found.computed.centre) == pytest.approx(1.81 / 0.609)


def test_mean_length_above_the_bound_is_noticed(rows):
    # 1 + 3 x 0.609 = 2.827
    spoiled = printed(rows, "a_vision_length", "2.91")
    assert outcomes(lengths.mean_length_within_bound(spoiled), "A") == ["fails"]


# tokens added by each position


def test_a_fourth_position_adds_more_than_the_third(rows):
    (found,) = [f for f in lengths.accepted_per_position(rows) if f.card == "B"]
    # 3 x 0.591 - 2 x 0.759 = 0.255 and 4 x 0.540 - 3 x 0.591 = 0.387
    assert found.outcome == "fails"
    assert float(found.computed.centre) == pytest.approx(0.387 - 0.255)
    assert "position 3: 0.255" in found.note


def test_a_falling_curve_holds(rows):
    # 1 x 0.8, 2 x 0.7 = 1.4, 3 x 0.6 = 1.8, 4 x 0.5 = 2.0, 6 x 0.4 = 2.4: adds 0.8, 0.6, 0.4, 0.2, 0.2
    for n, acceptance in ((1, "0.800"), (2, "0.700"), (3, "0.600"), (4, "0.500"), (6, "0.400")):
        rows = printed(rows, f"b_n{n}_acceptance", acceptance)
    assert outcomes(lengths.accepted_per_position(rows), "B") == ["holds"]


def test_one_conditional_acceptance(rows):
    cell = next(c for c in cells.drafted(rows) if c.row.id == "b_n2_decode")
    c = float(lengths.conditional(cell).centre)
    assert c + c**2 == pytest.approx(2 * 0.759, abs=1e-6)
    assert outcomes(lengths.constant_conditional(rows), "B")[0] == "fails"


def test_a_geometric_table_has_one_conditional_acceptance(rows):
    # c = 0.8: (0.8), (0.8 + 0.64) / 2, ... rounded to three digits
    for n in (1, 2, 3, 4, 6):
        acceptance = sum(0.8**k for k in range(1, n + 1)) / n
        rows = printed(rows, f"b_n{n}_acceptance", f"{acceptance:.3f}")
    assert outcomes(lengths.constant_conditional(rows), "B")[0] == "holds"


# steps


def test_printed_steps_follow_from_length_and_rate(rows):
    assert outcomes(steps.implied_step_matches(rows), "A") == ["holds"] * 3
    spoiled = printed(rows, "a_step_054", "380 ms")
    assert "fails" in outcomes(steps.implied_step_matches(spoiled), "A")


def test_a_drafted_step_outlasts_a_raw_step(rows):
    assert {f.outcome for f in steps.drafted_step_outlasts_raw(rows)} == {"holds"}
    # n_max 1 at 0.801 takes 1.801 / rate; a rate of 26 against raw 14.03 would be 0.97 raw steps
    spoiled = printed(rows, "b_n1_decode", "26.00 t/s")
    assert outcomes(steps.drafted_step_outlasts_raw(spoiled), "B") == ["fails"]


def test_steps_rise_with_n_max(rows):
    assert outcomes(steps.step_rises_with_n(rows), "B") == ["holds"]
    spoiled = printed(rows, "b_n3_decode", "30.00 t/s")
    assert outcomes(steps.step_rises_with_n(spoiled), "B") == ["fails"]


def test_card_a_steps_are_no_straight_line(rows):
    (found,) = [f for f in steps.step_linear_in_length(rows) if f.card == "A"]
    # (391 - 385) / (5 x 0.15) = 8 ms a token, then (423 - 391) / (5 x 0.36) = 17.8
    assert found.outcome == "fails"
    assert "8 (6.25 to 10)" in found.note
    straight = printed(rows, "a_step_039", "386 ms")
    for name, text in (("a_step_054", "397 ms"), ("a_step_090", "~422 ms")):
        straight = printed(straight, name, text)
    assert outcomes(steps.step_linear_in_length(straight), "A") == ["holds"]


def test_raw_decode_gets_faster_with_depth_in_one_place(rows):
    by_build = {f.subject: f for f in steps.raw_slows_with_depth(rows)}
    mainline = by_build["raw decode by depth, mainline 0b14b87"]
    assert mainline.outcome == "fails"  # 9.38 at 24,530 tokens, 9.48 at 39,628
    assert "context_size moves as well" in mainline.note
    assert by_build["raw decode by depth, mainline + hipCUB patch"].outcome == "holds"


# gains, labels, contrasts


def test_gains_of_the_columns_without_a_gain(rows):
    by_subject = {f.subject: f for f in labels.gains_not_printed(rows)}
    assert by_subject["gain of drafting, mainline 0b14b87"].outcome == "holds"
    hip = by_subject["gain of drafting, mainline + hipCUB patch"]
    assert hip.outcome == "fails"
    # 10.95 / 9.05 and 19.31 / 13.50
    assert hip.low == pytest.approx(100 * (10.945 / 9.055 - 1))
    assert hip.high == pytest.approx(100 * (19.315 / 13.495 - 1))


def test_one_label_with_five_numbers(rows):
    (found,) = [f for f in labels.same_label(rows) if "drafted, n_max 2, 11,929 tokens" in f.subject]
    assert found.outcome == "underdetermined"
    assert set(found.rows) == {"b_q2k_12k", "b_bf16_12k", "b_depth_n2", "b_12k_draft", "b_12k_hip_draft"}
    assert "build" in found.ask
    assert float(found.computed.centre) == pytest.approx(100 * (16.5 / 14.18 - 1))


def test_a_stated_difference_explains(rows):
    (found,) = [f for f in labels.same_label(rows) if "raw, 24,530 tokens" in f.subject]
    assert found.outcome == "holds"
    assert "stated and different: build" in found.note


def test_moves_between_two_rows(rows):
    assert factors.moves(rows["b_25k_raw"], rows["b_40k_raw"]) == (["depth", "context_size"], [])
    assert factors.moves(rows["b_12k_raw"], rows["b_12k_draft"]) == (["drafter"], [])
    moved, open_ = factors.moves(rows["a_invention_short_acceptance"], rows["a_code176_acceptance"])
    assert moved == ["depth"]
    assert {"build", "drafter"} <= set(open_)


def test_what_a_formula_compares():
    from analysis.evidence.formula import read

    assert list(factors.compared(read("gain(a, b)").tree)) == [("a", "b")]
    nested = set(factors.compared(read("above(gain(a, b), gain(c, d))").tree))
    assert nested == {("a", "b"), ("c", "d"), ("a", "c"), ("b", "d")}
    assert set(factors.compared(read("exceeds_all(a, b, c)").tree)) >= {("a", "b"), ("a", "c")}


def test_contrasts_in_which_depth_and_context_size_move(rows):
    failing = {f.rows[0] for f in factors.one_factor_contrasts(rows) if f.outcome == "fails"}
    assert {"b_c_not_fading", "b_c_largest_85k", "a_c_third", "a_c_best_ever"} <= failing
    assert not {"b_c_gain_12k", "a_c_vision_gain", "a_c_raw_gain"} & failing


# files and memory


def test_two_sizes_give_the_configured_number_of_expert_weights(rows):
    (found,) = files.routed_experts_from_sizes(rows)
    # (19.7 - 10.15) x 2^30 x 8 / (8.5 - 4.25) = 19.30e9; 3 x 256 x 3 x 4096 x 2048 = 19.33e9
    assert found.outcome == "holds"
    assert float(found.computed.centre) == pytest.approx(19.30, abs=0.01)
    assert outcomes(files.routed_experts_from_sizes(printed(rows, "b_q8_size", "18.7 GiB")), "B") == ["fails"]


def test_the_recipe_explains_what_is_saved(rows):
    (found,) = files.recipe_explains_size(rows)
    # experts: 19.33e9 x (4.25 - 3.25) / 8 = 2.25 GiB of 2.32
    assert found.outcome == "holds"
    assert float(found.computed.centre) == pytest.approx(0.07, abs=0.001)
    assert outcomes(files.recipe_explains_size(printed(rows, "b_q2k_size", "8.83 GiB")), "B") == ["fails"]


def test_both_cards_ship_the_same_drafter(rows):
    # 10.15 x 1.0737 = 10.90
    assert {f.outcome for f in files.one_drafter_in_both_cards(rows)} == {"holds"}
    spoiled = printed(rows, "b_tensors", "80")
    assert {f.outcome for f in files.one_drafter_in_both_cards(spoiled)} == {"fails"}


def test_bits_per_weight_of_the_targets(rows):
    bits = {f.rows[0]: f for f in files.bits_per_weight(rows)}
    # 90.9 x 1.0737 x 8 / 284 = 2.75
    assert float(bits["b_target_size"].computed.centre) == pytest.approx(2.749, abs=0.001)
    assert bits["b_target_size"].outcome == "holds"
    assert bits["a_vision_target_size"].outcome == "underdetermined"
    spoiled = {f.rows[0]: f for f in files.bits_per_weight(printed(rows, "b_target_size", "60.9 GiB"))}
    assert spoiled["b_target_size"].outcome == "fails"


def test_memory_adds_up(rows):
    first, second = files.memory_adds_up(rows)
    assert (first.outcome, second.outcome) == ("holds", "underdetermined")
    assert files.memory_adds_up(printed(rows, "b_free_pair", "~19 GiB"))[0].outcome == "fails"
