"""Hubs: artifacts that are near to everything, and how skewed that makes the counts of neighbours."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.records.schemas import HUBS

__all__ = ["TOP", "hubs_of", "neighbour_skew"]

TOP = 20
"""So many hubs are listed for each model."""


def hubs_of(matches: pl.DataFrame, *, top: int = TOP) -> pl.DataFrame:
    """List the artifacts that most images of each model have among the neighbours kept, as HUBS."""
    images = matches.group_by("model").agg(images=pl.col("image_id").n_unique())
    counts = (
        matches.drop_nulls("artifact_id")
        .group_by("model", "artifact_id")
        .agg(
            artifact=pl.col("artifact").first(),
            country=pl.col("countries").first().list.first(),
            neighbours=pl.len().cast(pl.UInt64),
            nearest=(pl.col("rank") == 1).sum().cast(pl.UInt64),
        )
    )
    ranked = counts.sort(["model", "neighbours", "nearest", "artifact_id"], descending=[False, True, True, False])
    rank = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("model")
    listed = (
        ranked.with_columns(rank=rank).filter(pl.col("rank") <= top).join(images, on="model", maintain_order="left")
    )
    return listed.with_columns(share=pl.col("neighbours") / pl.col("images")).select(list(HUBS.columns))


def neighbour_skew(matches: pl.DataFrame, artifacts: int) -> dict[str, float]:
    """Measure the skewness of how often each of all artifacts is among the neighbours of a model's images.

    Where neighbours fall on all alike it is about 0; a few hubs among many artifacts that nothing is near make it
    large.
    """
    counts = matches.drop_nulls("artifact_id").group_by("model", "artifact_id").len().sort("model", "artifact_id")
    return {
        model: round(skewness(np.pad(own["len"].to_numpy().astype(np.float64), (0, max(artifacts - own.height, 0)))), 4)
        for (model,), own in counts.group_by("model", maintain_order=True)
    }


def skewness(counts: NDArray[np.float64]) -> float:
    """Give the third standardised moment; 0 where nothing varies."""
    deviations = counts - counts.mean()
    spread = float(np.sqrt((deviations**2).mean()))
    return 0.0 if spread == 0 else float(((deviations / spread) ** 3).mean())
