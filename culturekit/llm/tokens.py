"""How many tokens a request has: a bound that holds for every tokenizer, and a guess that is near."""

from culturekit.llm.client import Identity, Outgoing

__all__ = ["estimate", "input_bound"]

TOKENS_OF_AN_IMAGE = 20_000


def input_bound(outgoing: Outgoing, identity: Identity) -> int:
    """Give a number of input tokens that is never exceeded: a token has at least one byte."""
    del identity
    return len(outgoing.body) + TOKENS_OF_AN_IMAGE * len(outgoing.images)


def estimate(outgoing: Outgoing) -> int:
    """Guess the number of input tokens."""
    return len(outgoing.body) // 4 + 800 * len(outgoing.images)
