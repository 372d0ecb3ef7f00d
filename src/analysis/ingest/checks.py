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

_CELLS = "a log names no cell: neither all of its factors nor the depth that was meant"
_HOST = "the host's state and load are in no log"
_LEGS = "a log knows no legs and no contrast"
_PROMPTS = "a log does not say which prompt a request had, how many tokens were asked for, or whether it was a warm-up"
_POSITIONS = "it is judged on cells of one kind of text; `specbook diagnose` reads the curve"

MISSING = {
    "cell-known": _CELLS,
    "depth-real": _CELLS,
    "life-recorded": _HOST,
    "memory-still": _HOST,
    "host-quiet": _HOST,
    "host-not-shared": _HOST,
    "one-factor": _LEGS,
    "order-balanced": _LEGS,
    "leg-undisturbed": _LEGS,
    "legs-alike": _LEGS,
    "interaction-in-one-row": _LEGS,
    "control-holds-one": _LEGS,
    "prompt-not-repeated": _PROMPTS,
    "replies-long-enough": _PROMPTS,
    "warmup-discarded": _PROMPTS,
    "intervals-present": "intervals over prompts need to know the prompts; those given here are over requests",
    "first-position-alive": _POSITIONS,
    "second-position-holds": _POSITIONS,
    "deeper-positions-hold": _POSITIONS,
    "pair-fits": "the headers of the model files are in no log; `specbook check` reads them",
    "emitted-adds-up": "evaluations without a draft are not in these lines",
    "sample-counters-agree": "the lines of single steps are not in the file (a higher verbosity shows them)",
    "text-of-its-regime": "a log holds no emitted text",
    "thinking-recorded": "chat template and thinking mode are not in these lines",
    "speed-steady": "a log shows no durations of single steps",
    "partial-acceptance-seen": "neither steps nor a curve with its steps (llama-server prints a curve with `-lv 4`)",
    "counters-sound": "no build is in the file; a llama-server's log names it at the start, with `-lv 4`",
    "counters-agree": "there is only one count of the same events; --same-server says that the files are of one server",
    "drafts-within-limit": "neither n_max nor a step is in the file",
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
        own += _pages_agree(gate, ingested) if ingested.same_server else []
        if not own:
            why = MISSING.get(gate.name, "nothing in these lines speaks of it")
            own = [finding(gate, "unchecked", "run", "files", why)]
        found += dict.fromkeys(own)  # what is of a server stands once, however many groups its reports make
    return found


def _judge(gate: Gate, ingested: Ingested, totals: Totals) -> list[Finding]:
    setup = ingested.setup(totals.source, totals.server)
    held = [r for r in ingested.readings if (r.source, r.server) == (totals.source, totals.server)]
    judge = {
        "counters-sound": lambda: _sound(setup) if (totals.source, totals.server) in ingested.setups else (),
        "counters-agree": lambda: _agree(ingested, totals, setup, {r.slot for r in held if r.slot is not None}),
        "sample-counters-agree": lambda: _samples_agree(held),
        "drafts-happened": lambda: _drafted(totals, setup),
        "drafts-within-limit": lambda: _within(held, setup, totals),
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
        if setup.whole:
            return [
                (
                    "unchecked",
                    "the server's start is in the file without a known build; llama-server prints it with `-lv 4`",
                )
            ]
        return [("unchecked", "no server's start is in the file; llama-server prints its build there, with `-lv 4`")]
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
    return [(_same_counts(totals, setup, drafted, accepted), said)]


def _same_counts(totals: Totals, setup: Setup, drafted: int, accepted: int) -> Level:
    """Compare sums over requests with a count of the same events; only what was cut from a last draft may differ."""
    slack = totals.reports * max(setup.n_max or 0, totals.longest, len(totals.curve))
    return "pass" if totals.accepted == accepted and 0 <= drafted - totals.drafted <= slack else "refuse"


def _pages_agree(gate: Gate, ingested: Ingested) -> list[Finding]:
    """Compare the sum over requests with a page of counters that somebody says is of the same server."""
    if gate.name != "counters-agree":
        return []
    sums = [one for one in ingested.totals if one.scope.startswith("request") and one.drafting]
    pages = [one for one in ingested.running if one.format == "metrics page" and one.fit and one.drafted is not None]
    if len(sums) != 1 or len(pages) != 1:
        saw = (
            f"{len(sums)} servers with reports of requests and {len(pages)} with a /metrics page; one of each is needed"
        )
        return [finding(gate, "unchecked", "run", "files", saw)]
    (totals,), (page,) = sums, pages
    setup = ingested.setup(totals.source, totals.server)
    place = f"{totals.source} {totals.server} and {page.source}"
    if not setup.whole or setup.mixed or totals.refused:
        saw = f"requests of a whole life without contradictions are needed to compare {page.source} with"
        return [finding(gate, "unchecked", "server", place, saw)]
    level = _same_counts(totals, setup, page.drafted or 0, page.accepted or 0)
    said = f"requests: {totals.accepted} of {totals.drafted} accepted; the page: {page.accepted} of {page.drafted}"
    late = "; a page that was read before the last request ended differs too" if level == "refuse" else ""
    return [finding(gate, level, "server", place, said + late)]


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
    meant = "the server's start names no drafter" if setup.whole else "whether any was meant is not in the file"
    return [("unchecked", f"no draft in {totals.reports} reports; {meant}")]


def _within(held: Sequence[Reading], setup: Setup, totals: Totals) -> Said:
    if not totals.drafting:
        return ()
    printed = {r.n_max.value for r in held if r.n_max.value is not None}
    n_max = setup.n_max if setup.n_max is not None else max(printed, default=None)
    longest = max((max(r.step_drafted) for r in held if r.step_drafted), default=0)
    if n_max is None and not longest:
        return ()
    if not longest:
        return [("unchecked", f"n_max is {n_max}, and no single step is in the file")]
    if n_max is None:
        return [("unchecked", f"drafts of up to {longest} tokens, and n_max is not in the file")]
    level: Level = "refuse" if longest > n_max else "pass"
    return [(level, f"drafts of up to {longest} tokens where n_max is {n_max}")]


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
    if not totals.drafting:
        return [("unchecked", "no request with drafts")]
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
