"""The usual reply of chat completions, read by its type: one text, done, and counted."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from culturekit.llm.client import Reply, Usage
from culturekit.llm.money.counted_here import MOST_TOKENS, too_few
from culturekit.llm.reading.json_values import each_key_once

__all__ = ["plain_reply"]

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class Message(msgspec.Struct, gc=False):
    """What was said; nothing was refused."""

    content: Annotated[str, msgspec.Meta(min_length=1)]
    refusal: None = None


class Choice(msgspec.Struct, gc=False):
    """An answer that came to its end; no probabilities of tokens stand beside it."""

    message: Message
    finish_reason: Literal["stop"]
    logprobs: None = None


class InputDetails(msgspec.Struct, gc=False):
    """Tokens that a cache knew."""

    cached_tokens: Count | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """Tokens that were thought."""

    reasoning_tokens: Count | None = None


class Counts(msgspec.Struct, gc=False):
    """What the provider counted."""

    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count | None = None
    prompt_tokens_details: InputDetails | None = None
    completion_tokens_details: OutputDetails | None = None


class Completion(msgspec.Struct, gc=False):
    """A reply with nothing odd about it."""

    choices: Annotated[list[Choice], msgspec.Meta(min_length=1)]
    usage: Counts
    model: str = ""
    system_fingerprint: str | None = None


USUAL = msgspec.json.Decoder(Completion)


def plain_reply(raw: bytes) -> Reply | None:
    """Read the usual reply; None for any other, which is looked at field by field."""
    try:
        body = USUAL.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    text, usage = body.choices[0].message.content, plain_usage(body.usage)
    if usage is None or too_few(usage.output_tokens, text) or not each_key_once(raw):
        return None
    version = " ".join(part for part in (body.model, body.system_fingerprint) if part)
    return Reply(text, usage, model_version=version)


def plain_usage(counts: Counts) -> Usage | None:
    """Take counts that fit together; None where they do not."""
    details, known = counts.completion_tokens_details, counts.prompt_tokens_details
    thought = (details.reasoning_tokens or 0) if details else 0
    cached = (known.cached_tokens or 0) if known else 0
    sent, came = counts.prompt_tokens, counts.completion_tokens
    if not sent or cached > sent or thought > came or (counts.total_tokens or 0) > sent + came:
        return None
    return Usage(sent, came, thought, cached)
