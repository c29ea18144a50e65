"""How probable beginnings of a reply are: as services list them, and as a reply of a closed shape."""

import math
from typing import Annotated

import msgspec

from culturekit.errors import UsageError
from culturekit.llm.client import Request
from culturekit.llm.reading.json_values import record, records, text

__all__ = ["MOST_LISTED", "TokenListing", "WeighedToken", "listed_tokens", "listing", "refuse_weighing"]

MOST_LISTED = 20
"""Tokens that a service lists at most."""

MOST_TAKEN = 64
LONGEST_TOKEN = 64


class WeighedToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A beginning of a reply, and the natural logarithm of its probability."""

    token: Annotated[str, msgspec.Meta(max_length=LONGEST_TOKEN)]
    logprob: Annotated[float, msgspec.Meta(le=0.001)]


class TokenListing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The likeliest beginnings of a reply, or those that were asked about."""

    tokens: Annotated[list[WeighedToken], msgspec.Meta(min_length=1, max_length=MOST_TAKEN)]


def listed_tokens(value: object) -> tuple[tuple[str, float], ...]:
    """Read the tokens that could stand first, from `logprobs` of a choice; nothing where they are not listed.

    Some servers leave the token that was drawn out of the listing of the likeliest.
    """
    places = records(record(value).get("content"))
    if not places:
        return ()
    found: dict[str, float] = {}
    for item in [*records(places[0].get("top_logprobs")), places[0]]:
        logprob, token = item.get("logprob"), text(item.get("token"))
        if 0 < len(token) <= LONGEST_TOKEN and isinstance(logprob, int | float) and math.isfinite(logprob):
            found.setdefault(token, float(logprob))
    return tuple(found.items())[:MOST_TAKEN]


def listing(tokens: tuple[tuple[str, float], ...]) -> str:
    """Write tokens as a reply of the closed shape, the likeliest first."""
    ordered = sorted(tokens, key=lambda item: (-item[1], item[0]))
    return msgspec.json.encode(
        {"tokens": [{"token": token, "logprob": logprob} for token, logprob in ordered]}
    ).decode()


def refuse_weighing(request: Request, who: str) -> None:
    """Refuse to ask somebody for probabilities who is not asked for them here."""
    if request.weighed:
        raise UsageError(
            f"{who} is not asked for probabilities of tokens",
            expected="openai:MODEL with chat completions, a server of that protocol, or local:FOLDER",
            hint="The chat endpoint of the server must list `top_logprobs`.",
        )
