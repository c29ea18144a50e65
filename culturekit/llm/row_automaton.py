"""One row from its question to its end: what came back goes in, the next question or the end comes out.

No clock, no network, no journal: whoever replays the journal and whoever listens to the wire take the same steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from culturekit.llm.client import Failure, FailureKind, Reply, Request, Stop
from culturekit.llm.clients.token_listing import listing
from culturekit.llm.outcomes import FENCED, Answered, RowOutcome
from culturekit.llm.reading.reply_reading import ParseFailure, read_reply
from culturekit.llm.repair import repair_request

__all__ = ["CLOSING", "Row", "failed", "failure_text", "heard", "reading_of"]

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
    """Take a reply in: it ends the row, or asks for its repair, or, unreadable, counts as a failure that may pass."""
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
    """Take in how probable beginnings of a reply are; a reply without that is not asked for again, as nothing changes.

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
    """Take a failure in: it ends the row, or is one try more. What is `fatal` ends the run and is no matter of a row.

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
