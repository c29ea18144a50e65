"""Data from outside, fenced for a user message."""

import hashlib
from collections.abc import Mapping

from culturekit.storage.digests import canonical_json

__all__ = ["user_message"]


def user_message(data: Mapping[str, object]) -> str:
    """Write data as JSON between markers made of its hash."""
    text = canonical_json(dict(data))
    mark = hashlib.sha256(text).hexdigest()[:16]
    return f"<data {mark}>\n{text.decode()}\n</data {mark}>"
