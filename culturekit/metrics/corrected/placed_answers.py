"""Answers that say enough for a kernel: who can tell the continent only says nothing about countries."""

import polars as pl

from culturekit.errors import UsageError
from culturekit.metrics.diversity.kernels import Weights

__all__ = ["MOST_UNPLACED", "continent_only", "placed_answers"]

MOST_UNPLACED = 0.2
"""Of the audited images at most this share may be without any answer that names a country.

Images of which nobody can tell the country are not like the others: they show least. Left out in numbers,
they would make the rest look more certain, and more at home, than the images are."""

CONTINENT_ONLY = (
    pl.col("country").is_null() & pl.col("continent").is_not_null() & ~pl.col("none_of_these")
)  # fmt: skip


def placed_answers(said: pl.DataFrame, weights: Weights) -> pl.DataFrame:
    """Keep the answers that say where an image belongs, as closely as a kernel looks.

    A kernel with countries leaves out the answers that name a continent only; one without them, or of artifacts alone,
    keeps all.

    Args:
        said: conforms to AUDITS: the answers of one pool about one model's images.
        weights: of the same continent, the same country, the same artifact.

    Raises:
        UsageError: of too many images nobody named the country.
    """
    if weights[1] == 0:
        return said
    placed = said.filter(~CONTINENT_ONLY)
    images, left = said["image_id"].n_unique(), placed["image_id"].n_unique()
    if images - left > MOST_UNPLACED * images:
        raise UsageError(
            "an audit says neither a country nor none of these",
            where=f"{images - left} of {images} audited images",
            expected=f"a country for all but {MOST_UNPLACED:.0%} of them",
            found="continents only",
        )
    return placed


def continent_only(said: pl.DataFrame, weights: Weights) -> int:
    """Count the answers that a kernel leaves out because they name a continent only."""
    return said.filter(CONTINENT_ONLY).height if weights[1] > 0 else 0
