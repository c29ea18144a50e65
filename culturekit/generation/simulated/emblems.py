"""Artifacts as emblems: an outline with a rim, stripes on the body, and a rosette in the middle.

Every emblem is symmetric about its upright axis, so its outline is a polynomial of the cosine of the
angle from the top.
"""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.polynomial.chebyshev import cheb2poly

from culturekit.generation.simulated.canvas import (
    Field,
    Numbers,
    as_scalars,
    cover,
    grid,
    paint,
    polynomial,
    triangle_wave,
)

__all__ = ["POSE_NUMBERS", "Emblem", "blend", "colours", "emblem_of", "numbers_of", "paint_emblems", "side_by_side"]

Look = TypeVar("Look", bound=Any)
"""A frozen dataclass whose fields are float32 (k,), or (k, n, 1, 1) for n looks side by side."""

PAINTERS_WHEEL = np.array([0.0, 0.08, 0.16, 0.36, 0.6, 0.78, 1.0])
"""Hues of red, orange, yellow, green, blue, purple and red again, as a colour circle for painters
spaces them: even steps look even, and green does not take a third of it."""


def numbers_of(name: str, count: int) -> Numbers:
    """Draw numbers that belong to a name."""
    key = int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")
    return np.random.default_rng(key).random(count)


def colours(hue: Numbers, saturation: Numbers, value: Numbers) -> Field:
    """Give RGB (..., 3) for hues in turns of the painter's wheel; channels are 0 to 1."""
    turns = np.interp(hue % 1, np.linspace(0, 1, len(PAINTERS_WHEEL)), PAINTERS_WHEEL)
    offsets = (turns[..., np.newaxis] * 6 + (0, 4, 2)) % 6
    ramp = np.clip(np.abs(offsets - 3) - 1, 0, 1)
    pale = (1 - saturation)[..., np.newaxis]
    return np.asarray(value[..., np.newaxis] * (pale + (1 - pale) * ramp), np.float32)


def blend(own: Look, shared: Look, *, share: float) -> Look:
    """Mix two looks field by field; `share` is how much is left of the first."""
    if share == 1:
        return own
    mixed = {}
    for field in dataclasses.fields(own):
        start, end = getattr(shared, field.name), getattr(own, field.name)
        mixed[field.name] = start + np.float32(share) * (end - start)
    return dataclasses.replace(own, **mixed)


def side_by_side(looks: Sequence[Look]) -> Look:
    """Put n looks side by side, each field (k, n, 1, 1), to be drawn at once."""
    joined = {
        field.name: as_scalars(np.stack([getattr(look, field.name) for look in looks]))
        for field in dataclasses.fields(looks[0])
    }
    return dataclasses.replace(looks[0], **joined)


POSE_NUMBERS = 4
"""How many numbers decide a pose."""

RADIUS = 0.62
"""Of a round emblem, where the picture is 2 wide."""

DEGREE = 9
"""The most lobes of an outline, and the most petals."""

RIM = 0.085
EDGE = 0.1
"""How fast a stripe's wave turns into depth; keeps stripe edges about a pixel wide."""

POWERS = np.stack([np.pad(cheb2poly(np.eye(DEGREE + 1)[k]), (0, DEGREE - k)) for k in range(DEGREE + 1)])
"""Row k holds cos(k * angle) as a polynomial of cos(angle)."""

STRIPES = np.array([(0, 1, 0), (1, 0, 0), (0.7, 0.7, 0), (0.7, -0.7, 0), (0, 0, 1)])
"""Directions of stripes across, down and outwards: level, upright, two chevrons, rings."""


@dataclass(frozen=True, slots=True)
class Emblem:
    """The look of an artifact: colours; the shape of its outline; the waves of its stripes; its rosette.

    `norm` mixes round, square and diamond distances from the middle. `outline` and `rosette` are
    coefficients of a radius. `stripes` is where the wave begins, its length along |x|, y and distance,
    and how high the wave must stand for the stripe to show.
    """

    body: Field
    stripe: Field
    rim: Field
    petals: Field
    heart: Field
    norm: Field
    stretch: Field
    outline: Field
    stripes: Field
    rosette: Field
    heart_radius: Field


def emblem_of(artifact_id: str) -> Emblem:
    """Give the emblem that belongs to an artifact."""
    n = numbers_of(f"artifact {artifact_id}", 32)
    body, stripe, rim, petals, heart = palette(n[:13])
    return Emblem(
        body, stripe, rim, petals, heart,
        norm=mixture(n[13:15]),
        stretch=np.array([0.88 + 0.26 * n[15], 1.14 - 0.26 * n[15]], np.float32),
        outline=outline(n[16:22]),
        stripes=stripes(n[22:26]),
        rosette=rosette(n[26:30]),
        heart_radius=np.array([0.04 + 0.12 * n[30]], np.float32),
    )  # fmt: skip


def palette(n: Numbers) -> Field:
    """Choose five colours (5, 3) of which neighbours on the emblem differ in lightness."""
    body, petals = n[0], n[1]
    hue = np.array([body, body + 0.15 + 0.7 * n[2], n[3], petals, petals + 0.2 + 0.6 * n[4]])
    light = np.array([1, 0.5, 0, 0, 1]) if n[5] < 0.5 else np.array([0, 0.5, 1, 1, 0])
    return colours(hue, 0.4 + 0.5 * n[6:11], 0.32 + 0.5 * light + 0.18 * n[[11, 12, 8, 9, 10]])


def mixture(n: Numbers) -> Field:
    """Choose how round, square or diamond-shaped an outline is."""
    weights = np.zeros(3, np.float32)
    main = int(n[0] * 3)
    weights[main] = 0.7 + 0.3 * n[1]
    weights[(main + 1) % 3] = 0.3 - 0.3 * n[1]
    return weights


def outline(n: Numbers) -> Field:
    """Make an outline of lobes and of what tells top from bottom."""
    waves = np.zeros(DEGREE + 1)
    waves[0] = 1
    waves[1:4] = (n[0:3] - 0.5) * (0.26, 0.24, 0.2)
    waves[4 + int(n[3] * (DEGREE - 3))] += (0.03 + 0.14 * n[4]) * (1 if n[5] < 0.5 else -1)
    return in_powers(waves * RADIUS)


def stripes(n: Numbers) -> Field:
    """Choose the direction, number and width of stripes."""
    waves = (1.4 + 2.2 * n[1]) * STRIPES[int(n[0] * len(STRIPES))]
    return np.array([n[2], *waves, -0.5 + 0.9 * n[3]], np.float32)


def rosette(n: Numbers) -> Field:
    """Make the rosette in the middle of an emblem."""
    waves = np.zeros(DEGREE + 1)
    waves[0] = 0.2 + 0.16 * n[0]
    waves[2 + int(n[1] * (DEGREE - 1))] = waves[0] * (0.1 + 0.4 * n[2]) * (1 if n[3] < 0.5 else -1)
    return in_powers(waves)


def in_powers(waves: Numbers) -> Field:
    """Turn a sum of cos(k * angle) into a polynomial of cos(angle)."""
    return np.asarray((waves[:, np.newaxis] * POWERS).sum(axis=0), np.float32)


def paint_emblems(canvas: Field, emblem: Emblem, pose: Numbers) -> None:
    """Paint n emblems, looks side by side, over n pictures; pose is (n, 4)."""
    x, y = posed(canvas.shape[-1], pose)
    distance: Field = np.sqrt(x * x + y * y)
    distance += 1e-6
    upright: Field = np.divide(y, -distance)
    shaped = rounded(emblem, np.abs(x), np.abs(y), distance)
    depth = polynomial(emblem.outline, upright) - shaped
    inside = cover(depth - RIM)
    start, across, down, outwards, least = emblem.stripes
    wave = triangle_wave(start + across * np.abs(x) + down * y + outwards * shaped)
    paint(canvas, emblem.rim, cover(depth))
    paint(canvas, emblem.body, inside)
    paint(canvas, emblem.stripe, cover((wave - least) * EDGE) * inside)
    paint(canvas, emblem.petals, cover(polynomial(emblem.rosette, upright) - distance))
    paint(canvas, emblem.heart, cover(emblem.heart_radius[0] - distance))


def rounded(emblem: Emblem, wide: Field, high: Field, distance: Field) -> Field:
    """Measure distance from the middle in each emblem's own mixture of round, square and diamond."""
    wide, high = wide * emblem.stretch[0], high * emblem.stretch[1]
    shaped: Field = emblem.norm[0] * distance
    shaped += (1.1 * emblem.norm[1]) * np.maximum(wide, high)
    shaped += (0.8 * emblem.norm[2]) * (wide + high)
    return shaped


def posed(size: int, pose: Numbers) -> tuple[Field, Field]:
    """Give the coordinates of all pixels as emblems see them that are shifted, scaled and turned a little."""
    right, down, larger, turn = as_scalars(2 * pose - 1)
    x, y = grid(size)
    scale = 1 + 0.06 * larger
    x, y = (x - 0.06 * right) / scale, (y - 0.06 * down) / scale
    half = 0.07 * turn  # the tangent of half the angle
    cosine, sine = (1 - half * half) / (1 + half * half), 2 * half / (1 + half * half)
    return cosine * x + sine * y, cosine * y - sine * x
