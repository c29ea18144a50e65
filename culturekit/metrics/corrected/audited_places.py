"""Where things lie that people named: an answer may leave out the country of an artifact, or its continent."""

from collections.abc import Mapping

import polars as pl

__all__ = ["WIDER", "in_places", "lone_continent", "said_adrift"]

WIDER = ("continent", "country")


def lone_continent(country: pl.Expr) -> pl.Expr:
    """Name the continent of a country whose continent nobody knows: none that has another country."""
    return pl.format("(the continent of {})", country)


def in_places(answers: pl.DataFrame, nearest: pl.DataFrame) -> pl.DataFrame:
    """Let answers that name an artifact or a country alone name the country and the continent of it in the matches."""
    for column, wider in (("artifact_id", "country"), ("country", "continent")):
        known = nearest.select(column, wider).drop_nulls().unique().sort(pl.all())
        lies_in = pl.col(column).replace_strict(dict(known.iter_rows()), default=None, return_dtype=pl.String)
        answers = answers.with_columns(pl.coalesce(wider, lies_in).alias(wider))
    return answers


def said_adrift(said: pl.DataFrame) -> Mapping[str, float]:
    """Give the share of images of which an answer does not say the country, or the continent, of what it names."""
    named, images = said.filter(~pl.col("none_of_these")), said["image_id"].n_unique()
    return {level: named.filter(pl.col(level).is_null())["image_id"].n_unique() / images for level in WIDER}
