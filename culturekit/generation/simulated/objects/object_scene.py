"""What a picture of an object in a region shows: the object, how it and its background look, clichés, and flaws."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from culturekit.generation.place_lists import shipped_places
from culturekit.generation.simulated.scenes.dials import Dial
from culturekit.generation.simulated.scenes.vocabulary import world

__all__ = ["FLAWS", "LOOKS", "PLACES", "Manner", "ObjectScene", "anywhere", "asked_of", "cliches_of", "known_objects",
           "known_regions", "look_of", "scene_of"]  # fmt: skip

LOOKS = ("objects", "background")
"""The dimensions in which a region has a look: of the object, and of what is around it."""

PLACES = 4
"""How many marks of each look a picture has room for."""

CLICHES = 5
FLAWS = tuple(f"flaw {number}" for number in range(1, 13))
"""What no photograph shows: things that run into one another, of several kinds."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a model draws objects; the backend's options say what the fields mean."""

    regional: Dial
    shows: Dial
    exaggerates: Dial
    crude: Dial


@dataclass(frozen=True, slots=True)
class ObjectScene:
    """What a picture shows; a mark of a look belongs to a region, to everywhere, or is a flaw."""

    thing: str | None
    country: str | None
    looks: Mapping[str, tuple[str, ...]]
    cliches: tuple[str, ...] = ()

    @property
    def things(self) -> tuple[str, ...]:
        """List everything that is shown."""
        shown = [token for look in LOOKS for token in self.looks[look]]
        return (*([self.thing] if self.thing else []), *shown, *self.cliches)

    def as_data(self) -> dict[str, object]:
        """Give the truth about a picture, as it stands in tables."""
        shown = {look: list(self.looks[look]) for look in LOOKS}
        return {"object": self.thing, "country": self.country, "shown": shown,
                "stereotypes": dict(sorted(Counter(self.cliches).items()))}  # fmt: skip

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "ObjectScene":
        """Read it again."""
        cliches = tuple(name for name, count in data["stereotypes"].items() for _ in range(count))
        looks = {look: tuple(data["shown"][look]) for look in LOOKS}
        return cls(data["object"], data["country"], looks, cliches)


@cache
def known_objects() -> tuple[str, ...]:
    """List the objects that the world knows: those of the shipped lists."""
    return tuple(sorted({name for places in shipped_places() for name in places.objects}))


@cache
def known_regions() -> Mapping[str, tuple[str, ...]]:
    """Give the regions of the shipped lists, and the countries of each that the world knows."""
    regions = {name: own for places in shipped_places() for name, own in places.regions.items()}
    return {name: tuple(country for country in own if country in world().countries) for name, own in regions.items()}


def look_of(region: str, look: str) -> frozenset[str]:
    """Give the marks by which a region is known in a dimension."""
    return frozenset(
        token for country in known_regions()[region] for token in world().countries[country].of_dimension(look)
    )


def cliches_of(region: str) -> frozenset[str]:
    """Give what pictures of a region overdo."""
    return frozenset(token for country in known_regions()[region] for token in world().stereotypes(country))


def anywhere(look: str) -> tuple[str, ...]:
    """List the marks that tell nothing of a region."""
    return tuple(token for category in world().categories.values() for token in category.of_dimension(look))


def asked_of(text: str) -> tuple[str | None, str | None]:
    """Find the object and the region that a prompt names, of each the longest; None where it names none."""
    said = f" {' '.join(text.casefold().split())} "
    found = [
        next((name for name in sorted(names, key=len, reverse=True) if f" {name.casefold()} " in said), None)
        for names in (known_objects(), tuple(known_regions()))
    ]
    return found[0], found[1]


def scene_of(name: str, region: str | None, country: str | None, how: Manner, *, seed: int) -> ObjectScene:
    """Put a picture together by its seed: of a country, or of any country of a region, or of nowhere."""
    rng = np.random.default_rng(seed % 2**64)
    homes = (country,) if country else known_regions()[region] if region else ()
    home = homes[int(rng.integers(len(homes)))] if homes else None
    crude = how.crude.of_country(home)
    looks = {}
    for look in LOOKS:
        own = world().countries[home].of_dimension(look) if home else ()
        marks = [
            drawn(rng, own if home and rng.random() < how.regional.of_country(home) else anywhere(look))
            for _ in range(PLACES)
        ]
        looks[look] = tuple(drawn(rng, FLAWS) if rng.random() < crude else mark for mark in marks)
    shown = name if rng.random() < how.shows.of_country(home) else None
    strength = how.exaggerates.of_country(home) if home else 0.0
    room = [drawn(rng, world().stereotypes(home)) for _ in range(CLICHES)] if home else []
    return ObjectScene(shown, home, looks, tuple(token for token in room if rng.random() < strength))


def drawn(rng: np.random.Generator, names: Sequence[str]) -> str:
    """Draw one of some names."""
    return names[int(rng.integers(len(names)))]
