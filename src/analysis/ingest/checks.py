"""The gates of the book, put to logs: which can be judged from these lines, and what the others would need."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import ttest_ind

from analysis.gates import Finding, Level
from analysis.gates.base import Gate, finding
from analysis.gates.checklist import GATES, LATE_GATES
from analysis.gates.drift import ACCEPTANCE_TOLERANCE, ENOUGH, LEVEL
from analysis.gates.engine import ENOUGH_DRAFTS
from analysis.ingest.gather import Ingested, Totals
from analysis.ingest.model import Reading, Setup
from analysis.records import Engine
from analysis.records.builds import counts_soundly
from analysis.stats.intervals import MIN_CLUSTERS

MISSING = {
    "cell-known": "a log names no cell; the factors that it does not print are not known",
    "life-recorded": "the host's state is in no log",
    "depth-real": "a log does not say which depth was meant",
    "emitted-adds-up": "evaluations without a draft are not in these lines",
    "sample-counters-agree": "the lines of single steps are not in the file (a higher verbosity shows them)",
    "text-of-its-regime": "a log holds no emitted text",
    "prompt-not-repeated": "a log does not say which prompt a request had",
    "replies-long-enough": "a log does not say how many tokens were asked for",
    "thinking-recorded": "chat template and thinking mode are not in these lines",
    "warmup-discarded": "a log does not say which requests were warm-ups",
    "memory-still": "swap and page faults are in no log",
    "host-quiet": "the host's load is in no log",
    "one-factor": "there is no contrast in one log",
    "order-balanced": "a log knows no legs",
    "speed-steady": "a log shows no durations of single steps",
    "intervals-present": "intervals over prompts need to know the prompts; those given here are over requests",
    "partial-acceptance-seen": "neither steps nor a curve with its steps",
    "counters-sound": "the build is printed only at the server's start, which is not in the file",
    "counters-agree": "there is only one count of the same events, or nobody says that two are of the same server",
    "drafts-within-limit": "n_max is not known, or no step is shown",
    "enough-prompts": "no request is reported by itself",
    "acceptance-steady": f"fewer than {3 * ENOUGH} requests with drafts of one server",
}
"""Why a gate cannot be judged, where nothing better is known."""


def check(ingested: Ingested) -> list[Finding]:
    """Return what every gate says of what was ingested, in the order of the gates.

    A gate that a log cannot satisfy is `unchecked`, with what it would need.
    """
    found: list[Finding] = []
    for gate in (*GATES, *LATE_GATES):
        own = [one for totals in ingested.totals for one in _judge(gate, ingested, totals)]
        own += [one for reading in ingested.running for one in _judge_running(gate, reading)]
        if not own:
            why = MISSING.get(gate.name, "nothing in these lines speaks of it")
            own = [finding(gate, "unchecked", "run", "files", why)]
        found += own
    return found


def _judge(gate: Gate, ingested: Ingested, totals: Totals) -> list[Finding]:
    setup = ingested.setup(totals.source, totals.server)
    held = [r for r in ingested.readings if (r.source, r.server) == (totals.source, totals.server)]
    judge = {
        "counters-sound": lambda: _sound(setup),
        "counters-agree": lambda: _agree(ingested, totals, setup, {r.slot for r in held if r.slot is not None}),
        "sample-counters-agree": lambda: _samples_agree(held),
        "drafts-happened": lambda: _drafted(totals, setup),
        "drafts-within-limit": lambda: _within(held, setup),
        "partial-acceptance-seen": lambda: _partial(totals),
        "enough-prompts": lambda: _enough(totals),
        "emitted-adds-up": lambda: _emitted(held),
        "acceptance-steady": lambda: _steady(totals, held),
    }.get(gate.name)
    place = f"{totals.source} {totals.server}".strip()
    return [finding(gate, level, "server", place, saw) for level, saw in (judge() if judge else ())]


Said = Sequence[tuple[Level, str]]


def _sound(setup: Setup) -> Said:
    if setup.build is None:
        return ()
    engine = Engine(source="path", version="", build=setup.build, commit=setup.commit)
    said = f"build {setup.build}, commit {setup.commit}"
    level: dict[str, Level] = {"sound": "pass", "faulty": "refuse", "unknown": "unchecked"}
    return [(level[counts_soundly(engine)], said)]


def _agree(ingested: Ingested, totals: Totals, setup: Setup, slots: set[int | None]) -> Said:
    """Compare the requests' sums with what the implementations counted over the same life.

    Until 2026 every slot had counters of its own; their lines do not say which slot they are of.
    """
    counted = [
        r
        for r in ingested.running
        if r.format == "llama-server statistics" and (r.source, r.server) == (totals.source, totals.server)
    ]
    if not totals.scope.startswith("request") or not counted or not totals.drafting:
        return ()
    if not setup.whole or setup.mixed or totals.refused:
        why = "lines of two servers" if setup.mixed else "the life's beginning" if not setup.whole else "good reports"
        need = "is needed to compare" if not setup.mixed else "cannot be compared"
        return [("unchecked", f"{why} {need}")]
    if len(slots) > 1:
        return [("unchecked", f"{len(slots)} slots, and the counters' lines do not say whether they count together")]
    drafted, accepted = sum(r.drafted or 0 for r in counted), sum(r.accepted or 0 for r in counted)
    said = f"requests: {totals.accepted} of {totals.drafted} accepted; the implementations: {accepted} of {drafted}"
    slack = totals.reports * max(setup.n_max or 0, totals.longest, len(totals.curve))
    if totals.accepted == accepted and 0 <= drafted - totals.drafted <= slack:
        return [("pass", said)]
    return [("refuse", said)]


def _samples_agree(held: Sequence[Reading]) -> Said:
    shown = [r for r in held if r.step_drafted and r.drafted is not None and r.accepted is not None]
    off = [r for r in shown if sum(r.step_drafted) != r.drafted or sum(r.step_accepted) != r.accepted]
    if off:
        first = off[0]
        saw = f"line {first.line}: {first.accepted} of {first.drafted}, the steps sum to "
        return [("warn", f"{saw}{sum(first.step_accepted)} of {sum(first.step_drafted)} ({len(off)} requests)")]
    return [("pass", f"{len(shown)} requests in order")] if shown else ()


def _drafted(totals: Totals, setup: Setup) -> Said:
    if totals.drafting:
        return [("pass", f"{totals.drafting} of {totals.reports - totals.refused} reports with drafts")]
    if setup.spec_types:
        return [("refuse", f"no draft in {totals.reports} reports with {', '.join(setup.spec_types)}")]
    return [("unchecked", f"no draft in {totals.reports} reports, and whether any was meant is not in the file")]


def _within(held: Sequence[Reading], setup: Setup) -> Said:
    if setup.n_max is None:
        return ()
    longest = max((max(r.step_drafted) for r in held if r.step_drafted), default=0)
    if not longest:
        return ()
    level: Level = "refuse" if longest > setup.n_max else "pass"
    return [(level, f"drafts of up to {longest} tokens where n_max is {setup.n_max}")]


def _partial(totals: Totals) -> Said:
    steps, curve = totals.curve_steps, totals.curve
    if steps < ENOUGH_DRAFTS or len(curve) < 2:
        return ()
    if 0 < curve[0] < steps and curve[0] == curve[-1]:
        return [("warn", f"{steps} drafts: {curve[0]} accepted whole, {steps - curve[0]} not at all, none in part")]
    return [("pass", f"{steps} drafts, some accepted in part")]


def _enough(totals: Totals) -> Said:
    if not totals.scope.startswith(("request", "conversation")):
        return ()
    if totals.drafting < MIN_CLUSTERS:
        return [("warn", f"{totals.drafting} requests with drafts, and an interval needs {MIN_CLUSTERS} prompts")]
    return [("unchecked", f"{totals.drafting} requests; how many prompts they were is not in the file")]


def _emitted(held: Sequence[Reading]) -> Said:
    """Refuse requests that accepted more than they can have emitted, or that emitted less than their steps must."""
    shown = [r for r in held if r.fit and r.emitted and r.drafted and r.accepted is not None]
    off = []
    for r in shown:
        cut = r.n_max.value or 0
        if not cut:
            continue
        least = (r.accepted or 0) + (r.steps.low or 0) - cut
        if r.emitted is not None and r.emitted < least:
            off.append(r)
    if off:
        saw = f"line {off[0].line}: {off[0].emitted} emitted where the accepted tokens and steps make at least "
        return [
            ("refuse", f"{saw}{(off[0].accepted or 0) + (off[0].steps.low or 0)} less one draft ({len(off)} requests)")
        ]
    return ()


def _steady(totals: Totals, held: Sequence[Reading]) -> Said:
    """Compare the first and the last third of the requests; their kinds of text are not known, so this only warns."""
    used = [r for r in held if r.fit and r.drafted and r.scope == "request"]
    if not totals.scope.startswith("request") or len(used) < 3 * ENOUGH:
        return ()
    if len(used) < totals.drafting and not totals.scope.removeprefix("request"):
        return [("unchecked", "the last requests are not held")]
    shares = [(r.accepted or 0) / (r.drafted or 1) for r in used]
    first, last = shares[: len(shares) // 3], shares[-(len(shares) // 3) :]
    size = float(np.mean(last) - np.mean(first))
    low = high = size
    if np.ptp(first) or np.ptp(last):
        low, high = ttest_ind(last, first, equal_var=False).confidence_interval(LEVEL)
    said = f"acceptance changed by {size:+.2f} [{low:+.2f}, {high:+.2f}] from the first third to the last"
    sure = (low > 0 or high < 0) and abs(size) > ACCEPTANCE_TOLERANCE
    return [("warn" if sure else "pass", said)]


def _judge_running(gate: Gate, reading: Reading) -> list[Finding]:
    if gate.name != "partial-acceptance-seen" or not reading.survival_counts:
        return []
    totals = Totals(reading.source, reading.server, "cumulative")
    totals.curve, totals.curve_steps = list(reading.survival_counts), reading.steps.value or 0
    place = f"{reading.source} {reading.server} {reading.format}".strip()
    return [finding(gate, level, "server", place, saw) for level, saw in _partial(totals)]


def mixed(ingested: Ingested) -> list[str]:
    """Return the servers whose lines cannot all be of one: their sums mean nothing."""
    return [f"{source}: the clock of {setup.server or 'the log'} goes back {setup.mixed} times without a restart"
            for (source, _), setup in ingested.setups.items() if setup.mixed]  # fmt: skip
