"""The nearest artifacts of each image from the rows that a search engine finds: fewer looks, the same answer."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.index.matching.match_ranking import Ranking, ranked_by_blocks, ranking_of
from culturekit.index.matching.match_scope import Scope

__all__ = ["RowFinder", "ranked_by_search", "runs_of", "searchable"]

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
