"""What has to be asked, cut into jobs: in order, each as large as the provider and the budget allow."""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from culturekit.llm.batches.batch_client import BatchClient, BatchRow
from culturekit.llm.batches.jobs import BodyPress, Planned
from culturekit.llm.batches.standing import Ask
from culturekit.llm.client import Outgoing

__all__ = ["Plan", "cut"]

IN_MEMORY = 8_000_000
"""Lines beyond as many bytes wait on disk."""


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


def cut(
    asks: Iterable[Ask],
    batches: BatchClient,
    *,
    worst: Callable[[Outgoing], float],
    reserve: Callable[[float], bool],
    too_large: Callable[[Ask, int], None],
) -> Iterator[Plan]:
    """Cut into plans as long as the money lasts; all asks are gone through.

    A plan is closed when the next one is asked for.
    """
    limits, plan, money_left = batches.limits, empty(), True
    try:
        for ask in asks:
            if not money_left:
                continue
            line = batches.line(BatchRow(ask.key.hex(), ask.outgoing))
            if len(line) > limits.size:
                too_large(ask, len(line))
                continue
            if plan.rows and (len(plan.rows) >= limits.rows or plan.size + len(line) > limits.size):
                yield plan
                plan.lines.close()
                plan = empty()
            cost = worst(ask.outgoing)
            money_left = reserve(cost)
            if money_left:
                plan.add(ask, line, cost)
        if plan.rows:
            yield plan
    finally:
        plan.lines.close()


def empty() -> Plan:
    """Begin a plan."""
    return Plan(tempfile.SpooledTemporaryFile(max_size=IN_MEMORY))  # type: ignore[arg-type]  # noqa: SIM115
