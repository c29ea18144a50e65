"""Reads simulated scenes as anybody would have to: by the border and the marks, with the embedded encoder."""

from functools import cache

import numpy as np

from culturekit.generation.backend import Pixels
from culturekit.generation.simulated.canvas import as_scalars, sheet, to_pixels
from culturekit.generation.simulated.emblems import POSE_NUMBERS, paint_emblems, side_by_side
from culturekit.generation.simulated.render import border_of, paint_borders
from culturekit.generation.simulated.scenes.scene import (
    ACTIVITY,
    CELLS,
    MARKS,
    STEREOTYPES,
    Scene,
    cell_slices,
    mark_of,
)
from culturekit.generation.simulated.scenes.vocabulary import DIMENSIONS, world
from culturekit.index.encoder import Vectors
from culturekit.index.models.embedded_encoder import EmbeddedEncoder

__all__ = ["BLANK", "looks_of_marks", "nearest", "read_scene"]

PAPER = 0.925
"""How light the paper of pictures is on average."""

CELL_SIDE = 24

CLEAR = 0.75
"""How like a mark or a border something must be to be one: 3,288 marks were above .85, and noise
below .73."""

BEGINNINGS = (0.1, 0.5, 0.9)
"""Where a border's pattern may begin, across and down."""

BLANK = 10
"""A cell whose lightness varies by less, of 255, shows nothing."""

ENCODER = EmbeddedEncoder()


def read_scene(pixels: Pixels) -> Scene | None:
    """Read what a picture shows; None where it is no scene of the simulated world."""
    size = len(pixels)
    if pixels.shape[1] != size or size % CELLS:
        return None
    shown = {dimension: marks_of_row(pixels, row, dimension) for row, dimension in enumerate(DIMENSIONS)}
    activity = mark_in(pixels, MARKS - 1, 0, ACTIVITY)
    country = country_of_border(pixels)
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


def country_of_border(pixels: Pixels) -> str | None:
    """Read the country that a border belongs to."""
    return nearest(border_alone(pixels), *known_borders())


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
