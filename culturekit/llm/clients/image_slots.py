"""Bodies of requests written once for all texts, and their images: a hash until they leave, bytes when they do."""

import base64
import hashlib
import io
from collections.abc import Callable
from typing import Any

import msgspec
import orjson
from PIL import Image as Picture

from culturekit.core.digests import canonical_json
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.pictures.picture_reading import Pixels
from culturekit.llm.client import Image, Outgoing, Request
from culturekit.llm.untrusted import user_message

_MARK = "\x00the text goes here\x00"
_MARK_WRITTEN = orjson.dumps(_MARK)
_MOST_KEPT = 64


class BodyTemplates:
    """The canonical JSON of bodies, by whatever in them is not the text."""

    def __init__(self) -> None:
        """Begin with none."""
        self._kept: dict[object, tuple[bytes, bytes]] = {}

    def outgoing(self, request: Request, limit: int, write: Callable[[str], Any], *also: object) -> Outgoing:
        """Write a request of so many tokens at most; `also` names what else in its body is not the text."""
        slots = tuple(map(slot_of, request.images))
        key = (request.instructions, request.schema_type, request.sample, limit, slots, *also)
        ends = self._kept.get(key)
        if ends is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            head, tail = canonical_json(write(_MARK)).split(_MARK_WRITTEN)
            ends = self._kept[key] = (head, tail)
        body = ends[0] + orjson.dumps(user_message(request.data)) + ends[1]
        return Outgoing(body, request.images, request.sample, limit)


def slot_of(image: Image) -> str:
    """Name an image by its content."""
    return f"sha256:{image.sha256}"


def data_url(image: Image) -> str:
    """Write an image as a data URL."""
    return f"data:{image.media_type};base64,{encoded(image)}"


def encoded(image: Image) -> str:
    """Write the bytes of an image in base64."""
    return base64.b64encode(image.content).decode("ascii")


def filled(outgoing: Outgoing, write: Callable[[Image], str]) -> bytes:
    """Write the bytes that leave: the body as it is, with each image written into its slot."""
    if not outgoing.images:
        return outgoing.body
    body, written = msgspec.json.decode(outgoing.body), {slot_of(image): write(image) for image in outgoing.images}
    count = _fill(body, written)
    if count != len(outgoing.images):
        raise IntegrityError(
            "the images of a request do not fit its body", expected=f"{len(outgoing.images)} slots", found=str(count)
        )
    return canonical_json(body)


def _fill(node: Any, written: dict[str, str]) -> int:  # noqa: ANN401 - JSON of our own
    """Fill the slots below a node, which are whole texts, and count them."""
    count = 0
    for key, below in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(below, dict | list):
            count += _fill(below, written)
        elif isinstance(below, str) and below in written:
            node[key] = written[below]
            count += 1
    return count


def image_of(pixels: Pixels, *, longest: int = 1024) -> Image:
    """Scale the longer side of a picture down to at most `longest` pixels, and write it the same way every time.

    Nothing of a file but its pixels remains: no place, no camera, no thumbnail.
    """
    if longest < 1:
        raise UsageError("a picture has at least one pixel", expected="longest of 1 or more", found=str(longest))
    picture = Picture.fromarray(pixels)
    scale = longest / max(picture.size)
    if scale < 1:
        size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(size, Picture.Resampling.LANCZOS)
    held = io.BytesIO()
    picture.save(held, "PNG", compress_level=6)
    content = held.getvalue()
    return Image(content, "image/png", hashlib.sha256(content).hexdigest(), picture.width, picture.height)
