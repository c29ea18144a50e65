"""The simulated world of objects in regions: scenes, a model that draws them, an encoder that reads them."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.builders.judging.simulated_people import SimulatedPeople, is_careless, person_draws
from culturekit.builders.simulated.simulated_encoder import (
    BLANK,
    ENCODED_DIMENSIONS,
    SimulatedEncoder,
    direction,
    looks_of_marks,
    nearest,
)
from culturekit.core.choices import CONFIDENCE
from culturekit.core.digests import canonical_json
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files, Numbered
from culturekit.core.registry import Spec
from culturekit.core.schemas import IMAGES
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table
from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture, Pixels
from culturekit.generation.simulated.render import (
    LIGHT,
    LIGHT_NUMBERS,
    PAPER_NUMBERS,
    POSE_NUMBERS,
    as_scalars,
    light,
    sheet,
    to_pixels,
)
from culturekit.generation.simulated.scenes.scenes_backend import (
    CELLS,
    STEREOTYPES,
    Dial,
    cell_slices,
    paint_marks,
    read_dial,
    world,
)
from culturekit.index.encoder import EncoderIdentity, Vectors
from culturekit.kg.countries import countries
from culturekit.metrics.inclusion.region_rates import TARGETS, region_code
from culturekit.people.rated_sample import Answering
from culturekit.people.scheme import Scheme
from culturekit.people.stages import filled_in_stage
from culturekit.recipes.inclusion.people import SEES_OBJECT, SEES_REGION, TASK1_SCHEME, TASK2_SCHEME, asked_images
from culturekit.recipes.inclusion.prompts import BENCHMARK, shipped_places
from culturekit.scores.family import Scope, mean_rows, scored, write_scored
from culturekit.scores.inputs import ImageTables

OBJECT = "object"  # the kind of the mark that stands for an object itself
LOOKS = ("objects", "background")  # what a region has a look of: the object, and what is around it
ROWS = (OBJECT, *LOOKS, STEREOTYPES)  # what the rows of marks show, from the top
MARKS, CLICHES = 4, 5  # of each look, and of clichés, that a picture has room for
COLUMNS = {OBJECT: 1, STEREOTYPES: CLICHES, **dict.fromkeys(LOOKS, MARKS)}

# What no photograph shows: things that run into one another, of several kinds.
FLAWS = tuple(f"flaw {number}" for number in range(1, 13))

SMALLEST, LARGEST = 128, 1024  # pixels along each side; marks of smaller pictures cannot be told apart
OBJECT_COUNTS = 2.0  # an object is drawn larger than anything around it


@dataclass(frozen=True, slots=True)
class ObjectScene:
    """What a picture shows; a mark of a look belongs to a region, to everywhere, or is a flaw."""

    thing: str | None
    country: str | None
    looks: Mapping[str, tuple[str, ...]]
    cliches: tuple[str, ...] = ()

    @property
    def things(self) -> tuple[str, ...]:
        """List everything that is shown."""
        shown = [token for look in LOOKS for token in self.looks[look]]
        return (*([self.thing] if self.thing else []), *shown, *self.cliches)

    def as_data(self) -> dict[str, object]:
        """Give the truth about a picture, as it stands in tables."""
        shown = {look: list(self.looks[look]) for look in LOOKS}
        return {"object": self.thing, "country": self.country, "shown": shown,
                "stereotypes": dict(sorted(Counter(self.cliches).items()))}  # fmt: skip

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "ObjectScene":
        """Read it again."""
        cliches = tuple(name for name, count in data["stereotypes"].items() for _ in range(count))
        looks = {look: tuple(data["shown"][look]) for look in LOOKS}
        return cls(data["object"], data["country"], looks, cliches)


@cache
def known_objects() -> tuple[str, ...]:
    """List the objects that the world knows: those of the shipped lists."""
    return tuple(sorted({name for places in shipped_places() for name in places.objects}))


@cache
def known_regions() -> Mapping[str, tuple[str, ...]]:
    """Give the regions of the shipped lists, and the countries of each that the world knows; these are regions, too."""
    listed = {name: codes for places in shipped_places() for name, codes in places.regions.items()}
    regions = {name: tuple(code for code in codes if code in world().countries) for name, codes in listed.items()}
    alone = {countries()[code].name: (code,) for code in sorted({one for codes in regions.values() for one in codes})}
    return alone | regions


def look_of(region: str, look: str) -> frozenset[str]:
    """Give the marks by which a region is known in a dimension."""
    return frozenset(
        token for country in known_regions()[region] for token in world().countries[country].of_dimension(look)
    )


def cliches_of(region: str) -> frozenset[str]:
    """Give what pictures of a region overdo."""
    return frozenset(token for country in known_regions()[region] for token in world().stereotypes(country))


def anywhere(look: str) -> tuple[str, ...]:
    """List the marks that tell nothing of a region."""
    return tuple(token for category in world().categories.values() for token in category.of_dimension(look))


def asked_of(text: str) -> tuple[str | None, str | None]:
    """Find the object and the region that a prompt names, of each the longest; None where it names none."""
    padded = f" {' '.join(text.casefold().split())} "
    found = [
        next((name for name in sorted(names, key=len, reverse=True) if f" {name.casefold()} " in padded), None)
        for names in (known_objects(), tuple(known_regions()))
    ]
    return found[0], found[1]


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """How a simulated model draws objects in regions.

    All but the size are dials: a share, then exceptions by group (GN, GS) or ISO code, such as `0.8,GS:0.6,ZA:0.4`.
    """

    regional: str = "0.75"  # How much of a picture looks as the region it is asked for does; the rest could be anywhere
    shows: str = "1"  # How many pictures show the object
    exaggerates: str = "0"  # How much of the room for clichés of the region is filled with them
    crude: str = "0"  # How much of what is drawn is spoilt, as in no photograph
    # Pixels along each side, a multiple of 8
    size: Annotated[int, msgspec.Meta(ge=SMALLEST, le=LARGEST, multiple_of=CELLS)] = SMALLEST


class ObjectsBackend:
    """Draws the object, in the region or the country, that a prompt names."""

    version: str | None = "simulated-objects-1"
    knows_truth = True
    truth_columns = ("truth_country", "truth_scene")

    def __init__(self, options: BackendOptions) -> None:
        """Read the dials."""
        self.size = options.size
        self.regional, self.shows, self.exaggerates, self.crude = (
            read_dial(name, getattr(options, name)) for name in ("regional", "shows", "exaggerates", "crude")
        )

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
        homes = (country,) if country else known_regions()[region] if region else ()
        if name is None or (wants and not homes):
            return Failure("failed", f"the simulated world has no such object, or no such region: {request.text!r}")
        scene = self.scene(name, homes, seed=request.seed)
        return Picture(
            draw_object(scene, size=size, seed=request.seed), seed_honoured=True, truth_country=scene.country,
            truth_scene=canonical_json(scene.as_data()).decode(),
        )  # fmt: skip

    def scene(self, name: str, homes: Sequence[str], *, seed: int) -> ObjectScene:
        """Put a picture together by its seed: of one of some countries, or of nowhere."""
        rng = np.random.default_rng(seed % 2**64)
        home = _drawn(rng, homes) if homes else None
        looks = {}
        for look in LOOKS:
            local = world().countries[home].of_dimension(look) if home else ()
            marks = [
                _drawn(rng, local if home and _decided(rng, self.regional, home) else anywhere(look))
                for _ in range(MARKS)
            ]
            looks[look] = tuple(_drawn(rng, FLAWS) if _decided(rng, self.crude, home) else mark for mark in marks)
        thing = name if _decided(rng, self.shows, home) else None
        strength = self.exaggerates.of_country(home) if home else 0.0
        cliches = [_drawn(rng, world().stereotypes(home)) for _ in range(CLICHES)] if home else []
        return ObjectScene(thing, home, looks, tuple(token for token in cliches if rng.random() < strength))


def _drawn(rng: np.random.Generator, names: Sequence[str]) -> str:
    return names[int(rng.integers(len(names)))]


def _decided(rng: np.random.Generator, dial: Dial, country: str | None) -> bool:
    return bool(rng.random() < dial.of_country(country))


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


def make_backend(spec: Spec) -> ImageBackend:
    """Make the backend that a SPEC describes."""
    return ObjectsBackend(spec.read(BackendOptions, such_as="crude=1"))


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """How well the encoder knows what it compares, and what it does not look at."""

    # The length of the noise in each vector, against 1 for what is named or shown
    blur: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.0
    flaws: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0  # How much what is spoilt counts; 0 does not see it
    # How much clichés of a region count, in pictures and in its name
    cliches: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0
    looks: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0  # How much the looks of regions count


class ObjectEncoder(SimulatedEncoder):
    """Adds up directions, one for each thing that a text names or that a picture shows, as much as it counts."""

    caveat = "The simulated encoder knows the objects and regions of a made-up world by name; it stands for no model."

    def __init__(self, options: EncoderOptions) -> None:
        """Take what counts."""
        super().__init__(options.blur)
        self.counts = {OBJECT: OBJECT_COUNTS, **dict.fromkeys(LOOKS, options.looks), STEREOTYPES: options.cliches}
        self.flaws = options.flaws
        weights = f"blur {options.blur:g}, flaws {options.flaws:g}, cliches {options.cliches:g}"
        self.identity = EncoderIdentity(
            "simulated-objects", "none", "1", f"objects in regions, {weights}, looks {options.looks:g}",
            "float32", ENCODED_DIMENSIONS,
        )  # fmt: skip

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Encode pictures by the marks in them."""
        return self.stacked(
            self.weighed(read_object(picture), hashlib.sha256(picture.tobytes()).hexdigest()) for picture in pictures
        )

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts by the object and the region that they name; one that names none has a direction of its own."""
        return self.stacked(self.weighed(list(_named_in(text)) or [(OBJECT, text)], text) for text in texts)

    def weighed(self, marks: Sequence[tuple[str, str]], content: str) -> NDArray[np.float64]:
        """Add up marks, each as much as its kind counts, and the noise that belongs to the content."""
        parts = [(self.flaws if name in FLAWS else self.counts[kind]) * direction(name) for kind, name in sorted(marks)]
        clear = np.sum(parts or [np.zeros(ENCODED_DIMENSIONS)], axis=0)
        length = float(np.linalg.norm(clear))
        noise = direction(f"noise of {self.blur:g} in {content}")
        found = clear / length + self.blur * noise if length else noise
        return np.asarray(found / np.linalg.norm(found))


def _named_in(text: str) -> Iterator[tuple[str, str]]:
    name, region = asked_of(text)
    if name:
        yield OBJECT, name
    if region is not None:
        yield from ((look, token) for look in LOOKS for token in look_of(region, look))
        yield from ((STEREOTYPES, token) for token in cliches_of(region))


def read_object(pixels: Pixels) -> list[tuple[str, str]]:
    """Read the marks of a picture, each with its kind; none where it is no picture of the simulated world."""
    if pixels.shape[0] != pixels.shape[1] or len(pixels) % CELLS:
        return []
    marks = []
    for row, kind in enumerate(ROWS):
        for column in range(COLUMNS[kind]):
            cell = pixels[cell_slices(row, column, len(pixels))]
            found = None if cell.std() < BLANK else nearest(cell, *_known_marks(kind))
            if found is not None:
                marks.append((kind, found))
    return marks


@cache
def _known_marks(kind: str) -> tuple[tuple[str, ...], Vectors]:
    tokens = {token for region in known_regions()
              for token in (look_of(region, kind) if kind in LOOKS else cliches_of(region))}  # fmt: skip
    names = known_objects() if kind == OBJECT else tuple(sorted(tokens))
    if kind in LOOKS:
        names = (*dict.fromkeys((*names, *anywhere(kind))), *FLAWS)
    return names, looks_of_marks(kind, names)


def make_encoder(spec: Spec) -> ObjectEncoder:
    """Make the encoder that a SPEC describes."""
    return ObjectEncoder(spec.read(EncoderOptions, such_as="blur=0.5"))


Answers: TypeAlias = Mapping[str, str | Sequence[str]]

CONVINCED = (0.02, 0.06, 0.85, 0.97, 0.98)  # how often somebody names a region of which a picture shows 0 to 4 marks

# How many marks a cliché, and a mark of a look, are worth to people of elsewhere; those at home go by looks alone.
CLICHES_AS_MARKS, LOOKS_AS_MARKS = 1.0, 0.3

TASTE = 0.15  # how much clichés please people of elsewhere, and displease those at home
MANY = 2  # so many clichés please, or displease, as much as clichés can
EYE = 0.08  # how far two looks at a picture differ
NONE = "none"  # what the form of Task 1 calls none of its pictures
METRICS = {SEES_REGION: "region_recognised", SEES_OBJECT: "object_presence"}


def sees_object(scene: ObjectScene, how: SimulatedPeople) -> float:
    """Compute how often people see the object."""
    return how.accuracy if scene.thing else 1 - how.accuracy


def names_look(scene: ObjectScene, region: str, look: str, *, at_home: bool) -> float:
    """Compute how often people who see the object name a region for its look, or for that of the background."""
    marks = float(sum(token in look_of(region, look) for token in scene.looks[look]))
    if not at_home:
        shown = sum(token in cliches_of(region) for token in scene.cliches)
        marks = min(MARKS, LOOKS_AS_MARKS * marks + CLICHES_AS_MARKS * shown)
    return float(np.interp(marks, range(MARKS + 1), CONVINCED))


def names_region(scene: ObjectScene, region: str, how: SimulatedPeople, *, at_home: bool = True) -> float:
    """Compute how often people name a region for the object or for the background."""
    neither = np.prod([1 - names_look(scene, region, look, at_home=at_home) for look in LOOKS])
    return sees_object(scene, how) * float(1 - neither)


def looks_at(
    person: str, row: Mapping[str, Any], scene: ObjectScene, offered: Sequence[str], how: SimulatedPeople, *, seed: int
) -> Answers:
    """Fill in the form of Task 2: whether the object is there, and where it and the background could be from."""
    rng = person_draws(person, row["item_id"], seed=seed)
    if is_careless(person, how, seed=seed):
        if rng.random() >= 0.5:
            return {"obj": "nm"}
        return {"obj": "ym", **{question: [offered[int(rng.integers(len(offered)))]] for question in TARGETS.values()}}
    if rng.random() >= sees_object(scene, how):
        return {"obj": "nm"}
    found: dict[str, str | Sequence[str]] = {"obj": "ym"}
    regions = {region_code(region): region for region in known_regions()}
    home = region_code(row["annotator_region"])
    for look, question in zip(LOOKS, TARGETS.values(), strict=True):
        named = [
            code for code in offered if code in regions
            and rng.random() < names_look(scene, regions[code], look, at_home=code == home)
        ]  # fmt: skip
        found[question] = named or ["na"]
    return found


def compares(
    person: str, row: Mapping[str, Any], scenes: Mapping[str, ObjectScene], how: SimulatedPeople, *, seed: int
) -> Answers:
    """Fill in the form of Task 1: which of two pictures is more like the first, and which is more appealing."""
    rng = person_draws(person, row["item_id"], "compares", seed=seed)
    shown = {name: scenes[image] for name, image in zip(row["places"], row["pictures"], strict=True)}
    codes = {name: str(number) for number, name in enumerate(row["places"], start=1)}
    others = [name for name in row["places"] if name != "reference"]
    if is_careless(person, how, seed=seed):
        chosen = [others[int(rng.integers(2))] for _ in range(2)]
        return {"shown": [NONE], "similar": codes[chosen[0]], "confidence": "high", "appealing": codes[chosen[1]]}
    at_home = bool(row["in_region"])
    alike = {name: likeness(shown["reference"], shown[name]) + rng.normal(0, EYE) for name in others}
    pleasing = {name: appeal(shown[name], at_home=at_home) + rng.normal(0, EYE) for name in others}
    apart = abs(alike[others[0]] - alike[others[1]])
    seen = [codes[name] for name in row["places"] if rng.random() < sees_object(shown[name], how)]
    return {
        "shown": seen or [NONE],
        "similar": codes[max(others, key=lambda name: alike[name])],
        "confidence": "high" if apart > 2 * EYE else "medium" if apart > EYE else "low",
        "appealing": codes[max(others, key=lambda name: pleasing[name])],
    }


def likeness(one: ObjectScene, other: ObjectScene) -> float:
    """Compute which share of what two pictures show they share."""
    a, b = Counter(one.things), Counter(other.things)
    return (a & b).total() / max(1, (a | b).total())


def appeal(scene: ObjectScene, *, at_home: bool) -> float:
    """Compute how much a picture pleases: flaws spoil it, and clichés please or displease."""
    things = scene.things
    spoilt = sum(thing in FLAWS for thing in things) / max(1, len(things))
    return -spoilt + (-TASTE if at_home else TASTE) * min(1.0, len(scene.cliches) / MANY)


def object_viewers_stage(project: Path, images: Sequence[Path], how: SimulatedPeople, *, seed: int) -> Stage:
    """Let simulated people of each region fill in the forms of Task 1 or Task 2: they see what was drawn."""

    def answering(scheme: Scheme) -> Answering:
        scenes = _scenes_of(images)
        if scheme.name == TASK1_SCHEME:
            return partial(compares, scenes=scenes, how=how, seed=seed)
        if scheme.name != TASK2_SCHEME:
            raise UsageError("simulated people fill in two forms only", expected=f"{TASK1_SCHEME} or {TASK2_SCHEME}",
                             found=scheme.name)  # fmt: skip
        offered = scheme.criterion("object_regions").fixed_values
        return lambda person, row: looks_at(person, row, scenes[row["item_id"]], offered, how, seed=seed)

    inputs = Numbered(images).files("images")
    stage = filled_in_stage("simulated-viewers", project, inputs, answering, how, seed=seed)
    return replace(stage, version=3, packages=("msgspec",))


def _scenes_of(images: Sequence[Path]) -> dict[str, ObjectScene]:
    tables = [read_table(path, IMAGES).filter(status="ok").select("image_id", "truth_scene") for path in images]
    return {image: ObjectScene.from_data(msgspec.json.decode(scene)) for image, scene in pl.concat(tables).iter_rows()}


def object_truth_stage(images: ImageTables, prompts: Files, how: SimulatedPeople) -> Stage:
    """Write down how often people at home in the region of an image truly see that region, and its object, in it."""

    def run(work: Work) -> Outcome:
        scenes, rows = _scenes_of(images.places), []
        for row in asked_images(images, prompts).drop_nulls("region").sort("image_id").iter_rows(named=True):
            scene = scenes[row["image_id"]]
            true = {SEES_REGION: names_region(scene, row["region"], how), SEES_OBJECT: sees_object(scene, how)}
            rows += [(row["model"], METRICS[what], row["image_id"], row["prompt_id"], row["region"], value)
                     for what, value in true.items()]  # fmt: skip
        values = pl.DataFrame(rows, schema=["model", "metric", "item", "prompt_id", "region", "value"], orient="row")
        scores, below = [], []
        for keys in (["metric", "model"], ["metric", "model", "region"]):
            for cell in values.sort(*keys, "item").partition_by(keys, maintain_order=True):
                region = cell["region"][0] if "region" in keys else None
                scope = Scope(cell["metric"][0], cell["model"][0], BENCHMARK, region)
                row, values_below = mean_rows(cell, scope, {"labels": "truth"}, confidence=CONFIDENCE)
                scores.append(row)
                below += values_below
        return write_scored(work, scored(scores, below, left_out={}))

    inputs = {**Numbered(images.places).files("images"), **Numbered(prompts.places).files("prompts")}
    return Stage("truth", "object-truth", 1, run, inputs, asdict(how), packages=("msgspec", "polars"))
