"""Images, as vectors, to their nearest artifacts: the k first of each, and both margins, exact over all of a scope."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.index.matching.match_ranking import Pairs, Ranking, ranked_by_blocks
from culturekit.index.matching.match_scope import Scope
from culturekit.index.matching.match_scores import NOTHING, exact_scores, near_scores, slack_of

__all__ = ["Matched", "country_sets", "leads", "match_batch"]


@dataclass(frozen=True, slots=True)
class CountrySets:
    """The countries of each artifact: `kinds[sets[a]]` has one bit per country of artifact a.

    Attributes:
        sets: int64 (artifacts,), artifacts with equal sets of countries have equal numbers.
        kinds: uint64 (distinct sets, words).
    """

    sets: NDArray[np.int64]
    kinds: NDArray[np.uint64]

    def foreign(self, artifacts: NDArray[np.int64], to: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell, pair by pair, whether an artifact shares no country with another and is not that other itself."""
        shared = (self.kinds[self.sets[artifacts]] & self.kinds[self.sets[to]]).any(axis=-1)
        foreign: NDArray[np.bool_] = ~shared & (artifacts != to)
        return foreign


def country_sets(countries: pl.Series | Sequence[Sequence[str]]) -> CountrySets:
    """Number the sets of countries that artifacts have."""
    rows = pl.Series("countries", countries, dtype=pl.List(pl.String)).list.sort().list.join(",")
    names = rows.unique().sort()
    sets = rows.replace_strict(names, pl.Series(range(len(names)), dtype=pl.Int64)).to_numpy().astype(np.int64)
    members = [set(filter(None, name.split(","))) for name in names]
    codes = sorted({code for codes in members for code in codes})
    bits = np.array([[code in own for code in codes] for own in members], np.bool_).reshape(len(members), len(codes))
    width = max(1, -(-len(codes) // 64)) * 64
    packed = np.packbits(np.pad(bits, ((0, 0), (0, width - len(codes)))), axis=1)
    return CountrySets(sets, packed.view(np.uint64))


UNKNOWN = np.float32(np.nan)


def leads(ranking: Ranking, k: int, *, lowest: float) -> NDArray[np.float32]:
    """Give the lead of the first k artifacts over the best other one: (n, k), below 0 for all but the first."""
    scores = ranking.scores[:, : k + 1]
    scores = np.pad(scores, ((0, 0), (0, max(0, k + 1 - scores.shape[1]))), constant_values=NOTHING)
    first, second = scores[:, :1], np.where(scores[:, 1:2] == NOTHING, np.float32(lowest), scores[:, 1:2])
    with np.errstate(invalid="ignore"):
        lead: NDArray[np.float32] = scores[:, :k] - np.concatenate([second, np.repeat(first, k - 1, axis=1)], axis=1)
    return lead


def nearest_abroad(ranking: Ranking, countries: CountrySets, k: int) -> NDArray[np.float32]:
    """Find the best score of an artifact of other countries for each of the first k: (n, k).

    It is NaN where the ranking ends before one is met, and something may come behind its end.
    """
    found = np.full((len(ranking.artifacts), k), UNKNOWN)
    kept = ranking.artifacts[:, :k]
    row, column = np.nonzero(kept >= 0)
    for place in range(ranking.artifacts.shape[1]):
        if not len(row):
            break
        other = ranking.artifacts[row, place]
        abroad = (other >= 0) & countries.foreign(other, kept[row, column])
        found[row[abroad], column[abroad]] = ranking.scores[row[abroad], place]
        row, column = row[~abroad & (other >= 0)], column[~abroad & (other >= 0)]
    nothing = np.isnan(found) & ranking.whole[:, np.newaxis]
    found[nothing] = NOTHING
    return found


def best_abroad(
    scope: Scope, queries: Vectors, countries: CountrySets, which: NDArray[np.int64], artifacts: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Find the best score of an artifact of other countries than `artifacts[i]` has for query `which[i]`.

    All of the scope is looked at; -inf where it holds no such artifact.
    """
    asked, row = np.unique(which, return_inverse=True)
    sets, group = np.unique(countries.sets[artifacts], return_inverse=True)
    example = artifacts[np.unique(group, return_index=True)[1]]
    elsewhere = [countries.foreign(scope.artifacts, np.full(scope.size, one)) for one in example.tolist()]
    members = [np.flatnonzero(group == number) for number in range(len(sets))]
    slack = slack_of(scope, queries[asked])[row]
    best, kept = np.full(len(which), NOTHING), []
    for begin, end in scope.blocks():
        scores: NDArray[np.float32] | None = None
        for mask, pairs in zip(elsewhere, members, strict=True):
            places = np.flatnonzero(mask[begin:end])
            if len(places):
                scores = near_scores(scope, queries[asked], begin, end) if scores is None else scores
                part = scores[places][:, row[pairs]]
                best[pairs] = np.maximum(best[pairs], part.max(axis=0))
                place, hit = np.nonzero(part >= best[pairs] - 2 * slack[pairs])
                kept.append(Pairs(pairs[hit], places[place] + begin, part[place, hit]))
    return exactly(scope, queries, which, kept, best - 2 * slack)


def exactly(
    scope: Scope, queries: Vectors, which: NDArray[np.int64], kept: list[Pairs], enough: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Give the greatest exact score among what was kept for each pair of `which`."""
    best = np.full(len(which), NOTHING)
    for pairs in kept:
        close = pairs.those(pairs.near >= enough[pairs.which])
        np.maximum.at(best, close.which, exact_scores(scope, queries, which[close.which], close.places))
    return best


SPARE = 24
"""Artifacts looked at beyond those that are kept: one of other countries is mostly among them."""


@dataclass(frozen=True, slots=True)
class Matched:
    """The nearest artifacts of some images; where a scope has fewer than k, the rest is -1.

    Attributes:
        artifacts: int64 (n, k), artifact numbers, nearest first, equal scores by number.
        scores: float32 (n, k).
        margins: float32 (n, k), the lead over the best other artifact.
        country_margins: float32 (n, k), the lead over the best artifact that shares no country.
    """

    artifacts: NDArray[np.int64]
    scores: NDArray[np.float32]
    margins: NDArray[np.float32]
    country_margins: NDArray[np.float32]


def match_batch(
    scope: Scope, queries: Vectors, countries: CountrySets, *, k: int, ranking: Ranking | None = None
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
    abroad = np.pad(nearest_abroad(ranking, countries, artifacts.shape[1] - width), ((0, 0), (0, width)))
    open_rows, open_columns = np.nonzero(np.isnan(abroad) & (artifacts >= 0))
    if len(open_rows):
        wanted = artifacts[open_rows, open_columns]
        abroad[open_rows, open_columns] = best_abroad(scope, queries, countries, open_rows, wanted)
    abroad = np.where(abroad == NOTHING, np.float32(scope.lowest), abroad)
    with np.errstate(invalid="ignore"):
        return Matched(artifacts, scores, leads(ranking, k, lowest=scope.lowest), scores - abroad)
