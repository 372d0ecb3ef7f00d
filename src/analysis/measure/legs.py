"""The legs of a pair: its files fetched and hashed, its server configured."""

from pathlib import Path

from analysis.convert.fetch import fetch
from analysis.convert.fit import check_fit
from analysis.convert.gguf import read_gguf
from analysis.measure.plan import DRAFTED, Leg, LegPlan, raw_leg
from analysis.measure.provenance import file_hashes
from analysis.measure.serving import Serving


def leg_of(served: Serving, leg: Leg = DRAFTED) -> tuple[LegPlan, tuple[Path, ...]]:
    """Return how a pair is served, with the hashes of its files, and the files.

    Raises:
        Problem: a file is not there and cannot be fetched, or is another one; target and drafter do not fit.
    """
    pair = served.pair
    target = fetch(pair.target)
    drafter = fetch(pair.drafter) if pair.drafter else None
    if drafter:
        check_fit(read_gguf(target), read_gguf(drafter), spec_type=pair.spec_type, p_min=pair.p_min).require()
    files = tuple(path for path in (target, drafter) if path)
    config = served.config(target, drafter)
    hashes = {file: record.sha256 for file, record in zip(files, file_hashes(files), strict=True)}
    plan = LegPlan(
        leg=leg,
        pair=pair,
        config=config,
        target_sha256=hashes[target],
        drafter_sha256=hashes[drafter] if drafter else "",
        at_once=config.parallel,
    )
    return plan, files


def legs_of(served: Serving) -> tuple[list[LegPlan], tuple[Path, ...]]:
    """Return raw and drafted leg, or the only one of a pair without speculation; and the files they serve.

    Raises:
        Problem: see `leg_of`.
    """
    plan, files = leg_of(served)
    return [raw_leg(plan)] if served.pair.spec_type == "none" else [raw_leg(plan), plan], files
