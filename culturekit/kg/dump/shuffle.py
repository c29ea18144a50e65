"""Parts in the order of the dump to frames in the order of QIDs, in bounded memory: rows are dealt to ranges."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.storage.atomic import clear_folder
from culturekit.storage.tables import read_part, save_part

__all__ = ["Shuffle", "edges_of", "more_than_one_range"]

ROWS_PER_RANGE = 2_000_000
WAITING_BYTES = 300_000_000
"""How much may wait in memory before it is written out."""

BIN_BITS = 16
"""Numbers are counted by their upper half, which decides where ranges begin."""


def more_than_one_range(rows: int) -> bool:
    """Tell whether so many rows are put in order range by range, for which their numbers must be counted."""
    return rows > ROWS_PER_RANGE


def edges_of(counts: NDArray[np.int64] | None) -> list[int]:
    """Choose where ranges of numbers begin, so that each holds about as many rows; `counts` are by bins of numbers.

    Without counts there is one range.
    """
    if counts is None:
        return [0, 1 << 32]
    before = np.cumsum(counts)
    wanted = np.arange(ROWS_PER_RANGE, before[-1], ROWS_PER_RANGE)
    bins = np.unique(np.searchsorted(before, wanted) + 1)
    return [0, *(int(place) << BIN_BITS for place in bins), 1 << 32]


class Shuffle:
    """Takes frames with a column `number` in any order, and gives them back range by range."""

    def __init__(self, folder: Path, edges: Sequence[int]) -> None:
        """Begin with nothing; what does not fit into memory goes to `folder`."""
        clear_folder(folder)
        self.folder = folder
        self.ranges = list(pairwise(edges))
        self.waiting: list[list[pl.DataFrame]] = [[] for _ in self.ranges]
        self.size = 0
        self.flushes = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Deal the rows of a frame."""
        if len(self.ranges) == 1:
            self.waiting[0].append(frame)
            self.size += int(frame.estimated_size())
        else:
            for place, (low, high) in enumerate(self.ranges):
                own = frame.filter(pl.col("number").is_between(low, high, closed="left"))
                if own.height:
                    self.waiting[place].append(own)
                    self.size += int(own.estimated_size())
        if self.size > WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write out what waits."""
        for place, frames in enumerate(self.waiting):
            if frames:
                save_part(pl.concat(frames), self.folder / f"{place:05d}-{self.flushes:05d}.arrows")
                frames.clear()
        self.size = 0
        self.flushes += 1

    def frames(self) -> Iterator[pl.DataFrame]:
        """Give the rows of each range, in the order in which they were added; each only once."""
        for place, waiting in enumerate(self.waiting):
            written = [read_part(path) for path in sorted(self.folder.glob(f"{place:05d}-*.arrows"))]
            if written or waiting:
                yield pl.concat([*written, *waiting])
            waiting.clear()
