"""What a reply cost: as the server counted it, or counted here where its counts are missing or cannot be true."""

import re
from dataclasses import replace

from culturekit.llm.client import Identity, Outgoing, Reply, Usage
from culturekit.llm.clients.error_bodies import shortened
from culturekit.llm.money.tokens import estimate
from culturekit.llm.reading.json_values import record

__all__ = ["MOST_TOKENS", "NOT_COUNTED", "Counts", "fully_counted", "stated_usage", "too_few", "usage_of_text"]

MOST_TOKENS = 10**8
"""In one request or reply, ten times what any model takes: a larger count is a mistake of whoever counted."""

CHARACTERS_PER_TOKEN = 32
"""No tokenizer in use puts more into a token on average, runs of one character apart."""

REPEATED = re.compile(r"(.)\1+", re.DOTALL)
LOOKED_AT = 20_000
LONGEST_SHOWN = 40
NOT_COUNTED = "it counts no tokens"


class Counts:
    """The counts of one reply as a server stated them; the first that cannot be true is kept in `doubt`."""

    def __init__(self, stated: object) -> None:
        """Take whatever stands where counts should stand."""
        self.stated = record(stated)
        self.doubt = ""

    def take(self, name: str, *, within: str = "") -> int | None:
        """Give a count; None where it is absent, null, or no count."""
        place = self.stated.get(within) if within else self.stated
        value = record(place).get(name)
        if within and place is not None and not isinstance(place, dict):
            self.doubtful(f"{within} is {seen(place)}")
        elif type(value) is int and 0 <= value <= MOST_TOKENS:
            return value
        elif value is not None:
            self.doubtful(f"{name} is {seen(value)}")
        return None

    def doubtful(self, why: str) -> None:
        """Note why counts cannot be believed, unless something is noted already."""
        self.doubt = self.doubt or why

    def usage(
        self, text: str, *, sent: int | None, came: int | None, thought: int, cached: int, total: int | None
    ) -> Usage:
        """Put the counts of a reply together; what is missing, or cannot be true, is counted here or at full price."""
        if came is None or too_few(came, text):
            self.doubtful(f"{'no' if came is None else came} tokens for a reply of {len(text)} characters")
            came, output = None, usage_of_text(text).output_tokens + thought
        elif thought > came:
            output = came + thought
            if total != (sent or 0) + output:
                self.doubtful(f"{thought} tokens of thought among {came}")
        else:
            output = came
        if sent and total is not None and total > sent + output:
            self.doubtful(f"{total} tokens in total, where the parts are {sent + output}")
            came = None
        if cached > (sent or 0):
            self.doubtful(f"{cached} cached tokens among {sent or 0} sent")
            cached = 0
        counted = "provider" if sent and came is not None else "here"
        return Usage(sent or 0, output, thought, cached, counted, self.doubt)  # type: ignore[arg-type]


def stated_usage(value: object, text: str, *, sent: str, came: str) -> Usage:
    """Read the counts of OpenAI's protocols, by the names they give to tokens sent and tokens that came."""
    counts = Counts(value)
    if not {sent, came} & counts.stated.keys():
        return usage_of_text(text)
    return counts.usage(
        text,
        sent=counts.take(sent),
        came=counts.take(came),
        thought=counts.take("reasoning_tokens", within=f"{came}_details") or 0,
        cached=counts.take("cached_tokens", within=f"{sent}_details") or 0,
        total=counts.take("total_tokens"),
    )


def too_few(tokens: int, text: str) -> bool:
    """Tell whether a text cannot have been made of so few tokens."""
    if len(text) <= tokens * CHARACTERS_PER_TOKEN:
        return False
    beginning = text[:LOOKED_AT]
    share = len(REPEATED.sub(r"\1", beginning)) / len(beginning)
    return len(text) * share > tokens * CHARACTERS_PER_TOKEN


def usage_of_text(text: str) -> Usage:
    """Estimate the tokens of a reply's text; those of the question cannot be known from a reply."""
    tokens = estimate(Outgoing(text.encode("utf-8", "replace")))
    return Usage(output_tokens=tokens, counted="here", doubt=NOT_COUNTED)


def fully_counted(reply: Reply, outgoing: Outgoing, identity: Identity) -> Reply:
    """Add the tokens of the question where the server did not count them, or counted fewer than it can have.

    No more are counted here as output than were asked for.
    """
    usage, size = reply.usage, len(outgoing.body)
    few = usage.input_tokens * CHARACTERS_PER_TOKEN < size
    if usage.counted == "provider" and not (few and usage.input_tokens):
        return reply
    output = min(usage.output_tokens, outgoing.max_tokens)
    usage = replace(usage, output_tokens=output, thinking_tokens=min(usage.thinking_tokens, output), counted="here")
    if few:
        doubt = usage.doubt or f"{usage.input_tokens} tokens for a request of {size} bytes"
        tokens = max(usage.input_tokens, estimate(outgoing, identity))
        usage = replace(usage, input_tokens=tokens, doubt=doubt)
    return replace(reply, usage=usage)


def seen(value: object) -> str:
    """Write a value that a server sent, on one line and short."""
    if isinstance(value, int) and abs(value) > 10**18:
        return "a number beyond all bounds"
    if isinstance(value, int | float | str):
        return shortened(ascii(value[:LONGEST_SHOWN] if isinstance(value, str) else value))
    return f"a {type(value).__name__}"
