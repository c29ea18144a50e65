"""An encoder of the simulated world of objects: what texts name and pictures show, as far as it looks at that."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from culturekit.builders.simulated.simulated_encoder import (
    BLANK,
    ENCODED_DIMENSIONS,
    SimulatedEncoder,
    direction,
    looks_of_marks,
    nearest,
)
from culturekit.core.registry import Spec
from culturekit.generation.backend import Pixels
from culturekit.generation.simulated.scenes.objects import (
    FLAWS,
    LOOKS,
    OBJECT,
    ROWS,
    anywhere,
    asked_of,
    cliches_of,
    known_objects,
    known_regions,
    look_of,
)
from culturekit.generation.simulated.scenes.scenes_backend import CELLS, STEREOTYPES, cell_slices
from culturekit.index.encoder import EncoderIdentity, Vectors

COLUMNS = {OBJECT: 1, STEREOTYPES: 5}
"""How many marks a row has; the others have room for four."""


OBJECT_COUNTS = 2.0
"""An object is drawn larger than anything around it."""


@dataclass(frozen=True, slots=True)
class Options:
    """How well the encoder knows what it compares, and what it does not look at.

    Attributes:
        blur: The length of the noise in each vector, against 1 for what is named or shown.
        flaws: How much what is spoilt counts; 0 does not see it.
        cliches: How much clichés of a region count, in pictures and in its name.
        looks: How much the looks of regions count.
    """

    blur: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.0
    flaws: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0
    cliches: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0
    looks: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0


class ObjectEncoder(SimulatedEncoder):
    """Adds up directions, one for each thing that a text names or that a picture shows, as much as it counts."""

    caveat = "The simulated encoder knows the objects and regions of a made-up world by name; it stands for no model."

    def __init__(self, options: Options) -> None:
        """Take what counts."""
        super().__init__(options.blur)
        self.counts = {OBJECT: OBJECT_COUNTS, **dict.fromkeys(LOOKS, options.looks), STEREOTYPES: options.cliches}
        self.flaws = options.flaws
        told = f"blur {options.blur:g}, flaws {options.flaws:g}, cliches {options.cliches:g}"
        self.identity = EncoderIdentity(
            "simulated-objects", "none", "1", f"objects in regions, {told}, looks {options.looks:g}",
            "float32", ENCODED_DIMENSIONS,
        )  # fmt: skip

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Encode pictures by the marks in them."""
        return self.stacked(
            self.weighed(read_object(picture), hashlib.sha256(picture.tobytes()).hexdigest()) for picture in pictures
        )

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts by the object and the region that they name; one that names none has a direction of its own."""
        return self.stacked(self.weighed(named_in(text) or ((OBJECT, text),), text) for text in texts)

    def weighed(self, marks: Sequence[tuple[str, str]], content: str) -> NDArray[np.float64]:
        """Add up marks, each as much as its kind counts, and the noise that belongs to what was read."""
        parts = [(self.flaws if name in FLAWS else self.counts[kind]) * direction(name) for kind, name in sorted(marks)]
        clear = np.sum(parts or [np.zeros(ENCODED_DIMENSIONS)], axis=0)
        length = float(np.linalg.norm(clear))
        noise = direction(f"noise of {self.blur:g} in {content}")
        found = clear / length + self.blur * noise if length else noise
        return np.asarray(found / np.linalg.norm(found))


def named_in(text: str) -> tuple[tuple[str, str], ...]:
    """List what a text names: an object, and all by which a region is known."""
    name, region = asked_of(text)
    marks = [(OBJECT, name)] if name else []
    if region is not None:
        marks += [(look, token) for look in LOOKS for token in look_of(region, look)]
        marks += [(STEREOTYPES, token) for token in cliches_of(region)]
    return tuple(marks)


def read_object(pixels: Pixels) -> tuple[tuple[str, str], ...]:
    """Read the marks of a picture, each with its kind; none where it is no picture of the simulated world."""
    if pixels.shape[0] != pixels.shape[1] or len(pixels) % CELLS:
        return ()
    return tuple(marks_in(pixels))


def marks_in(pixels: Pixels) -> Iterator[tuple[str, str]]:
    """Read mark by mark."""
    for row, kind in enumerate(ROWS):
        for column in range(COLUMNS.get(kind, 4)):
            cell = pixels[cell_slices(row, column, len(pixels))]
            found = None if cell.std() < BLANK else nearest(cell, *known(kind))
            if found is not None:
                yield kind, found


@cache
def known(kind: str) -> tuple[tuple[str, ...], Vectors]:
    """Give the names of all marks of a kind, and how they look."""
    regions = known_regions()
    own = {token for region in regions for token in (look_of(region, kind) if kind in LOOKS else cliches_of(region))}
    names = known_objects() if kind == OBJECT else tuple(sorted(own))
    if kind in LOOKS:
        names = (*dict.fromkeys((*names, *anywhere(kind))), *FLAWS)
    return names, looks_of_marks(kind, names)


def make(spec: Spec) -> ObjectEncoder:
    """Make the encoder that a SPEC describes."""
    return ObjectEncoder(spec.read(Options, such_as="blur=0.5"))
