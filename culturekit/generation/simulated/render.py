"""Draws pictures: artifacts as emblems within the border of a country, or blobs of no culture."""

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.polynomial.chebyshev import cheb2poly
from numpy.typing import NDArray

from culturekit.generation.backend import Pixels

# The sheet that pictures are drawn on, many at a time: coordinates, soft-edged painting, light.
#
# Everything here, and everything drawn with it, is made of +, -, *, / and square roots, which IEEE 754 rounds alike
# on every machine; and each picture is computed by itself. So a seed gives the same pixels everywhere, whatever is
# drawn beside it.

# float32; (n, size, size) for a value per pixel of n pictures, (n, 1, 1) for a value per picture, (3, n, size, size)
# for a canvas, (3, n, 1, 1) for a colour per picture
Field: TypeAlias = NDArray[np.float32]
Numbers: TypeAlias = NDArray[np.float64]  # float64 in [0, 1), from a seed or a name: what decides a drawing


@lru_cache(maxsize=8)
def _grid(size: int) -> tuple[Field, Field]:
    """Give x (1, size) and y (size, 1) of the pixel centres, from -1 to 1, y downwards."""
    centres = ((np.arange(size) + 0.5) * (2 / size) - 1).astype(np.float32)
    centres.setflags(write=False)
    return centres[np.newaxis, :], centres[:, np.newaxis]


def as_scalars(values: Numbers | Field) -> Field:
    """Turn (n, k) values into k fields of one value per picture: (k, n, 1, 1)."""
    return np.ascontiguousarray(values.T, np.float32)[:, :, np.newaxis, np.newaxis]


def sheet(colour: Field, size: int) -> Field:
    """Begin a canvas of one colour per picture; channels are 0 to 1."""
    return np.broadcast_to(colour, (*colour.shape[:2], size, size)).copy()


def _cover(depth: Field) -> Field:
    """Turn the depth inside a shape into how much of each pixel it covers; edges are one pixel wide."""
    covered: Field = depth * (depth.shape[-1] / 2)
    covered += 0.5
    np.maximum(covered, 0, out=covered)
    np.minimum(covered, 1, out=covered)
    return covered


def _paint(canvas: Field, colour: Field, covered: Field) -> None:
    """Lay a colour over a canvas where `covered` is 1, and mix it in where it is less."""
    change = colour - canvas
    change *= covered
    canvas += change


def triangle_wave(phase: Field) -> Field:
    """Swing between -1 and 1, once per unit of phase; 1 at whole numbers."""
    distance = np.rint(phase)
    distance -= phase
    np.abs(distance, out=distance)
    distance *= -4
    distance += 1
    return distance


def polynomial(coefficients: Field, at: Field) -> Field:
    """Evaluate a polynomial per picture; coefficients (k, n, 1, 1), lowest power first."""
    value: Field = coefficients[-1] * at
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= at
    value += coefficients[0]
    return value


def light(canvas: Field, numbers: Numbers, *, strength: float) -> None:
    """Shade each picture smoothly, as an uneven lamp would; numbers is (n, 6)."""
    x, y = _grid(canvas.shape[-1])
    flat, right, down, twist, bow, sag = as_scalars((numbers - 0.5) * (2 * strength))
    shade = y * (down + twist * x + sag * y)
    shade += 1 + flat + x * (right + bow * x)
    canvas *= shade


def to_pixels(canvas: Field) -> list[Pixels]:
    """Round a canvas to 8-bit RGB pictures."""
    levels = canvas * 255
    levels += 0.5
    np.maximum(levels, 0, out=levels)
    np.minimum(levels, 255, out=levels)
    pixels = np.empty((*canvas.shape[1:], 3), np.uint8)
    for channel, values in enumerate(levels):
        pixels[..., channel] = values
    return list(pixels)


# Artifacts as emblems: an outline with a rim, stripes on the body, and a rosette in the middle.
#
# Every emblem is symmetric about its upright axis, so its outline is a polynomial of the cosine of the angle from the
# top.

# a frozen dataclass whose fields are float32 (k,), or (k, n, 1, 1) for n looks side by side
_Look = TypeVar("_Look", bound=Any)

# hues of red, orange, yellow, green, blue, purple and red again, as a colour circle for painters spaces them: even
# steps look even, and green does not take a third of it
_PAINTERS_WHEEL = np.array([0.0, 0.08, 0.16, 0.36, 0.6, 0.78, 1.0])


def _numbers_of(name: str, count: int) -> Numbers:
    key = int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")
    return np.random.default_rng(key).random(count)


def colours(hue: Numbers, saturation: Numbers, value: Numbers) -> Field:
    """Give RGB (..., 3) for hues in turns of the painter's wheel; channels are 0 to 1."""
    turns = np.interp(hue % 1, np.linspace(0, 1, len(_PAINTERS_WHEEL)), _PAINTERS_WHEEL)
    offsets = (turns[..., np.newaxis] * 6 + (0, 4, 2)) % 6
    ramp = np.clip(np.abs(offsets - 3) - 1, 0, 1)
    pale = (1 - saturation)[..., np.newaxis]
    return np.asarray(value[..., np.newaxis] * (pale + (1 - pale) * ramp), np.float32)


def blend(single: _Look, shared: _Look, *, share: float) -> _Look:
    """Mix two looks field by field; `share` is how much is left of the first."""
    if share == 1:
        return single
    mixed = {}
    for field in dataclasses.fields(single):
        start, end = getattr(shared, field.name), getattr(single, field.name)
        mixed[field.name] = start + np.float32(share) * (end - start)
    return dataclasses.replace(single, **mixed)


def side_by_side(looks: Sequence[_Look]) -> _Look:
    """Put n looks side by side, each field (k, n, 1, 1), to be drawn at once."""
    joined = {
        field.name: as_scalars(np.stack([getattr(look, field.name) for look in looks]))
        for field in dataclasses.fields(looks[0])
    }
    return dataclasses.replace(looks[0], **joined)


POSE_NUMBERS = 4  # how many numbers decide a pose
_RADIUS = 0.62  # of a round emblem, where the picture is 2 wide
_DEGREE = 9  # the most lobes of an outline, and the most petals
_RIM = 0.085
_STRIPE_EDGE = 0.1  # how fast a stripe's wave turns into depth; keeps stripe edges about a pixel wide
# row k holds cos(k * angle) as a polynomial of cos(angle)
_POWERS = np.stack([np.pad(cheb2poly(np.eye(_DEGREE + 1)[k]), (0, _DEGREE - k)) for k in range(_DEGREE + 1)])
# directions of stripes across, down and outwards: level, upright, two chevrons, rings
_STRIPES = np.array([(0, 1, 0), (1, 0, 0), (0.7, 0.7, 0), (0.7, -0.7, 0), (0, 0, 1)])


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
    n = _numbers_of(f"artifact {artifact_id}", 32)
    body, stripe, rim, petals, heart = _palette(n[:13])
    return Emblem(
        body, stripe, rim, petals, heart,
        norm=_mixture(n[13:15]),
        stretch=np.array([0.88 + 0.26 * n[15], 1.14 - 0.26 * n[15]], np.float32),
        outline=outline(n[16:22]),
        stripes=stripes(n[22:26]),
        rosette=rosette(n[26:30]),
        heart_radius=np.array([0.04 + 0.12 * n[30]], np.float32),
    )  # fmt: skip


def _palette(n: Numbers) -> Field:
    """Choose five colours (5, 3) of which neighbours on the emblem differ in lightness."""
    body, petals = n[0], n[1]
    hue = np.array([body, body + 0.15 + 0.7 * n[2], n[3], petals, petals + 0.2 + 0.6 * n[4]])
    light = np.array([1, 0.5, 0, 0, 1]) if n[5] < 0.5 else np.array([0, 0.5, 1, 1, 0])
    return colours(hue, 0.4 + 0.5 * n[6:11], 0.32 + 0.5 * light + 0.18 * n[[11, 12, 8, 9, 10]])


def _mixture(n: Numbers) -> Field:
    """Choose how round, square or diamond-shaped an outline is."""
    weights = np.zeros(3, np.float32)
    main = int(n[0] * 3)
    weights[main] = 0.7 + 0.3 * n[1]
    weights[(main + 1) % 3] = 0.3 - 0.3 * n[1]
    return weights


def outline(n: Numbers) -> Field:
    """Make an outline of lobes and of what tells top from bottom."""
    waves = np.zeros(_DEGREE + 1)
    waves[0] = 1
    waves[1:4] = (n[0:3] - 0.5) * (0.26, 0.24, 0.2)
    waves[4 + int(n[3] * (_DEGREE - 3))] += (0.03 + 0.14 * n[4]) * (1 if n[5] < 0.5 else -1)
    return _in_powers(waves * _RADIUS)


def stripes(n: Numbers) -> Field:
    """Choose the direction, number and width of stripes."""
    waves = (1.4 + 2.2 * n[1]) * _STRIPES[int(n[0] * len(_STRIPES))]
    return np.array([n[2], *waves, -0.5 + 0.9 * n[3]], np.float32)


def rosette(n: Numbers) -> Field:
    """Make the rosette in the middle of an emblem."""
    waves = np.zeros(_DEGREE + 1)
    waves[0] = 0.2 + 0.16 * n[0]
    waves[2 + int(n[1] * (_DEGREE - 1))] = waves[0] * (0.1 + 0.4 * n[2]) * (1 if n[3] < 0.5 else -1)
    return _in_powers(waves)


def _in_powers(waves: Numbers) -> Field:
    """Turn a sum of cos(k * angle) into a polynomial of cos(angle)."""
    return np.asarray((waves[:, np.newaxis] * _POWERS).sum(axis=0), np.float32)


def paint_emblems(canvas: Field, emblem: Emblem, pose: Numbers) -> None:
    """Paint n emblems, looks side by side, over n pictures; pose is (n, 4)."""
    x, y = _posed(canvas.shape[-1], pose)
    distance: Field = np.sqrt(x * x + y * y)
    distance += 1e-6
    upright: Field = np.divide(y, -distance)
    shaped = _rounded(emblem, np.abs(x), np.abs(y), distance)
    depth = polynomial(emblem.outline, upright) - shaped
    inside = _cover(depth - _RIM)
    start, across, down, outwards, least = emblem.stripes
    wave = triangle_wave(start + across * np.abs(x) + down * y + outwards * shaped)
    _paint(canvas, emblem.rim, _cover(depth))
    _paint(canvas, emblem.body, inside)
    _paint(canvas, emblem.stripe, _cover((wave - least) * _STRIPE_EDGE) * inside)
    _paint(canvas, emblem.petals, _cover(polynomial(emblem.rosette, upright) - distance))
    _paint(canvas, emblem.heart, _cover(emblem.heart_radius[0] - distance))


def _rounded(emblem: Emblem, wide: Field, high: Field, distance: Field) -> Field:
    """Measure distance from the middle in each emblem's own mixture of round, square and diamond."""
    wide, high = wide * emblem.stretch[0], high * emblem.stretch[1]
    shaped: Field = emblem.norm[0] * distance
    shaped += (1.1 * emblem.norm[1]) * np.maximum(wide, high)
    shaped += (0.8 * emblem.norm[2]) * (wide + high)
    return shaped


def _posed(size: int, pose: Numbers) -> tuple[Field, Field]:
    """Give the coordinates of all pixels as emblems see them that are shifted, scaled and turned a little."""
    right, down, larger, turn = as_scalars(2 * pose - 1)
    x, y = _grid(size)
    scale = 1 + 0.06 * larger
    x, y = (x - 0.06 * right) / scale, (y - 0.06 * down) / scale
    half = 0.07 * turn  # the tangent of half the angle
    cosine, sine = (1 - half * half) / (1 + half * half), 2 * half / (1 + half * half)
    return cosine * x + sine * y, cosine * y - sine * x


# For each layer, from the lowest: how far from the middle its drops may lie, and how large they are.
#
# The picture is 2 wide. Most layers crowd the middle, where the emblems of artifacts are; so these pictures look
# composed, and an encoder finds many different artifacts in them.
_LAYERS = ((0.85, 0.30), (0.25, 0.30), (0.35, 0.24), (0.30, 0.20), (0.30, 0.16), (0.12, 0.12))
_DROPS = 3
_PER_LAYER = 3 + 3 * _DROPS
_BLOB_NUMBERS = 1 + _PER_LAYER * len(_LAYERS)  # how many numbers decide a culture-free picture
BORDER_NUMBERS = 2  # how many numbers decide where a pattern begins
_LAYOUTS = np.eye(4, dtype=np.float32)  # bands left and right; above and below; all around; across the corners
# how much of the first wave, the second wave and their product: stripes two ways, dots, checks
_WEAVES = np.array([(1, 0, 0), (0, 1, 0), (0.6, 0.6, 0), (0, 0, 1)])
_EDGE = 0.06  # how fast a wave turns into depth; keeps the pattern's edges about a pixel wide
LIGHT_NUMBERS = 6
PAPER_NUMBERS = 3
_SCENE = LIGHT_NUMBERS + PAPER_NUMBERS
# how many numbers decide a picture: its light, its paper, and what is on the paper
DRAWING_NUMBERS = _SCENE + max(_BLOB_NUMBERS, BORDER_NUMBERS + POSE_NUMBERS)
LIGHT = 0.04  # how much brighter or darker the lamp makes the middle of a picture; each slope over it can do as much
_ALIKE = "what everything looks like that is wholly confused"  # the name whose looks are shared
_PIXELS_AT_ONCE = 8 * 64 * 64  # of pictures that are drawn together; many more would not fit in a processor's cache


@dataclass(frozen=True, slots=True)
class _Border:
    """The look of a country: two colours, where the bands lie and how wide, and two waves woven together.

    `first` and `second` are the waves per unit of x and y; `weave` is a row of WEAVES and how high the
    wave must stand for the thread to show.
    """

    ground: Field
    thread: Field
    layout: Field
    width: Field
    weave: Field
    first: Field
    second: Field


@dataclass(frozen=True, slots=True)
class Pull:
    """Something that draws a picture away from what it shows: by how much, to whose emblem and border."""

    strength: float
    artifact_id: str | None = None
    country: str | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """What a picture shows, and what draws it away from that, one after the other."""

    artifact_id: str
    country: str
    pulls: tuple[Pull, ...] = ()


def draw(
    subjects: Sequence[Subject | None], numbers: Numbers, *, size: int, confusability: float = 0.0
) -> list[Pixels]:
    """Draw a picture per subject, culture-free where there is none; numbers is (n, DRAWING_NUMBERS).

    A confusability of 0 draws every artifact and country its own way, 1 draws all of them alike; what is
    lost in between grows with its square. Mapped to references of confusability 0 by the embedded encoder,
    97 % of pictures of 3,000 artifacts are still recognised at 0.45, 87 % at 0.5, and 64 % at 0.55.
    """
    drawn: dict[int, Pixels] = {}
    for places in _batches(subjects, max(1, _PIXELS_AT_ONCE // size**2)):
        shown = [subject for index in places if (subject := subjects[index]) is not None]
        pictures = _draw_batch(shown, numbers[places], size, weight=1 - confusability**2)
        drawn.update(zip(places, pictures, strict=True))
    return [drawn[index] for index in range(len(subjects))]


def _batches(subjects: Sequence[Subject | None], at_once: int) -> Iterator[list[int]]:
    """Yield the places of subjects to draw together: all of them artifacts, or all culture-free."""
    for free in (False, True):
        places = [index for index, subject in enumerate(subjects) if (subject is None) == free]
        for start in range(0, len(places), at_once):
            yield places[start : start + at_once]


def _draw_batch(shown: Sequence[Subject], numbers: Numbers, size: int, *, weight: float) -> list[Pixels]:
    """Draw one picture per row of numbers: the subjects shown, or culture-free pictures when there are none."""
    lamp, paper, rest = np.split(numbers, [LIGHT_NUMBERS, _SCENE], axis=1)
    canvas = sheet(as_scalars(0.86 + 0.13 * paper), size)
    if shown:
        border = side_by_side([_pulled(subject, "country", _confused_border, weight) for subject in shown])
        emblem = side_by_side([_pulled(subject, "artifact_id", _confused_emblem, weight) for subject in shown])
        paint_borders(canvas, border, rest[:, :BORDER_NUMBERS])
        paint_emblems(canvas, emblem, rest[:, BORDER_NUMBERS : BORDER_NUMBERS + POSE_NUMBERS])
    else:
        _paint_blobs(canvas, rest[:, :_BLOB_NUMBERS])
    light(canvas, lamp, strength=LIGHT)
    return to_pixels(canvas)


def _pulled(subject: Subject, what: str, confused: Callable[[str, float], _Look], weight: float) -> _Look:
    """Give the emblem or the border in a picture: its own, made like all others, then drawn towards some."""
    look = confused(getattr(subject, what), weight)
    for pull in subject.pulls:
        if (towards := getattr(pull, what)) is not None:
            look = blend(look, confused(towards, weight), share=1 - pull.strength)
    return look


@lru_cache(maxsize=16_384)
def _confused_emblem(artifact_id: str, share: float) -> Emblem:
    """Give the emblem of an artifact, made more like all others where less of its own is left."""
    return blend(emblem_of(artifact_id), emblem_of(_ALIKE), share=share)


@lru_cache(maxsize=1024)
def _confused_border(country: str, share: float) -> _Border:
    """Give the border of a country, made more like all others where less of its own is left."""
    return blend(border_of(country), border_of(_ALIKE), share=share)


def border_of(country: str) -> _Border:
    """Give the border that belongs to a country."""
    n = _numbers_of(f"country {country}", 12)
    light = np.array([0.32, 0.9]) if n[0] < 0.5 else np.array([0.85, 0.35])
    ground, thread = colours(np.array([n[5], n[5] + 0.25 + 0.5 * n[6]]), 0.45 + 0.45 * n[7:9], light + 0.1 * n[9])
    waves, turned = 3 + 3 * n[3], n[4] < 0.4
    return _Border(
        ground,
        thread,
        layout=_LAYOUTS[int(n[1] * len(_LAYOUTS))],
        width=np.array([0.16 + 0.08 * n[10]], np.float32),
        weave=np.array([*_WEAVES[int(n[2] * len(_WEAVES))], -0.3 + 0.6 * n[11]], np.float32),
        first=np.array([waves, waves if turned else 0], np.float32),
        second=np.array([-waves if turned else 0, waves], np.float32),
    )


def paint_borders(canvas: Field, border: _Border, begin: Numbers) -> None:
    """Paint n borders, looks side by side, over n pictures; begin is (n, 2)."""
    x, y = _grid(canvas.shape[-1])
    shift = as_scalars(0.3 * begin)
    one = triangle_wave(border.first[0] * x + border.first[1] * y + shift[0])
    two = triangle_wave(border.second[0] * x + border.second[1] * y + shift[1])
    first, second, both, least = border.weave
    woven = first * one
    woven += second * two
    woven += both * (one * two)
    inside = _bands(border, np.abs(x), np.abs(y))
    _paint(canvas, border.ground, inside)
    _paint(canvas, border.thread, _cover((woven - least) * _EDGE) * inside)


def _bands(border: _Border, wide: Field, high: Field) -> Field:
    """Give how much of each pixel lies in the bands."""
    beside, above, around, corners = border.layout
    edge = around * np.maximum(wide, high)
    edge += beside * wide + corners * 0.66 * wide
    edge += above * high + corners * 0.66 * high
    return _cover(edge + (border.width[0] - 1))


def _paint_blobs(canvas: Field, numbers: Numbers) -> None:
    """Paint layers of blobs over n pictures, light over dark over light; numbers is (n, BLOB_NUMBERS)."""
    dark = numbers[:, 0] < 0.5
    for (spread, radius), n in zip(_LAYERS, np.split(numbers[:, 1:], len(_LAYERS), axis=1), strict=True):
        value = np.where(dark, 0.32, 0.8) + 0.2 * n[:, 2]
        colour = as_scalars(colours(n[:, 0], 0.4 + 0.5 * n[:, 1], value))
        depth = _together(n[:, 3:], canvas.shape[-1], spread=spread, radius=radius)
        _paint(canvas, colour, _cover(depth))
        dark = ~dark


def _together(numbers: Numbers, size: int, *, spread: float, radius: float) -> Field:
    """Let drops run together; positive inside the blob, about as deep as the distance to its edge."""
    x, y = _grid(size)
    total = np.zeros((len(numbers), size, size), np.float32)
    for drop in np.split(2 * numbers - 1, _DROPS, axis=1):
        right, down, reach = as_scalars(drop * (spread, spread, 0.5 * radius) + (0, 0, radius))
        across, along = x - right, y - down
        total += (reach * reach) / (across * across + along * along + 1e-3)
    depth = np.sqrt(total)
    depth -= 1
    depth *= 0.3
    return depth
