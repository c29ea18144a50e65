"""What one batch of images is compared with: some artifacts of an index, their vectors by channel, how they count."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.records.choices import Aggregate

__all__ = ["Adjusted", "ChannelVectors", "Scope", "ScopeChannel", "scope_of"]

VECTORS_PER_BLOCK = 8192
NORMS_AT_ONCE = 16_384


@dataclass(frozen=True, slots=True)
class ChannelVectors:
    """All vectors of a channel of an index, float32 (rows, dim), and the artifact's number each belongs to."""

    vectors: Vectors
    owners: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScopeChannel:
    """A channel within a scope: artifact at place p has the vectors `rows[starts[p]:starts[p + 1]]`."""

    vectors: Vectors
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    weight: float
    longest: float

    def block(self, begin: int, end: int) -> Vectors:
        """Give the vectors of the artifacts at some places, without a copy where they stand together."""
        rows = self.rows[self.starts[begin] : self.starts[end]]
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and bool(np.all(np.diff(rows) == 1)):
            return self.vectors[rows[0] : rows[-1] + 1]
        gathered: Vectors = self.vectors[rows]
        return gathered


@dataclass(frozen=True, slots=True)
class Adjusted:
    """A correction for hubs: an artifact's score becomes `scale` times itself plus an offset of that artifact.

    `lowest` is the lowest score there can be, over which an artifact without any rival leads.
    """

    scale: float
    offsets: NDArray[np.float64]
    lowest: float


@dataclass(frozen=True, slots=True)
class Scope:
    """Artifacts in the order in which their vectors are read: `artifacts[p]` is the number of the one at place p."""

    artifacts: NDArray[np.int64]
    places: NDArray[np.int64]
    channels: tuple[ScopeChannel, ...]
    aggregate: Aggregate
    adjusted: Adjusted | None = None

    @property
    def size(self) -> int:
        """How many artifacts there are."""
        return len(self.artifacts)

    @property
    def lowest(self) -> float:
        """The lowest score there can be: what an artifact without any rival leads over."""
        return -1.0 if self.adjusted is None else self.adjusted.lowest

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Cut the places into runs of no more vectors than are compared at once."""
        vectors = np.sum([channel.starts for channel in self.channels], axis=0)
        begin = 0
        while begin < self.size:
            end = int(np.searchsorted(vectors, vectors[begin] + VECTORS_PER_BLOCK, side="right")) - 1
            end = min(max(end, begin + 1), self.size)
            yield begin, end
            begin = end


def scope_of(
    channels: Mapping[str, ChannelVectors],
    weights: Mapping[str, float],
    *,
    aggregate: Aggregate,
    count: int,
    within: NDArray[np.bool_] | None = None,
    adjusted: Adjusted | None = None,
) -> Scope:
    """Gather what images are compared with.

    Args:
        channels: of the index, by name.
        weights: how much each channel counts; one that is not named, or weighs nothing, is not looked at.
        aggregate: how an artifact's vectors of a channel become one score.
        count: how many artifacts the index knows, with or without vectors.
        within: bool (count,), the artifacts to compare with; all when None. One without a vector is in no scope.
        adjusted: a correction of the scores; its offsets are by artifact number.
    """
    used = {name: channels[name] for name in sorted(channels) if weights.get(name, 0.0) > 0}
    kept = {
        name: np.arange(len(channel.owners)) if within is None else np.flatnonzero(within[channel.owners])
        for name, channel in used.items()
    }
    artifacts = in_reading_order([used[name].owners[rows] for name, rows in kept.items()])
    places = np.full(count, -1, np.int64)
    places[artifacts] = np.arange(len(artifacts))
    parts = tuple(
        scope_channel(used[name], rows, places, size=len(artifacts), weight=weights[name])
        for name, rows in kept.items()
    )
    return Scope(artifacts, places, parts, aggregate, adjusted)


def in_reading_order(owners: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """List artifacts by where their first vector stands, so that a run of them has a run of vectors."""
    if not owners:
        return np.empty(0, np.int64)
    together = np.concatenate(owners)
    artifacts, first = np.unique(together, return_index=True)
    ordered: NDArray[np.int64] = artifacts[np.argsort(first)].astype(np.int64)
    return ordered


def scope_channel(
    channel: ChannelVectors, rows: NDArray[np.int64], places: NDArray[np.int64], *, size: int, weight: float
) -> ScopeChannel:
    """Put the rows of a channel in the order of a scope's places."""
    place = places[channel.owners[rows]]
    ordered = rows[np.argsort(place, kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=size))]).astype(np.int64)
    longest = 0.0
    for begin in range(0, len(ordered), NORMS_AT_ONCE):
        part = channel.vectors[ordered[begin : begin + NORMS_AT_ONCE]]
        longest = max(longest, float(np.sqrt(np.einsum("nd,nd->n", part, part).max())))
    return ScopeChannel(channel.vectors, ordered, starts, weight, longest)
