"""The simulated world of activities: what a scene shows by its country, its category and its activity."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from pydantic import Field

from culturekit.storage.package_data import shipped
from culturekit.storage.yaml_model import StrictModel, load_model

__all__ = ["DIMENSIONS", "VOCABULARY", "Expected", "Token", "Vocabulary", "World", "world"]

VOCABULARY = "generation/simulated/scenes/vocabulary.yaml"

OF_ACTIVITY = ("objects", "interaction")
"""The dimensions in which an activity has a token of its own."""


class Parts(StrictModel):
    """Tokens by dimension."""

    background: tuple[str, ...]
    objects: tuple[str, ...]
    attire: tuple[str, ...]
    interaction: tuple[str, ...]
    spatial: tuple[str, ...]

    def of_dimension(self, dimension: str) -> tuple[str, ...]:
        """Give the tokens of one dimension."""
        tokens: tuple[str, ...] = getattr(self, dimension)
        return tokens


DIMENSIONS = tuple(Parts.model_fields)
"""What is shown of a scene, in the order in which it is drawn."""


class SceneCategory(Parts):
    """What any scene of a category shows, and its activities: an object and an interaction each."""

    activities: Mapping[str, tuple[str, str]]


class SceneCountry(Parts):
    """What any scene of a country shows, and what pictures of it overdo."""

    group: Literal["GN", "GS"]
    stereotypes: tuple[str, ...] = Field(min_length=1)


class Vocabulary(StrictModel):
    """The file of the world."""

    categories: Mapping[str, SceneCategory]
    countries: Mapping[str, SceneCountry]


@dataclass(frozen=True, slots=True)
class Token:
    """One thing that a scene shows, and what the world says of it."""

    text: str
    style: Literal["traditional", "modern", "neutral"]
    necessity: Literal["necessary", "optional"]


Expected: TypeAlias = Mapping[str, tuple[Token, ...]]
"""What a scene of an activity in a country shows when it lacks nothing, by dimension."""


class World:
    """Answers what is so in the simulated world."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Take the vocabulary."""
        self.categories = vocabulary.categories
        self.countries = vocabulary.countries
        self.foreign = cache(self.foreign_of)

    def expected(self, category: str, activity: str | None, country: str) -> Expected:
        """Say what a scene shows; without an activity what every scene of the category shows there."""
        return {
            dimension: (
                *self.of_activity(category, activity, dimension),
                *(Token(text, "neutral", "necessary") for text in self.categories[category].of_dimension(dimension)),
                *(Token(text, "traditional", "optional") for text in self.countries[country].of_dimension(dimension)),
            )
            for dimension in DIMENSIONS
        }

    def of_activity(self, category: str, activity: str | None, dimension: str) -> tuple[Token, ...]:
        """Give what the activity itself shows in a dimension."""
        if activity is None or dimension not in OF_ACTIVITY:
            return ()
        text = self.categories[category].activities[activity][OF_ACTIVITY.index(dimension)]
        return (Token(text, "neutral", "necessary"),)

    def foreign_of(self, dimension: str, country: str) -> tuple[str, ...]:
        """List what only scenes of other countries show in a dimension."""
        return tuple(
            text for iso, other in self.countries.items() if iso != country for text in other.of_dimension(dimension)
        )

    def tokens(self, dimension: str) -> tuple[str, ...]:
        """List everything that may be shown in a dimension, each once."""
        parts = [part for known in (self.categories, self.countries) for part in known.values()]
        everywhere = [text for part in parts for text in part.of_dimension(dimension)]
        own = [
            pair[OF_ACTIVITY.index(dimension)]
            for category in self.categories.values()
            for pair in category.activities.values()
            if dimension in OF_ACTIVITY
        ]
        return (*everywhere, *own)

    @property
    def activities(self) -> tuple[tuple[str, str], ...]:
        """List all activities with their categories."""
        return tuple((name, category) for category, known in self.categories.items() for name in known.activities)

    def activity_named(self, text: str, category: str) -> str | None:
        """Find the activity of a category that a text names, the longest name first; None where it names none."""
        known = sorted(self.categories[category].activities, key=len, reverse=True)
        return next((name for name in known if name in text.casefold()), None)

    def stereotypes(self, country: str) -> tuple[str, ...]:
        """List what pictures of a country overdo."""
        return self.countries[country].stereotypes


@cache
def world() -> World:
    """Give the world; its file is read once."""
    return World(load_model(shipped(VOCABULARY), Vocabulary))
