"""A text-to-image model of the simulated world: it draws scenes of activities, as well as its dials let it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture
from culturekit.generation.simulated.scenes.captions import all_named, named_in
from culturekit.generation.simulated.scenes.dials import read_dial
from culturekit.generation.simulated.scenes.scene import CELLS, Knowledge, draw_scene, scene_of
from culturekit.generation.simulated.scenes.vocabulary import world
from culturekit.registry import Spec
from culturekit.storage.digests import canonical_json

__all__ = ["Options", "ScenesBackend", "make"]

SMALLEST, LARGEST = 128, 1024
"""Pixels along each side; marks of smaller pictures cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Options:
    """How well a simulated model knows the scenes that it draws.

    All but the size are dials: a share, then exceptions by group (GN, GS) or ISO code, such as `0.8,GS:0.6,IR:0.4`.

    Attributes:
        knows: How much of what belongs to a scene is drawn.
        invents: How much of what is drawn is something else, of another country.
        exaggerates: How much of the room for stereotypes is filled with them.
        elsewhere: How many pictures show the activity in another country altogether.
        varies: How many pictures are put together anew; the others show what the model always shows for the prompt.
        size: Pixels along each side, a multiple of 8.
    """

    knows: str = "1"
    invents: str = "0"
    exaggerates: str = "0"
    elsewhere: str = "0"
    varies: str = "1"
    size: Annotated[int, msgspec.Meta(ge=SMALLEST, le=LARGEST, multiple_of=CELLS)] = 192

    @property
    def knowledge(self) -> Knowledge:
        """Read the dials."""
        names = ("knows", "invents", "exaggerates", "elsewhere", "varies")
        return Knowledge(*(read_dial(name, getattr(self, name)) for name in names))


class ScenesBackend:
    """Draws the scene that a prompt asks for by category, country and the activity that its text names.

    A prompt of no category of scenes is a caption: what its text names is drawn.
    """

    version: str | None = "simulated-scenes-1"
    knows_truth = True
    truth_columns = ("truth_country", "truth_scene")

    def __init__(self, options: Options) -> None:
        """Take the dials."""
        self.size = options.size
        self.how = options.knowledge

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer each request with a scene and the truth about it."""
        return [self.picture(request) for request in requests]

    def picture(self, request: ImageRequest) -> ImageReply:
        """Draw one scene; an activity that the world does not know is drawn as any of its category."""
        size = request.width or self.size
        if not SMALLEST <= size <= LARGEST or size % CELLS or (request.height or size) != size:
            return Failure("failed", f"scenes are squares of {SMALLEST} to {LARGEST} pixels, in steps of {CELLS}")
        category, country = request.concept or "", request.country or ""
        known = category in world().categories
        named = None if known else named_in(request.text)
        if country not in world().countries or not (named is None or all_named(named)):
            asked = f"category {request.concept!r}, country {request.country!r}"
            return Failure("failed", f"the simulated world has no such scene: {asked}")
        activity = world().activity_named(request.text, category) if known else None
        scene = scene_of(
            category if known else "", activity, country, self.how, prompt=request.text, seed=request.seed, named=named
        )
        return Picture(
            draw_scene(scene, size=size, seed=request.seed),
            seed_honoured=True,
            truth_country=scene.country,
            truth_scene=canonical_json(scene.as_data()).decode(),
        )


def make(spec: Spec) -> ImageBackend:
    """Make the backend that a SPEC describes."""
    return ScenesBackend(spec.read(Options, such_as="knows=0.8"))
