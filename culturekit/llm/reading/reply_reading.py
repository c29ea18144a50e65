"""A model's text becomes a value, or a reason why it did not; it never becomes a crash."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import msgspec

from culturekit.llm.client import Answers, Request
from culturekit.llm.reading.reply_codes import CODES, ParseFailure, ReplyCode
from culturekit.llm.reading.shape_checking import first_mistake
from culturekit.llm.reading.shape_reading import shape_of
from culturekit.llm.reading.strict_json import Fences, Unreadable, flooded, read_json

__all__ = ["CODES", "Answer", "ParseFailure", "ReplyCode", "flooded", "read_reply"]

Answer: TypeAlias = msgspec.Struct | ParseFailure


def read_reply(request: Request, text: str, *, fences: Fences = "refuse") -> Answer:
    """Read a reply as one JSON object of the shape and with the values that the request allows.

    Nothing else is an answer: no text around the object, no key twice, none missing and none too many. A code fence
    around it is an error too, unless `fences="strip"` says that one may be taken off.

    `request.allowed` names keys. Under a key such as `id` stands one of its values, or a list of some of them, none
    twice. Under a key of the items of a list, written `verdicts[].id`, each of its values stands exactly once.
    """
    try:
        value = read_json(text, fences=fences)
    except Unreadable as error:
        return ParseFailure(error.code, "", text)
    mistake = first_mistake(shape_of(request.reply), value)
    if mistake is not None:
        return ParseFailure(mistake.code, f"{mistake.field.lstrip('.') or 'reply'}: {mistake.expected}", text)
    for key, allowed in request.allowed.items():
        if value.get(key) in allowed:
            continue
        code = problem_of_ids(list(values_at(value, key.split("."))), allowed, each_once="[]" in key)
        if code is not None:
            return ParseFailure(code, key, text)
    return build(request.reply, value, text)


def build(reply: Answers, value: dict[str, object], text: str) -> Answer:
    """Make the value that the type stands for; its own rules may still refuse."""
    of_pydantic = getattr(reply, "model_validate", None)
    try:
        built: msgspec.Struct = of_pydantic(value) if of_pydantic is not None else msgspec.convert(value, reply)
    except (ValueError, TypeError) as error:
        code: ReplyCode = "number-out-of-range" if isinstance(error.__cause__, OverflowError) else "wrong-value"
        return ParseFailure(code, "reply: a value that its type accepts", text)
    return built


def values_at(value: object, steps: Sequence[str]) -> Iterator[object]:
    """Give the values under a path of keys; `[]` goes into each item of a list."""
    if not steps:
        yield value
    elif isinstance(value, dict):
        below = value.get(steps[0].removesuffix("[]"))
        inside = below if steps[0].endswith("[]") and isinstance(below, list) else [below]
        for item in inside:
            yield from values_at(item, steps[1:])


def problem_of_ids(found: Sequence[object], allowed: Sequence[str], *, each_once: bool) -> ReplyCode | None:
    """Hold ids against those that were given."""
    ids = [item for each in found for item in (each if isinstance(each, list) else [each]) if item is not None]
    if any(item not in allowed for item in ids):
        return "unknown-id"
    if len({str(item) for item in ids}) < len(ids):
        return "duplicate-id"
    return "missing-id" if each_once and len(ids) < len(set(allowed)) else None
