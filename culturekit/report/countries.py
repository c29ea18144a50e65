"""Which countries the images of each model show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from culturekit.kg.countries import countries
from culturekit.records.schemas import CSPACE, DISTRIBUTIONS, SCORES
from culturekit.report.run_folders import RunFolders
from culturekit.report.world_map import country_paths
from culturekit.stages import roles

__all__ = ["CountryShares", "Share", "country_names", "over_all_concepts", "share", "shares_in"]


@dataclass(frozen=True, slots=True)
class Share:
    """The share of images that show something, with its limits, and how many images that is."""

    value: float
    low: float | None
    high: float | None
    images: int


@dataclass(frozen=True, slots=True)
class CountryShares:
    """Which countries the images of each model were mapped to.

    Attributes:
        names: of each country, by its code, in the order of the names.
        models: in the order of the page.
        shares: by model and code.
        images: how many images each model made that were mapped.
        available: the share of each country in the artifacts that images are mapped to.
        off_the_map: countries too small for the map.
        corrected: by model and code, the shares that people's answers put right; of models that were audited.
    """

    names: Mapping[str, str]
    models: tuple[str, ...]
    shares: Mapping[str, Mapping[str, Share]]
    images: Mapping[str, int]
    available: Mapping[str, float]
    off_the_map: tuple[str, ...]
    corrected: Mapping[str, Mapping[str, Share]] = field(default_factory=dict)

    def leading(self, model: str) -> Mapping[str, Share]:
        """Give the shares of a model, corrected where people looked."""
        return self.corrected.get(model, self.shares[model])

    @property
    def intervals(self) -> bool:
        """Tell whether any share has limits."""
        return any(share.low is not None for model in self.models for share in self.leading(model).values())

    def never(self, model: str) -> int:
        """Count the countries that no image of a model was mapped to, and nobody saw."""
        return sum(share.value == 0 for share in self.leading(model).values())

    def most(self, model: str) -> str:
        """Name the country that most images of a model show."""
        own = self.leading(model)
        return self.names[max(own, key=lambda code: own[code].value)]


def shares_in(run: RunFolders, models: Sequence[str]) -> CountryShares | None:
    """Collect the share of each country in the images of each model; None for a run that did not count them."""
    table = run.read(roles.SHOWN, DISTRIBUTIONS)
    if table is None:
        return None
    shown = over_all_concepts(table.filter(pl.col("level") == "country"))
    known = run.space()["country"].unique().to_list()
    mapped = shown["label"].drop_nulls().unique().to_list()
    seen = audited_shares(run)
    found = {code for own in seen.values() for code in own}
    names = country_names(run)
    codes = sorted({*known, *mapped, *found}, key=lambda code: names.get(code, code))
    cells = {(row["model"], row["label"]): share(row) for row in shown.to_dicts()}
    images = dict(shown.group_by("model").agg(pl.col("images").sum()).iter_rows())
    return CountryShares(
        names={code: names.get(code, code) for code in codes},
        models=tuple(models),
        shares={
            model: {code: cells.get((model, code), Share(0.0, None, None, 0)) for code in codes} for model in models
        },
        images=images,
        available=available(run.space()),
        off_the_map=tuple(code for code in codes if code not in country_paths()),
        corrected={
            model: {code: seen[model].get(code, Share(0.0, None, None, 0)) for code in codes}
            for model in models
            if model in seen
        },
    )


def audited_shares(run: RunFolders) -> dict[str, dict[str, Share]]:
    """Read the share of each country in the images of each model, as people's answers put it right."""
    table = run.read(roles.AUDITED, SCORES)
    if table is None:
        return {}
    shown = over_all_concepts(table.filter(pl.col("metric") == "shown_share"))
    found: dict[str, dict[str, Share]] = {}
    for row in shown.to_dicts():
        found.setdefault(row["model"], {})[row["group"]] = Share(row["value"], row["ci_low"], row["ci_high"], row["n"])
    return found


def over_all_concepts(shown: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Keep the rows over all concepts; a model with one concept, or what `by` tells apart, has no others."""
    over_all = shown.filter(pl.col("concept").is_null())
    return pl.concat([over_all, shown.join(over_all, on=by or "model", how="anti")])


def share(row: dict[str, float | int | None]) -> Share:
    """Read a share from a row of the table."""
    return Share(float(row["share"] or 0), row["ci_low"], row["ci_high"], int(row["images"] or 0))


def available(space: pl.DataFrame) -> dict[str, float]:
    """Say which share of the artifacts is of each country: what a model would show that favours none."""
    counts = space.select("artifact_id", "country").unique().group_by("country").len()
    total = counts["len"].sum()
    return {code: number / total for code, number in counts.iter_rows()}


def country_names(run: RunFolders) -> dict[str, str]:
    """Name countries by their codes: as the cultural space does, others as lists of countries do."""
    known, space = {code: country.name for code, country in countries().items()}, run.read(roles.CSPACE, CSPACE)
    if space is None:
        return known
    named = space.select("country", "country_name").filter(pl.col("country_name") != "").unique("country")
    return {**known, **dict(named.iter_rows())}
