"""The records of a duel: legs in blocks, each leg with the host's state before and after it."""

from typing import Annotated, Literal

from pydantic import Field

from analysis.records.model import Count, HostState, record

Contestant = Literal["a", "b"]
Order = Literal["abba", "baab"]


@record
class Leg:
    """What one contestant did without interruption: its samples, and the host's state at both ends."""

    contestant: Contestant
    server: str
    samples: tuple[Count, ...]
    host_before: HostState
    host_after: HostState


@record
class Block:
    """Four legs in one order. The first two share their prompts, and so do the last two.

    `number` counts the blocks of a duel; a block that was cut off leaves samples and no record, and is measured again.
    """

    number: Count
    order: Order
    legs: Annotated[tuple[Leg, ...], Field(min_length=4, max_length=4)]

    def __post_init__(self) -> None:
        """Refuse legs that are not in the block's order."""
        if "".join(leg.contestant for leg in self.legs) != self.order:
            raise ValueError(f"block {self.number}: legs {[leg.contestant for leg in self.legs]} in order {self.order}")
