"""Models of a test's own, for servers in processes of their own."""

import json

from tests.llm.server.answers import Question


def shout(question: Question) -> str:
    return question.row.upper()


def invent(question: Question) -> str:
    return json.dumps({"id": "Q999999", "verdict": "keep"})


def fence(question: Question) -> str:
    return f"```json\n{json.dumps({'id': question.row, 'verdict': 'keep'})}\n```"
