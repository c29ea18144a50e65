"""An index opened for mapping: its scopes, its searcher, and the matches of a batch of images in a place."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.index.encoder import Vectors
from culturekit.index.folder.index_folder import OpenIndex, open_index
from culturekit.index.matching.adjustment import Adjustment, adjusted_by
from culturekit.index.matching.mapping_options import ANYWHERE, MappingOptions, Place, artifacts_within
from culturekit.index.matching.match_batch import SPARE, Matched, country_sets, match_batch
from culturekit.index.matching.match_ranking import Ranking, ranked_by_blocks, ranking_of
from culturekit.index.matching.match_scope import ChannelVectors, Scope, scope_of
from culturekit.index.search.search import searcher
from culturekit.records.choices import Aggregate
from culturekit.records.unchanged import state_of

__all__ = [
    "Comparer",
    "Comparison",
    "RowFinder",
    "comparer",
    "ranked_by_search",
    "runs_of",
    "searchable",
    "weights_for",
]

MOST_ROWS = 2048
"""Rows asked for at most; where they show too few artifacts, all of the scope is looked at."""

MOST_RUNS = 64


class FoundRows(Protocol):
    """The best rows of each query, float32 and int64 (n, k); -inf and -1 where there are fewer."""

    @property
    def scores(self) -> NDArray[np.float32]:
        """Exact scores, the best first."""
        ...

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of the vectors searched."""
        ...


class RowFinder(Protocol):
    """Finds the rows with the best exact scores, equal ones by the artifact's number."""

    def best(self, queries: Vectors, *, k: int, slices: Sequence[slice] | None = None) -> FoundRows:
        """Find the k best rows of each query."""
        ...


@dataclass(frozen=True, slots=True)
class Comparison:
    """What images are compared with, and how: all that a worker needs to know besides the images."""

    index: Path
    aggregate: Aggregate
    weights: tuple[tuple[str, float], ...]
    concepts: tuple[str, ...]
    countries: tuple[str, ...]
    search: str
    adjustment: Adjustment | None = None
    hubs: Path | None = None


def weights_for(index: OpenIndex, options: MappingOptions) -> tuple[tuple[str, float], ...]:
    """Give the weight of each channel that counts."""
    if options.weights is None:
        return tuple((name, 1.0) for name in sorted(index.channels))
    chosen = tuple(sorted((name, float(weight)) for name, weight in options.weights.items() if weight > 0))
    unknown = [name for name, _ in chosen if name not in index.channels]
    if unknown or not chosen:
        raise UsageError(
            f"the index has no channel {', '.join(unknown)}" if unknown else "no channel has a weight above 0",
            where=str(index.folder),
            expected=f"weights of {', '.join(sorted(index.channels))}",
        )
    return chosen


class Comparer:
    """Matches images with an index; what it opens and gathers is kept for the next batch."""

    def __init__(self, comparison: Comparison, index: OpenIndex) -> None:
        """Take an index that was opened."""
        self.how = comparison
        self.artifacts = index.artifacts
        self.countries = country_sets(index.artifacts["countries"])
        self.channels = {name: ChannelVectors(one.vectors, one.owners) for name, one in index.channels.items()}
        self.hubs = None if comparison.hubs is None else np.load(comparison.hubs, allow_pickle=False)
        self.scopes: dict[Place, Scope] = {}
        self.finder: RowFinder | None = None

    def scope(self, place: Place) -> Scope:
        """Give what images of a place are compared with, before any correction."""
        if place not in self.scopes:
            limited = place != ANYWHERE or self.how.concepts or self.how.countries
            mask = artifacts_within(
                self.artifacts, place, concepts=self.how.concepts, countries=self.how.countries
            ) if limited else None  # fmt: skip
            self.scopes[place] = scope_of(
                self.channels,
                dict(self.how.weights),
                aggregate=self.how.aggregate,
                count=self.artifacts.height,
                within=mask,
            )
        return self.scopes[place]

    def rank(self, place: Place, queries: Vectors, *, count: int, left_out: NDArray[np.int64] | None = None) -> Ranking:
        """Rank artifacts by their scores, corrected where that is asked for; at least `count` of them."""
        scope = self.adjusted(self.scope(place))
        return self.ranked(scope, place, queries, count=count, left_out=left_out)

    def match(self, place: Place, queries: Vectors, *, k: int) -> Matched:
        """Match images of a place."""
        scope = self.adjusted(self.scope(place))
        ranking = self.ranked(scope, place, queries, count=k + 1 + SPARE)
        matched = match_batch(scope, queries, self.countries, k=k, ranking=ranking)
        if self.how.adjustment is None or self.how.adjustment.name != "csls":
            return matched
        neighbours = self.how.adjustment.neighbours
        near = self.ranked(self.scope(place), place, queries, count=neighbours).scores[:, :neighbours]
        own = np.where(np.isfinite(near), near, np.nan).astype(np.float64)
        scores = matched.scores - np.nanmean(own, axis=1, keepdims=True)
        return replace(matched, scores=scores.astype(np.float32))

    def adjusted(self, scope: Scope) -> Scope:
        """Give a scope its correction for hubs."""
        if self.hubs is None or self.how.adjustment is None:
            return scope
        return replace(scope, adjusted=adjusted_by(self.how.adjustment, self.hubs))

    def ranked(
        self,
        scope: Scope,
        place: Place,
        queries: Vectors,
        *,
        count: int,
        left_out: NDArray[np.int64] | None = None,
    ) -> Ranking:
        """Rank by search where rows decide and the place is not a small one, by blocks otherwise."""
        if self.how.search == "numpy" or place != ANYWHERE or not searchable(scope):
            return ranked_by_blocks(scope, queries, count=count, left_out=left_out)
        return ranked_by_search(scope, queries, self.searching(scope), count=count, left_out=left_out)

    def searching(self, scope: Scope) -> RowFinder:
        """Make the searcher of the one channel that counts, once."""
        if self.finder is None:
            channel = self.channels[self.how.weights[0][0]]
            order = np.empty(len(channel.owners), np.int64)
            order[np.argsort(channel.owners, kind="stable")] = np.arange(len(order))
            self.finder = searcher(channel.vectors, engine=self.how.search, order=order)
        return self.finder


def comparer(comparison: Comparison) -> Comparer:
    """Open an index once per process while it stays as it is; whoever gives out the work has checked its files."""
    return opened(comparison, state_of(comparison.index), state_of(comparison.hubs))


@lru_cache(maxsize=2)
def opened(comparison: Comparison, *_: object) -> Comparer:
    """Open an index in a certain state."""
    return Comparer(comparison, open_index(comparison.index, verified=True))


def searchable(scope: Scope) -> bool:
    """Tell whether the best rows decide the best artifacts: one channel, its best vector counts, nothing adjusted."""
    return len(scope.channels) == 1 and scope.aggregate == "max" and scope.adjusted is None


def runs_of(scope: Scope) -> list[slice] | None:
    """Give the runs of rows that a scope of one channel is made of; None where there are too many to search apart."""
    rows = np.sort(scope.channels[0].rows)
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    if len(breaks) >= MOST_RUNS:
        return None
    return [slice(int(run[0]), int(run[-1]) + 1) for run in np.split(rows, breaks) if len(run)]


def ranked_by_search(
    scope: Scope,
    queries: Vectors,
    finder: RowFinder,
    *,
    count: int,
    left_out: NDArray[np.int64] | None = None,
) -> Ranking:
    """Rank at least `count` artifacts of each query; more rows are asked for where the first show too few."""
    runs, channel = runs_of(scope), scope.channels[0]
    place = np.full(len(channel.vectors), -1, np.int64)
    place[channel.rows] = np.repeat(np.arange(scope.size), np.diff(channel.starts))
    todo, width = np.arange(len(queries)), 2 * min(count, scope.size) + 16
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]] = []
    whole = np.zeros(len(queries), np.bool_)
    while len(todo) and runs is not None and width <= MOST_ROWS:
        found = finder.best(queries[todo], k=min(width, len(channel.rows)), slices=runs)
        row, column, first = first_of_each(found.rows, place, None if left_out is None else left_out[todo])
        ended = (found.rows < 0).any(axis=1) | (width >= len(channel.rows))
        done = (np.bincount(row, minlength=len(todo)) >= count) | ended
        kept = done[row]
        parts.append((todo[row[kept]], first[kept], found.scores[row[kept], column[kept]]))
        whole[todo] = ended
        todo, width = todo[~done], width * 4
    if len(todo):
        rest = ranked_by_blocks(
            scope, queries[todo], count=count, left_out=None if left_out is None else left_out[todo]
        )
        row, column = np.nonzero(rest.artifacts >= 0)
        parts.append((todo[row], scope.places[rest.artifacts[row, column]], rest.scores[row, column]))
        whole[todo] = rest.whole
    which, places, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ranking_of(scope, which, places, scores, whole=whole)


def first_of_each(
    rows: NDArray[np.int64], place: NDArray[np.int64], left_out: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Find where each artifact is met first: query, column and place; rows stand best first."""
    places = np.where(rows >= 0, place[rows], -1)
    if left_out is not None:
        places[rows == left_out[:, np.newaxis]] = -1
    order = np.argsort(places, axis=1, kind="stable")
    ordered = np.take_along_axis(places, order, axis=1)
    new = ordered >= 0
    new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    row, at = np.nonzero(new)
    return row, order[row, at], ordered[row, at]
