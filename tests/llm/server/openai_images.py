"""Images within OpenAI requests: data URLs only, since nothing is fetched from anywhere."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from tests.llm.server.error_replies import Refused
from tests.llm.server.tokens import count_image

__all__ = ["image_bytes", "image_tokens"]

_DATA_URL = re.compile(r"data:image/(png|jpeg|jpg|gif|webp);base64,(.*)", re.DOTALL)


def image_bytes(url: str) -> bytes:
    """Decode a data URL.

    Raises:
        Refused: it is none, or holds no base64.
    """
    found = _DATA_URL.fullmatch(url)
    if found is None:
        raise Refused("bad-request", "Invalid image data URL.", param="url", code="invalid_image_url")
    try:
        return base64.b64decode(found[2], validate=True)
    except binascii.Error:
        raise Refused("bad-request", "Invalid base64 image_url.", code="invalid_base64") from None


def image_tokens(image: Mapping[str, Any]) -> int:
    """Count the tokens of an image: 85 in low detail, by tiles otherwise."""
    content = image_bytes(image["url"])
    return 85 if image.get("detail") == "low" else count_image(content, "openai")
