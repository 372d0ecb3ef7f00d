"""Was the context really as deep as the cell says?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import Cell, Sample

EVALUATED = ("cold", "uncached")
"""Fills that evaluate all of the context for each sample."""


class DepthReal:
    """Depth is what the server had in its cache, not what was asked for."""

    name = "depth-real"
    why = "A server can report a restored or reused context and yet evaluate something else."
    symptom = "A slot's restore reports success and the next request fills the whole context again."
    expected = "cache_n + prompt_n equal to the cell's depth, reused where the cell says so"
    looks_at: Subject = "sample"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse samples of another depth, or whose context came into the cache in another way."""
        for sample, cell in evidence.placed:
            complaint = _complaint(sample, cell)
            if complaint:
                yield finding(self, "refuse", "sample", sample.index, complaint)


def _complaint(sample: Sample, cell: Cell) -> str:
    if sample.depth != cell.depth:
        return f"{sample.cache_n} reused + {sample.prompt_n} evaluated = {sample.depth} tokens at depth {cell.depth}"
    if cell.fill in EVALUATED and sample.cache_n > 0:
        return f"{sample.cache_n} tokens reused in a cell filled {cell.fill}"
    if cell.fill not in EVALUATED and cell.depth > cell.local_tokens and sample.cache_n == 0:
        return f"nothing reused of {cell.depth} tokens in a {cell.fill} cell"
    return ""
