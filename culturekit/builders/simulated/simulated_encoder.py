"""An encoder of the simulated world: what texts name and scenes show, in one space, more or less blurred."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from culturekit.core.registry import Spec
from culturekit.generation.backend import Pixels
from culturekit.generation.simulated.render import (
    POSE_NUMBERS,
    as_scalars,
    border_of,
    paint_borders,
    paint_emblems,
    sheet,
    side_by_side,
    to_pixels,
)
from culturekit.generation.simulated.scenes.scenes_backend import (
    ACTIVITY,
    CELLS,
    DIMENSIONS,
    MARKS,
    STEREOTYPES,
    Scene,
    all_named,
    cell_slices,
    mark_of,
    named_in,
    understood,
    world,
)
from culturekit.index.encoder import EncoderIdentity, TooLong, Vectors
from culturekit.index.models.embedded_encoder import EmbeddedEncoder

# Reads simulated scenes as anybody would have to: by the border and the marks, with the embedded encoder.

PAPER = 0.925  # how light the paper of pictures is on average
CELL_SIDE = 24
CLEAR = 0.75  # how like a mark or a border something must be to be one: 3,288 marks were above .85, noise below .73
BEGINNINGS = (0.1, 0.5, 0.9)  # where a border's pattern may begin, across and down
BLANK = 10  # a cell whose lightness varies by less, of 255, shows nothing

ENCODER = EmbeddedEncoder()


def read_scene(pixels: Pixels) -> Scene | None:
    """Read what a picture shows; None where it is no scene of the simulated world."""
    size = len(pixels)
    if pixels.shape[1] != size or size % CELLS:
        return None
    shown = {dimension: marks_of_row(pixels, row, dimension) for row, dimension in enumerate(DIMENSIONS)}
    activity, country = mark_in(pixels, MARKS - 1, 0, ACTIVITY), nearest(border_alone(pixels), *known_borders())
    if country is None:
        return None
    category = dict(world().activities).get(activity or "", "")
    return Scene(country, category, activity, shown, marks_of_row(pixels, MARKS - 1, STEREOTYPES, first=1))


def marks_of_row(pixels: Pixels, row: int, kind: str, *, first: int = 0) -> tuple[str, ...]:
    """Read the marks of a row from left to right."""
    marks = (mark_in(pixels, row, column, kind) for column in range(first, MARKS))
    return tuple(mark for mark in marks if mark is not None)


def mark_in(pixels: Pixels, row: int, column: int, kind: str) -> str | None:
    """Read the mark of a kind in a cell; None where there is none."""
    cell = pixels[cell_slices(row, column, len(pixels))]
    if cell.std() < BLANK:
        return None
    return nearest(cell, *known_marks(kind))


def nearest(picture: Pixels, names: tuple[str, ...], vectors: Vectors) -> str | None:
    """Name what a picture is most like, where it is like anything."""
    likeness = vectors @ ENCODER.encode_images([picture])[0]
    best = int(likeness.argmax())
    return names[best] if likeness[best] > CLEAR else None


@cache
def known_marks(kind: str) -> tuple[tuple[str, ...], Vectors]:
    """Give the names of all marks of a kind, and how they look."""
    names = {
        ACTIVITY: tuple(name for name, _ in world().activities),
        STEREOTYPES: tuple(token for country in world().countries for token in world().stereotypes(country)),
    }.get(kind) or world().tokens(kind)
    return names, looks_of_marks(kind, names)


def looks_of_marks(kind: str, names: tuple[str, ...]) -> Vectors:
    """Say how marks of a kind look."""
    canvas = sheet(as_scalars(np.full((len(names), 3), PAPER)), CELL_SIDE)
    paint_emblems(
        canvas, side_by_side([mark_of(kind, name) for name in names]), np.full((len(names), POSE_NUMBERS), 0.5)
    )
    return ENCODER.encode_images(to_pixels(canvas))


@cache
def known_borders() -> tuple[tuple[str, ...], Vectors]:
    """Give the countries, each once for every way in which its pattern may begin, and how their borders look."""
    begin = np.array([(across, down) for across in BEGINNINGS for down in BEGINNINGS])
    names = [name for name in world().countries for _ in begin]
    canvas = sheet(as_scalars(np.full((len(names), 3), PAPER)), CELLS * CELL_SIDE)
    paint_borders(
        canvas, side_by_side([border_of(name) for name in names]), np.tile(begin, (len(world().countries), 1))
    )
    return tuple(names), ENCODER.encode_images([border_alone(picture) for picture in to_pixels(canvas)])


def border_alone(pixels: Pixels) -> Pixels:
    """Lay the four sides of a border one below the other."""
    side, turned = len(pixels) // CELLS, pixels.transpose(1, 0, 2)
    return np.concatenate([pixels[:side], pixels[-side:], turned[:side], turned[-side:]])


ENCODED_DIMENSIONS = 256


@dataclass(frozen=True, slots=True)
class Options:
    """How well the encoder knows what it compares.

    Attributes:
        blur: The length of the noise in each vector, against 1 for what is named or shown.
    """

    blur: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.0


class SimulatedEncoder:
    """Adds up directions, one for each thing that a text names, in English or as `spoken`, or that a scene shows."""

    caveat = "The simulated encoder knows the things of a made-up world by name; it stands for no model."
    batch_size = 64

    def __init__(self, blur: float) -> None:
        """Take how blurred its vectors are."""
        self.blur = blur
        self.identity = EncoderIdentity(
            "simulated", "none", "1", f"things of the simulated world, blur {blur:g}", "float32", ENCODED_DIMENSIONS
        )

    def prepare(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Take a picture as it is."""
        return picture

    def encode_prepared(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Encode pictures by the marks in them; one that is no scene shows nothing."""
        return self.encode_images(pictures)

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Encode pictures one after the other."""
        scenes = ((picture, read_scene(picture)) for picture in pictures)
        return self.stacked(
            self.vector(all_named(scene.shown) if scene else frozenset(), hashlib.sha256(picture.tobytes()).hexdigest())
            for picture, scene in scenes
        )

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts by the things that they name; one that names none has a direction of its own."""
        return self.stacked(self.vector(things_of(text) or frozenset((text,)), text) for text in texts)

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """Encode each thing that a text names."""
        named = ((text, sorted(things_of(text))) for text in texts)
        return [self.stacked(self.vector(frozenset((thing,)), f"{thing} in {text}") for thing in things)
                if things else self.encode_texts([text]) for text, things in named]  # fmt: skip

    def stacked(self, vectors: Iterable[NDArray[np.float64]]) -> Vectors:
        """Put vectors together."""
        return np.array([*vectors], np.float32).reshape(-1, ENCODED_DIMENSIONS)

    def vector(self, things: frozenset[str], content: str) -> NDArray[np.float64]:
        """Add up things, and the noise that belongs to what was read."""
        clear = np.sum([direction(thing) for thing in sorted(things)] or [np.zeros(ENCODED_DIMENSIONS)], axis=0)
        clear = clear / (np.linalg.norm(clear) or 1.0)
        found = clear + (self.blur if things else 1.0) * direction(f"noise of {self.blur:g} in {content}")
        return np.asarray(found / np.linalg.norm(found))

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        """Read every text whole."""
        return []


def things_of(text: str) -> frozenset[str]:
    """Give what a text names in English, or else in the language of the simulated world."""
    return all_named(named_in(text)) or all_named(named_in(understood(text)))


@lru_cache(maxsize=65_536)
def direction(name: str) -> NDArray[np.float64]:
    """Draw the direction, of length 1, that belongs to a name."""
    seed = int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:16], "big")
    drawn = np.random.default_rng(seed).normal(size=ENCODED_DIMENSIONS)
    return np.asarray(drawn / np.linalg.norm(drawn))


def make(spec: Spec) -> SimulatedEncoder:
    """Make the encoder that a SPEC describes."""
    return SimulatedEncoder(spec.read(Options, such_as="blur=0.5").blur)
