"""The artifacts of an index: one vector set each, with all the countries the artifact belongs to."""

from pathlib import Path

import polars as pl

from culturekit.records.schemas import ARTIFACTS, CSPACE
from culturekit.storage.tables import read_table

__all__ = ["artifacts_of"]


def artifacts_of(cspace_path: Path) -> pl.DataFrame:
    """Fold the cultural space to one row per artifact, countries in stated order where it is known.

    Without a stated order the countries stand by ISO code.
    """
    space = read_table(cspace_path, CSPACE)
    if "country_order" not in space.columns:
        space = space.with_columns(country_order=pl.lit(0, pl.UInt16))
    ordered = space.sort("artifact_id", "country_order", "country", "concept")
    folded = ordered.group_by("artifact_id", maintain_order=True).agg(
        artifact=pl.col("name").first(),
        concepts=pl.col("concept").unique().sort(),
        places=pl.struct("country", "continent").unique(maintain_order=True),
    )
    countries = pl.col("places").list.eval(pl.element().struct.field("country"))
    continents = pl.col("places").list.eval(pl.element().struct.field("continent"))
    return folded.with_columns(countries=countries, continents=continents).select(list(ARTIFACTS.columns))
