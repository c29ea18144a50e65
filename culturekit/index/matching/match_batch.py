"""Images, as vectors, to their nearest artifacts: the k first of each, and both margins, exact over all of a scope."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.index.matching.match_countries import CountrySets
from culturekit.index.matching.match_margins import best_abroad, leads, nearest_abroad
from culturekit.index.matching.match_ranking import Ranking, ranked_by_blocks
from culturekit.index.matching.match_scope import Scope
from culturekit.index.matching.match_scores import NOTHING

__all__ = ["Matched", "match_batch"]

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
