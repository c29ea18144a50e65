"""How clear a match is: its lead over the best other artifact, and over the best one of other countries."""

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.index.matching.match_countries import CountrySets
from culturekit.index.matching.match_ranking import Pairs, Ranking
from culturekit.index.matching.match_scope import Scope
from culturekit.index.matching.match_scores import NOTHING, exact_scores, near_scores, slack_of

__all__ = ["best_abroad", "leads", "nearest_abroad"]

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
