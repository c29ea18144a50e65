"""One row from its question to its end: what came back goes in, the next question or the end comes out.

No clock, no network, no journal: whoever replays the journal and whoever listens to the wire take the same steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec

from culturekit.llm.client import Answers, Failure, FailureKind, Reply, Request, Stop
from culturekit.llm.clients.token_listing import listing
from culturekit.llm.outcomes import FENCED, Answered, RowOutcome
from culturekit.llm.reading.reply_codes import ParseFailure, ReplyCode
from culturekit.llm.reading.shape_checking import first_mistake
from culturekit.llm.reading.shape_reading import shape_of
from culturekit.llm.reading.strict_json import Fences, Unreadable, read_json
from culturekit.llm.repair import repair_request

__all__ = ["CLOSING", "Answer", "Row", "failed", "failure_text", "heard", "read_reply", "reading_of"]

STOPPED: Mapping[Stop, RowOutcome] = {"refusal": "refused", "blocked": "blocked", "length": "truncated"}

CLOSING: Mapping[FailureKind, RowOutcome] = {"rejected": "invalid", "blocked": "blocked"}
"""The failures that no further try would change, and how a row ends that meets one."""

SAID = {
    "rejected": "the provider rejected the request",
    "blocked": "the provider blocked the request",
    "busy": "the provider was busy",
    "server": "the server failed",
    "timeout": "no reply in time",
    "connection": "the connection failed",
}

Answer: TypeAlias = msgspec.Struct | ParseFailure


@dataclass(frozen=True, slots=True)
class Row:
    """Where a row stands that has not ended: what it asks now, and how many tries of that have failed.

    `text` is what the last reply said, if there was one.
    """

    request: Request
    repairing: bool = False
    tries: int = 0
    text: str = ""


def heard(row: Row, reply: Reply, *, tries: int, charged: bool = True) -> Row | Answered:
    """Read a reply: it ends the row, or asks for its repair, or, unreadable, counts as a failure that may pass."""
    if reply.stop == "unreadable":
        text = f"a reply that cannot be read{f': {reply.detail}' if reply.detail else ''}"
        return tried(replace(row, text=reply.text or row.text), text, tries=tries, charged=charged)
    if row.request.weighed:
        return weighed(row, reply)
    if reply.stop != "end":
        return Answered(STOPPED[reply.stop], detail=reply.detail, raw=reply.text)
    answer, detail = read_reply(row.request, reply.text), ""
    if isinstance(answer, ParseFailure) and answer.code == FENCED:
        answer, detail = read_reply(row.request, reply.text, fences="strip"), FENCED
    if not isinstance(answer, ParseFailure):
        return Answered("repaired" if row.repairing else "ok", answer, detail, reply.text)
    if row.repairing:
        return Answered("invalid", detail=answer.code, raw=reply.text)
    return Row(repair_request(row.request, answer), repairing=True, text=reply.text)


def weighed(row: Row, reply: Reply) -> Answered:
    """Read how probable beginnings of a reply are; a reply without that is not asked for again, as nothing changes.

    That the reply breaks off is what was asked for. What was recorded or written by hand has the listing as its text.
    """
    if reply.stop in ("refusal", "blocked"):
        return Answered(STOPPED[reply.stop], detail=reply.detail, raw=reply.text)
    text = listing(reply.tokens) if reply.tokens else reply.text
    answer = read_reply(row.request, text)
    if isinstance(answer, ParseFailure):
        detail = answer.code if reply.tokens else "the reply says nothing of the probabilities of its tokens"
        return Answered("invalid", detail=detail, raw=text)
    return Answered("ok", answer, raw=text)


def reading_of(step: Row | Answered | None, reply: Reply) -> str:
    """Name what a reply turned out to be, for the journal: how its row ended, or why it did not."""
    if isinstance(step, Answered):
        return step.outcome
    return "unreadable" if reply.stop == "unreadable" else "invalid"


def failed(row: Row, failure: Failure, *, tries: int, charged: bool = True) -> Row | Answered:
    """Count a failure: it ends the row, or is one try more. What is `fatal` ends the run and is no matter of a row.

    A failure that is not charged tells nothing about the row: everything fails at the moment.
    """
    text = failure_text(failure.kind, failure.status)
    outcome = CLOSING.get(failure.kind)
    if outcome is not None:
        return Answered(outcome, detail=text, raw=failure.raw.decode("utf-8", "replace"))
    return tried(row, text, tries=tries, charged=charged)


def tried(row: Row, text: str, *, tries: int, charged: bool) -> Row | Answered:
    """Count a try that failed."""
    count = row.tries + charged
    if count >= tries:
        return Answered("exhausted", detail=f"{count} tries; the last: {text}", raw=row.text)
    return replace(row, tries=count)


def failure_text(kind: FailureKind, status: int) -> str:
    """Say what failed in words that the journal can give again, so that a resumed row ends with the same ones."""
    text = SAID.get(kind, kind)
    return f"{text} (status {status})" if status else text


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
