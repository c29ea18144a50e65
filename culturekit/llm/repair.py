"""A second question after a reply that is no answer: it quotes our code of what was wrong, never the reply."""

from dataclasses import replace

from culturekit.llm.client import Request
from culturekit.llm.reply_reading import ParseFailure

__all__ = ["repair_request"]


def repair_request(request: Request, failure: ParseFailure) -> Request:
    """Ask the same again, and say what was wrong."""
    return replace(
        request, instructions=f"{request.instructions}\n\nYour previous reply was not accepted: {failure.code}."
    )
