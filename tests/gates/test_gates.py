"""Each gate is shown something in order and something out of order."""

from dataclasses import replace

import pytest
from evidence_for_tests import DRAFTED, RAW, drafted_sample, make_evidence, raw_sample, varied
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.gates import GATES, LATE_GATES, Evidence, check_all, publishable
from analysis.gates.contrast import OneFactor
from analysis.gates.counters import CountersAgree, SampleCountersAgree
from analysis.gates.depth import DepthReal
from analysis.gates.drafts import DraftsHappened, DraftsWithinLimit
from analysis.gates.emitted import EmittedAddsUp
from analysis.gates.engine import CountersSound, PartialAcceptanceSeen
from analysis.gates.host import HostQuiet
from analysis.gates.intervals import IntervalsPresent
from analysis.gates.known import CellKnown, LifeRecorded
from analysis.gates.memory import MemoryStill
from analysis.gates.order import OrderBalanced
from analysis.gates.prompts import EnoughPrompts
from analysis.gates.regime import ALLOWED, TextOfItsRegime
from analysis.gates.repeated import PromptNotRepeated
from analysis.gates.short import RepliesLongEnough
from analysis.gates.thinking import ThinkingRecorded
from analysis.gates.warmup import WarmupDiscarded
from analysis.records import Counters, Label
from analysis.records.model import REGIMES
from factories import make_cell, make_host, make_life, make_run, make_sample


def found(gate, evidence, level=None):
    """What a gate found, as (level, where)."""
    return [(f.level, str(f.where)) for f in gate.check(evidence) if level is None or f.level == level]


def one(sample, cell=DRAFTED, **changes):
    """Evidence of one sample in one cell."""
    return make_evidence(run=make_run(cells=(cell,)), samples=[sample], **changes)


class TestEverything:
    def test_a_run_in_good_order_passes_every_gate(self):
        levels = {f.gate: f.level for f in check_all(make_evidence())}
        assert {gate: level for gate, level in levels.items() if level != "pass"} == {
            # Two prompts a third and cell, over one cell a server: too few to tell drift from chance.
            "speed-steady": "unchecked",
            "acceptance-steady": "unchecked",
            "control-holds-one": "unchecked",
        }
        assert set(levels) == {gate.name for gate in (*GATES, *LATE_GATES) if gate.looks_at != "leg"}

    @pytest.mark.parametrize("gate", [*GATES, *LATE_GATES], ids=lambda gate: gate.name)
    def test_every_gate_says_why_it_stands_there(self, gate):
        assert gate.why.endswith(".")
        assert gate.expected
        assert type(gate).__doc__

    def test_names_are_not_used_twice(self):
        names = [gate.name for gate in (*GATES, *LATE_GATES)]
        assert len(names) == len(set(names))

    def test_an_empty_run_passes_nothing_but_what_concerns_no_sample(self):
        findings = check_all(Evidence(run=make_run(cells=()), samples=[]))
        assert {f.gate for f in findings if f.level == "pass"} == {"counters-sound", "order-balanced"}
        assert {f.level for f in findings} == {"pass", "unchecked"}

    def test_what_is_refused_is_not_counted_by_the_gates_that_come_after(self):
        looping = Label(kind="loop", share=0.9, why="the same line five times")
        samples = [varied(n, label=looping) for n in range(4)] + [varied(n) for n in range(4, 6)]
        findings = check_all(make_evidence(samples=samples, run=make_run()))
        assert any(f.gate == "enough-prompts" and f.saw.startswith("2 prompts") for f in findings)


class TestPublishable:
    def test_a_sample_goes_with_its_cell_its_server_and_its_run(self):
        evidence = make_evidence()
        template = next(iter(CellKnown().check(replace(evidence, samples=[make_sample(cell="unknown")]))))
        everything = len(evidence.samples)
        for kind, place, left in [
            ("sample", "3", everything - 1),
            ("cell", DRAFTED.id, 6),
            ("server", "raw-0", 6),
            ("run", "any", 0),
            ("contrast", "any", everything),
        ]:
            refusal = replace(template, where=replace(template.where, kind=kind, id=place))
            assert len(publishable(evidence.samples, [refusal])) == left

    def test_a_warning_keeps_nothing_back(self):
        evidence = make_evidence()
        template = next(iter(CellKnown().check(replace(evidence, samples=[make_sample(cell="unknown")]))))
        warning = replace(template, level="warn", where=replace(template.where, kind="run"))
        assert publishable(evidence.samples, [warning]) == list(evidence.samples)


class TestRecords:
    def test_a_sample_of_an_unknown_cell_is_refused(self):
        assert found(CellKnown(), make_evidence(samples=[make_sample(cell="unknown")])) == [("refuse", "sample 0")]

    def test_a_life_that_was_cut_off_is_reported(self):
        assert found(LifeRecorded(), make_evidence(lives=[make_life()])) == [("unchecked", "server raw-0")]


class TestDepth:
    def test_reused_and_evaluated_tokens_make_the_depth(self):
        assert found(DepthReal(), make_evidence()) == []

    @pytest.mark.parametrize(
        ("cache_n", "prompt_n", "changes"),
        [
            (64, 191, {}),  # one token short
            (0, 256, {}),  # nothing reused, though the cell is deeper than its local part
            (0, 256, {"fill": "restored"}),  # the restore said it succeeded, and everything was filled again
            (64, 192, {"fill": "cold"}),
        ],
    )
    def test_another_depth_or_another_fill_is_refused(self, cache_n, prompt_n, changes):
        cell = make_cell(**changes)
        sample = drafted_sample(0, cell, cache_n=cache_n, prompt_n=prompt_n)
        assert found(DepthReal(), one(sample, cell)) == [("refuse", "sample 0")]

    def test_a_context_that_is_all_local_has_nothing_to_reuse(self):
        cell = make_cell(depth=192, local_tokens=192)
        assert found(DepthReal(), one(drafted_sample(0, cell, cache_n=0, prompt_n=192), cell)) == []


class TestCounts:
    def test_a_lost_token_is_refused(self):
        assert found(EmittedAddsUp(), one(drafted_sample(0, tokens=tuple(range(7))))) == [("refuse", "sample 0")]

    @settings(max_examples=50)
    @given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
    def test_steps_that_add_up_pass_whatever_they_accepted(self, accepted):
        sample = drafted_sample(
            0,
            drafted=(4,) * len(accepted),
            accepted=tuple(accepted),
            step_ms=(1.0,) * len(accepted),
            tokens=tuple(range(1 + sum(accepted) + len(accepted))),
        )
        assert found(EmittedAddsUp(), one(sample)) == []

    def test_what_the_end_cut_off_is_allowed(self):
        """The last step accepted 4 of 4 and the limit let two of them through."""
        assert found(SampleCountersAgree(), one(drafted_sample(0, draft_n=12, draft_n_accepted=6))) == []

    @pytest.mark.parametrize("totals", [{"draft_n_accepted": 9}, {"draft_n_accepted": 3}, {"draft_n": 30}])
    def test_totals_that_the_steps_cannot_explain_are_refused(self, totals):
        assert found(SampleCountersAgree(), one(drafted_sample(0, **totals))) == [("refuse", "sample 0")]

    def test_equal_counters_pass_however_many_positions_are_listed(self):
        stream = Counters(drafts=3, draft_tokens=11, accepted_tokens=4, accepted_per_pos=(2, 2))
        life = make_life(stream=stream, metrics=replace(stream, accepted_per_pos=(2, 2, 0, 0)))
        assert found(CountersAgree(), make_evidence(lives=[life])) == []

    @pytest.mark.parametrize(
        "fault",
        [
            {"accepted_tokens": 7},  # a replayed token counts as accepted
            {"accepted_tokens": 0, "accepted_per_pos": (0, 0)},  # partial acceptance counts as zero
            {"drafts": 4},
            {"draft_tokens": 12},
            {"accepted_per_pos": (2, 1, 1)},
        ],
    )
    def test_a_server_that_counts_differently_is_refused(self, fault):
        life = make_life()
        life = replace(life, metrics=replace(life.stream, **fault))
        assert found(CountersAgree(), make_evidence(lives=[life])) == [("refuse", "server drafted-0")]

    def test_a_server_without_metrics_is_unchecked(self):
        assert found(CountersAgree(), make_evidence(lives=[make_life(metrics=None)])) == [
            ("unchecked", "server drafted-0")
        ]

    def test_short_replies_are_named(self):
        stopped = drafted_sample(0, tokens=(1, 2, 3), drafted=(4,), accepted=(1,), step_ms=(20.0,), stop="eos")
        assert found(RepliesLongEnough(), make_evidence(samples=[stopped])) == [("warn", f"cell {DRAFTED.id}")]


class TestText:
    @pytest.mark.parametrize("regime", REGIMES)
    @pytest.mark.parametrize("kind", ["code", "prose", "recall", "loop", "refusal", "empty"])
    def test_only_text_of_the_regime_passes(self, regime, kind):
        cell = make_cell(regime=regime)
        sample = drafted_sample(0, cell, label=Label(kind=kind, share=1.0, why="for this test"))
        expected = [] if kind in ALLOWED[regime] else [("refuse", "sample 0")]
        assert found(TextOfItsRegime(), one(sample, cell)) == expected

    def test_no_regime_takes_a_loop_a_refusal_or_nothing(self):
        assert not {"loop", "refusal", "empty"} & set().union(*ALLOWED.values())


class TestPrompts:
    def test_the_second_use_of_a_prompt_by_one_server_is_refused(self):
        again = [varied(0), varied(1), varied(2, prompt_sha256=f"{0:064x}")]
        assert found(PromptNotRepeated(), make_evidence(samples=again)) == [("refuse", "sample 2")]

    def test_another_server_may_have_the_same_prompt(self):
        both = [varied(0), raw_sample(1, prompt_sha256=f"{0:064x}")]
        assert found(PromptNotRepeated(), make_evidence(samples=both)) == []

    def test_two_prompts_are_not_enough_for_an_interval(self):
        few = make_evidence(samples=[varied(0), varied(1), varied(2, prompt_id="prompt-0")], run=make_run())
        assert found(EnoughPrompts(), few) == [("warn", f"cell {DRAFTED.id}")]

    @pytest.mark.parametrize(
        ("prompts", "saw"),
        [
            (1, ["1 prompt: points without an interval"]),
            (2, ["2 prompts: points without an interval"]),
            (4, ["4 prompts: few, and two kinds may hide among them"]),
            (5, []),
        ],
    )
    def test_few_prompts_are_called_few(self, prompts, saw):
        evidence = make_evidence(samples=[varied(n) for n in range(prompts)], run=make_run())
        assert [one.saw for one in EnoughPrompts().check(evidence)] == saw

    def test_a_cell_that_lost_all_its_samples_is_refused_once_the_run_has_ended(self):
        ended = make_evidence(samples=[varied(n) for n in range(6)])
        assert found(EnoughPrompts(), ended) == [("refuse", f"cell {RAW.id}")]
        measuring = replace(ended, run=replace(ended.run, ended=""))
        assert found(EnoughPrompts(), measuring) == [("warn", f"cell {RAW.id}")]

    def test_a_cell_without_intervals_says_why(self):
        few = make_evidence(samples=[varied(0), varied(1)])
        (warning,) = IntervalsPresent().check(few)
        assert warning.level == "warn"
        assert "mean accepted length: 2 prompts, and an interval needs 3" in warning.saw


class TestDrafts:
    def test_the_share_without_a_draft_is_reported(self):
        sample = drafted_sample(0, drafted=(4, 0, 0, 3), accepted=(2, 0, 0, 1), step_ms=(9.0,) * 4)
        (report,) = DraftsHappened().check(one(sample))
        assert report.level == "pass"
        assert report.saw == "2 drafts; 50% of 4 evaluations had none"

    def test_a_drafter_that_never_drafts_is_refused(self):
        cell = make_cell(spec_type="draft-dspark", pair="tiny")
        assert found(DraftsHappened(), one(raw_sample(0, cell), cell)) == [("refuse", f"cell {cell.id}")]

    def test_a_lookup_that_finds_nothing_in_one_cell_is_a_warning(self):
        novel = make_cell(regime="invention")
        evidence = make_evidence(run=make_run(cells=(DRAFTED, novel)), samples=[varied(0), raw_sample(1, novel)])
        assert found(DraftsHappened(), evidence, "warn") == [("warn", f"cell {novel.id}")]

    def test_a_lookup_that_finds_nothing_anywhere_is_refused(self):
        assert found(DraftsHappened(), one(raw_sample(0, DRAFTED))) == [("refuse", f"cell {DRAFTED.id}")]

    def test_raw_cells_need_no_drafts_and_may_have_none(self):
        assert found(DraftsHappened(), one(raw_sample(0), RAW)) == []
        assert found(DraftsWithinLimit(), one(drafted_sample(0, RAW), RAW)) == [("refuse", f"cell {RAW.id}")]

    def test_a_draft_longer_than_the_limit_is_refused(self):
        cell = make_cell(n_max=3)
        assert found(DraftsWithinLimit(), one(drafted_sample(0, cell), cell)) == [("refuse", f"cell {cell.id}")]


class TestEngine:
    @pytest.mark.parametrize(
        ("build", "commit", "level"),
        [
            (1, "0c1e570", None),  # a copy without history, but its source was read
            (1, "0c1e5703", None),
            (10210, "abcdef0", None),
            (10209, "abcdef0", "refuse"),
            (1, "abcdef0", "unchecked"),
            (None, "", "unchecked"),
        ],
    )
    def test_builds_that_count_wrongly_are_refused_and_unknown_ones_reported(self, build, commit, level):
        evidence = make_evidence()
        engine = replace(evidence.run.engine, build=build, commit=commit)
        evidence = replace(evidence, run=replace(evidence.run, engine=engine))
        findings = list(CountersSound().check(evidence))
        assert [f.level for f in findings] == ([level] if level else [])
        assert all(f.where.id != RAW.id for f in findings)

    def test_drafts_accepted_whole_or_not_at_all_are_suspicious(self):
        def accepting(*accepted):
            count = len(accepted)
            return drafted_sample(0, drafted=(4,) * count, accepted=accepted, step_ms=(9.0,) * count)

        suspicious = accepting(*(4, 0) * 25)
        assert found(PartialAcceptanceSeen(), one(suspicious)) == [("warn", f"cell {DRAFTED.id}")]
        assert found(PartialAcceptanceSeen(), one(accepting(*(4, 0) * 25, 2))) == []
        assert found(PartialAcceptanceSeen(), one(accepting(*(4,) * 60))) == []  # a verbatim copy
        assert found(PartialAcceptanceSeen(), one(accepting(4, 0))) == []  # too few to say


class TestHost:
    def test_a_template_without_its_thinking_mode_is_refused(self):
        cell = make_cell(template="chatml")
        assert found(ThinkingRecorded(), one(drafted_sample(0, cell), cell)) == [("refuse", f"cell {cell.id}")]
        cell = make_cell(template="chatml", thinking=False)
        assert found(ThinkingRecorded(), one(drafted_sample(0, cell), cell)) == []

    def test_a_server_without_warm_up_is_refused(self):
        cold = make_life(warmups=0)
        assert found(WarmupDiscarded(), make_evidence(lives=[cold])) == [("refuse", "server drafted-0")]

    @pytest.mark.parametrize("counter", ["swap_in", "swap_out", "major_faults"])
    def test_memory_that_moved_is_refused(self, counter):
        life = make_life(host_after=make_host(**{counter: 4096}))
        assert found(MemoryStill(), make_evidence(lives=[life])) == [("refuse", "server drafted-0")]

    def test_memory_that_nobody_watched_is_unchecked(self):
        (report,) = MemoryStill().check(make_evidence(lives=[make_life(host_before=make_host(major_faults=None))]))
        assert (report.level, report.saw) == ("unchecked", "not known at both ends: major_faults")

    def test_a_busy_host_is_a_warning(self):
        evidence = make_evidence()
        busy = replace(evidence, run=replace(evidence.run, host_before=make_host(load1=1.6)))
        assert found(HostQuiet(), busy) == [("warn", f"run {evidence.run.id}")]
        server = replace(evidence, lives=[make_life(host_before=make_host(load1=3.5))])
        assert found(HostQuiet(), server) == [("warn", "server drafted-0")]

    def test_the_load_of_our_own_last_server_is_none_of_it(self):
        assert found(HostQuiet(), make_evidence(lives=[make_life(host_before=make_host(load1=2.1))])) == []

    def test_a_load_that_nobody_read_is_unchecked(self):
        evidence = make_evidence()
        unread = replace(evidence, run=replace(evidence.run, host_before=None))
        assert found(HostQuiet(), unread) == [("unchecked", f"run {evidence.run.id}")]

    def test_legs_in_turns_are_balanced_and_one_always_first_is_not(self):
        assert found(OrderBalanced(), make_evidence()) == []
        fixed = [varied(n, leg_order=0) for n in range(4)] + [raw_sample(n + 4, leg_order=1) for n in range(4)]
        assert [level for level, _ in found(OrderBalanced(), make_evidence(samples=fixed))] == ["warn"]

    def test_an_order_that_is_balanced_only_over_all_regimes_is_not(self):
        drafted, raw = (replace(cell, regime="prose") for cell in (DRAFTED, RAW))
        samples = [varied(n, leg_order=0) for n in range(4)] + [raw_sample(n, leg_order=1) for n in range(4)]
        samples += [replace(varied(n, leg_order=1), cell=drafted.id) for n in range(4)]
        samples += [raw_sample(n, raw, leg_order=0) for n in range(4)]
        run = make_run(cells=(DRAFTED, RAW, drafted, raw))
        (finding,) = OrderBalanced().check(make_evidence(run=run, samples=samples))
        assert finding.saw == "one leg nearly always first in continuation at depth 256, prose at depth 256"


class TestContrasts:
    def test_a_contrast_of_a_run_is_checked_by_id(self):
        assert found(OneFactor(), make_evidence()) == []
        bad = make_evidence(contrasts=[(DRAFTED.id, "unknown"), (DRAFTED.id, DRAFTED.id)])
        assert found(OneFactor(), bad) == [
            ("refuse", f"contrast {DRAFTED.id} | unknown"),
            ("refuse", f"contrast {DRAFTED.id} | {DRAFTED.id}"),
        ]


STEP = st.tuples(st.integers(0, 6), st.integers(0, 6), st.floats(0, 1e4)).map(lambda s: (s[0], min(s[0], s[1]), s[2]))


@st.composite
def some_sample(draw, number):
    """Any sample that the records allow, however little sense it makes."""
    steps = draw(st.lists(STEP, max_size=8))
    drafted, accepted, ms = zip(*steps, strict=True) if steps else ((), (), ())
    return make_sample(
        index=number,
        cell=draw(st.sampled_from([DRAFTED.id, RAW.id, "unknown"])),
        prompt_id=f"prompt-{draw(st.integers(0, 3))}",
        prompt_sha256=f"{draw(st.integers(0, 3)):064x}",
        server=draw(st.sampled_from(["drafted-0", "raw-0", "lost"])),
        leg=draw(st.sampled_from(["raw", "drafted", "control", ""])),
        leg_order=draw(st.integers(0, 2)),
        cache_n=draw(st.sampled_from([0, 64])),
        draft_n=draw(st.integers(0, 40)),
        draft_n_accepted=draw(st.integers(0, 40)),
        drafted=drafted,
        accepted=accepted,
        step_ms=ms,
        tokens=tuple(range(draw(st.integers(0, 20)))),
        label=Label(kind=draw(st.sampled_from(["code", "prose", "loop", "empty"])), share=0.5, why="any"),
    )


@settings(max_examples=60)
@given(st.integers(0, 14).flatmap(lambda count: st.tuples(*[some_sample(n) for n in range(count)])))
def test_every_gate_judges_whatever_the_records_allow(samples):
    evidence = make_evidence(samples=samples)
    findings = check_all(evidence)
    assert {f.gate for f in findings} == {gate.name for gate in (*GATES, *LATE_GATES) if gate.looks_at != "leg"}
    left = publishable(samples, findings)
    assert set(left) <= set(samples)
    refused_again = [f for f in check_all(replace(evidence, samples=left)) if f.level == "refuse"]
    assert not any(f.where.kind == "sample" for f in refused_again)
