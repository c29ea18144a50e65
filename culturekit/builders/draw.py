"""Weighted drawing without replacement that depends on the seed and the artifacts, not on their order."""

import math

import polars as pl

from culturekit.storage.digests import digest_bytes

__all__ = ["draw_per_group"]

LEAST_WEIGHT = 1e-9
"""The weight of an artifact of unknown popularity: drawn only when nothing else is left."""


def draw_per_group(space: pl.DataFrame, *, per: int, seed: int) -> pl.DataFrame:
    """Draw up to `per` artifacts of each country and concept, P proportional to popularity.

    Each row gets the key log(u) / weight with u uniform from a hash of seed and row; the largest keys win
    (Efraimidis and Spirakis 2006).
    """
    keys = [
        draw_key(f"{seed}|{concept}|{country}|{artifact_id}", popularity)
        for concept, country, artifact_id, popularity in space.select(
            "concept", "country", "artifact_id", "popularity"
        ).iter_rows()
    ]
    ranked = space.with_columns(draw_key=pl.Series(keys, dtype=pl.Float64))
    place = pl.col("draw_key").rank("ordinal", descending=True).over("concept", "country")
    return ranked.filter(place <= per).drop("draw_key")


def draw_key(identity: str, weight: float | None) -> float:
    """Turn a row's identity and weight into its place in the draw."""
    uniform = (int(digest_bytes(identity.encode())[:13], 16) + 1) / (16**13 + 1)
    return math.log(uniform) / max(weight or 0.0, LEAST_WEIGHT)
