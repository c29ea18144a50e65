"""What models are asked for: prompts that name an object, alone or in a region or a country."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import AfterValidator, Field, model_validator

from culturekit.core.declared import Typed, builds, staged
from culturekit.core.errors import UsageError
from culturekit.core.package_data import found_or_shipped, shipped_names
from culturekit.core.schemas import IMAGES, PROMPTS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, table_outcome, write_drops, write_table
from culturekit.core.yaml_source import StrictModel, load_model, not_empty
from culturekit.kg.countries import countries, country, country_files

BENCHMARK = "inclusion"
LISTS = "recipes/inclusion/places"  # the folder of the package with the shipped lists

Word = Annotated[str, Field(pattern=r"^\S(.*\S)?$", max_length=80)]
Country = Annotated[str, Field(pattern="^[A-Z]{2}$")]


class PlaceList(StrictModel):
    """Objects, and regions with countries of theirs; `written` says how a prompt names a region otherwise."""

    objects: Annotated[tuple[Word, ...], AfterValidator(not_empty)]
    regions: Annotated[Mapping[Word, tuple[Country, ...]], AfterValidator(not_empty)]
    written: Mapping[Word, Word] = {}

    @model_validator(mode="after")
    def each_once(self) -> "PlaceList":
        """Reject duplicates, a country of two regions, and words for no region."""
        codes = [code for listed in self.regions.values() for code in listed]
        for what, names in (("object", self.objects), ("region", tuple(self.regions)), ("country", tuple(codes))):
            folded = [name.casefold() for name in names]
            twice = next((name for name in names if folded.count(name.casefold()) > 1), None)
            if twice is not None:
                raise ValueError(f"the {what} {twice!r} stands twice")
        unknown = sorted(set(self.written) - set(self.regions))
        if unknown:
            raise ValueError(f"written names {unknown[0]!r}, which is no region of the list")
        return self

    def phrase(self, region: str) -> str:
        """Name a region as a prompt does."""
        return self.written.get(region, region)


def place_file(name: str) -> Path:
    """Find the file of a list: one of the user's, or the shipped one of that name."""
    return found_or_shipped(name, LISTS, "list of objects and regions")


def load_places(path: Path) -> PlaceList:
    """Read a list; every mistake is reported at once."""
    return load_model(path, PlaceList)


def shipped_places() -> tuple[PlaceList, ...]:
    """Load all shipped lists."""
    return tuple(load_places(place_file(name)) for name in shipped_names(LISTS, ".yaml"))


@builds(
    "geographic-prompts", "prompts", packages=("numpy", "polars"), example="--places study --out prompts",
    reads=lambda given: country_files() if given["naming"] == "countries" else {},
)  # fmt: skip
def geographic(
    work: Work,
    places: Annotated[
        Path,
        Field(description="YAML file with objects and regions; or a shipped list: study, geode."),
        Typed(read=place_file),
    ],
    *,
    naming: Annotated[
        Literal["both", "objects", "regions", "countries"],
        Field(description="The object alone, in each region, both, or in each country of the regions."),
    ] = "both",
) -> Outcome:
    """Build prompts that name an object, alone or in a place.

    A place is a region or a country.
    """
    return table_outcome(work, PROMPTS, geographic_prompts(load_places(places), naming))


def geographic_prompts(places: PlaceList, naming: str) -> pl.DataFrame:
    """Write a prompt for each object, alone or in each region or country.

    Returns:
        Conforms to PROMPTS: the object is the concept, the region the group.
    """
    listed = [code for codes in places.regions.values() for code in codes]
    unknown = sorted(set(listed) - set(countries()))
    if unknown and naming == "countries":
        raise UsageError("a region lists an unknown country", found=", ".join(unknown), expected="ISO 3166-1 codes",
                         hint="--countries-file adds countries.")  # fmt: skip
    kinds = ("objects", "regions") if naming == "both" else (naming,)
    rows = [row for kind in kinds for row in _rows_of(kind, places)]
    return pl.DataFrame(rows, schema=PROMPTS.schema).sort("prompt_id")


def _rows_of(kind: str, places: PlaceList) -> Iterator[dict[str, Any]]:
    regions: list[tuple[str | None, str | None, str]] = [(name, None, places.phrase(name)) for name in places.regions]
    if kind == "objects":
        regions = [(None, None, "")]
    elif kind == "countries":
        regions = [(region, iso, country(iso).in_a_sentence)
                   for region, codes in places.regions.items() for iso in codes]  # fmt: skip
    template = {"objects": "{object}", "regions": "{object} in {region}", "countries": "{object} in {country}"}[kind]
    for name in places.objects:
        for region, iso, phrase in regions:
            yield {
                "prompt_id": "-".join(_slug(part) for part in (name, region, iso) if part),
                "text": f"{name} in {phrase}" if phrase else name,
                "benchmark": BENCHMARK, "kind": kind, "concept": name, "country": iso, "group": region,
                "language": "en", "template_id": template,
            }  # fmt: skip


def _slug(text: str) -> str:
    return re.sub(r"\W+", "_", text.casefold()).strip("_") or text.encode().hex()


@staged("photographed-prompts", "prompts", packages=("polars",))
def photographed_stage(work: Work, listed: Path, regional: Path, photographs: Path, *, least: int) -> Outcome:
    """Keep the prompts of objects with `least` photographs or more in every region, duplicates not counted.

    Photographs stand under the `regional` prompts, those that name a region.
    """
    single = read_table(photographs, IMAGES).filter(pl.col("status") == "ok", ~pl.col("sha256").is_duplicated())
    counted = read_table(regional, PROMPTS).join(single.group_by("prompt_id").len(), on="prompt_id", how="left")
    few = counted.with_columns(pl.col("len").fill_null(0)).filter(pl.col("len") < least).sort("concept", "group")
    kept = read_table(listed, PROMPTS).join(few, on="concept", how="anti").sort("prompt_id")
    if kept.is_empty():
        raise UsageError(
            "no object has enough photographs", expected=f"at least {least} in every region",
            found="; ".join(f"{row['len']} of {row['text']}" for row in few.head(3).to_dicts()),
            hint="Lower photographs.least.",
        )  # fmt: skip
    write_table(work.out, PROMPTS, kept)
    reason = pl.format("{} photographs in {}, fewer than " + str(least), "len", "group")
    dropped = few.select("concept", key="prompt_id", stage=pl.lit("photographed-prompts"), reason=reason, detail="text")
    write_drops(work.out, dropped)
    objects = dropped["concept"].n_unique()
    left_out = {"objects with too few photographs in a region": objects} if objects else {}
    return Outcome({"prompts": kept.height}, left_out)
