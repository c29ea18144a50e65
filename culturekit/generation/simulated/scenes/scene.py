"""What a simulated model puts into a scene, by its dials, and the picture of it."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from culturekit.generation.backend import Pixels
from culturekit.generation.simulated.canvas import Field, Numbers, as_scalars, light, sheet, to_pixels
from culturekit.generation.simulated.emblems import POSE_NUMBERS, Emblem, emblem_of, paint_emblems, side_by_side
from culturekit.generation.simulated.render import (
    BORDER_NUMBERS,
    LIGHT,
    LIGHT_NUMBERS,
    PAPER_NUMBERS,
    border_of,
    paint_borders,
)
from culturekit.generation.simulated.scenes.captions import Named
from culturekit.generation.simulated.scenes.dials import Dial
from culturekit.generation.simulated.scenes.vocabulary import DIMENSIONS, world

__all__ = [
    "ACTIVITY",
    "CELLS",
    "MARKS",
    "STEREOTYPES",
    "STEREOTYPE_MARKS",
    "Knowledge",
    "Scene",
    "cell_slices",
    "draw_scene",
    "mark_of",
    "marks_in",
    "scene_of",
]

MARKS = 6
"""How many things of one dimension a picture has room for."""

STEREOTYPE_MARKS = MARKS - 1
"""Room for stereotypes; what is left of their row shows the activity."""

FULL_STRENGTH = 2
"""A stereotype that is shown so often is shown as strongly as can be."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """How a model draws scenes; the backend's options say what the fields mean."""

    knows: Dial
    invents: Dial
    exaggerates: Dial
    elsewhere: Dial
    varies: Dial


@dataclass(frozen=True, slots=True)
class Scene:
    """What a picture shows: at most MARKS tokens a dimension, and stereotypes, each as often as it is drawn."""

    country: str
    category: str
    activity: str | None
    shown: Mapping[str, tuple[str, ...]]
    stereotypes: tuple[str, ...] = ()

    @property
    def strengths(self) -> Mapping[str, float]:
        """Say how strongly stereotypes are shown, from 0 to 1; those that are not shown have no entry."""
        return strengths_of(self.stereotypes)

    def as_data(self) -> dict[str, object]:
        """Give the truth about a picture, as it stands in tables."""
        shown = {dimension: list(tokens) for dimension, tokens in self.shown.items()}
        return {
            "country": self.country,
            "category": self.category,
            "activity": self.activity,
            "shown": shown,
            "stereotypes": dict(self.strengths),
        }


def strengths_of(stereotypes: tuple[str, ...]) -> dict[str, float]:
    """Turn how often stereotypes are drawn into how strongly they are shown."""
    return {token: min(1.0, count / FULL_STRENGTH) for token, count in sorted(Counter(stereotypes).items())}


def scene_of(
    category: str,
    activity: str | None,
    country: str,
    how: Knowledge,
    *,
    prompt: str,
    seed: int,
    named: Named | None = None,
) -> Scene:
    """Put a scene together for a prompt, by the picture's seed or, where the model varies little, by the prompt.

    It shows what is expected of an activity, or what a caption has `named`.
    """
    rng = np.random.default_rng(seed % 2**64)
    if rng.random() >= how.varies.of_country(country):
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(f"scene {prompt}".encode()).digest()[:8], "big"))
    shown_country = country
    if rng.random() < how.elsewhere.of_country(country):
        others = sorted(set(world().countries) - {country})
        shown_country = others[int(rng.integers(len(others)))]
    knows, invents = how.knows.of_country(country), how.invents.of_country(country)
    asked = named
    if asked is None:
        expected = world().expected(category, activity, shown_country)
        asked = {dimension: tuple(token.text for token in expected[dimension]) for dimension in DIMENSIONS}
    shown = {}
    for dimension in DIMENSIONS:
        tokens = [text for text in asked[dimension][:MARKS] if rng.random() < knows]
        foreign = world().foreign(dimension, shown_country)
        swapped = [foreign[int(rng.integers(len(foreign)))] if rng.random() < invents else text for text in tokens]
        shown[dimension] = tuple(dict.fromkeys(swapped))
    overdone = world().stereotypes(shown_country)
    room = [overdone[int(rng.integers(len(overdone)))] for _ in range(STEREOTYPE_MARKS)]
    strength = how.exaggerates.of_country(country)
    return Scene(shown_country, category, activity, shown, tuple(token for token in room if rng.random() < strength))


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
