"""Checks on sizes: files against parameter counts and bits per weight, and memory that must add up."""

from collections.abc import Mapping

from analysis.evidence.consistency.finding import Finding, Outcome, shown
from analysis.evidence.interval import Interval
from analysis.evidence.published import Row, constants

GIB = 2**30


def routed_experts_from_sizes(rows: Mapping[str, Row]) -> list[Finding]:
    """Two files of one drafter that differ in the experts' format tell how many expert weights there are.

    (19.7 - 10.15) GiB is the number of expert weights times the difference of Q8_0 and MXFP4 in bits per weight. The
    checkpoint's configuration says it directly: blocks x experts x 3 projections x width x inner width.
    """
    known = {name: printed.interval for name, printed in constants().items()}
    bits = known["bpw_q8_0"] - known["bpw_mxfp4"]
    weights = _difference(rows, "b_q8_size", "b_bf16_size") * 8 * GIB / bits / 10**9
    configured = (
        known["v4_draft_blocks"] * known["v4_experts"] * 3 * known["v4_hidden"] * known["v4_expert_width"] / 10**9
    )
    return [
        Finding(
            "routed_experts_from_sizes",
            "B",
            "holds" if weights.overlaps(configured) else "fails",
            "expert weights of the drafter",
            weights,
            "billion",
            ("b_q8_size", "b_bf16_size"),
            f"the files give {shown(weights)}, the configuration {shown(configured)} billion",
        )
    ]


def recipe_explains_size(rows: Mapping[str, Row]) -> list[Finding]:
    """Requantizing the experts must save their weights times the difference in bits per weight, and no less.

    What else the recipe shrinks comes on top: the quantizer also turned tensors outside the experts into Q8_0.
    """
    known = {name: printed.interval for name, printed in constants().items()}
    weights = known["v4_draft_blocks"] * known["v4_experts"] * 3 * known["v4_hidden"] * known["v4_expert_width"]
    average = (2 * known["bpw_q2_k"] + known["bpw_q4_k"]) / 3
    expected = weights * (known["bpw_mxfp4"] - average) / 8 / GIB
    saved = _difference(rows, "b_bf16_size", "b_q2k_size")
    rest = saved - expected
    markov = 2 * known["v4_vocabulary"] * known["v4_markov_rank"] * (16 - known["bpw_q8_0"]) / 8 / GIB
    return [
        Finding(
            "recipe_explains_size",
            "B",
            "holds" if rest.high >= 0 else "fails",
            "size saved by the Q2K-Q4K recipe",
            rest,
            "GiB",
            ("b_bf16_size", "b_q2k_size"),
            f"the experts save {shown(expected)} of {shown(saved)} GiB; the rest is {shown(rest)} GiB, of which the"
            f" Markov head in Q8_0 instead of BF16 would be {shown(markov)}",
        )
    ]


def one_drafter_in_both_cards(rows: Mapping[str, Row]) -> list[Finding]:
    """Both cards convert the same three blocks with the same converter: sizes, tensors and blocks must agree."""
    size = rows["b_bf16_size"].printed.interval * constants()["gb_per_gib"].interval
    same = size.overlaps(rows["a_drafter_size"].printed.interval) and all(
        rows[f"a_{what}"].printed.interval == rows[f"b_{what}"].printed.interval for what in ("tensors", "blocks")
    )
    outcome: Outcome = "holds" if same else "fails"
    names = ("a_drafter_size", "b_bf16_size", "a_tensors", "b_tensors", "a_blocks", "b_blocks")
    note = f"10^9 bytes: {shown(size)} in card B, {rows['a_drafter_size'].printed.text} in card A"
    subject = "size, tensors and blocks of the unquantized drafter"
    return [Finding("one_drafter_in_both_cards", c, outcome, subject, size, "GB", names, note) for c in "AB"]


def bits_per_weight(rows: Mapping[str, Row]) -> list[Finding]:
    """A quantized file cannot hold fewer bits per weight than the smallest type in its name, nor more than 16.

    Parameters come from card A (284 billion, one checkpoint family), sizes from either card. A file whose parameter
    count is not printed cannot be judged.
    """
    known = {name: printed.interval for name, printed in constants().items()}
    parameters = rows["a_target_parameters"].printed.interval
    findings = []
    for name, smallest in (
        ("b_target_size", "bpw_iq2_xxs"),
        ("b_small_target_size", "bpw_iq2_xxs"),
        ("b_large_target_size", "bpw_q4_k"),
        ("a_vision_target_size", "bpw_iq3_xxs"),
    ):
        row = rows[name]
        gigabytes = row.printed.interval * (known["gb_per_gib"] if row.unit == "GiB" else 1)
        bits = gigabytes * 8 / parameters
        findings.append(_bits_finding(row, bits, known[smallest], smallest))
    return findings


def _bits_finding(row: Row, bits: Interval, floor: Interval, smallest: str) -> Finding:
    stated = row.card == "B"
    fits = floor.low <= bits.high and bits.low <= 16
    outcome: Outcome = "underdetermined" if not stated else "holds" if fits else "fails"
    note = f"{shown(bits)} bits a weight if it has as many weights; {smallest.removeprefix('bpw_')} alone has"
    return Finding(
        "bits_per_weight",
        row.card,
        outcome,
        f"bits per weight of {row.factors.get('target', row.id)}",
        bits,
        "bits",
        (row.id, "a_target_parameters"),
        f"{note} {shown(floor)}",
        "" if outcome == "holds" else "the parameter count of this target, and the types of its tensors",
    )


def memory_adds_up(rows: Mapping[str, Row]) -> list[Finding]:
    """Used and free memory must add up to the same total in both states, and to less than the machine has.

    What is used more with the drafter is its file, its cache and its buffers.
    """
    totals = [
        rows[f"b_memory_{state}"].printed.interval + rows[f"b_free_{state}"].printed.interval
        for state in ("target", "pair")
    ]
    installed = rows["b_machine_memory"].printed.interval / constants()["gb_per_gib"].interval
    added = _difference(rows, "b_memory_pair", "b_memory_target")
    meets = totals[0].overlaps(totals[1]) and all(total.low <= installed.high for total in totals)
    files = ", ".join(shown(rows[name].printed.interval) for name in ("b_q2k_size", "b_bf16_size"))
    return [
        Finding(
            "memory_adds_up",
            "B",
            "holds" if meets else "fails",
            "used and free memory",
            added,
            "GiB",
            ("b_memory_target", "b_free_target", "b_memory_pair", "b_free_pair", "b_machine_memory"),
            f"totals {shown(totals[0])} and {shown(totals[1])} of {shown(installed)} GiB; the drafter adds"
            f" {shown(added)} GiB, its files have {files}",
            "" if meets else "used and free memory with a digit more",
        ),
        Finding(
            "memory_adds_up",
            "B",
            "underdetermined",
            "which drafter file was loaded",
            added,
            "GiB",
            ("b_memory_pair", "b_q2k_size", "b_bf16_size"),
            "either file fits into what was added",
            "the drafter file, and the sizes of its cache and buffers",
        ),
    ]


def _difference(rows: Mapping[str, Row], larger: str, smaller: str) -> Interval:
    return rows[larger].printed.interval - rows[smaller].printed.interval
