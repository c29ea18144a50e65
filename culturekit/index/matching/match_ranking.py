"""The nearest artifacts of each image: as many as are wanted, in their exact order, without scoring all exactly."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.index.matching.match_scope import Scope
from culturekit.index.matching.match_scores import NOTHING, exact_scores, near_scores, slack_of

__all__ = ["Pairs", "Ranking", "ranked_by_blocks", "ranking_of"]

PAIRS_AT_ONCE = 2**20


@dataclass(frozen=True, slots=True)
class Ranking:
    """The first artifacts of each query by score, then by number: exactly those that a full ranking begins with.

    Attributes:
        artifacts: int64 (n, m), artifact numbers; -1 behind the last.
        scores: float32 (n, m); -inf behind the last.
        sizes: int64 (n,), how many there are.
        whole: bool (n,), nothing of the scope comes behind them.
    """

    artifacts: NDArray[np.int64]
    scores: NDArray[np.float32]
    sizes: NDArray[np.int64]
    whole: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Queries and the artifacts, by place, that may be among their nearest."""

    which: NDArray[np.int64]
    places: NDArray[np.int64]
    near: NDArray[np.float32]

    def those(self, kept: NDArray[np.bool_]) -> "Pairs":
        """Give some of them."""
        return Pairs(self.which[kept], self.places[kept], self.near[kept])


class Candidates:
    """Keeps what may still be among the first `count` of each query while blocks of artifacts go by."""

    def __init__(self, queries: int, count: int, slack: NDArray[np.float32]) -> None:
        """Begin with none."""
        self.best = np.full((queries, count), NOTHING)
        self.slack = slack
        self.kept: list[Pairs] = []
        self.waiting = 0

    @property
    def last(self) -> NDArray[np.float32]:
        """The near score of the last that counts, by query."""
        lowest: NDArray[np.float32] = self.best.min(axis=1)
        return lowest

    def offer(self, scores: NDArray[np.float32], begin: int) -> None:
        """Look at the near scores, (some, n), of artifacts from place `begin` on; -inf is never taken."""
        count = self.best.shape[1]
        enough = scores >= (self.last - 2 * self.slack)
        enough &= scores != NOTHING
        crowded = enough.sum(axis=0).max(initial=0) > 2 * count
        if crowded:
            self.raise_best(np.partition(scores.T, len(scores) - count, axis=1)[:, -count:])
            enough &= scores >= (self.last - 2 * self.slack)
        places, which = np.nonzero(enough)
        order = np.argsort(which, kind="stable")
        which, places = which[order], places[order]
        near = scores[places, which]
        if not crowded:
            self.raise_best(padded(which, near, scores.shape[1]))
        self.kept.append(Pairs(which, places + begin, near))
        self.waiting += len(which)
        if self.waiting > PAIRS_AT_ONCE:
            self.prune()

    def raise_best(self, scores: NDArray[np.float32]) -> None:
        """Take the scores of a block, (n, some), into the best so far."""
        count = self.best.shape[1]
        together = np.concatenate([self.best, scores], axis=1)
        self.best = np.partition(together, together.shape[1] - count, axis=1)[:, -count:]

    def prune(self) -> Pairs:
        """Drop what has fallen behind."""
        joined = Pairs(
            np.concatenate([np.empty(0, np.int64), *(pairs.which for pairs in self.kept)]),
            np.concatenate([np.empty(0, np.int64), *(pairs.places for pairs in self.kept)]),
            np.concatenate([np.empty(0, np.float32), *(pairs.near for pairs in self.kept)]),
        )
        joined = joined.those(joined.near >= (self.last - 2 * self.slack)[joined.which])
        self.kept, self.waiting = [joined], 0
        return joined


def padded(which: NDArray[np.int64], values: NDArray[np.float32], queries: int) -> NDArray[np.float32]:
    """Lay values out by query, (n, most), -inf where a query has fewer; `which` is sorted."""
    counts = np.bincount(which, minlength=queries)
    out = np.full((queries, counts.max(initial=0)), NOTHING)
    out[which, np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)] = values
    return out


def ranked_by_blocks(
    scope: Scope, queries: Vectors, *, count: int, left_out: NDArray[np.int64] | None = None
) -> Ranking:
    """Rank at least `count` artifacts of each query by looking at all of the scope, block by block.

    An artifact one of whose vectors is left out for a query is scored exactly without it, whatever it scores.
    """
    count = min(count, scope.size)
    slack = slack_of(scope, queries)
    candidates = Candidates(len(queries), count, slack)
    own = np.full(len(queries), -1) if left_out is None else places_of_rows(scope, left_out)
    for begin, end in scope.blocks():
        scores = near_scores(scope, queries, begin, end)
        inside = np.flatnonzero((own >= begin) & (own < end))
        scores[own[inside] - begin, inside] = NOTHING
        candidates.offer(scores, begin)
    pairs = candidates.prune()
    held = np.flatnonzero(own >= 0)
    which, places = np.concatenate([pairs.which, held]), np.concatenate([pairs.places, own[held]])
    exact = exact_scores(scope, queries, which, places, left_out=left_out)
    bound = candidates.last - slack
    bound[np.bincount(which, minlength=len(queries)) == scope.size] = NOTHING
    sure = (exact >= bound[which]) & (exact != NOTHING)
    return ranking_of(scope, which[sure], places[sure], exact[sure], whole=bound == NOTHING)


def places_of_rows(scope: Scope, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Find the places of the artifacts that rows of the first channel belong to; -1 for those of no artifact here."""
    channel = scope.channels[0]
    place = np.full(len(channel.vectors), -1, np.int64)
    place[channel.rows] = np.repeat(np.arange(scope.size), np.diff(channel.starts))
    found: NDArray[np.int64] = np.where(rows >= 0, place[rows], -1)
    return found


def ranking_of(
    scope: Scope,
    which: NDArray[np.int64],
    places: NDArray[np.int64],
    scores: NDArray[np.float32],
    *,
    whole: NDArray[np.bool_],
) -> Ranking:
    """Sort pairs of a query and an artifact, each named once, into a ranking."""
    numbers = scope.artifacts[places]
    order = np.lexsort((numbers, -scores, which))
    which = which[order]
    sizes = np.bincount(which, minlength=len(whole))
    column = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shape = (len(whole), int(sizes.max(initial=0)))
    artifacts, ranked = np.full(shape, -1, np.int64), np.full(shape, NOTHING)
    artifacts[which, column] = numbers[order]
    ranked[which, column] = scores[order]
    return Ranking(artifacts, ranked, sizes, whole)
