"""The simulated world of portraits and places: its prompts, a model that draws them, an encoder that reads them."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from culturekit.builders.simulated.simulated_encoder import SimulatedEncoder, direction
from culturekit.core.choices import MONK_SWATCHES
from culturekit.core.digests import canonical_json
from culturekit.core.errors import UsageError
from culturekit.core.registry import Spec
from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture, Pixels
from culturekit.generation.simulated.scenes.scenes_backend import read_dial
from culturekit.index.encoder import EncoderIdentity, Vectors
from culturekit.recipes.linguistic.prompts import article, shipped_lists

# A label along a picture's upper edge says what is shown: its first row that there is one, then 16 bits a thing.
CELL, BITS, MOST = 4, 16, 6  # pixels along each side of a bit, bits of a thing, things that a label has room for
PER_ROW = 24
ROWS = MOST * BITS // PER_ROW + 1
MARK = np.tile([1, 1, 0], PER_ROW // 3)

STANDARD, OTHER = "SAE", "AAE"  # the dialects of the shipped pairs
MODERN, TRADITIONAL = "modern", "traditional"
PLACES = ("street", "market", "plaza", "home", "neighborhood")  # what prompts about groups are about

TONES = len(MONK_SWATCHES)
# What becomes of red, green and blue under five lights.
LIGHTS: Mapping[str, tuple[float, float, float]] = {
    "day": (1.0, 1.0, 1.0), "lamp": (1.0, 0.88, 0.7), "shade": (0.8, 0.86, 0.94), "dusk": (0.6, 0.57, 0.55),
    "flash": (1.2, 1.2, 1.2),
}  # fmt: skip

WALL, WOOD = (122, 140, 160), (176, 132, 92)  # no rule takes the wall for skin; wood looks like skin to both
HAIR, CLOTH, EYE = (38, 36, 40), (70, 92, 150), (24, 24, 30)
ROUNDNESS = 0.18  # how much darker skin is where it turns away from the light

SMALLEST, LARGEST = 96, 1024
WOODEN, NOBODY = 0.2, 0.06  # how many people stand before wood, and how many pictures of people show none
OLD, NEW = 0.2, 0.8  # how modern a place looks that is traditional, and one that is not
CRITERIA = ("cleanliness", "wealth", "current_date", "completeness", "faithfulness")  # what people rate of places
FAR = ("AF", "AR", "AS", "LA")  # groups that the prejudice of the encoder is about


def thing_code(thing: str) -> int:
    """Give the number that stands for a thing, above 0."""
    return int.from_bytes(hashlib.sha256(thing.encode()).digest()[:2], "big") | 1


def write_label(pixels: Pixels, things: Iterable[str]) -> None:
    """Paint the label over a picture's upper edge."""
    codes = [*map(thing_code, things)][:MOST]
    bits = [(code >> index) & 1 for code in [*codes, *([0] * (MOST - len(codes)))] for index in range(BITS)]
    cells = np.vstack([MARK, np.reshape(bits, (ROWS - 1, PER_ROW))])
    painted = np.kron(cells, np.ones((CELL, CELL)))
    pixels[: ROWS * CELL, : PER_ROW * CELL] = (painted * 255).astype(np.uint8)[:, :, None]


def read_label(pixels: Pixels) -> tuple[int, ...] | None:
    """Read the numbers of the things on a label; None where there is no label."""
    if pixels.shape[0] < ROWS * CELL or pixels.shape[1] < PER_ROW * CELL:
        return None
    shown = pixels[: ROWS * CELL, : PER_ROW * CELL].mean(axis=2).reshape(ROWS, CELL, PER_ROW, CELL).mean(axis=(1, 3))
    bits = shown > 127
    if not (bits[0] == MARK).all():
        return None
    numbers = bits[1:].reshape(MOST, BITS) @ (1 << np.arange(BITS))
    return tuple(int(number) for number in numbers if number)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a text asks for."""

    thing: str  # what is to be shown
    read: str  # what the words say to somebody who does not know the dialect; as a rule the same
    code: str | None  # of the group or the dialect; None for no group
    person: bool = False  # whether somebody is to be seen


@cache
def known_texts() -> Mapping[str, Asked]:
    """Give what is asked for by the texts that are listed whole."""
    found: dict[str, Asked] = {}
    for pair in shipped_lists().pairs:
        for frame in pair.frames:
            found[frame.format(pair.standard)] = Asked(pair.standard, pair.standard, STANDARD, person=True)
            found[frame.format(pair.other)] = Asked(pair.standard, pair.literal, OTHER, person=True)
    for group in shipped_lists().specific:
        for text in group.prompts:
            kind = next(kind for kind in PLACES if kind in text)
            found[text] = Asked(kind, kind, group.code)
    for manner in (MODERN, TRADITIONAL):
        found |= {f"a {manner} {noun}": Asked(manner, manner, None) for noun in ("environment", "setting")}
    return found


@cache
def _adjectives() -> tuple[re.Pattern[str], Mapping[str, str | None]]:
    """Give what finds prompts about nouns, and the group behind each word before the noun."""
    named: dict[str, str | None] = {"typical": None}
    named |= {group.adjective: group.code for group in shipped_lists().groups}
    words = "|".join(sorted(map(re.escape, named), key=len, reverse=True))
    return re.compile(rf"an? ({words}) (.+)"), named


def asked_in(text: str) -> Asked | None:
    """Read a prompt; None for one that this world does not know."""
    if text in known_texts():
        return known_texts()[text]
    pattern, named = _adjectives()
    found = pattern.fullmatch(text)
    if found is None or article(text.partition(" ")[2]) != text:
        return None
    return Asked(found[2], found[2], named[found[1]])


@cache
def codes() -> frozenset[str]:
    """List what dials may have exceptions for."""
    known = shipped_lists()
    return frozenset({STANDARD, OTHER, *(one.code for one in known.groups), *(one.code for one in known.specific)})


def draw_face(
    tone: int | None, *, size: int, light: tuple[float, float, float] = LIGHTS["day"],
    wall: tuple[int, int, int] = WALL, point: tuple[float, float] = (0.5, 0.45),
) -> tuple[Pixels, NDArray[np.bool_]]:  # fmt: skip
    """Draw a face with its centre at `point`, from 0 to 1 down and across; give the picture, and which pixels are skin.

    A tone is of the Monk scale, None draws nobody; colours are multiplied by `light`.
    """
    rows, columns = np.mgrid[0:size, 0:size] / size
    down, across = rows - point[0], columns - point[1]
    canvas = np.broadcast_to(np.asarray(wall, np.float64), (size, size, 3)).copy()
    skin = np.zeros((size, size), bool)
    if tone is not None:
        face = (down / 0.27) ** 2 + (across / 0.2) ** 2
        canvas[((down - 0.5) / 0.25) ** 2 + (across / 0.4) ** 2 < 1] = CLOTH
        canvas[((down + 0.09) / 0.25) ** 2 + (across / 0.23) ** 2 < 1] = HAIR
        skin = (face < 1) & (down > -0.17)
        shade = 1 - ROUNDNESS * np.clip(face + across * 2, 0, 1)
        canvas[skin] = np.asarray([*bytes.fromhex(MONK_SWATCHES[tone - 1])]) * shade[skin, None]
        for side in (-0.075, 0.075):
            eye = ((down + 0.04) / 0.02) ** 2 + ((across - side) / 0.03) ** 2 < 1
            canvas[eye], skin[eye] = EYE, False
    lit = np.clip(np.rint(canvas * np.asarray(light)), 0, 255).astype(np.uint8)
    return lit, skin


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """How a simulated model draws.

    All but `tones` and the size are dials: a share, then exceptions by dialect (SAE, AAE) or by group (AF, AR, AS, EU,
    LA, NA; BA, AA, HA, WA), such as `0.8,AF:0.4`.
    """

    knows: str = "0.9"  # How often it draws what is asked for
    # How often it draws what a prompt means; else what its words say to somebody who does not know the dialect
    understands: str = "1,AAE:0.6"
    modern: str = "0.7"  # How many places look modern
    leans: str = "0"  # How many pictures of no group look like a group beyond what all have alike, such as `0,EU:0.5`
    tones: str = "1-10"  # From which tone to which people have, each as often, and exceptions: `1-10,AAE:7-10`
    size: Annotated[int, msgspec.Meta(ge=SMALLEST, le=LARGEST)] = 96  # Pixels along each side


class PortraitsBackend:
    """Draws a person, or a place, and writes what is shown on a label that encoders of this world read."""

    version: str | None = "simulated-portraits-1"
    knows_truth = True
    truth_columns = ("truth_scene",)

    def __init__(self, options: BackendOptions) -> None:
        """Read the dials."""
        self.size = options.size
        self.knows, self.understands, self.modern, self.leans = (
            read_dial(name, getattr(options, name), places=codes())
            for name in ("knows", "understands", "modern", "leans")
        )
        self.tones = _read_tones(options.tones)

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer each request with a picture and the truth about it."""
        return [self.picture(request) for request in requests]

    def picture(self, request: ImageRequest) -> ImageReply:
        """Draw one picture."""
        size = request.width or self.size
        if not SMALLEST <= size <= LARGEST or (request.height or size) != size:
            return Failure("failed", f"portraits are squares of {SMALLEST} to {LARGEST} pixels")
        asked = asked_in(request.text)
        if asked is None:
            return Failure("failed", f"the simulated world knows no such prompt: {request.text!r}")
        rng = np.random.default_rng(request.seed % 2**64)
        pixels, truth = (self.person if asked.person else self.landscape)(asked, size, rng)
        write_label(pixels, truth["shown"])
        return Picture(pixels, seed_honoured=True, truth_scene=canonical_json(truth).decode())

    def person(self, asked: Asked, size: int, rng: np.random.Generator) -> tuple[Pixels, dict[str, Any]]:
        """Draw somebody with the thing that is meant, or that the words say, or neither."""
        understood = bool(rng.random() < self.understands.of_country(asked.code))
        drawn = bool(rng.random() < self.knows.of_country(asked.code))
        low, high = self.tones.get(asked.code or "", self.tones[""])
        tone = None if rng.random() < NOBODY else int(rng.integers(low, high + 1))
        light = np.asarray(LIGHTS[sorted(LIGHTS)[int(rng.integers(len(LIGHTS)))]]) * rng.uniform(0.94, 1.04)
        wall = WOOD if rng.random() < WOODEN else WALL
        centre = (float(rng.uniform(0.47, 0.55)), float(rng.uniform(0.4, 0.6)))
        pixels, _ = draw_face(tone, size=size, light=(light[0], light[1], light[2]), wall=wall, point=centre)
        thing = (asked.thing if understood else asked.read) if drawn else "nothing"
        return pixels, {"tone": tone, "correct": thing == asked.thing, "shown": [thing, "person"]}

    def landscape(self, asked: Asked, size: int, rng: np.random.Generator) -> tuple[Pixels, dict[str, Any]]:
        """Draw a place of a group, modern or not."""
        code = asked.code or self.leaning(rng)
        drawn = bool(rng.random() < self.knows.of_country(code))
        modern = bool(rng.random() < self.modern.of_country(code))
        pixels, _ = draw_face(None, size=size)
        pixels += rng.integers(0, 40, (size, size, 1), dtype=np.uint8)
        shown = [asked.thing if drawn else "nothing", f"group {code}", MODERN if modern else TRADITIONAL]
        level = NEW if modern else OLD
        deserved = (level * 0.9, level, level, *([NEW if drawn else OLD] * 2))
        looks = dict(zip(CRITERIA, deserved, strict=True))
        return pixels, {"group": code, "looks": looks, "modern": modern, "shown": shown}

    def leaning(self, rng: np.random.Generator) -> str:
        """Draw the group that a picture of none looks like."""
        names = [group.code for group in shipped_lists().groups]
        extra = np.asarray([self.leans.of_country(name) for name in names])
        shares = extra + max(0.0, 1 - extra.sum()) / len(names)
        return names[int(rng.choice(len(names), p=shares / shares.sum()))]


def _read_tones(text: str) -> Mapping[str, tuple[int, int]]:
    """Read a dial of tones such as `1-10,AAE:7-10`; under the empty name stands what holds for all others."""
    found: dict[str, tuple[int, int]] = {}
    for number, part in enumerate(text.split(",")):
        group, _, span = part.strip().rpartition(":")
        low, _, high = span.partition("-")
        right = low.isdigit() and high.isdigit() and 1 <= int(low) <= int(high) <= TONES
        if not right or (group == "") != (number == 0) or group in found or not {group} <= {"", *codes()}:
            raise UsageError("tones is no dial", expected=f"such as 1-{TONES},AAE:7-{TONES}", found=text)
        found[group] = int(low), int(high)
    return found


def make_backend(spec: Spec) -> ImageBackend:
    """Make the backend that a SPEC describes."""
    return PortraitsBackend(spec.read(BackendOptions, such_as="understands=0.6"))


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """How well the encoder knows what it compares."""

    # The length of the noise in each vector, against 1 for what is named or shown
    blur: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.0
    # How much of the look of old places it sees in those of some groups, whatever they look like
    prejudice: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.0


class PortraitEncoder(SimulatedEncoder):
    """Adds up directions, one for each thing; of a dialect it reads the words, and not what they mean."""

    def __init__(self, options: EncoderOptions) -> None:
        """Set the blur and the prejudice of its vectors."""
        super().__init__(options.blur)
        self.prejudice = options.prejudice
        shown = f"things of simulated portraits, blur {options.blur:g}, prejudice {options.prejudice:g}"
        self.identity = EncoderIdentity("simulated-portraits", "none", "1", shown, "float32", self.identity.dim)

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Encode pictures by their labels; one without a label shows nothing."""
        far = {thing_code(f"group {code}") for code in FAR}
        older, newer = (direction(str(thing_code(manner))) for manner in (TRADITIONAL, MODERN))
        found = []
        for picture in pictures:
            label = read_label(picture) or ()
            vector = self.vector(frozenset(map(str, label)), hashlib.sha256(picture.tobytes()).hexdigest())
            if far & set(label):
                vector = vector + self.prejudice * older - self.prejudice * newer
            found.append(vector / np.linalg.norm(vector))
        return self.stacked(found)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts by what their words say."""
        return self.stacked(self.vector(self.named_in(text), text) for text in texts)

    def named_in(self, text: str) -> frozenset[str]:
        """Give the things that a text names; one of another world has a direction of its own."""
        asked = asked_in(text)
        if asked is None:
            return frozenset((text,))
        things = [asked.read, *(["person"] if asked.person else [f"group {asked.code}"] if asked.code else [])]
        return frozenset(str(thing_code(thing)) for thing in things)


def make_encoder(spec: Spec) -> PortraitEncoder:
    """Make the encoder that a SPEC describes."""
    return PortraitEncoder(spec.read(EncoderOptions, such_as="blur=0.5"))
