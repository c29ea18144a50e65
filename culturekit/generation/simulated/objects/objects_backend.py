"""A text-to-image model of the simulated world that draws objects in regions, as well as its dials let it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np

from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture, Pixels
from culturekit.generation.simulated.canvas import as_scalars, light, sheet, to_pixels
from culturekit.generation.simulated.emblems import POSE_NUMBERS
from culturekit.generation.simulated.objects.object_scene import (
    LOOKS,
    Manner,
    ObjectScene,
    asked_of,
    known_regions,
    scene_of,
)
from culturekit.generation.simulated.render import LIGHT, LIGHT_NUMBERS, PAPER_NUMBERS
from culturekit.generation.simulated.scenes.dials import read_dial
from culturekit.generation.simulated.scenes.scene import CELLS, STEREOTYPES, paint_marks
from culturekit.generation.simulated.scenes.vocabulary import world
from culturekit.registry import Spec
from culturekit.storage.digests import canonical_json

__all__ = ["OBJECT", "ROWS", "ObjectsBackend", "Options", "draw_object", "make"]

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
