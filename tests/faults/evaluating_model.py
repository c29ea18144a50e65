"""A model behind a loopback server that judges candidates, asks about prompts and says what images show.

What images show it reads from a file that the environment names: the id of a question about an image, made of the
picture's hash, to what the picture shows. Some it mistakes for another, some it declines, some of its replies are none.
"""

import json
import os
from functools import cache
from pathlib import Path

from tests.llm.server.answers import Answer
from tests.llm.server.made_replies import Question, fraction_of

SEEN = "EVALUATION_SEEN"  # The environment variable that names the file

SEEN = "EVALUATION_SEEN"  # the environment variable that names the file

FACTS = [
    {"number": 1, "kind": "entity", "fact": "a person", "parents": [], "question": "Is there a person?"},
    {"number": 2, "kind": "attribute", "fact": "clothing is old", "parents": [1], "question": "Is the clothing old?"},
]


@cache
def seen() -> dict[str, list[str] | None]:
    """Read what the pictures show: the artifact and its country, or nothing."""
    found: dict[str, list[str] | None] = json.loads(Path(os.environ[SEEN]).read_bytes())
    return found


def answer(question: Question) -> str | Answer | None:
    """Answer both kinds of questions; what is not one of them is left to the server."""
    properties = (question.schema or {}).get("properties", {})
    if "verdict" in properties:
        return json.dumps({"id": question.row, "verdict": "keep"})
    if "shown" in properties:
        return tagged(question.row)
    if "questions" in properties:
        return json.dumps({"id": question.row, "questions": FACTS})
    return None


def tagged(image: str) -> str | Answer | None:
    """Say what a picture shows."""
    if image not in seen():
        return None
    drawn = fraction_of("tag", image)
    if drawn < 0.03:
        return Answer("I'm sorry, but I can't help with that.", "refusal")
    if drawn < 0.06:
        return "It looks like a festive dish."
    shown = seen()[image]
    if shown is not None and drawn < 0.2:
        known = sorted({tuple(one) for one in seen().values() if one})
        shown = list(known[int(fraction_of("other", image) * len(known))])
    if shown is None:
        return json.dumps({"id": image, "shown": "no", "artifacts": []})
    named = {"name": shown[0], "country": shown[1], "sure": 20 + int(70 * fraction_of("sure", image))}
    return json.dumps({"id": image, "shown": "unsure" if drawn > 0.95 else "yes", "artifacts": [named]})
