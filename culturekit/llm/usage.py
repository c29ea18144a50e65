"""Tokens and money: bounds and estimates of requests, what replies cost, and a budget that cannot be overshot."""

import math
import re
from dataclasses import replace

from culturekit.core.errors import UsageError
from culturekit.llm.client import Identity, Image, Outgoing, Reply, Usage
from culturekit.llm.failures import shortened
from culturekit.llm.json_values import record
from culturekit.llm.models import known_models

_PICO = 10**12


def picodollars(usd: float) -> int:
    """Turn US dollars into whole picodollars."""
    return round(usd * _PICO)


def dollars(amount: int) -> float:
    """Turn picodollars into US dollars."""
    return amount / _PICO


class Budget:
    """Money that is allowed, spent, and set aside for requests that are under way.

    It reckons in whole picodollars, so that a million small sums add up to exactly what they are.
    """

    def __init__(self, limit: float | None) -> None:
        """Begin with nothing spent; without a limit everything is granted and counted."""
        if limit is not None and not 0 <= limit < float("inf"):
            raise UsageError("a budget is an amount of US dollars", expected="0 or more", found=str(limit))
        self.limit = None if limit is None else picodollars(limit)
        self.used = self.aside = 0

    def reserve(self, usd: float) -> bool:
        """Set the worst case of a request aside; False means that it must not be sent."""
        wanted = picodollars(usd)
        if self.limit is not None and self.used + self.aside + wanted > self.limit:
            return False
        self.aside += wanted
        return True

    def settle(self, reserved: float, actual: float) -> None:
        """Replace what was set aside by what it cost; for a reply that never came that may still be all of it."""
        self.aside -= picodollars(reserved)
        self.used += picodollars(actual)

    @property
    def spent(self) -> float:
        """US dollars spent."""
        return dollars(self.used)


# Tokens that a server may put around what was sent: roles, a default system prompt, how a schema is introduced.
ADDED_BY_SERVERS = 512
# Of English text and JSON; other scripts below. Rules of thumb, close enough for a plan; a pilot measures.
_BYTES_PER_TOKEN = 4.2
# Latin with accents; Greek, Cyrillic, Georgian, Armenian; Hebrew, Arabic; scripts of India and the south-east; CJK.
_CHARACTERS_PER_TOKEN: tuple[tuple[re.Pattern[str], float], ...] = (
    (re.compile("[\u0080-\u024f\u1e00-\u1eff]"), 1.6),
    (re.compile("[\u0370-\u03ff\u0400-\u052f\u10a0-\u10ff\u0530-\u058f]"), 2.4),
    (re.compile("[\u0590-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufeff]"), 2.2),
    (re.compile("[\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"), 2.0),
    (re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"), 1.2),
)
_OTHER_CHARACTERS_PER_TOKEN = 0.8

_MOST_PATCHES = 1536  # of 32 pixels each, in a picture
_PATCHES_AT_FULL_SIZE = 10_000
_GOOGLE_TILE = 258
_GOOGLE_HIGHEST = 2240  # the highest resolution of Gemini 3: https://ai.google.dev/gemini-api/docs/media-resolution
_SMALLEST_PATCH = 14  # pixels; no open vision model that a server of one's own runs cuts finer
_LEAST_OF_OPEN_MODELS = 4096
_SIDE_WHEN_UNKNOWN = 4096


def input_bound(outgoing: Outgoing, identity: Identity) -> int:
    """Return the most input tokens that a request can be billed for.

    No tokenizer in use makes more tokens than UTF-8 bytes of a text, and the body, names of keys and quotation marks
    included, has more bytes than the text in it.
    """
    return len(outgoing.body) + ADDED_BY_SERVERS + sum(image_bound(image, identity) for image in outgoing.images)


def estimate(outgoing: Outgoing, identity: Identity | None = None) -> int:
    """Estimate how many input tokens a request will be billed for; a pilot corrects it."""
    images = sum(image_estimate(image, identity) for image in outgoing.images)
    if outgoing.body.isascii():
        return round(len(outgoing.body) / _BYTES_PER_TOKEN) + images
    text = outgoing.body.decode("utf-8", "replace")
    beyond = re.sub("[\u0000-\u007f]+", "", text)
    tokens = (len(text) - len(beyond)) / _BYTES_PER_TOKEN
    for script, characters in _CHARACTERS_PER_TOKEN:
        rest = script.sub("", beyond)
        tokens += (len(beyond) - len(rest)) / characters
        beyond = rest
    return round(tokens + len(beyond) / _OTHER_CHARACTERS_PER_TOKEN) + images


def image_bound(image: Image, identity: Identity) -> int:
    """Return the most that a picture can cost: never less than what is billed."""
    size = _size_of(image)
    if identity.provider == "google":
        return max(_google_tokens(size), _GOOGLE_HIGHEST)
    most = _openai_most(identity.model)
    if "openai.com" not in identity.base_url:
        return max(_LEAST_OF_OPEN_MODELS, _tiles(size, _SMALLEST_PATCH), most)
    return most


def image_estimate(image: Image, identity: Identity | None) -> int:
    """Return what a picture will cost, as far as a formula says."""
    size = _size_of(image)
    if identity is not None and identity.provider == "google":
        return _google_tokens(size)
    seen = known_models().pictures
    known = seen.usual if identity is None else _openai_model(identity.model)
    if known in seen.patches:
        return math.ceil(min(_tiles(size, 32), _MOST_PATCHES) * seen.patches[known])
    whole, tile = seen.tiles[known or seen.usual]
    scale = min(1.0, 2048 / max(size))
    scale = min(scale, 768 / min(size))  # no longer than the one, no broader than the other
    return whole + tile * _tiles((max(1, math.ceil(size[0] * scale)), max(1, math.ceil(size[1] * scale))), 512)


def _size_of(image: Image) -> tuple[int, int]:
    return image.width or _SIDE_WHEN_UNKNOWN, image.height or _SIDE_WHEN_UNKNOWN


def _tiles(size: tuple[int, int], side: int) -> int:
    """Count the squares that cover a picture."""
    return math.ceil(size[0] / side) * math.ceil(size[1] / side)


def _openai_most(model: str) -> int:
    """Return the most that OpenAI bills for one picture: eight tiles, or all patches; of any model where unknown."""
    seen, known = known_models().pictures, _openai_model(model)
    if known in seen.patches:
        return math.ceil(_MOST_PATCHES * seen.patches[known])
    tiles = [seen.tiles[known]] if known else seen.tiles.values()
    largest = max(whole + 8 * tile for whole, tile in tiles)
    return largest if known else max(largest, math.ceil(_PATCHES_AT_FULL_SIZE * max(seen.patches.values())))


def _openai_model(model: str) -> str:
    """Find the model, or the model that this is a snapshot of; empty where there is none."""
    known = (*known_models().pictures.tiles, *known_models().pictures.patches)
    return next((name for name in known if model == name or model.startswith(f"{name}-20")), "")


def _google_tokens(size: tuple[int, int]) -> int:
    """Count the tiles of a picture as Gemini cuts it; a small one is a single tile."""
    if max(size) <= 384:
        return _GOOGLE_TILE
    return _GOOGLE_TILE * _tiles(size, min(768, max(256, math.floor(min(size) / 1.5))))


# In one request or reply, ten times what any model takes: a larger count is a mistake of whoever counted.
MOST_TOKENS = 10**8
_MOST_CHARACTERS_PER_TOKEN = 32  # no tokenizer in use puts more into a token on average, runs of one character apart
_REPEATED = re.compile(r"(.)\1+", re.DOTALL)
_LOOKED_AT = 20_000
_LONGEST_SHOWN = 40


class Counts:
    """The counts of one reply as a server stated them; the first that cannot be true is kept in `doubt`."""

    def __init__(self, stated: object) -> None:
        """Take whatever stands where counts should stand."""
        self.stated = record(stated)
        self.doubt = ""

    def take(self, name: str, *, within: str = "") -> int | None:
        """Return a count; None where it is absent, null, or no count."""
        counts = self.stated.get(within) if within else self.stated
        value = record(counts).get(name)
        if within and counts is not None and not isinstance(counts, dict):
            self.doubtful(f"{within} is {seen(counts)}")
        elif type(value) is int and 0 <= value <= MOST_TOKENS:
            return value
        elif value is not None:
            self.doubtful(f"{name} is {seen(value)}")
        return None

    def doubtful(self, why: str) -> None:
        """Note why counts cannot be believed, unless something is noted already."""
        self.doubt = self.doubt or why

    def usage(
        self, text: str, *, sent: int | None, came: int | None, thought: int, cached: int, total: int | None
    ) -> Usage:
        """Put the counts of a reply together; what is missing, or cannot be true, is counted here or at full price."""
        if came is None or too_few(came, text):
            self.doubtful(f"{'no' if came is None else came} tokens for a reply of {len(text)} characters")
            came, output = None, usage_of_text(text).output_tokens + thought
        elif thought > came:
            output = came + thought
            if total != (sent or 0) + output:
                self.doubtful(f"{thought} tokens of thought among {came}")
        else:
            output = came
        if sent and total is not None and total > sent + output:
            self.doubtful(f"{total} tokens in total, where the parts are {sent + output}")
            came = None
        if cached > (sent or 0):
            self.doubtful(f"{cached} cached tokens among {sent or 0} sent")
            cached = 0
        counted = "provider" if sent and came is not None else "here"
        return Usage(sent or 0, output, thought, cached, counted, self.doubt)  # type: ignore[arg-type]


def stated_usage(value: object, text: str, *, sent: str, came: str) -> Usage:
    """Read the counts of OpenAI's protocols, by the names they give to tokens sent and tokens that came."""
    counts = Counts(value)
    if not {sent, came} & counts.stated.keys():
        return usage_of_text(text)
    return counts.usage(
        text,
        sent=counts.take(sent),
        came=counts.take(came),
        thought=counts.take("reasoning_tokens", within=f"{came}_details") or 0,
        cached=counts.take("cached_tokens", within=f"{sent}_details") or 0,
        total=counts.take("total_tokens"),
    )


def too_few(tokens: int, text: str) -> bool:
    """Check whether a text cannot have been made of so few tokens."""
    if len(text) <= tokens * _MOST_CHARACTERS_PER_TOKEN:
        return False
    beginning = text[:_LOOKED_AT]
    share = len(_REPEATED.sub(r"\1", beginning)) / len(beginning)
    return len(text) * share > tokens * _MOST_CHARACTERS_PER_TOKEN


def usage_of_text(text: str) -> Usage:
    """Estimate the tokens of a reply's text; those of the question cannot be known from a reply."""
    tokens = estimate(Outgoing(text.encode("utf-8", "replace")))
    return Usage(output_tokens=tokens, counted="here", doubt="it counts no tokens")


def fully_counted(reply: Reply, outgoing: Outgoing, identity: Identity) -> Reply:
    """Add the tokens of the question where the server did not count them, or counted fewer than it can have.

    No more are counted here as output than were asked for.
    """
    usage, size = reply.usage, len(outgoing.body)
    few = usage.input_tokens * _MOST_CHARACTERS_PER_TOKEN < size
    if usage.counted == "provider" and not (few and usage.input_tokens):
        return reply
    output = min(usage.output_tokens, outgoing.max_tokens)
    usage = replace(usage, output_tokens=output, thinking_tokens=min(usage.thinking_tokens, output), counted="here")
    if few:
        doubt = usage.doubt or f"{usage.input_tokens} tokens for a request of {size} bytes"
        tokens = max(usage.input_tokens, estimate(outgoing, identity))
        usage = replace(usage, input_tokens=tokens, doubt=doubt)
    return replace(reply, usage=usage)


def seen(value: object) -> str:
    """Write a value that a server sent, on one line and short."""
    if isinstance(value, int) and abs(value) > 10**18:
        return "a number beyond all bounds"
    if isinstance(value, int | float | str):
        return shortened(ascii(value[:_LONGEST_SHOWN] if isinstance(value, str) else value))
    return f"a {type(value).__name__}"
