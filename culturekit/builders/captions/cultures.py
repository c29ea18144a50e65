"""A culture that captions are about: its seed captions and categories of error, from YAML."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.folded_names import folded
from culturekit.storage.package_data import found_or_shipped
from culturekit.storage.yaml_model import StrictModel, closest, load_model, not_empty

__all__ = ["CaptionCulture", "SeedCaption", "culture_file", "load_culture"]

FOLDER = "builders/captions/cultures"


class SeedCaption(StrictModel):
    """A caption to begin with, which a person should have checked."""

    caption: Annotated[str, Field(min_length=1, description="What a picture should show, in one sentence.")]
    category: Annotated[str, Field(description="The category of error that it leads to.")]


class CaptionCulture(StrictModel):
    """A culture, what models get wrong about it, and captions that show it."""

    culture: Annotated[str, Field(min_length=1, description="The adjective of the culture, such as Chinese.")]
    language: Annotated[str, Field(pattern="^[a-z]{2,3}$", description="Language of the captions, ISO 639.")] = "en"
    categories: Annotated[
        Mapping[Annotated[str, Field(pattern="^[a-z][a-z-]*$")], Annotated[str, Field(min_length=1)]],
        AfterValidator(not_empty),
        Field(description="Categories of error, each with what it means."),
    ]
    seeds: Annotated[tuple[SeedCaption, ...], Field(min_length=5, description="Captions to begin with, five or more.")]

    @model_validator(mode="after")
    def belong_together(self) -> "CaptionCulture":
        """Refuse seeds that are the same, or of no category."""
        for seed in self.seeds:
            if seed.category not in self.categories:
                raise ValueError(f"{seed.category!r} is no category{closest(seed.category, list(self.categories))}")
        if len({folded(seed.caption) for seed in self.seeds}) < len(self.seeds):
            raise ValueError("two seeds are the same but for case and punctuation")
        return self

    @property
    def slug(self) -> str:
        """How ids of its captions begin."""
        return "-".join(folded(self.culture).split())


def culture_file(said: str) -> Path:
    """Find the file of a culture: one of the user's, or the shipped one of that name."""
    return found_or_shipped(said, FOLDER, "culture")


def load_culture(path: Path) -> CaptionCulture:
    """Read a culture; every mistake is said at once."""
    return load_model(path, CaptionCulture)
