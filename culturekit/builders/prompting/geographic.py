"""Prompts that name an object, alone or in a region or a country."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import Field

from culturekit.core.errors import UsageError
from culturekit.core.schemas import CSPACE, PROMPTS
from culturekit.core.tables import read_table, table_outcome
from culturekit.core.work import Outcome, Work
from culturekit.generation.linguistic_lists import PlaceList
from culturekit.kg.countries import countries, country

# A prompt per artifact that is nothing but its name: by these, pictures of a folder find what they show.


def name_artifacts(work: Work, space_path: Path) -> Outcome:
    """Write one prompt for each artifact of a cultural space, however many countries it belongs to."""
    prompts = artifact_prompts(read_table(space_path, CSPACE))
    return table_outcome(work, PROMPTS, prompts)


def artifact_prompts(space: pl.DataFrame) -> pl.DataFrame:
    """Give the prompts; the id of each is that of its artifact."""
    first = space.sort("artifact_id", "country", "concept").unique("artifact_id", keep="first", maintain_order=True)
    made = first.select(
        "artifact_id", "concept", "country",
        prompt_id=pl.col("artifact_id"),
        text=pl.col("name"),
        benchmark=pl.lit("cube"),
        kind=pl.lit("cube"),
        language=pl.lit("en"),
        template_id=pl.lit("name"),
        negative_text=pl.lit(None, pl.String),
        group=pl.lit(None, pl.String),
    )  # fmt: skip
    return made.select(list(PROMPTS.schema))


BENCHMARK = "inclusion"
FORMS = {"objects": "{object}", "regions": "{object} in {region}", "countries": "{object} in {country}"}
ENGLISH = "en"


@dataclass(frozen=True, slots=True)
class GeographicOptions:
    """What prompts name besides an object."""

    naming: Annotated[
        Literal["both", "objects", "regions", "countries"],
        Field(description="The object alone, in each region, both, or in each country of the regions."),
    ] = "both"

    @property
    def kinds(self) -> tuple[str, ...]:
        """List the kinds of prompts."""
        return ("objects", "regions") if self.naming == "both" else (self.naming,)


def geographic_prompts(places: PlaceList, options: GeographicOptions) -> pl.DataFrame:
    """Write a prompt for each object, alone or in each region or country.

    Returns:
        Conforms to PROMPTS: the object is the concept, the region the group.
    """
    unknown = sorted({iso for own in places.regions.values() for iso in own} - set(countries()))
    if unknown and options.naming == "countries":
        raise UsageError("a region lists an unknown country", found=", ".join(unknown), expected="ISO 3166-1 codes",
                         hint="--countries-file adds countries.")  # fmt: skip
    rows = [row for kind in options.kinds for row in rows_of(kind, places)]
    return pl.DataFrame(rows, schema=PROMPTS.schema).sort("prompt_id")


def rows_of(kind: str, places: PlaceList) -> Iterator[dict[str, Any]]:
    """Write the rows of one kind of prompts."""
    where: Mapping[str, list[tuple[str | None, str | None, str]]] = {
        "objects": [(None, None, "")],
        "regions": [(region, None, places.phrase(region)) for region in places.regions],
        "countries": [(region, iso, called(iso)) for region, codes in places.regions.items() for iso in codes],
    }
    for name in places.objects:
        for region, iso, place in where[kind]:
            yield {
                "prompt_id": "-".join(slug(part) for part in (name, region or "", iso or "") if part),
                "text": f"{name} in {place}" if place else name,
                "negative_text": None, "benchmark": BENCHMARK, "kind": kind, "concept": name, "country": iso,
                "group": region, "artifact_id": None, "language": ENGLISH, "template_id": FORMS[kind],
            }  # fmt: skip


def called(iso: str) -> str:
    """Name a country as a sentence does; one that is not known is refused before it is named."""
    return country(iso).in_a_sentence if iso in countries() else iso


def slug(text: str) -> str:
    """Write a name as a part of an id."""
    return re.sub(r"\W+", "_", text.casefold()).strip("_") or text.encode().hex()
