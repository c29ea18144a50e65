"""A model of a test's own, for servers in processes of their own."""

from tests.llm.server.questions import Question

__all__ = ["shout"]


def shout(question: Question) -> str:
    """Say the row's id and nothing else."""
    return question.row.upper()
