"""The artifacts that are shown most, and popular ones that are shown least."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.records.schemas import DISTRIBUTIONS
from culturekit.report.countries import Share, country_names, over_all_concepts, share
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["ArtifactShares", "Extremes", "extremes_in"]

SHOWN = 10


@dataclass(frozen=True, slots=True)
class ArtifactShares:
    """The share of an artifact in the images of each model; None where no image shows it."""

    name: str
    country: str | None
    popularity: float | None
    shares: tuple[Share | None, ...]


@dataclass(frozen=True, slots=True)
class Extremes:
    """Artifacts at both ends.

    Attributes:
        most: those with the largest share in the images of some model, largest first.
        least: the most popular of those that the fewest images show.
        artifacts: names of artifacts there are to be shown.
        never: of them are never the nearest to an image of each model.
    """

    most: tuple[ArtifactShares, ...]
    least: tuple[ArtifactShares, ...]
    artifacts: int
    never: tuple[int, ...]


def extremes_in(run: RunFolders, models: Sequence[str]) -> Extremes | None:
    """Collect both ends, over all concepts; None for a run that did not count what is shown."""
    table = run.read(roles.SHOWN, DISTRIBUTIONS)
    if table is None:
        return None
    shown = over_all_concepts(table.filter(pl.col("level") == "artifact", pl.col("label").is_not_null()))
    shown = shown.filter(pl.col("model").is_in(list(models)), pl.col("images") > 0)
    known = run.space().group_by("name").agg(pl.col("popularity").max(), pl.col("country").drop_nulls().min())
    cells = {(row["model"], row["label"]): share(row) for row in shown.to_dicts()}
    most = shown.group_by("label").agg(pl.col("share").max()).sort(["share", "label"], descending=[True, False])
    counts = shown.group_by("label").agg(pl.col("images").sum())
    least = known.join(counts, left_on="name", right_on="label", how="left").with_columns(pl.col("images").fill_null(0))
    least = least.sort(["images", "popularity", "name"], descending=[False, True, False], nulls_last=True)
    about, names = {row["name"]: row for row in known.to_dicts()}, country_names(run)

    def line(name: str) -> ArtifactShares:
        own = about.get(name, {"country": None, "popularity": None})
        return ArtifactShares(
            name,
            names.get(own["country"], own["country"]),
            own["popularity"],
            tuple(cells.get((model, name)) for model in models),
        )

    return Extremes(
        most=tuple(line(name) for name in most["label"].head(SHOWN)),
        least=tuple(line(name) for name in least["name"].head(SHOWN)),
        artifacts=known.height,
        never=tuple(sum((model, name) not in cells for name in about) for model in models),
    )
