"""The cost of a reply whose server counts nothing."""

from culturekit.llm.client import Outgoing, Usage
from culturekit.llm.tokens import estimate

__all__ = ["usage_of_text"]


def usage_of_text(text: str) -> Usage:
    """Estimate the tokens of a reply's text; those of the question cannot be known from a reply."""
    return Usage(output_tokens=estimate(Outgoing(text.encode("utf-8", "replace"))), counted="here")
