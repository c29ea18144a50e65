"""How many tokens a request takes: a bound that is never passed, and an estimate that is close."""

import re

from culturekit.llm.client import Identity, Outgoing
from culturekit.llm.money.image_tokens import image_bound, image_estimate

__all__ = ["ADDED_BY_SERVERS", "estimate", "input_bound"]

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
