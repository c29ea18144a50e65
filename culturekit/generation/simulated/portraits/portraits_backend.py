"""A text-to-image model of the simulated world: people in dialled tones, dialects it knows or not, places of groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np

from culturekit.errors import UsageError
from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture, Pixels
from culturekit.generation.linguistic_lists import lists
from culturekit.generation.simulated.portraits.asked import MODERN, TRADITIONAL, Asked, asked_in, codes, write_label
from culturekit.generation.simulated.portraits.face import LIGHTS, TONES, WALL, WOOD, draw_face
from culturekit.generation.simulated.scenes.dials import read_dial
from culturekit.registry import Spec
from culturekit.storage.digests import canonical_json

__all__ = ["CRITERIA", "Options", "PortraitsBackend", "make"]

SMALLEST, LARGEST = 96, 1024
WOODEN, NOBODY = 0.2, 0.06
"""How many people stand before wood, and how many pictures of people show none."""

OLD, NEW = 0.2, 0.8
"""How modern a place looks that is traditional, and one that is not."""

CRITERIA = ("cleanliness", "wealth", "current_date", "completeness", "faithfulness")
"""What people are asked about places."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a simulated model draws.

    All but `tones` and the size are dials: a share, then exceptions by dialect (SAE, AAE) or by group (AF, AR, AS, EU,
    LA, NA; BA, AA, HA, WA), such as `0.8,AF:0.4`.

    Attributes:
        knows: How often it draws what is asked for.
        understands: How often it draws what a prompt means; else what its words say to somebody who does not know the
            dialect.
        modern: How many places look modern.
        leans: How many pictures of no group look like a group beyond what all have alike, such as `0,EU:0.5`.
        tones: From which tone to which people have, each as often, and exceptions: `1-10,AAE:7-10`.
        size: Pixels along each side.
    """

    knows: str = "0.9"
    understands: str = "1,AAE:0.6"
    modern: str = "0.7"
    leans: str = "0"
    tones: str = "1-10"
    size: Annotated[int, msgspec.Meta(ge=SMALLEST, le=LARGEST)] = 96


class PortraitsBackend:
    """Draws a person, or a place, and writes what is shown on a label that encoders of this world read."""

    version: str | None = "simulated-portraits-1"
    knows_truth = True
    truth_columns = ("truth_scene",)

    def __init__(self, options: Options) -> None:
        """Read the dials."""
        self.size = options.size
        self.knows, self.understands, self.modern, self.leans = (
            read_dial(name, getattr(options, name), places=codes())
            for name in ("knows", "understands", "modern", "leans")
        )
        self.tones = read_tones(options.tones)

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
        pixels, truth = (self.person if asked.person else self.place)(asked, size, rng)
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
        place = (float(rng.uniform(0.47, 0.55)), float(rng.uniform(0.4, 0.6)))
        pixels, _ = draw_face(tone, size=size, light=(light[0], light[1], light[2]), wall=wall, place=place)
        thing = (asked.thing if understood else asked.read) if drawn else "nothing"
        return pixels, {"tone": tone, "correct": thing == asked.thing, "shown": [thing, "person"]}

    def place(self, asked: Asked, size: int, rng: np.random.Generator) -> tuple[Pixels, dict[str, Any]]:
        """Draw a place of a group, modern or not."""
        code = asked.code or self.leaning(rng)
        drawn = bool(rng.random() < self.knows.of_country(code))
        modern = bool(rng.random() < self.modern.of_country(code))
        pixels, _ = draw_face(None, size=size, wall=WALL)
        pixels += rng.integers(0, 40, (size, size, 1), dtype=np.uint8)
        shown = [asked.thing if drawn else "nothing", f"group {code}", MODERN if modern else TRADITIONAL]
        level = NEW if modern else OLD
        deserved = (level * 0.9, level, level, *([NEW if drawn else OLD] * 2))
        looks = dict(zip(CRITERIA, deserved, strict=True))
        return pixels, {"group": code, "looks": looks, "modern": modern, "shown": shown}

    def leaning(self, rng: np.random.Generator) -> str:
        """Draw the group that a picture of none looks like."""
        names = [group.code for group in lists().groups]
        extra = np.asarray([self.leans.of_country(name) for name in names])
        shares = extra + max(0.0, 1 - extra.sum()) / len(names)
        return names[int(rng.choice(len(names), p=shares / shares.sum()))]


def read_tones(text: str) -> Mapping[str, tuple[int, int]]:
    """Read a dial of tones such as `1-10,AAE:7-10`; under the empty name stands what holds for all others."""
    found: dict[str, tuple[int, int]] = {}
    for number, part in enumerate(text.split(",")):
        place, _, span = part.strip().rpartition(":")
        low, _, high = span.partition("-")
        right = low.isdigit() and high.isdigit() and 1 <= int(low) <= int(high) <= TONES
        if not right or (place == "") != (number == 0) or place in found or not {place} <= {"", *codes()}:
            raise UsageError("tones is no dial", expected=f"such as 1-{TONES},AAE:7-{TONES}", found=text)
        found[place] = int(low), int(high)
    return found


def make(spec: Spec) -> ImageBackend:
    """Make the backend that a SPEC describes."""
    return PortraitsBackend(spec.read(Options, such_as="understands=0.6"))
