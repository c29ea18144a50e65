"""Work in shards that leave a part file each: what an earlier, cut run has finished is not done again."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from culturekit.records.work import Work
from culturekit.storage.seals import is_sealed

__all__ = ["run_shards"]


class HasPart(Protocol):
    """A work item that is done when its part file is there and sealed."""

    @property
    def part(self) -> Path:
        """What it writes."""
        ...


Shard = TypeVar("Shard", bound=HasPart)


def run_shards(
    work: Work,
    shards: Sequence[Shard],
    do: Callable[[Shard], int],
    *,
    size: Callable[[Shard], int],
    unit: str,
    hands: Callable[[Callable[[Shard], int], Sequence[Shard]], Iterator[int]] | None = None,
) -> None:
    """Do the shards that are not done.

    Args:
        work: Whose progress hears of every shard.
        shards: All of them.
        do: Does one, seals its part and says how many units it was.
        size: Says how many units a shard is before it is done.
        unit: What the units are called.
        hands: Who does them in place of the engine's workers.
    """
    todo = [shard for shard in shards if not is_sealed(shard.part)]
    total = sum(size(shard) for shard in shards)
    work.progress.begin(total, unit)
    work.progress.advance(total - sum(size(shard) for shard in todo))
    for done in (hands or work.engine.map)(do, todo):
        work.progress.advance(done)
