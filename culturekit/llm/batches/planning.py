"""What has to be asked, cut into jobs: in order, each as large as the provider and the budget allow."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol, cast

from culturekit.llm.batches.batch_client import BatchClient, BatchRow
from culturekit.llm.batches.jobs import BodyPress, Planned
from culturekit.llm.batches.standing import Ask

__all__ = ["Plan", "Purse", "cut"]

IN_MEMORY = 8_000_000
"""Lines beyond as many bytes wait on disk."""


class Purse(Protocol):
    """Who decides whether a row can be asked."""

    def reserve(self, ask: Ask) -> float | None:
        """Set aside what a row can cost at worst, and say how much; None when there is not enough."""
        ...

    def too_large(self, ask: Ask, size: int) -> None:
        """Hear of a row that fits into no job."""
        ...


@dataclass(slots=True)
class Plan:
    """A job to be: its lines, whose they are, and what they can cost at worst."""

    lines: BinaryIO
    rows: list[Planned] = field(default_factory=list)
    bodies: BodyPress = field(default_factory=BodyPress)
    size: int = 0
    reserved: float = 0.0

    def add(self, ask: Ask, line: bytes, cost: float) -> None:
        """Put a row in."""
        self.lines.write(line)
        self.rows.append(Planned(ask.key, ask.attempt))
        self.bodies.add(ask.outgoing.body)
        self.size += len(line)
        self.reserved += cost


async def cut(asks: Iterable[Sequence[Ask]], batches: BatchClient, purse: Purse) -> AsyncIterator[Plan]:
    """Cut into plans as long as the money lasts; all asks are gone through.

    A plan is closed when the next one is asked for.
    """
    limits, plan, money_left = batches.limits, empty(), True
    try:
        for some in asks:
            await asyncio.sleep(0)
            for ask in some if money_left else ():
                line = batches.line(BatchRow(ask.key.hex(), ask.outgoing))
                if len(line) > limits.size:
                    purse.too_large(ask, len(line))
                    continue
                if len(plan.rows) >= limits.rows or plan.size + len(line) > limits.size:
                    yield plan
                    plan.lines.close()
                    plan = empty()
                cost = purse.reserve(ask)
                if cost is None:
                    money_left = False
                    break
                plan.add(ask, line, cost)
        if plan.rows:
            yield plan
    finally:
        plan.lines.close()


def empty() -> Plan:
    """Begin a plan."""
    return Plan(cast(BinaryIO, tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)))
