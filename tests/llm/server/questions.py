"""What a request asks, whichever protocol it came by."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Question", "data_of"]

_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a model. `schema` is plain JSON schema; `data` the first JSON object of the user's message."""

    provider: Literal["openai", "google"]
    operation: str
    model: str
    instructions: str
    user: str
    data: Mapping[str, Any]
    row: str
    schema: Mapping[str, Any] | None
    json_wanted: bool
    max_tokens: int
    seed: int
    input_tokens: int
    digest: str
    mode: Literal["online", "batch"] = "online"
    stream: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


def data_of(user: str) -> tuple[Mapping[str, Any], str]:
    """Find the data in a user's message, and the id of the row they are about.

    The first JSON object that has an `id` counts, else the first of all; a text without one is known by its hash.
    Objects within the strings of another are not looked into, so no label can pass for another row.
    """
    first: Mapping[str, Any] = {}
    at = user.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(user, at)
        except (ValueError, RecursionError):
            end, value = at + 1, None
        if isinstance(value, dict):
            if "id" in value:
                return value, str(value["id"])
            first = first or value
        at = user.find("{", end)
    return first, hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:16]
