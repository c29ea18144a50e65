"""The activities that prompts ask for, dimension by dimension, as models are asked about them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from culturekit.builders.activities.activity_prompts import FIXED, LOOKED_FOR, PER_CATEGORY
from culturekit.builders.asked_rows import row_id
from culturekit.errors import UsageError
from culturekit.kg.countries import country
from culturekit.metrics.ahead.dimensions import DIMENSIONS
from culturekit.records.schemas import PROMPTS
from culturekit.storage.tables import read_table

__all__ = ["ActivityDimension", "activities_of", "countries_of", "dimensions_of", "whole_grid"]

ENGLISH = "en"


@dataclass(frozen=True, slots=True)
class ActivityDimension:
    """One dimension of what a prompt asks for."""

    prompt_id: str
    activity: str
    category: str
    country: str
    dimension: str

    @property
    def id(self) -> str:
        """The id that a model is asked under."""
        return row_id(self.category, self.activity, self.country, self.dimension)

    @property
    def key(self) -> str:
        """The name in `drops`."""
        return f"{self.prompt_id}/{self.dimension}"

    def asked(self) -> dict[str, object]:
        """Give what a model is told of it."""
        return {
            "id": self.id,
            "activity": self.activity,
            "category": self.category,
            "country": self.country,
            "dimension": self.dimension,
        }


def activities_of(path: Path, *, grid: Sequence[str] = (), per_category: int = PER_CATEGORY) -> pl.DataFrame:
    """Read the prompts in English that name a country: prompt_id, activity, concept, country.

    A prompt of a table without the column `activity` is asked about by its text. Before the table is there, the whole
    grid of some countries can stand for it in a plan.
    """
    if grid and not path.is_file():
        return whole_grid(grid, per_category=per_category)
    prompts = read_table(path, PROMPTS).filter(pl.col("country").is_not_null(), language=ENGLISH)
    if prompts.is_empty():
        raise UsageError("no English prompt names a country", where=str(path), expected="prompts of activities")
    said = pl.coalesce("activity", "text") if "activity" in prompts.columns else pl.col("text")
    return prompts.select("prompt_id", "concept", "country", activity=said).sort("prompt_id")


def whole_grid(isos: Sequence[str], *, per_category: int = PER_CATEGORY) -> pl.DataFrame:
    """Give as many activities as the prompts of some countries will ask for, under names of a usual length."""
    unknown = {category: [f"a usual custom {n}" for n in range(per_category)] for category in LOOKED_FOR}
    rows = [
        {"prompt_id": f"{iso}-{category}-{name}", "concept": category, "country": iso, "activity": name}
        for iso in isos
        for category, names in {**unknown, **FIXED}.items()
        for name in names
    ]
    return pl.DataFrame(rows)


def dimensions_of(prompts: pl.DataFrame) -> Iterator[ActivityDimension]:
    """Give the five dimensions of each activity."""
    for row in prompts.iter_rows(named=True):
        name = country(row["country"]).name
        for dimension in DIMENSIONS:
            yield ActivityDimension(row["prompt_id"], row["activity"], row["concept"] or "", name, dimension)


def countries_of(prompts: pl.DataFrame) -> Sequence[str]:
    """List the countries, by ISO code."""
    return sorted(set(prompts["country"]))
