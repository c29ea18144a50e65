"""Models of a test's own, for servers in processes of their own."""

import json

from tests.llm.server.answers import Question


def shout(question: Question) -> str:
    """Say the row's id and nothing else."""
    return question.row.upper()


def invent(question: Question) -> str:
    """Answer about something that nobody asked about."""
    return json.dumps({"id": "Q999999", "verdict": "keep"})


def fence(question: Question) -> str:
    """Answer in a code fence, as chatty models do."""
    return f"```json\n{json.dumps({'id': question.row, 'verdict': 'keep'})}\n```"
