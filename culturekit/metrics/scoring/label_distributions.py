"""From matches to the shares of what images show."""

import polars as pl

from culturekit.metrics.diversity.label_shares import distribution
from culturekit.metrics.diversity.labels import LEVELS
from culturekit.metrics.scoring.image_collections import checked
from culturekit.records.schemas import DISTRIBUTIONS, MATCHES

__all__ = ["label_distributions"]


def label_distributions(matches: pl.DataFrame) -> pl.DataFrame:
    """Count the labels of the nearest matches of each model and concept, and of each model over its concepts.

    Args:
        matches: conforms to MATCHES.

    Returns:
        Rows that conform to DISTRIBUTIONS, in the order of its key.

    Raises:
        UsageError: the table does not conform.
    """
    nearest = checked(matches, MATCHES).filter(pl.col("rank") == 1)
    parts = []
    for images in nearest.sort("model").partition_by("model", maintain_order=True):
        concepts = images.sort("concept").partition_by("concept", maintain_order=True)
        parts += [(part["concept"][0], part) for part in concepts]
        if len(concepts) > 1:
            parts.append((None, images))
    tables = [shares(part, concept, level) for concept, part in parts for level in LEVELS]
    whole = pl.concat(tables) if tables else pl.DataFrame(schema=DISTRIBUTIONS.schema)
    return whole.sort(DISTRIBUTIONS.key, maintain_order=True)


def shares(images: pl.DataFrame, concept: str | None, level: str) -> pl.DataFrame:
    """Count the labels of one level."""
    texts = {"model": images["model"][0], "concept": concept, "level": level}
    table = distribution(images.select(LEVELS), level=level).rename({"n": "images", "p": "share"})
    return table.with_columns(pl.lit(text, pl.String).alias(name) for name, text in texts.items()).select(
        pl.col(name).cast(dtype) for name, dtype in DISTRIBUTIONS.schema.items()
    )
