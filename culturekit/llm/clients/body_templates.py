"""Bodies of requests that differ in one text only: written once, then cut where the text goes."""

from collections.abc import Callable
from typing import Any

import orjson

from culturekit.storage.digests import canonical_json

__all__ = ["BodyTemplates"]

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
