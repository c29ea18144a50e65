"""The score of an artifact for an image: quickly and nearly for all, exactly for those that may matter.

The exact score of two vectors is that of the search. What is near lies within a bound that follows from float32
arithmetic, so that what is left out on its word could not have been kept.
"""

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.index.matching.match_scope import Scope, ScopeChannel
from culturekit.index.search.search_found import exact_scores as row_scores
from culturekit.records.choices import Aggregate

__all__ = ["NOTHING", "exact_scores", "near_scores", "slack_of"]

ROUNDING = 2.0**-24
NOTHING = np.float32(-np.inf)


def slack_of(scope: Scope, queries: Vectors) -> NDArray[np.float32]:
    """Bound how far a near score may lie from the exact one, by query.

    A sum of d products in float32, in any order, errs by at most d·u/(1−d·u) times the norms.
    """
    dim = queries.shape[1]
    product = dim * ROUNDING / (1 - dim * ROUNDING) + 8 * ROUNDING
    norms = np.sqrt(np.einsum("nd,nd->n", queries, queries, dtype=np.float64))
    bound = norms * product * max((channel.longest for channel in scope.channels), default=0.0)
    if scope.adjusted is not None:
        offsets = scope.adjusted.offsets[scope.artifacts]
        bound = scope.adjusted.scale * bound + 8 * ROUNDING * (np.abs(offsets).max(initial=0.0) + scope.adjusted.scale)
    slack: NDArray[np.float32] = np.nextafter(bound.astype(np.float32), np.float32(np.inf))
    return slack


def near_scores(scope: Scope, queries: Vectors, begin: int, end: int) -> NDArray[np.float32]:
    """Score queries against the artifacts at places `begin` to `end`, within the slack: (end - begin, n)."""
    total = np.zeros((end - begin, len(queries)), np.float32)
    weights = np.zeros((end - begin, 1), np.float32)
    for channel in scope.channels:
        starts = channel.starts[begin : end + 1] - channel.starts[begin]
        known = np.diff(starts) > 0
        if known.any():
            scores = gathered(channel.block(begin, end) @ queries.T, starts[:-1][known], np.diff(starts)[known],
                              scope.aggregate)  # fmt: skip
            if len(scope.channels) == 1 and known.all():
                return adjusted_near(scope, scores, begin, end)
            total[known] += np.float32(channel.weight) * scores
            weights[known] += np.float32(channel.weight)
    total /= weights
    return adjusted_near(scope, total, begin, end)


def adjusted_near(scope: Scope, scores: NDArray[np.float32], begin: int, end: int) -> NDArray[np.float32]:
    """Apply the scope's correction of scores, if it has one."""
    if scope.adjusted is not None:
        scores *= np.float32(scope.adjusted.scale)
        scores += scope.adjusted.offsets[scope.artifacts[begin:end]].astype(np.float32)[:, np.newaxis]
    return scores


def gathered(
    similarity: NDArray[np.float32], first: NDArray[np.int64], counts: NDArray[np.int64], aggregate: Aggregate
) -> NDArray[np.float32]:
    """Make one score of the vectors of each artifact: those at `first` and the `counts` - 1 that follow.

    Vectors are taken in turn, all artifacts at once: the first of each, then the second of those that have one.
    """
    if len(first) == len(similarity):
        return similarity
    best = similarity[first]
    if aggregate == "max":
        for turn in range(1, int(counts.max())):
            more = np.flatnonzero(counts > turn)
            best[more] = np.maximum(best[more], similarity[first[more] + turn])
        return best
    second, third = np.full_like(best, NOTHING), np.full_like(best, NOTHING)
    for turn in range(1, int(counts.max())):
        more = np.flatnonzero(counts > turn)
        score = similarity[first[more] + turn]
        lower = np.minimum(best[more], score)
        best[more] = np.maximum(best[more], score)
        third[more] = np.maximum(third[more], np.minimum(second[more], lower))
        second[more] = np.maximum(second[more], lower)
    for turn, part in enumerate((second, third), start=1):
        best[counts > turn] += part[counts > turn]
    best /= np.minimum(counts, 3).astype(np.float32)[:, np.newaxis]
    return best


def exact_scores(
    scope: Scope,
    queries: Vectors,
    which: NDArray[np.int64],
    places: NDArray[np.int64],
    *,
    left_out: NDArray[np.int64] | None = None,
) -> NDArray[np.float32]:
    """Score pairs of a query and an artifact exactly.

    Args:
        scope: what is compared with.
        queries: float32 (n, dim).
        which: int64 (pairs,), the query of each pair.
        places: int64 (pairs,), the place of its artifact.
        left_out: int64 (n,), a row of the first channel that does not count for a query.
    """
    total, weights = np.zeros(len(which)), np.zeros(len(which))
    for number, channel in enumerate(scope.channels):
        without = left_out if number == 0 else None
        scores = channel_scores(channel, queries, which, places, scope.aggregate, left_out=without)
        known = scores != NOTHING
        total[known] += channel.weight * scores[known].astype(np.float64)
        weights[known] += channel.weight
    with np.errstate(invalid="ignore"):
        combined = (total / weights).astype(np.float32)
    combined[weights == 0] = NOTHING
    if scope.adjusted is None:
        return combined
    offsets = scope.adjusted.offsets[scope.artifacts[places]]
    corrected: NDArray[np.float32] = (scope.adjusted.scale * combined.astype(np.float64) + offsets).astype(np.float32)
    return corrected


def channel_scores(
    channel: ScopeChannel,
    queries: Vectors,
    which: NDArray[np.int64],
    places: NDArray[np.int64],
    aggregate: Aggregate,
    *,
    left_out: NDArray[np.int64] | None,
) -> NDArray[np.float32]:
    """Score pairs in one channel; -inf where the artifact has no vector there."""
    counts = channel.starts[places + 1] - channel.starts[places]
    first = np.concatenate([[0], np.cumsum(counts)])
    pairs = np.repeat(np.arange(len(which)), counts)
    rows = channel.rows[np.arange(len(pairs)) - np.repeat(first[:-1] - channel.starts[places], counts)]
    scores = row_scores(queries, channel.vectors, owners=which[pairs], rows=rows)
    if left_out is not None:
        scores[rows == left_out[which[pairs]]] = NOTHING
    best = np.full(len(which), NOTHING)
    some = counts > 0
    if aggregate == "max":
        if some.any():
            best[some] = np.maximum.reduceat(scores, first[:-1][some])
        return best
    order = np.lexsort((-scores, pairs))
    ranked, rank = scores[order], np.arange(len(pairs)) - np.repeat(first[:-1], counts)
    counted = (rank < 3) & (ranked != NOTHING)
    number = np.bincount(pairs[counted], minlength=len(which))
    total = np.bincount(pairs[counted], weights=ranked[counted], minlength=len(which))
    best[number > 0] = (total[number > 0] / number[number > 0]).astype(np.float32)
    return best
