"""How often the mapping is right, country by country, on references that it had to do without."""

import polars as pl

from culturekit.records.schemas import RECOGNITION

__all__ = ["recognition_of"]


def recognition_of(held_out: pl.DataFrame, artifacts: pl.DataFrame) -> pl.DataFrame:
    """Count precision and recall of countries, and over all the share of artifacts that were recognised.

    An artifact of several countries counts for each: mapping it to any artifact of that country is right there.

    Args:
        held_out: a row per held-out picture: `shown`, the artifact it shows, and `artifact_id` and `country`, what it
            was mapped to.
        artifacts: conforms to ARTIFACTS.

    Returns:
        Conforms to RECOGNITION, the row over all first; precision of a country that nothing was mapped to, and recall
        of one of which nothing was shown, are null.
    """
    places = artifacts.select("artifact_id", "countries")
    rows = held_out.join(places.rename({"artifact_id": "shown", "countries": "own"}), on="shown").join(
        places.rename({"countries": "found"}), on="artifact_id"
    )
    shown = (
        rows.explode("own")
        .with_columns(hit=pl.col("found").list.contains(pl.col("own")))
        .group_by(country="own")
        .agg(shown=pl.len(), recognised=pl.col("hit").sum())
    )
    mapped = (
        rows.with_columns(hit=pl.col("own").list.contains(pl.col("country")))
        .group_by("country")
        .agg(mapped=pl.len(), right=pl.col("hit").sum())
    )
    countries = shown.join(mapped, on="country", how="full", coalesce=True).sort("country")
    right = int((rows["shown"] == rows["artifact_id"]).sum())
    over_all = pl.DataFrame(
        {"country": [None], "shown": [rows.height], "recognised": [right], "mapped": [rows.height], "right": [right]},
        schema_overrides={"country": pl.String},
    )
    counts = pl.col("shown", "recognised", "mapped", "right")
    table = pl.concat([over_all, countries.select(over_all.columns)], how="vertical_relaxed")
    return (
        table.with_columns(counts.fill_null(0).cast(pl.UInt64))
        .with_columns(recall=share("recognised", "shown"), precision=share("right", "mapped"))
        .select(list(RECOGNITION.columns))
    )


def share(part: str, whole: str) -> pl.Expr:
    """Divide two counts; nothing of nothing is null."""
    return pl.when(pl.col(whole) > 0).then(pl.col(part) / pl.col(whole))
