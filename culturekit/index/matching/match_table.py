"""Rows of the `matches` table, column by column."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.index.matching.match_batch import Matched
from culturekit.records.schemas import MATCHES

__all__ = ["match_table"]


def match_table(
    images: pl.DataFrame,
    matched: Matched,
    artifacts: pl.DataFrame,
    *,
    countries: Sequence[str],
    threshold: float,
    method: str,
) -> pl.DataFrame:
    """Write out the matches of some images.

    A match's country is the prompt's where it is among the artifact's, else the first of the artifact's that was
    asked for with `countries`, else the artifact's first.

    Args:
        images: image_id, model, prompt_id, concept, country, repeat and slot of each.
        matched: their matches, in the same order.
        artifacts: ARTIFACTS, by number.
        countries: those that the mapping was limited to; empty when it was not.
        threshold: the margin from which on an image does not abstain.
        method: what the rows say of how they came about.
    """
    row, rank = np.nonzero(matched.artifacts >= 0)
    number = matched.artifacts[row, rank]
    place = chosen_places(artifacts, images["country"].gather(row), number, countries)
    shown = artifacts[number].with_columns(place=pl.Series(place, dtype=pl.Int64))
    kept = matched.margins[:, 0] >= np.float32(threshold)
    columns = images.select("image_id", "model", "prompt_id", "concept", "repeat", "slot")[row].hstack(
        shown.select(
            "artifact_id",
            "artifact",
            "countries",
            country=pl.col("countries").list.get(pl.col("place"), null_on_oob=True),
            continent=pl.col("continents").list.get(pl.col("place"), null_on_oob=True),
        )
    )
    return columns.with_columns(
        rank=pl.Series(rank + 1, dtype=pl.UInt16),
        score=pl.Series(matched.scores[row, rank]),
        margin=pl.Series(matched.margins[row, rank]),
        country_margin=pl.Series(matched.country_margins[row, rank]),
        abstained=pl.Series(~kept[row]),
        method=pl.lit(method),
    ).select(list(MATCHES.columns))


def chosen_places(
    artifacts: pl.DataFrame, wanted: pl.Series, number: NDArray[np.int64], countries: Sequence[str]
) -> NDArray[np.int64]:
    """Find which of an artifact's countries a match stands for, by its place among them."""
    places = (
        artifacts.select("countries", number=pl.int_range(pl.len(), dtype=pl.Int64))
        .explode("countries", empty_as_null=False)
        .select("number", country="countries", place=pl.int_range(pl.len(), dtype=pl.Int64).over("number"))
    )
    limited = (
        places.filter(pl.col("country").is_in(list(countries))).group_by("number").agg(first=pl.col("place").min())
    )
    asked = pl.DataFrame({"number": pl.Series(number, dtype=pl.Int64), "country": wanted.cast(pl.String)})
    found = asked.join(places, on=["number", "country"], how="left", maintain_order="left").join(
        limited, on="number", how="left", maintain_order="left"
    )
    chosen: NDArray[np.int64] = found.select(pl.coalesce("place", "first", pl.lit(0, pl.Int64))).to_series().to_numpy()
    return chosen
