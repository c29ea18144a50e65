"""A model on a loopback server that writes questions, answers them and weighs yes, always the same way."""

import json
from hashlib import blake2b

from tests.llm.server import Answer, Question


def sees(question: Question) -> Answer | str | None:
    """Answer by what is asked; now and then decline, or say what is no answer. The server weighs yes by itself."""
    if "prompt" in question.data:
        return json.dumps({"id": question.row, "questions": [fact(1), fact(2, 1), fact(3, 1, 2), fact(4)]})
    if "question" not in question.data or question.options.get("top_logprobs") is not None:
        return None
    drawn = int.from_bytes(blake2b(f"{question.row} {question.data['question']}".encode(), digest_size=2).digest())
    if drawn % 23 == 0:
        return Answer("I would rather not.", "refusal")
    if drawn % 19 == 0:
        return "Perhaps."
    return json.dumps({"id": question.row, "answer": "yes" if drawn % 3 else "no"})


def fact(number: int, *parents: int) -> dict[str, object]:
    kind = "attribute" if parents else "entity"
    about = {"number": number, "kind": kind, "fact": f"thing {number}", "parents": list(parents)}
    return {**about, "question": f"Is thing {number} shown?"}
