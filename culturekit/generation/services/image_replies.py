"""Replies of image services in the form in which the engine closes a row, whichever service wrote them."""

from collections.abc import Mapping, Sequence

import msgspec

from culturekit.generation.picture_store import KEPT
from culturekit.generation.services.image_question import Candidate, Made
from culturekit.llm.client import Reply, Stop, Usage
from culturekit.storage.digests import canonical_json

__all__ = ["KEPT", "URL", "reply_with", "reply_without"]

URL = "url:"


def reply_with(candidates: Sequence[Candidate], version: str, facts: Mapping[str, object], usage: Usage) -> Reply:
    """Write a reply that has at least one picture."""
    made = Made(list(candidates), version, canonical_json(facts).decode())
    return Reply(msgspec.json.encode(made).decode(), usage, model_version=version)


def reply_without(stop: Stop, why: str, usage: Usage | None = None) -> Reply:
    """Write a reply that has none, and why."""
    return Reply("", usage or Usage(), stop, why)
