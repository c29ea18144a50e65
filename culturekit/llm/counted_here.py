"""What a reply cost: as the server counted it, or counted here where it did not."""

from dataclasses import replace

from culturekit.llm.client import Identity, Outgoing, Reply, Usage
from culturekit.llm.json_values import counted, record
from culturekit.llm.tokens import estimate

__all__ = ["fully_counted", "told_usage", "usage_of_text"]


def told_usage(value: object, said: str, *, sent: str, came: str) -> Usage:
    """Read the counts of OpenAI's protocols, by the names they give to tokens sent and tokens that came."""
    counts = record(value)
    if not {sent, came} & counts.keys():
        return usage_of_text(said)
    return Usage(
        counted(counts.get(sent)),
        counted(counts.get(came)),
        counted(record(counts.get(f"{came}_details")).get("reasoning_tokens")),
        counted(record(counts.get(f"{sent}_details")).get("cached_tokens")),
    )


def usage_of_text(text: str) -> Usage:
    """Estimate the tokens of a reply's text; those of the question cannot be known from a reply."""
    return Usage(output_tokens=estimate(Outgoing(text.encode("utf-8", "replace"))), counted="here")


def fully_counted(reply: Reply, outgoing: Outgoing, identity: Identity) -> Reply:
    """Add the tokens of the question to a reply whose server counted nothing."""
    if reply.usage.counted == "provider":
        return reply
    return replace(reply, usage=replace(reply.usage, input_tokens=estimate(outgoing, identity)))
