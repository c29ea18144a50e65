"""What a picture of an object in a region shows: the object, how it and its background look, clichés, and flaws."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import msgspec
import numpy as np

from culturekit.core.digests import canonical_json
from culturekit.core.registry import Spec
from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture, Pixels
from culturekit.generation.linguistic_lists import shipped_places
from culturekit.generation.simulated.render import (
    LIGHT,
    LIGHT_NUMBERS,
    PAPER_NUMBERS,
    POSE_NUMBERS,
    as_scalars,
    light,
    sheet,
    to_pixels,
)
from culturekit.generation.simulated.scenes.scenes_backend import (
    CELLS,
    STEREOTYPES,
    Dial,
    paint_marks,
    read_dial,
    world,
)

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


# A text-to-image model of the simulated world that draws objects in regions, as well as its dials let it.

OBJECT = "object"
"""The kind of the mark that stands for an object itself."""

ROWS = (OBJECT, *LOOKS, STEREOTYPES)
"""What the rows of marks show, from the top."""

SMALLEST, LARGEST = 128, 1024
"""Pixels along each side; marks of smaller pictures cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a simulated model draws objects in regions.

    All but the size are dials: a share, then exceptions by group (GN, GS) or ISO code, such as `0.8,GS:0.6,ZA:0.4`.

    Attributes:
        regional: How much of a picture looks as the region it is asked for does; the rest could be anywhere.
        shows: How many pictures show the object.
        exaggerates: How much of the room for clichés of the region is filled with them.
        crude: How much of what is drawn is spoilt, as in no photograph.
        size: Pixels along each side, a multiple of 8.
    """

    regional: str = "0.75"
    shows: str = "1"
    exaggerates: str = "0"
    crude: str = "0"
    size: Annotated[int, msgspec.Meta(ge=SMALLEST, le=LARGEST, multiple_of=CELLS)] = SMALLEST

    @property
    def manner(self) -> Manner:
        """Read the dials."""
        return Manner(*(read_dial(name, getattr(self, name)) for name in ("regional", "shows", "exaggerates", "crude")))


class ObjectsBackend:
    """Draws the object, in the region or the country, that a prompt names."""

    version: str | None = "simulated-objects-1"
    knows_truth = True
    truth_columns = ("truth_country", "truth_scene")

    def __init__(self, options: Options) -> None:
        """Take the dials."""
        self.size = options.size
        self.how = options.manner

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer each request with a picture and the truth about it."""
        return [self.picture(request) for request in requests]

    def picture(self, request: ImageRequest) -> ImageReply:
        """Draw one picture."""
        size = request.width or self.size
        if not SMALLEST <= size <= LARGEST or size % CELLS or (request.height or size) != size:
            return Failure("failed", f"pictures are squares of {SMALLEST} to {LARGEST} pixels, in steps of {CELLS}")
        name, region = asked_of(request.text)
        country = request.country if request.country in world().countries else None
        wants = region is not None or request.country is not None
        if name is None or (wants and not (country or known_regions().get(region or ""))):
            return Failure("failed", f"the simulated world has no such object, or no such region: {request.text!r}")
        scene = scene_of(name, region, country, self.how, seed=request.seed)
        return Picture(
            draw_object(scene, size=size, seed=request.seed),
            seed_honoured=True,
            truth_country=scene.country,
            truth_scene=canonical_json(scene.as_data()).decode(),
        )


def marks_of(scene: ObjectScene) -> Iterator[tuple[int, int, str, str]]:
    """List the marks of a picture: row and column, kind, and what the mark stands for."""
    shown = {OBJECT: (scene.thing,) if scene.thing else (), **scene.looks, STEREOTYPES: scene.cliches}
    for row, kind in enumerate(ROWS):
        yield from ((row, column, kind, token) for column, token in enumerate(shown[kind]))


def draw_object(scene: ObjectScene, *, size: int, seed: int) -> Pixels:
    """Draw a picture; light, paper and how marks stand come from the seed."""
    rng = np.random.default_rng([seed % 2**64, 2])
    lamp, paper = np.split(rng.random((1, LIGHT_NUMBERS + PAPER_NUMBERS)), [LIGHT_NUMBERS], axis=1)
    canvas = sheet(as_scalars(0.86 + 0.13 * paper), size)
    marks = list(marks_of(scene))
    if marks:
        paint_marks(canvas, marks, rng.random((len(marks), POSE_NUMBERS)), size)
    light(canvas, lamp, strength=LIGHT)
    return to_pixels(canvas)[0]


def make(spec: Spec) -> ImageBackend:
    """Make the backend that a SPEC describes."""
    return ObjectsBackend(spec.read(Options, such_as="crude=1"))
