"""Bodies of requests written once for all texts, and their images: a hash until they leave, bytes when they do."""

import base64
from collections.abc import Callable
from typing import Any

import msgspec
import orjson

from culturekit.core.digests import canonical_json
from culturekit.core.errors import IntegrityError
from culturekit.llm.client import Image, Outgoing, Request
from culturekit.llm.untrusted.untrusted import user_message

MARK = "\x00the text goes here\x00"
MARK_WRITTEN = orjson.dumps(MARK)
MOST_KEPT = 64


class BodyTemplates:
    """The canonical JSON of bodies, by whatever in them is not the text."""

    def __init__(self) -> None:
        """Begin with none."""
        self.kept: dict[object, tuple[bytes, bytes]] = {}

    def body(self, key: object, text: str, write: Callable[[str], Any]) -> bytes:
        """Give the canonical JSON of `write(text)`; two calls with the same key may differ in the text only."""
        ends = self.kept.get(key)
        if ends is None:
            head, *tails = canonical_json(write(MARK)).split(MARK_WRITTEN)
            if len(tails) != 1:
                return canonical_json(write(text))
            if len(self.kept) >= MOST_KEPT:
                self.kept.clear()
            ends = self.kept[key] = (head, tails[0])
        return ends[0] + orjson.dumps(text) + ends[1]

    def outgoing(self, request: Request, limit: int, write: Callable[[str], Any], *also: object) -> Outgoing:
        """Write a request of so many tokens at most; `also` names what else in its body is not the text."""
        slots = tuple(map(slot_of, request.images))
        key = (request.instructions, request.schema_type, request.sample, limit, slots, *also)
        return Outgoing(self.body(key, user_message(request.data), write), request.images, request.sample, limit)


def slot_of(image: Image) -> str:
    """Name an image by its content."""
    return f"sha256:{image.sha256}"


def data_url(image: Image) -> str:
    """Write an image as a data URL."""
    return f"data:{image.media_type};base64,{encoded(image)}"


def encoded(image: Image) -> str:
    """Write the bytes of an image in base64."""
    return base64.b64encode(image.content).decode("ascii")


def filled(outgoing: Outgoing, fill: Callable[[Any, dict[str, Image]], int]) -> bytes:
    """Write the bytes that leave: the body as it stands, with `fill` putting the images in their slots.

    `fill` changes the decoded body and says how many slots it filled, which must be all.
    """
    if not outgoing.images:
        return outgoing.body
    body = msgspec.json.decode(outgoing.body)
    count = fill(body, {slot_of(image): image for image in outgoing.images})
    if count != len(outgoing.images):
        raise IntegrityError(
            "the images of a request do not fit its body", expected=f"{len(outgoing.images)} slots", found=str(count)
        )
    return canonical_json(body)
