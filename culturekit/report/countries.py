"""Which countries the images of each model show."""

from collections.abc import Sequence

import polars as pl

from culturekit.kg.countries import countries
from culturekit.report.data import CountryShares, Share
from culturekit.report.run_folders import RunFolders
from culturekit.report.world_map import country_paths

__all__ = ["shares_in"]


def shares_in(run: RunFolders, models: Sequence[str]) -> CountryShares | None:
    """Collect the share of each country in the images of each model; None for a run that did not count them."""
    table = run.distributions()
    if table is None:
        return None
    shown = over_all_concepts(table.filter(pl.col("level") == "country"))
    known = run.space()["country"].unique().to_list()
    mapped = shown["label"].drop_nulls().unique().to_list()
    codes = sorted({*known, *mapped}, key=name_of)
    cells = {(row["model"], row["label"]): share(row) for row in shown.to_dicts()}
    images = dict(shown.group_by("model").agg(pl.col("images").sum()).iter_rows())
    return CountryShares(
        names={code: name_of(code) for code in codes},
        models=tuple(models),
        shares={
            model: {code: cells.get((model, code), Share(0.0, None, None, 0)) for code in codes} for model in models
        },
        images=images,
        available=available(run.space()),
        off_the_map=tuple(code for code in codes if code not in country_paths()),
    )


def over_all_concepts(shown: pl.DataFrame) -> pl.DataFrame:
    """Keep the rows over all concepts; a model with one concept has no others."""
    over_all = shown.filter(pl.col("concept").is_null())
    return pl.concat([over_all, shown.join(over_all, on="model", how="anti")])


def share(row: dict[str, float | int | None]) -> Share:
    """Read a share from a row of the table."""
    return Share(float(row["share"] or 0), row["ci_low"], row["ci_high"], int(row["images"] or 0))


def available(space: pl.DataFrame) -> dict[str, float]:
    """Say which share of the artifacts is of each country: what a model would show that favours none."""
    counts = space.select("artifact_id", "country").unique().group_by("country").len()
    total = counts["len"].sum()
    return {code: number / total for code, number in counts.iter_rows()}


def name_of(code: str) -> str:
    """Name a country by its code; one that is not known keeps its code."""
    return countries()[code].name if code in countries() else code
