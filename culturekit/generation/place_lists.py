"""Lists of objects and regions that models are asked for, from YAML: shipped ones, or the user's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from culturekit.storage.package_data import found_or_shipped, shipped_names
from culturekit.storage.yaml_model import StrictModel, load_model, not_empty

__all__ = ["PlaceList", "load_places", "place_file", "shipped_places"]

FOLDER = "generation/places"

Word = Annotated[str, Field(pattern=r"^\S(.*\S)?$", max_length=80)]
Country = Annotated[str, Field(pattern="^[A-Z]{2}$")]


class PlaceList(StrictModel):
    """Objects, and regions with countries of theirs; `written` says how a prompt names a region otherwise."""

    objects: Annotated[tuple[Word, ...], AfterValidator(not_empty)]
    regions: Annotated[Mapping[Word, tuple[Country, ...]], AfterValidator(not_empty)]
    written: Mapping[Word, Word] = {}

    @model_validator(mode="after")
    def each_once(self) -> "PlaceList":
        """Refuse what stands twice, a country of two regions, and words for no region."""
        countries = [country for own in self.regions.values() for country in own]
        for what, names in (("object", self.objects), ("region", tuple(self.regions)), ("country", tuple(countries))):
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


def place_file(said: str) -> Path:
    """Find the file of a list: one of the user's, or the shipped one of that name."""
    return found_or_shipped(said, FOLDER, "list of objects and regions")


def load_places(path: Path) -> PlaceList:
    """Read a list; every mistake is said at once."""
    return load_model(path, PlaceList)


def shipped_places() -> tuple[PlaceList, ...]:
    """Give all shipped lists."""
    return tuple(load_places(place_file(name)) for name in shipped_names(FOLDER, ".yaml"))
