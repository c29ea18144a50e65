"""What is asked of a paid image model in one call, and what came of it, in the terms of the engine that asks."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from culturekit.generation.backend import ImageRequest
from culturekit.generation.picture_store import KEPT
from culturekit.llm.client import Reply, Request, Stop, Usage
from culturekit.storage.digests import canonical_json

__all__ = ["KEPT", "TASK", "URL", "Call", "Candidate", "Made", "calls_of", "question_of", "reply_with", "reply_without"]

TASK = "images"

Call = tuple[ImageRequest, ...]
"""Images that one call asks for: slots of one prompt and repeat, side by side."""


class Candidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One image of a reply: `picture` is `sha256:` and the name of kept bytes, or `url:` and an address, or nothing.

    `reason` says why there is no picture; `revised` is the prompt as the provider says it drew it.
    """

    picture: str
    revised: str
    safety: str
    reason: str


class Made(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a reply brought; `facts` is JSON of what the reply says of itself, such as its size."""

    candidates: list[Candidate]
    version: str
    facts: str


def calls_of(requests: Sequence[ImageRequest], per_call: int) -> Iterator[Call]:
    """Part requests into calls; a call never mixes prompts or repeats."""
    for _, group in groupby(requests, key=lambda request: (request.prompt_id, request.repeat)):
        slots = tuple(group)
        for start in range(0, len(slots), per_call):
            yield slots[start : start + per_call]


def question_of(call: Call) -> Request:
    """Write a call for the engine.

    The seed of its first image tells it apart from every other call with the same prompt, whether it is sent or not, so
    that a retry is the same question, and another slot never is.
    """
    first = call[0]
    data = {"prompt": first.text, "negative": first.negative_text or "", "n": len(call), "seed": first.seed}
    return Request(TASK, "", data, Made, sample=first.seed)


URL = "url:"


def reply_with(candidates: Sequence[Candidate], version: str, facts: Mapping[str, object], usage: Usage) -> Reply:
    """Write a reply that has at least one picture."""
    made = Made(list(candidates), version, canonical_json(facts).decode())
    return Reply(msgspec.json.encode(made).decode(), usage, model_version=version)


def reply_without(stop: Stop, why: str, usage: Usage | None = None) -> Reply:
    """Write a reply that has none, and why."""
    return Reply("", usage or Usage(), stop, why)
