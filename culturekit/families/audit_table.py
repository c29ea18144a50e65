"""The answers of an audit as scores take them: places by their codes, and counted where they are about other images."""

from collections.abc import Mapping

import polars as pl

from culturekit.builders.country_names import country_code
from culturekit.errors import UsageError
from culturekit.metrics.corrected.audited_places import in_places
from culturekit.metrics.scoring.image_collections import checked
from culturekit.records.schemas import AUDITS

__all__ = ["answers_about_others", "checked_answers"]


def checked_answers(audits: pl.DataFrame, matches: pl.DataFrame) -> pl.DataFrame:
    """Accept a table of answers; refuse names where the matches have codes, which would be labels of their own.

    What is named alone lies where the matches have it.

    Raises:
        UsageError: the table does not conform to AUDITS, or calls a country or an artifact by its name.
    """
    said = checked(audits, AUDITS)
    said = said.with_columns(audits[name] for name in AUDITS.optional if name in audits.columns)
    ids, named = set(matches["artifact_id"]), dict(matches.select("artifact", "artifact_id").unique().iter_rows())
    codes = set(matches["country"])
    for column, known, code in (("country", codes, country_code), ("artifact_id", ids, named.get)):
        for place in said[column].drop_nulls().unique().sort():
            if place not in known and code(place) not in (None, place):
                raise UsageError(
                    f"an audit names what its column {column} has codes for",
                    where=f"image {said.filter(pl.col(column) == place)['image_id'][0]!r}",
                    expected=str(code(place)),
                    found=repr(place),
                    hint="Answers that name one place in two ways would look like two.",
                )
    return in_places(said, matches)


def answers_about_others(audits: pl.DataFrame, matches: pl.DataFrame) -> Mapping[str, int]:
    """Count the answers about images that were not mapped; gold items are none of them."""
    others = audits.join(matches.select("image_id").unique(), on="image_id", how="anti")
    if "gold" in others.columns:
        others = others.filter(~pl.col("gold").fill_null(value=False))
    return {"answers about images that are not among the matches": others.height} if others.height else {}
