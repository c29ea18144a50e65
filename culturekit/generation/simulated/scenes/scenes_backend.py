"""A text-to-image model of the simulated world: it draws scenes of activities, as well as its dials let it."""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated, Literal, TypeAlias

import msgspec
import numpy as np
from pydantic import Field

from culturekit.core.digests import canonical_json
from culturekit.core.errors import UsageError
from culturekit.core.package_data import shipped
from culturekit.core.registry import Spec
from culturekit.core.yaml_source import StrictModel, load_model
from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture, Pixels
from culturekit.generation.simulated.render import (
    BORDER_NUMBERS,
    LIGHT,
    LIGHT_NUMBERS,
    PAPER_NUMBERS,
    POSE_NUMBERS,
    Emblem,
    Numbers,
    as_scalars,
    border_of,
    emblem_of,
    light,
    paint_borders,
    paint_emblems,
    sheet,
    side_by_side,
    to_pixels,
)
from culturekit.generation.simulated.render import Field as Canvas

# The simulated world of activities: what a scene shows by its country, its category and its activity.

VOCABULARY = "generation/simulated/scenes/vocabulary.yaml"
_OF_ACTIVITY = ("objects", "interaction")  # the dimensions in which an activity has a token of its own


class Parts(StrictModel):
    """Tokens by dimension."""

    background: tuple[str, ...]
    objects: tuple[str, ...]
    attire: tuple[str, ...]
    interaction: tuple[str, ...]
    spatial: tuple[str, ...]

    def of_dimension(self, dimension: str) -> tuple[str, ...]:
        """Give the tokens of one dimension."""
        tokens: tuple[str, ...] = getattr(self, dimension)
        return tokens


DIMENSIONS = tuple(Parts.model_fields)  # what is shown of a scene, in the order in which it is drawn


class SceneCategory(Parts):
    """What any scene of a category shows, and its activities: an object and an interaction each."""

    activities: Mapping[str, tuple[str, str]]


class SceneCountry(Parts):
    """What any scene of a country shows, and what pictures of it overdo."""

    group: Literal["GN", "GS"]
    stereotypes: tuple[str, ...] = Field(min_length=1)


class Vocabulary(StrictModel):
    """The file of the world."""

    categories: Mapping[str, SceneCategory]
    countries: Mapping[str, SceneCountry]


@dataclass(frozen=True, slots=True)
class Token:
    """One thing that a scene shows, and what the world says of it."""

    text: str
    style: Literal["traditional", "modern", "neutral"]
    necessity: Literal["necessary", "optional"]


# what a scene of an activity in a country shows when it lacks nothing, by dimension
Expected: TypeAlias = Mapping[str, tuple[Token, ...]]


class _World:
    """Answers what is so in the simulated world."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.categories = vocabulary.categories
        self.countries = vocabulary.countries
        self.foreign = cache(self.foreign_of)

    def expected(self, category: str, activity: str | None, country: str) -> Expected:
        """Say what a scene shows; without an activity what every scene of the category shows there."""
        return {
            dimension: (
                *self.of_activity(category, activity, dimension),
                *(Token(text, "neutral", "necessary") for text in self.categories[category].of_dimension(dimension)),
                *(Token(text, "traditional", "optional") for text in self.countries[country].of_dimension(dimension)),
            )
            for dimension in DIMENSIONS
        }

    def of_activity(self, category: str, activity: str | None, dimension: str) -> tuple[Token, ...]:
        if activity is None or dimension not in _OF_ACTIVITY:
            return ()
        text = self.categories[category].activities[activity][_OF_ACTIVITY.index(dimension)]
        return (Token(text, "neutral", "necessary"),)

    def foreign_of(self, dimension: str, country: str) -> tuple[str, ...]:
        """List what only scenes of other countries show in a dimension."""
        return tuple(
            text for iso, other in self.countries.items() if iso != country for text in other.of_dimension(dimension)
        )

    def tokens(self, dimension: str) -> tuple[str, ...]:
        """List everything that may be shown in a dimension, each once."""
        parts = [part for known in (self.categories, self.countries) for part in known.values()]
        everywhere = [text for part in parts for text in part.of_dimension(dimension)]
        drawn = [
            pair[_OF_ACTIVITY.index(dimension)]
            for category in self.categories.values()
            for pair in category.activities.values()
            if dimension in _OF_ACTIVITY
        ]
        return (*everywhere, *drawn)

    @property
    def activities(self) -> tuple[tuple[str, str], ...]:
        """List all activities with their categories."""
        return tuple((name, category) for category, known in self.categories.items() for name in known.activities)

    def activity_named(self, text: str, category: str) -> str | None:
        """Find the activity of a category that a text names, the longest name first; None where it names none."""
        known = sorted(self.categories[category].activities, key=len, reverse=True)
        return next((name for name in known if name in text.casefold()), None)

    def stereotypes(self, country: str) -> tuple[str, ...]:
        return self.countries[country].stereotypes


@cache
def world() -> _World:
    """Give the world; its file is read once."""
    return _World(load_model(shipped(VOCABULARY), Vocabulary))


# Captions of the simulated world: which of its things a text names, by dimension, and the language spoken there.

# things by dimension, each once, in the order in which a text names them
_Named: TypeAlias = Mapping[str, tuple[str, ...]]


LANGUAGE = "zxx"  # what is spoken there, as ISO 639 writes what is no language
_WORD = re.compile(r"\w+")


@cache
def _homes() -> Mapping[str, str]:
    """Give the dimension of everything that may be shown; what is told twice belongs to the first."""
    return {token: dimension for dimension in reversed(DIMENSIONS) for token in world().tokens(dimension)}


@cache
def _pattern() -> re.Pattern[str]:
    """Find things in small letters, the longest name first."""
    names = sorted(_homes(), key=lambda name: (-len(name), name))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")


@lru_cache(maxsize=65_536)
def named_in(text: str) -> _Named:
    """Find the things that a text names."""
    found = dict.fromkeys(_pattern().findall(" ".join(text.casefold().split())))
    return {dimension: tuple(name for name in found if _homes()[name] == dimension) for dimension in DIMENSIONS}


def spoken(text: str) -> str:
    """Say an English text in the language of the simulated world: the letters of each word the other way round."""
    return _WORD.sub(lambda word: word[0][::-1], text)


def understood(text: str) -> str:
    """Say a text of that language in English."""
    return spoken(text)


def all_named(named: _Named) -> frozenset[str]:
    """List the things of all dimensions together."""
    return frozenset(token for tokens in named.values() for token in tokens)


def dice(a: frozenset[str], b: frozenset[str]) -> float:
    """Say how far two sets of things are the same, from 0 to 1; two empty ones are."""
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0


def foreign_share(things: frozenset[str], country: str) -> float:
    """Say which share of some things only other countries show."""
    foreign = {token for dimension in DIMENSIONS for token in world().foreign(dimension, country)}
    return len(things & foreign) / len(things) if things else 0.0


# Dials with exceptions: a share for everybody, and others for a group of countries or for one.


@dataclass(frozen=True, slots=True)
class Dial:
    """A share, by country where that is told."""

    share: float
    exceptions: Mapping[str, float]

    def of_country(self, country: str | None) -> float:
        """Give the share for a country: its own, else its group's, else everybody's."""
        known = world().countries.get(country or "")
        group = known.group if known else ""
        return self.exceptions.get(country or "", self.exceptions.get(group, self.share))


def read_dial(name: str, text: str, *, places: Collection[str] = ()) -> Dial:
    """Read a dial such as `0.8,GS:0.6,IR:0.4`; other worlds than that of activities have other `places`."""
    first, *others = text.split(",")
    known = set(places) or {*world().countries, *(country.group for country in world().countries.values())}
    exceptions: dict[str, float] = {}
    for other in others:
        land, _, value = other.partition(":")
        if land.strip() not in known or land.strip() in exceptions:
            raise UsageError(
                f"{name} names {land.strip()!r}, or names it twice",
                expected="each once: " + ", ".join(sorted(known)),
                found=text,
            )
        exceptions[land.strip()] = _share_of(name, value, text)
    return Dial(_share_of(name, first, text), exceptions)


def _share_of(name: str, value: str, text: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"{name} is no dial", expected="shares from 0 to 1, such as 0.8,GS:0.6,IR:0.4", found=text)
    return share


# What a simulated model puts into a scene, by its dials, and the picture of it.

MARKS = 6  # how many things of one dimension a picture has room for
STEREOTYPE_MARKS = MARKS - 1  # room for stereotypes; what is left of their row shows the activity
_FULL_STRENGTH = 2  # a stereotype that is shown so often is shown as strongly as can be


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
        return {token: min(1.0, count / _FULL_STRENGTH) for token, count in sorted(Counter(self.stereotypes).items())}

    def as_data(self) -> dict[str, object]:
        """Give the truth about a picture, as it stands in tables."""
        shown = {dimension: list(tokens) for dimension, tokens in self.shown.items()}
        return {
            "country": self.country, "category": self.category, "activity": self.activity, "shown": shown,
            "stereotypes": dict(self.strengths),
        }  # fmt: skip


def scene_of(
    category: str,
    activity: str | None,
    country: str,
    how: Knowledge,
    *,
    prompt: str,
    seed: int,
    named: _Named | None = None,
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


CELLS = MARKS + 2  # cells along each side of a picture; the outermost are left to the border
# kinds of marks besides the dimensions; both stand in the last row, the activity first
ACTIVITY, STEREOTYPES = "activity", "stereotypes"
_SCENE_NUMBERS = LIGHT_NUMBERS + PAPER_NUMBERS + BORDER_NUMBERS


def _marks_in(scene: Scene) -> Iterator[tuple[int, int, str, str]]:
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
        rng.random((1, _SCENE_NUMBERS)), [LIGHT_NUMBERS, LIGHT_NUMBERS + PAPER_NUMBERS], axis=1
    )
    blank = as_scalars(0.86 + 0.13 * paper)
    canvas, inside = sheet(blank, size), slice(size // CELLS, -(size // CELLS))
    paint_borders(canvas, side_by_side([border_of(scene.country)]), begin)
    canvas[:, :, inside, inside] = blank  # corners of a border would cover marks
    marks = list(_marks_in(scene))
    if marks:
        paint_marks(canvas, marks, rng.random((len(marks), POSE_NUMBERS)), size)
    light(canvas, lamp, strength=LIGHT)
    return to_pixels(canvas)[0]


def paint_marks(canvas: Canvas, marks: Sequence[tuple[int, int, str, str]], poses: Numbers, size: int) -> None:
    """Paint all marks of a picture, each in its cell, as small pictures side by side."""
    places = [cell_slices(row, column, size) for row, column, _, _ in marks]
    cells = np.stack([canvas[:, 0, rows, columns] for rows, columns in places], axis=1)
    paint_emblems(cells, side_by_side([mark_of(kind, name) for _, _, kind, name in marks]), poses)
    for number, (rows, columns) in enumerate(places):
        canvas[:, 0, rows, columns] = cells[:, number]


SMALLEST, LARGEST = 128, 1024  # pixels along each side; marks of smaller pictures cannot be told apart


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


class _ScenesBackend:
    """Draws the scene that a prompt asks for by category, country and the activity that its text names.

    A prompt of no category of scenes is a caption: what its text names is drawn.
    """

    version: str | None = "simulated-scenes-1"
    knows_truth = True
    truth_columns = ("truth_country", "truth_scene")

    def __init__(self, options: Options) -> None:
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
    return _ScenesBackend(spec.read(Options, such_as="knows=0.8"))
