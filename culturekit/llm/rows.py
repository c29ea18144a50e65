"""One row from its question to its end: how it may end, what a repair asks, and where it stands while it is asked.

No clock, no network, no journal: whoever replays the journal and whoever listens to the wire take the same steps.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeAlias

import msgspec

from culturekit.core.errors import UsageError
from culturekit.llm.client import Answers, Failure, FailureKind, Outgoing, Reply, Request, Stop
from culturekit.llm.journal_file import Reading
from culturekit.llm.models import model_for
from culturekit.llm.reading.json_values import record, records, text
from culturekit.llm.reading.reply_codes import CODES, ParseFailure, ReplyCode
from culturekit.llm.reading.shape import (
    Choice,
    Fields,
    Flag,
    Items,
    Node,
    Nothing,
    Number,
    OneOf,
    OpenMap,
    Recursion,
    Text,
)
from culturekit.llm.reading.shape_checking import first_mistake
from culturekit.llm.reading.shape_reading import shape_of
from culturekit.llm.reading.strict_json import Fences, Unreadable, read_json

RowOutcome: TypeAlias = Literal[
    "ok", "repaired", "refused", "blocked", "truncated", "invalid", "exhausted", "over-budget"
]

OUTCOMES: dict[RowOutcome, str] = {
    "ok": "the first reply that could be read was an answer",
    "repaired": "the answer came after the model was told what was wrong with its reply",
    "refused": "the model declined to answer",
    "blocked": "a filter of the provider stopped the question or the answer",
    "truncated": "the reply ended at the limit of its tokens",
    "invalid": "what came back is not an answer, also after one repair, or the provider rejected the request",
    "exhausted": "no reply came in as many tries as are allowed",
    "over-budget": "the money allowed would not have covered the question",
}


FENCED = "fenced"
"""The detail of an answer whose code fence was taken off here."""


@dataclass(frozen=True, slots=True)
class Answered:
    """How one request ended. `value` is there for `ok` and `repaired` only; `raw` is the text of the last reply.

    `detail` says why there is no answer, or, as `fenced`, what was done here to read one.
    """

    outcome: RowOutcome
    value: msgspec.Struct | None = None
    detail: str = ""
    raw: str = ""
    bought: bool = False
    """Whether anything was sent for it in this run; False when the journal had all of it."""


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
            expected=f"a vision model of your own behind a server such as vLLM, as {model_for('weighing')}, "
            "or local:FOLDER",
            where="the SPEC of the model that weighs yes against no",
            hint="Serve one with `vllm serve`; `culturekit doctor --judge SPEC` says whether a server lists "
            "`top_logprobs`. Nothing has been bought.",
        )


WORDING = """

An earlier reply to this could not be used.
Error {code}: {sentence}
Reply again, with nothing but one JSON object of this shape:
{shape}
"""

REPAIR_MARK = WORDING.partition("Error")[0].replace("\n", "\\n").encode()
"""What stands in the body of every repair, and of nothing else: line breaks of data are escaped twice."""


def repair_request(request: Request, failure: ParseFailure) -> Request:
    """Ask again, and quote the error code and the expected shape; nothing of the earlier reply is sent back.

    The instructions differ from those of the first request, so the repair has a key of its own. For one shape there
    are as many as there are codes.
    """
    shape = expected_shape(shape_of(request.schema_type).root)
    note = WORDING.format(code=failure.code, sentence=CODES[failure.code], shape=shape)
    return replace(request, instructions=request.instructions + note)


def expected_shape(node: Node) -> str:
    """Write a shape as people would sketch it: `{"id": text, "verdict": "keep" | "remove"}`."""
    match node:
        case Fields():
            inside = ", ".join(f'"{field.name}": {expected_shape(field.node)}' for field in node.fields)
            return f"{{{inside}}}"
        case Items():
            return f"[{expected_shape(node.item)}, ...]"
        case OpenMap():
            return f"{{text: {expected_shape(node.value)}, ...}}"
        case OneOf():
            return " | ".join(expected_shape(option) for option in node.options)
        case Choice():
            return " | ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in node.values)
        case Recursion():
            return f"{node.name} again"
        case Text():
            return node.format or "text"
        case Number():
            return "whole number" if node.whole else "number"
        case Flag():
            return "true | false"
        case Nothing():
            return "null"


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


@dataclass(slots=True, eq=False)
class Question:
    """One row at work. It changes hands, never being in two at once: prepared here, sent there, and back.

    `read` are the journal's numbers of the replies that brought the row where it is, with what they said; `twins` are
    the same question again, further down, which are answered by what comes for this one.
    """

    place: int
    row: Row
    outgoing: Outgoing
    key: bytes
    read: list[tuple[int, Reading]] = field(default_factory=list)
    twins: list["Question"] = field(default_factory=list)
    bought: bool = False
    ended: Answered | None = None
    answered: Answered | None = None
    """How the row ended; it may be given out once `answered` is set, by the thread that gives out."""

    input_bound: int = 0
    input_guess: int = 0
    reserved: float = 0.0
    ticket: str = ""
    """The fact of the journal that says that it has left."""

    expected_tokens: float = 0.0

    failures: int = 0
    first_sent: float = math.inf
    sent: float = 0.0
    ready: float = 0.0

    def weight(self) -> int:
        """Give the bytes that this question holds on to."""
        return len(self.outgoing.body) + sum(len(image.content) for image in self.outgoing.images)
