"""The cost of a reply whose server counts nothing."""

from dataclasses import replace

from culturekit.llm.client import Identity, Outgoing, Reply, Usage
from culturekit.llm.tokens import estimate

__all__ = ["fully_counted", "usage_of_text"]


def usage_of_text(text: str) -> Usage:
    """Estimate the tokens of a reply's text; those of the question cannot be known from a reply."""
    return Usage(output_tokens=estimate(Outgoing(text.encode("utf-8", "replace"))), counted="here")


def fully_counted(reply: Reply, outgoing: Outgoing, identity: Identity) -> Reply:
    """Add the tokens of the question to a reply whose server counted nothing."""
    if reply.usage.counted == "provider":
        return reply
    return replace(reply, usage=replace(reply.usage, input_tokens=estimate(outgoing, identity)))
