"""Draws scenes: the border of a country as always, and within it an emblem for each thing that is shown."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from culturekit.generation.backend import Pixels
from culturekit.generation.simulated.canvas import Field, Numbers, as_scalars, light, sheet, to_pixels
from culturekit.generation.simulated.emblems import POSE_NUMBERS, Emblem, emblem_of, paint_emblems
from culturekit.generation.simulated.looks import side_by_side
from culturekit.generation.simulated.render import (
    BORDER_NUMBERS,
    LIGHT,
    LIGHT_NUMBERS,
    PAPER_NUMBERS,
    border_of,
    paint_borders,
)
from culturekit.generation.simulated.scenes.scene import MARKS, Scene
from culturekit.generation.simulated.scenes.vocabulary import DIMENSIONS

__all__ = ["ACTIVITY", "CELLS", "STEREOTYPES", "cell_slices", "draw_scene", "mark_of", "marks_in"]

CELLS = MARKS + 2
"""Cells along each side of a picture; the outermost are left to the border."""

ACTIVITY, STEREOTYPES = "activity", "stereotypes"
"""Kinds of marks besides the dimensions; both stand in the last row, the activity first."""

SCENE_NUMBERS = LIGHT_NUMBERS + PAPER_NUMBERS + BORDER_NUMBERS


def marks_in(scene: Scene) -> Iterator[tuple[int, int, str, str]]:
    """List the marks of a scene: row and column among the inner cells, kind, and what the mark stands for."""
    for row, dimension in enumerate(DIMENSIONS):
        for column, token in enumerate(scene.shown[dimension]):
            yield row, column, dimension, token
    if scene.activity is not None:
        yield MARKS - 1, 0, ACTIVITY, scene.activity
    for column, token in enumerate(scene.stereotypes, start=1):
        yield MARKS - 1, column, STEREOTYPES, token


@lru_cache(maxsize=4096)
def mark_of(kind: str, name: str) -> Emblem:
    """Give the emblem that stands for something of a kind."""
    return emblem_of(f"{kind} {name}")


def cell_slices(row: int, column: int, size: int) -> tuple[slice, slice]:
    """Say where an inner cell lies in a picture: rows and columns of pixels."""
    side = size // CELLS
    return slice((row + 1) * side, (row + 2) * side), slice((column + 1) * side, (column + 2) * side)


def draw_scene(scene: Scene, *, size: int, seed: int) -> Pixels:
    """Draw a scene; light, paper and how marks stand come from the seed."""
    rng = np.random.default_rng([seed % 2**64, 1])
    lamp, paper, begin = np.split(
        rng.random((1, SCENE_NUMBERS)), [LIGHT_NUMBERS, LIGHT_NUMBERS + PAPER_NUMBERS], axis=1
    )
    blank = as_scalars(0.86 + 0.13 * paper)
    canvas, inside = sheet(blank, size), slice(size // CELLS, -(size // CELLS))
    paint_borders(canvas, side_by_side([border_of(scene.country)]), begin)
    canvas[:, :, inside, inside] = blank  # corners of a border would cover marks
    marks = list(marks_in(scene))
    if marks:
        paint_marks(canvas, marks, rng.random((len(marks), POSE_NUMBERS)), size)
    light(canvas, lamp, strength=LIGHT)
    return to_pixels(canvas)[0]


def paint_marks(canvas: Field, marks: Sequence[tuple[int, int, str, str]], poses: Numbers, size: int) -> None:
    """Paint all marks of a picture, each in its cell, as small pictures side by side."""
    places = [cell_slices(row, column, size) for row, column, _, _ in marks]
    cells = np.stack([canvas[:, 0, rows, columns] for rows, columns in places], axis=1)
    paint_emblems(cells, side_by_side([mark_of(kind, name) for _, _, kind, name in marks]), poses)
    for number, (rows, columns) in enumerate(places):
        canvas[:, 0, rows, columns] = cells[:, number]
