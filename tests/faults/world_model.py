"""A model on a loopback server that knows the simulated world, as far as words go; now and then it declines, or talks.

It sees no picture: what one shows it makes up by the hash of the question. The server weighs yes by itself.
"""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from culturekit.builders.simulated.simulated_model import CAPTIONING, KNOWING, Manner, Options
from culturekit.generation.simulated.scenes.scenes_backend import world
from culturekit.recipes.linguistic.dialects import PROPOSE_PAIRS, propose_pairs
from tests.llm.server import Answer, Question

ANSWERS = {**KNOWING, **CAPTIONING, PROPOSE_PAIRS: propose_pairs}


def knows(question: Question) -> Answer | str | None:
    """Answer by what is asked, always the same way; the probe of a server, and what is weighed, are left to it."""
    data: Mapping[str, Any] = question.data
    task = task_of(set(data))
    if question.options.get("top_logprobs") is not None or not task:
        return None
    drawn = int.from_bytes(blake2b(f"{question.row} {sorted(data)}".encode(), digest_size=2).digest())
    if drawn % 17 == 0:
        return Answer("I would rather not.", "refusal")
    if drawn % 19 == 0:
        return "Sure! Let me think about that."
    if task == "image.likert":
        return json.dumps({"answer": f"score is {1 + drawn % 5}"})
    if task == "image.extract":
        tokens = world().tokens(data["dimension"])
        return json.dumps({"descriptors": ", ".join({tokens[drawn % len(tokens)], tokens[drawn % 7]})})
    return json.dumps(ANSWERS[task](data, Manner(Options(), question.model)))


def task_of(keys: set[str]) -> str:
    """Tell a task by what its questions state; empty for none of these."""
    if keys == {"id", "dimension"}:
        return "image.extract"
    marks = {
        "standard": "dialects.propose", "wanted": "captions.expand", "criterion": "image.likert",
        "candidates": "descriptors.refine", "dimension": "descriptors.propose", "text": "activities.extract",
        "language": "captions.translate", "caption": "captions.objects", "country": "stereotypes.propose",
    }  # fmt: skip
    return next((task for mark, task in marks.items() if mark in keys), "")
