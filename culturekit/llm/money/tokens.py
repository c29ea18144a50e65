"""How many tokens a request takes: a bound that is never passed, and an estimate that is close."""

import math
import re
from dataclasses import dataclass

from culturekit.llm.client import Identity, Image, Outgoing

__all__ = ["ADDED_BY_SERVERS", "estimate", "image_bound", "image_estimate", "input_bound"]

ADDED_BY_SERVERS = 512
"""Tokens that a server may put around what was sent: roles, a default system prompt, how a schema is introduced."""

BYTES_PER_TOKEN = 4.2
"""Of English text and JSON; other scripts below. Rules of thumb, close enough for a plan; a pilot measures."""

CHARACTERS_PER_TOKEN: tuple[tuple[re.Pattern[str], float], ...] = (
    (re.compile("[\u0080-\u024f\u1e00-\u1eff]"), 1.6),
    (re.compile("[\u0370-\u03ff\u0400-\u052f\u10a0-\u10ff\u0530-\u058f]"), 2.4),
    (re.compile("[\u0590-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufeff]"), 2.2),
    (re.compile("[\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"), 2.0),
    (re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"), 1.2),
)
"""Latin with accents; Greek, Cyrillic, Georgian, Armenian; Hebrew, Arabic; scripts of India and the south-east; CJK."""

OTHER_CHARACTERS_PER_TOKEN = 0.8

OPENAI_TILES = {
    "gpt-4o-mini": (2833, 5667),
    "gpt-4o": (85, 170),
    "gpt-4.1": (85, 170),
    "gpt-5": (70, 140),
    "o1": (75, 150),
    "o3": (75, 150),
}
"""Tokens of the whole picture and of each tile of 512 pixels: https://platform.openai.com/docs/guides/images-vision."""

OPENAI_PATCHES = {
    "gpt-5-mini": 1.62,
    "gpt-5-nano": 2.46,
    "gpt-4.1-mini": 1.62,
    "gpt-4.1-nano": 2.46,
    "o4-mini": 1.72,
}
"""Tokens for each patch of 32 pixels, of which there are at most 1,536."""

MOST_PATCHES = 1536
PATCHES_AT_FULL_SIZE = 10_000
GOOGLE_TILE = 258
GOOGLE_HIGHEST = 2240
"""The highest resolution of Gemini 3: https://ai.google.dev/gemini-api/docs/media-resolution."""
SMALLEST_PATCH = 14
"""Pixels; no open vision model that a server of one's own runs cuts finer."""
LEAST_OF_OPEN_MODELS = 4096
SIDE_WHEN_UNKNOWN = 4096


def input_bound(outgoing: Outgoing, identity: Identity) -> int:
    """Give the most input tokens that a request can be billed for.

    No tokenizer in use makes more tokens than UTF-8 bytes of a text, and the body, names of keys and quotation marks
    included, has more bytes than the text in it.
    """
    return len(outgoing.body) + ADDED_BY_SERVERS + sum(image_bound(image, identity) for image in outgoing.images)


def estimate(outgoing: Outgoing, identity: Identity | None = None) -> int:
    """Guess how many input tokens a request will be billed for; a pilot corrects it."""
    images = sum(image_estimate(image, identity) for image in outgoing.images)
    if outgoing.body.isascii():
        return round(len(outgoing.body) / BYTES_PER_TOKEN) + images
    text = outgoing.body.decode("utf-8", "replace")
    beyond = re.sub("[\u0000-\u007f]+", "", text)
    tokens = (len(text) - len(beyond)) / BYTES_PER_TOKEN
    for script, characters in CHARACTERS_PER_TOKEN:
        rest = script.sub("", beyond)
        tokens += (len(beyond) - len(rest)) / characters
        beyond = rest
    return round(tokens + len(beyond) / OTHER_CHARACTERS_PER_TOKEN) + images


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height in pixels."""

    width: int
    height: int

    def tiles(self, side: int) -> int:
        """Count the squares that cover this."""
        return math.ceil(self.width / side) * math.ceil(self.height / side)

    def within(self, *, longest: float, shortest: float) -> "Size":
        """Shrink, keeping the shape, until both sides are within their limits."""
        scale = min(1.0, longest / max(self.width, self.height))
        scale = min(scale, shortest / min(self.width, self.height))
        return Size(max(1, math.ceil(self.width * scale)), max(1, math.ceil(self.height * scale)))


def size_of(image: Image) -> Size:
    """Give the size of a picture, or a large one where it is not known."""
    return Size(image.width or SIDE_WHEN_UNKNOWN, image.height or SIDE_WHEN_UNKNOWN)


def image_bound(image: Image, identity: Identity) -> int:
    """Give the most that a picture can cost: never less than what is billed."""
    size = size_of(image)
    if identity.provider == "google":
        return max(google_tokens(size), GOOGLE_HIGHEST)
    if "openai.com" not in identity.base_url:
        return max(LEAST_OF_OPEN_MODELS, size.tiles(SMALLEST_PATCH), openai_most(identity.model))
    return openai_most(identity.model)


def image_estimate(image: Image, identity: Identity | None) -> int:
    """Give what a picture will cost, as far as a formula says."""
    size = size_of(image)
    if identity is not None and identity.provider == "google":
        return google_tokens(size)
    model = "gpt-4o" if identity is None else identity.model
    known = openai_model(model)
    if known in OPENAI_PATCHES:
        return math.ceil(min(size.tiles(32), MOST_PATCHES) * OPENAI_PATCHES[known])
    whole, tile = OPENAI_TILES[known or "gpt-4o"]
    return whole + tile * size.within(longest=2048, shortest=768).tiles(512)


def openai_most(model: str) -> int:
    """Give the most that OpenAI bills for one picture: eight tiles, or all patches."""
    known = openai_model(model)
    if known in OPENAI_PATCHES:
        return math.ceil(MOST_PATCHES * OPENAI_PATCHES[known])
    if known:
        return OPENAI_TILES[known][0] + 8 * OPENAI_TILES[known][1]
    largest = max(whole + 8 * tile for whole, tile in OPENAI_TILES.values())
    return max(largest, math.ceil(PATCHES_AT_FULL_SIZE * max(OPENAI_PATCHES.values())))


def openai_model(model: str) -> str:
    """Find the model, or the model that this is a snapshot of; empty where there is none."""
    known = (*OPENAI_TILES, *OPENAI_PATCHES)
    return next((name for name in known if model == name or model.startswith(f"{name}-20")), "")


def google_tokens(size: Size) -> int:
    """Count the tiles of a picture as Gemini cuts it; a small one is a single tile."""
    if max(size.width, size.height) <= 384:
        return GOOGLE_TILE
    unit = min(768, max(256, math.floor(min(size.width, size.height) / 1.5)))
    return GOOGLE_TILE * size.tiles(unit)
