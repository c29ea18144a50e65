"""An index opened for mapping: its scopes, its searcher, and the matches of a batch of images in a place."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.index.encoder import Vectors
from culturekit.index.folder.index_folder import OpenIndex, open_index
from culturekit.index.matching.mapping_options import MappingOptions
from culturekit.index.matching.mapping_scopes import ANYWHERE, Place, artifacts_within
from culturekit.index.matching.match_batch import SPARE, Matched, match_batch
from culturekit.index.matching.match_countries import country_sets
from culturekit.index.matching.match_ranking import Ranking, ranked_by_blocks
from culturekit.index.matching.match_scope import ChannelVectors, Scope, scope_of
from culturekit.index.matching.match_search import RowFinder, ranked_by_search, searchable
from culturekit.index.search.adjustment import Adjustment, adjusted_by
from culturekit.index.search.search import searcher
from culturekit.records.choices import Aggregate

__all__ = ["Comparer", "Comparison", "comparer", "weights_for"]


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


@lru_cache(maxsize=2)
def comparer(comparison: Comparison) -> Comparer:
    """Open an index once per process; whoever gives out the work has checked its files."""
    return Comparer(comparison, open_index(comparison.index, verified=True))
