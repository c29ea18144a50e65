"""Images, as vectors, to their nearest artifacts: the k first of each, and both margins, exact over all of a scope."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.choices import Aggregate
from culturekit.index.encoder import Vectors
from culturekit.index.search.search import Candidates, group_for, ranked
from culturekit.index.search.search import exact_scores as row_scores

# What one batch of images is compared with: some artifacts of an index, their vectors by channel, how they count.

VECTORS_PER_BLOCK = 8192
_NORMS_AT_ONCE = 16_384


@dataclass(frozen=True, slots=True)
class ChannelVectors:
    """All vectors of a channel of an index, float32 (rows, dim), and the artifact's number each belongs to."""

    vectors: Vectors
    owners: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _ScopeChannel:
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
    channels: tuple[_ScopeChannel, ...]
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
    artifacts = _in_reading_order([used[name].owners[rows] for name, rows in kept.items()])
    places = np.full(count, -1, np.int64)
    places[artifacts] = np.arange(len(artifacts))
    parts = tuple(
        _scope_channel(used[name], rows, places, size=len(artifacts), weight=weights[name])
        for name, rows in kept.items()
    )
    return Scope(artifacts, places, parts, aggregate, adjusted)


def _in_reading_order(owners: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """List artifacts by where their first vector stands, so that a run of them has a run of vectors."""
    if not owners:
        return np.empty(0, np.int64)
    together = np.concatenate(owners)
    artifacts, first = np.unique(together, return_index=True)
    ordered: NDArray[np.int64] = artifacts[np.argsort(first)].astype(np.int64)
    return ordered


def _scope_channel(
    channel: ChannelVectors, rows: NDArray[np.int64], places: NDArray[np.int64], *, size: int, weight: float
) -> _ScopeChannel:
    place_of = places[channel.owners[rows]]
    ordered = rows[np.argsort(place_of, kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(place_of, minlength=size))]).astype(np.int64)
    longest = 0.0
    for begin in range(0, len(ordered), _NORMS_AT_ONCE):
        part = channel.vectors[ordered[begin : begin + _NORMS_AT_ONCE]]
        longest = max(longest, float(np.sqrt(np.einsum("nd,nd->n", part, part).max())))
    return _ScopeChannel(channel.vectors, ordered, starts, weight, longest)


# The score of an artifact for an image: quickly and nearly for all, exactly for those that may matter.
#
# The exact score of two vectors is that of the search. What is near lies within a bound that follows from float32
# arithmetic, so that what is left out on its word could not have been kept.

_ROUNDING = 2.0**-24
NOTHING = np.float32(-np.inf)


def _slack_of(scope: Scope, queries: Vectors) -> NDArray[np.float32]:
    """Bound how far a near score may lie from the exact one, by query.

    A sum of d products in float32, in any order, errs by at most d·u/(1−d·u) times the norms.
    """
    dim = queries.shape[1]
    product = dim * _ROUNDING / (1 - dim * _ROUNDING) + 8 * _ROUNDING
    norms = np.sqrt(np.einsum("nd,nd->n", queries, queries, dtype=np.float64))
    bound = norms * product * max((channel.longest for channel in scope.channels), default=0.0)
    if scope.adjusted is not None:
        offsets = scope.adjusted.offsets[scope.artifacts]
        bound = scope.adjusted.scale * bound + 8 * _ROUNDING * (np.abs(offsets).max(initial=0.0) + scope.adjusted.scale)
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
                return _adjusted_near(scope, scores, begin, end)
            total[known] += np.float32(channel.weight) * scores
            weights[known] += np.float32(channel.weight)
    total /= weights
    return _adjusted_near(scope, total, begin, end)


def _adjusted_near(scope: Scope, scores: NDArray[np.float32], begin: int, end: int) -> NDArray[np.float32]:
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


def _exact_scores(
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
        scores = _channel_scores(channel, queries, which, places, scope.aggregate, left_out=without)
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


def _channel_scores(
    channel: _ScopeChannel,
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


# The nearest artifacts of each image: as many as are wanted, in their exact order, without scoring all exactly.


@dataclass(frozen=True, slots=True)
class Ranking:
    """The first artifacts of each query by score, then by number: exactly those that a full ranking begins with."""

    artifacts: NDArray[np.int64]  # int64 (n, m), artifact numbers; -1 behind the last
    scores: NDArray[np.float32]  # float32 (n, m); -inf behind the last
    whole: NDArray[np.bool_]  # bool (n,), nothing of the scope comes behind them


def ranked_by_blocks(
    scope: Scope, queries: Vectors, *, count: int, left_out: NDArray[np.int64] | None = None
) -> Ranking:
    """Rank at least `count` artifacts of each query by looking at all of the scope, block by block.

    An artifact one of whose vectors is left out for a query is scored exactly without it, whatever it scores.
    """
    count = min(count, scope.size)
    score = partial(_exact_scores, scope, queries)
    candidates = Candidates(count, _slack_of(scope, queries), score, order=scope.artifacts)
    nearest = np.full(len(queries), -1)
    if left_out is not None:
        nearest = np.where(left_out >= 0, places_by_row(scope)[left_out], -1)
    for begin, end in scope.blocks():
        scores = near_scores(scope, queries, begin, end)
        inside = np.flatnonzero((nearest >= begin) & (nearest < end))
        scores[nearest[inside] - begin, inside] = NOTHING
        candidates.offer(scores, np.arange(begin, end), group=group_for(len(scores), count))
    found = candidates.finish()
    which, column = np.nonzero(found.rows >= 0)
    places, exact = found.rows[which, column], found.scores[which, column]
    held = np.flatnonzero(nearest >= 0)
    scored = _exact_scores(scope, queries, held, nearest[held], left_out=left_out)
    which, places = np.concatenate([which, held]), np.concatenate([places, nearest[held]])
    whole = np.bincount(which, minlength=len(queries)) == scope.size
    exact = np.concatenate([exact, scored])
    there = exact != NOTHING
    return ranking_of(scope, which[there], places[there], exact[there], whole=whole)


def places_by_row(scope: Scope) -> NDArray[np.int64]:
    """Give the place of the artifact that each row of the first channel belongs to; -1 for one of no artifact here."""
    channel = scope.channels[0]
    place_of = np.full(len(channel.vectors), -1, np.int64)
    place_of[channel.rows] = np.repeat(np.arange(scope.size), np.diff(channel.starts))
    return place_of


def ranking_of(
    scope: Scope,
    which: NDArray[np.int64],
    places: NDArray[np.int64],
    scores: NDArray[np.float32],
    *,
    whole: NDArray[np.bool_],
) -> Ranking:
    """Sort pairs of a query and an artifact, each named once, into a ranking."""
    most = int(np.bincount(which, minlength=1).max())
    found = ranked(len(whole), most, owners=which, rows=places, scores=scores, order=scope.artifacts)
    return Ranking(np.where(found.rows >= 0, scope.artifacts[found.rows], -1), found.scores, whole)


@dataclass(frozen=True, slots=True)
class _CountrySets:
    """The countries of each artifact: `kinds[sets[a]]` has one bit per country of artifact a."""

    sets: NDArray[np.int64]  # int64 (artifacts,), artifacts with equal sets of countries have equal numbers
    kinds: NDArray[np.uint64]  # uint64 (distinct sets, words)

    def foreign(self, artifacts: NDArray[np.int64], to: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell, pair by pair, whether an artifact shares no country with another and is not that other itself."""
        shared = (self.kinds[self.sets[artifacts]] & self.kinds[self.sets[to]]).any(axis=-1)
        foreign: NDArray[np.bool_] = ~shared & (artifacts != to)
        return foreign


def country_sets(countries: pl.Series | Sequence[Sequence[str]]) -> _CountrySets:
    """Number the sets of countries that artifacts have."""
    rows = pl.Series("countries", countries, dtype=pl.List(pl.String)).list.sort().list.join(",")
    names = rows.unique().sort()
    sets = rows.replace_strict(names, pl.Series(range(len(names)), dtype=pl.Int64)).to_numpy().astype(np.int64)
    members = [set(filter(None, name.split(","))) for name in names]
    codes = sorted({code for codes in members for code in codes})
    bits = np.array([[code in member for code in codes] for member in members], np.bool_).reshape(
        len(members), len(codes)
    )
    width = max(1, -(-len(codes) // 64)) * 64
    packed = np.packbits(np.pad(bits, ((0, 0), (0, width - len(codes)))), axis=1)
    return _CountrySets(sets, packed.view(np.uint64))


_UNKNOWN = np.float32(np.nan)


def leads(ranking: Ranking, k: int, *, lowest: float) -> NDArray[np.float32]:
    """Give the lead of the first k artifacts over the best other one: (n, k), below 0 for all but the first."""
    scores = ranking.scores[:, : k + 1]
    scores = np.pad(scores, ((0, 0), (0, max(0, k + 1 - scores.shape[1]))), constant_values=NOTHING)
    first, second = scores[:, :1], np.where(scores[:, 1:2] == NOTHING, np.float32(lowest), scores[:, 1:2])
    with np.errstate(invalid="ignore"):
        lead: NDArray[np.float32] = scores[:, :k] - np.concatenate([second, np.repeat(first, k - 1, axis=1)], axis=1)
    return lead


def _nearest_abroad(ranking: Ranking, countries: _CountrySets, k: int) -> NDArray[np.float32]:
    """Find the best score of an artifact of other countries for each of the first k: (n, k).

    It is NaN where the ranking ends before one is met, and something may come behind its end.
    """
    found = np.full((len(ranking.artifacts), k), _UNKNOWN)
    kept = ranking.artifacts[:, :k]
    row, column = np.nonzero(kept >= 0)
    for step in range(ranking.artifacts.shape[1]):
        if not len(row):
            break
        other = ranking.artifacts[row, step]
        abroad = (other >= 0) & countries.foreign(other, kept[row, column])
        found[row[abroad], column[abroad]] = ranking.scores[row[abroad], step]
        row, column = row[~abroad & (other >= 0)], column[~abroad & (other >= 0)]
    nothing = np.isnan(found) & ranking.whole[:, np.newaxis]
    found[nothing] = NOTHING
    return found


def _best_abroad(
    scope: Scope, queries: Vectors, countries: _CountrySets, which: NDArray[np.int64], artifacts: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Find the best score of an artifact of other countries than `artifacts[i]` has for query `which[i]`.

    All of the scope is looked at; -inf where it holds no such artifact.
    """
    asked, row = np.unique(which, return_inverse=True)
    sets, group = np.unique(countries.sets[artifacts], return_inverse=True)
    example = artifacts[np.unique(group, return_index=True)[1]]
    elsewhere = [countries.foreign(scope.artifacts, np.full(scope.size, one)) for one in example.tolist()]
    members = [np.flatnonzero(group == number) for number in range(len(sets))]
    slack = _slack_of(scope, queries[asked])[row]
    best, kept = np.full(len(which), NOTHING), []
    for begin, end in scope.blocks():
        scores: NDArray[np.float32] | None = None
        for mask, pairs in zip(elsewhere, members, strict=True):
            places = np.flatnonzero(mask[begin:end])
            if len(places):
                scores = near_scores(scope, queries[asked], begin, end) if scores is None else scores
                part = scores[places][:, row[pairs]]
                best[pairs] = np.maximum(best[pairs], part.max(axis=0))
                column, hit = np.nonzero(part >= best[pairs] - 2 * slack[pairs])
                kept.append((pairs[hit], places[column] + begin, part[column, hit]))
    exact = np.full(len(which), NOTHING)
    for pair, column, near in kept:
        close = near >= (best - 2 * slack)[pair]
        np.maximum.at(exact, pair[close], _exact_scores(scope, queries, which[pair[close]], column[close]))
    return exact


SPARE = 24  # artifacts looked at beyond those that are kept: one of other countries is mostly among them


@dataclass(frozen=True, slots=True)
class Matched:
    """The nearest artifacts of some images; where a scope has fewer than k, the rest is -1."""

    artifacts: NDArray[np.int64]  # int64 (n, k), artifact numbers, nearest first, equal scores by number
    scores: NDArray[np.float32]  # float32 (n, k)
    margins: NDArray[np.float32]  # float32 (n, k), the lead over the best other artifact
    country_margins: NDArray[np.float32]  # float32 (n, k), the lead over the best artifact that shares no country


def match_batch(
    scope: Scope, queries: Vectors, countries: _CountrySets, *, k: int, ranking: Ranking | None = None
) -> Matched:
    """Match queries, float32 (n, dim), with the artifacts of a scope.

    Args:
        scope: what to compare with; it holds an artifact at least.
        queries: unit vectors.
        countries: of all artifacts of the index.
        k: how many artifacts to keep.
        ranking: of at least k + 1 artifacts each, where one is known already.
    """
    if ranking is None:
        ranking = ranked_by_blocks(scope, queries, count=k + 1 + SPARE)
    width = max(0, k - ranking.artifacts.shape[1])
    artifacts = np.pad(ranking.artifacts[:, :k], ((0, 0), (0, width)), constant_values=-1)
    scores = np.pad(ranking.scores[:, :k], ((0, 0), (0, width)), constant_values=NOTHING)
    abroad = np.pad(_nearest_abroad(ranking, countries, artifacts.shape[1] - width), ((0, 0), (0, width)))
    open_rows, open_columns = np.nonzero(np.isnan(abroad) & (artifacts >= 0))
    if len(open_rows):
        wanted = artifacts[open_rows, open_columns]
        abroad[open_rows, open_columns] = _best_abroad(scope, queries, countries, open_rows, wanted)
    abroad = np.where(abroad == NOTHING, np.float32(scope.lowest), abroad)
    with np.errstate(invalid="ignore"):
        return Matched(artifacts, scores, leads(ranking, k, lowest=scope.lowest), scores - abroad)
