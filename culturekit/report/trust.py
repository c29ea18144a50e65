"""From a finished run to what its report says of the mapping: floor, ceiling, countries, hubs, bounds, stability."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.records.schemas import HUBS, RECOGNITION, SCORES
from culturekit.report.countries import country_names
from culturekit.report.figures import Figure, figure_in
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["BoundLine", "CountryLine", "HubLine", "StabilityLine", "Trust", "trust_in"]

HUBS_SHOWN = 5
"""Of each model; the table has more."""


@dataclass(frozen=True, slots=True)
class CountryLine:
    """How well the mapping tells a country's artifacts, on held-out references; None is the line over all."""

    country: str | None
    shown: int
    recall: float | None
    mapped: int
    precision: float | None


@dataclass(frozen=True, slots=True)
class HubLine:
    """An artifact that is near to many images of a model."""

    model: str
    artifact: str
    artifact_id: str
    country: str
    share: float
    nearest: int


@dataclass(frozen=True, slots=True)
class BoundLine:
    """How far unknown images could move a model's score."""

    model: str
    concept: str | None
    worst: Figure
    best: Figure
    unknown: int
    images: int


@dataclass(frozen=True, slots=True)
class StabilityLine:
    """How far two instruments agree on the order of the models."""

    between: tuple[str, ...]
    metric: str
    concept: str | None
    kernel: str
    tau: float
    stable: bool


@dataclass(frozen=True, slots=True)
class Trust:
    """How far the mapping can be trusted."""

    countries: tuple[CountryLine, ...]
    hubs: tuple[HubLine, ...]
    skew: Mapping[str, float]
    bounds: tuple[BoundLine, ...]
    stability: tuple[StabilityLine, ...]

    @property
    def stable(self) -> bool | None:
        """Tell whether all rankings compared are stable; None where none was compared."""
        return all(line.stable for line in self.stability) if self.stability else None


def trust_in(run: RunFolders, scores: pl.DataFrame) -> Trust | None:
    """Collect what is known of the mapping; None for a run without a diagnosis."""
    recognition, hubs = run.read(roles.DIAGNOSIS, RECOGNITION), run.read(roles.DIAGNOSIS, HUBS)
    if recognition is None or hubs is None:
        return None
    stability, names = run.read(roles.STABILITY, SCORES), country_names(run)
    return Trust(
        countries=tuple(country_lines(recognition, names)),
        hubs=tuple(hub_lines(hubs, run.models, names)),
        skew=run.manifest(roles.DIAGNOSIS).notes["neighbour_skew"],
        bounds=tuple(bound_lines(scores, run.models)),
        stability=() if stability is None else tuple(stability_lines(stability)),
    )


def country_lines(recognition: pl.DataFrame, names: Mapping[str, str]) -> Iterator[CountryLine]:
    """Give the line over all, then the countries that are told worst first."""
    for row in recognition.sort("recall", "country", nulls_last=True).sort(pl.col("country").is_not_null()).to_dicts():
        yield CountryLine(
            names.get(row["country"], row["country"]), row["shown"], row["recall"], row["mapped"], row["precision"]
        )


def hub_lines(hubs: pl.DataFrame, models: Sequence[str], names: Mapping[str, str]) -> Iterator[HubLine]:
    """Give the largest hubs of each model."""
    for model in models:
        for row in hubs.filter(pl.col("model") == model).sort("rank").head(HUBS_SHOWN).to_dicts():
            place = names.get(row["country"], row["country"])
            yield HubLine(model, row["artifact"], row["artifact_id"], place, row["share"], row["nearest"])


def bound_lines(scores: pl.DataFrame, models: Sequence[str]) -> Iterator[BoundLine]:
    """Pair the worst and the best case of each model and concept, at the kernel that is furthest apart."""
    counts = pl.Struct({"unknown": pl.Int64, "images": pl.Int64})
    about = scores.filter(pl.col("metric").is_in(["vs_worst", "vs_best"]), pl.col("model").is_in(list(models)))
    about = about.with_columns(c=pl.col("params").str.json_decode(counts)).unnest("c")
    for (model, concept), own in about.group_by("model", "concept", maintain_order=True):
        pairs = own.filter(pl.col("metric") == "vs_worst").join(
            own.filter(pl.col("metric") == "vs_best"), on=["kernel", "country"], nulls_equal=True, suffix="_best"
        )
        widest = pairs.sort(pl.col("value_best") - pl.col("value"), descending=True).head(1).to_dicts()
        for row in widest:
            worst, best = figure_in(row), figure_in(row, suffix="_best")
            yield BoundLine(
                str(model), None if concept is None else str(concept), worst, best, row["unknown"], row["images"]
            )


def stability_lines(scores: pl.DataFrame) -> Iterator[StabilityLine]:
    """Read how far instruments agree."""
    params = pl.Struct({"between": pl.List(pl.String), "metric": pl.String, "kernel": pl.String, "stable": pl.Boolean})
    about = scores.drop("metric").with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")
    for row in about.sort("value").to_dicts():
        yield StabilityLine(
            tuple(row["between"]), row["metric"], row["concept"], row["kernel"] or "", row["value"], row["stable"]
        )
