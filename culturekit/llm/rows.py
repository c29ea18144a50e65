"""One row from its question to its end: how it may end, what a repair asks, and where it stands while it is asked.

No clock, no network, no journal: whoever replays the journal and whoever listens to the wire take the same steps.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeAlias

import msgspec

from culturekit.core.choices import ANSWERED
from culturekit.core.errors import UnusableReplies, UsageError
from culturekit.llm.client import Failure, FailureKind, Outgoing, Reply, Request, Stop
from culturekit.llm.journal import Reading
from culturekit.llm.json_values import record, records, text
from culturekit.llm.ledger import shown_text
from culturekit.llm.models import model_for
from culturekit.llm.replies import CODES, FENCED, ParseFailure, read_reply, repair_request, without_fence

_RowOutcome: TypeAlias = Literal[
    "ok", "repaired", "refused", "blocked", "truncated", "invalid", "exhausted", "over-budget"
]

OUTCOMES: dict[_RowOutcome, str] = {
    "ok": "the first reply that could be read was an answer",
    "repaired": "the model was told what was wrong with its reply, or the reply was read as far as it is complete",
    "refused": "the model declined to answer",
    "blocked": "a filter of the provider stopped the question or the answer",
    "truncated": "the reply ended at the limit of its tokens",
    "invalid": "what came back is not an answer, also after one repair, or the provider rejected the request",
    "exhausted": "no reply came in as many tries as are allowed",
    "over-budget": "the money allowed would not have covered the question",
}


@dataclass(frozen=True, slots=True)
class Answered:
    """How one request ended. `value` is there for `ok` and `repaired` only; `raw` is the text of the last reply.

    `detail` says why there is no answer, or, as `fenced`, what was done here to read one.
    """

    outcome: _RowOutcome
    value: msgspec.Struct | None = None
    detail: str = ""
    raw: str = ""
    bought: bool = False  # whether anything was sent for it in this run; False when the journal had all of it


MOST_LISTED = 20  # tokens that a service lists at most
_MOST_TAKEN = 64
_LONGEST_TOKEN = 64


class WeighedToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A beginning of a reply, and the natural logarithm of its probability."""

    token: Annotated[str, msgspec.Meta(max_length=_LONGEST_TOKEN)]
    logprob: Annotated[float, msgspec.Meta(le=0.001)]


class TokenListing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The likeliest beginnings of a reply, or those that were asked about."""

    tokens: Annotated[list[WeighedToken], msgspec.Meta(min_length=1, max_length=_MOST_TAKEN)]


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
        if 0 < len(token) <= _LONGEST_TOKEN and isinstance(logprob, int | float) and math.isfinite(logprob):
            found.setdefault(token, float(logprob))
    return tuple(found.items())[:_MOST_TAKEN]


def listing(tokens: tuple[tuple[str, float], ...]) -> str:
    """Write tokens as a reply of the closed shape, the likeliest first."""
    ordered = sorted(tokens, key=lambda item: (-item[1], item[0]))
    return msgspec.json.encode(
        {"tokens": [{"token": token, "logprob": logprob} for token, logprob in ordered]}
    ).decode()


def refuse_weighing(request: Request, who: str) -> None:
    """Reject to ask somebody for probabilities who is not asked for them here."""
    if request.weighed:
        raise UsageError(
            f"{who} is not asked for probabilities of tokens",
            expected=f"a vision model of your own behind a server such as vLLM, as {model_for('weighing')}, "
            "or local:FOLDER",
            where="the SPEC of the model that weighs yes against no",
            hint="Serve one with `vllm serve`; `culturekit doctor --judge SPEC` says whether a server lists "
            "`top_logprobs`. Nothing has been bought.",
        )


_STOPPED: Mapping[Stop, _RowOutcome] = {"refusal": "refused", "blocked": "blocked", "length": "truncated"}

# The failures that no further try would change, and how a row ends that meets one.
CLOSING: Mapping[FailureKind, _RowOutcome] = {"rejected": "invalid", "blocked": "blocked"}
_FAILURES = {
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
    """Read a reply: it ends the row, or asks for its repair, or, unreadable, counts as a failure that may pass."""
    if reply.stop == "unreadable":
        why = f"a reply that cannot be read{f': {reply.detail}' if reply.detail else ''}"
        return _tried(replace(row, text=reply.text or row.text), why, tries=tries, charged=charged)
    if row.request.weighed:
        return _weighed(row, reply)
    if reply.stop != "end":
        part = _read_in_part(row, reply, "truncated") if reply.stop == "length" else None
        return part or Answered(_STOPPED[reply.stop], detail=reply.detail, raw=reply.text)
    answer, detail = read_reply(row.request, reply.text), ""
    if isinstance(answer, ParseFailure) and answer.code == FENCED:
        answer, detail = read_reply(row.request, without_fence(reply.text)), FENCED
    if not isinstance(answer, ParseFailure):
        return Answered("repaired" if row.repairing else "ok", answer, detail, reply.text)
    part = _read_in_part(row, reply, answer.code) if row.repairing or answer.code == "text-around" else None
    if part is not None or row.repairing:
        return part or Answered("invalid", detail=answer.code, raw=reply.text)
    return Row(repair_request(row.request, answer), repairing=True, text=reply.text)


def _read_in_part(row: Row, reply: Reply, why: str) -> Answered | None:
    """Read what is complete of a reply, where its type can do without the rest: such a type has `read_in_part`."""
    read = getattr(row.request.reply, "read_in_part", None)
    value = None if read is None else read(reply.text, cut=reply.stop == "length")
    return None if value is None else Answered("repaired", value, why, reply.text)


def _weighed(row: Row, reply: Reply) -> Answered:
    """Read how probable beginnings of a reply are; a reply without that is not asked for again, as nothing changes.

    That the reply breaks off is what was asked for. What was recorded or written by hand has the listing as its text.
    """
    if reply.stop in ("refusal", "blocked"):
        return Answered(_STOPPED[reply.stop], detail=reply.detail, raw=reply.text)
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
    why, outcome = failure_text(failure.kind, failure.status), CLOSING.get(failure.kind)
    if outcome is not None:
        return Answered(outcome, detail=why, raw=failure.raw.decode("utf-8", "replace"))
    return _tried(row, why, tries=tries, charged=charged)


def _tried(row: Row, why: str, *, tries: int, charged: bool) -> Row | Answered:
    count = row.tries + charged
    if count >= tries:
        return Answered("exhausted", detail=f"{count} tries; the last: {why}", raw=row.text)
    return replace(row, tries=count)


def failure_text(kind: FailureKind, status: int) -> str:
    """Return what failed in words that the journal can give again, so that a resumed row ends with the same ones."""
    return _FAILURES.get(kind, kind) + (f" (status {status})" if status else "")


@dataclass(slots=True, eq=False)
class Question:
    """One row at work. It changes hands, never being in two at once: prepared here, sent there, and back.

    `read` are the journal's numbers of the replies that brought the row where it is, with what they said; `twins` are
    the same question again, further down, which are answered by what comes for this one.
    """

    index: int
    row: Row
    outgoing: Outgoing
    key: bytes
    read: list[tuple[int, Reading]] = field(default_factory=list)
    twins: list["Question"] = field(default_factory=list)
    bought: bool = False
    ended: Answered | None = None
    answered: Answered | None = None  # the same once it may be given out, set by the thread that gives out
    input_bound: int = 0
    input_guess: int = 0
    reserved: float = 0.0
    ticket: str = ""  # the fact of the journal that says that it has left
    expected_tokens: float = 0.0
    failures: int = 0
    first_sent: float = math.inf
    sent: float = 0.0
    ready: float = 0.0

    def weight(self) -> int:
        """Return the bytes that this question holds on to."""
        return len(self.outgoing.body) + sum(len(image.content) for image in self.outgoing.images)


LOOKED_AT = 20  # rows that end before their outcomes are judged: by then a model that works shows some answers
_SENTENCES = {str(code): sentence for code, sentence in CODES.items()}
# Outcomes that another SPEC may mend; a refusal or a block is a word of the model or its provider.
_BROKEN = ("invalid", "truncated")
_SHOWN = 200  # characters of a reply that are shown
_SAMPLES = 5  # replies that are no answers of which the text is kept, to be shown


@dataclass(frozen=True, slots=True)
class RepliesSeen:
    """What came of rows: those of no use by reason, some of their replies, fences taken off, why it was stopped."""

    rows: int
    unusable: Mapping[str, int]
    unusable_samples: tuple[tuple[str, str], ...]
    fenced: int
    stopped: str

    @property
    def to_mend(self) -> str:
        """Why something is to be mended before more is asked: replies are no answers, or most are of no use."""
        count = sum(self.unusable.values())
        if not any(why.startswith(_BROKEN) for why in self.unusable) and 2 * count <= self.rows:
            return ""
        return self.stopped or f"{count:,} of {self.rows:,} replies are no answers: look at them"

    def lines(self) -> Iterator[str]:
        """Yield what could not be used, and show some; what came from outside cannot steer a terminal."""
        if self.fenced:
            yield f"  {self.fenced:,} in a code fence, which was taken off"
        for why, count in self.unusable.items():
            yield f"  {count:,} {why}"
        for outcome, raw in self.unusable_samples:
            yield f"    {outcome:<9} {shown_text(raw, longest=_SHOWN)}"


class ReplyWatch:
    """Counts how the rows of one stage end; several askings of a stage may share one.

    With `go_on` somebody has looked at the replies and wants the rest all the same.
    """

    def __init__(self, *, go_on: bool = False) -> None:
        """Start with no row."""
        self.go_on = go_on
        self.rows = self.fenced = self.in_a_row = 0
        self.began_badly = False
        self.unusable: Counter[str] = Counter()
        self.samples: list[tuple[str, str]] = []

    def count(self, answered: Answered) -> None:
        """Count the next row, so that the same rows always come to the same end."""
        self.rows += 1
        if answered.outcome in ANSWERED:
            self.fenced += answered.detail == FENCED
            self.in_a_row = 0
        else:
            sentence = _SENTENCES.get(answered.detail)
            why = f"{answered.outcome} ({answered.detail}: {sentence})" if sentence else answered.outcome
            self.unusable[why] += 1
            self.in_a_row += 1
            if len(self.samples) < _SAMPLES:
                self.samples.append((answered.outcome, answered.raw))
        if self.rows == LOOKED_AT:
            self.began_badly = 2 * self.unusable.total() > LOOKED_AT

    @property
    def ahead(self) -> int | None:
        """How many rows more may be asked before anything is known of the replies; None where enough is."""
        return None if self.go_on or self.rows >= LOOKED_AT else LOOKED_AT - self.rows

    @property
    def stops(self) -> bool:
        """Whether to stop and ask: the first rows, or as many in a row, brought too little."""
        return not self.go_on and (self.began_badly or self.in_a_row >= LOOKED_AT)

    def stops_before(self, repairs: int) -> bool:
        """Tell whether most first replies were no answers, so that a batch stops before it asks for repairs."""
        rows = self.rows + repairs
        return not self.go_on and rows >= LOOKED_AT and 2 * (self.unusable.total() + repairs) > rows

    def error(self, model: str, *, repairs: int = 0) -> UnusableReplies:
        """Return what came, and how to go on."""
        why = [f"{count:,} {reason}" for reason, count in self.unusable.most_common(3)]
        why += [f"{repairs:,} first replies that are no answer"] if repairs else []
        count, rows = self.unusable.total() + repairs, self.rows + repairs
        return UnusableReplies(
            f"{count:,} of the first {rows:,} rows brought nothing that can be used, so no more are asked",
            where=model,
            found="; ".join(why),
            hint="Everything bought is kept; `culturekit llm log` shows the replies. Choose another model or mend its "
            "SPEC (schema=); after mending the server, --fresh asks these rows again; --go-on asks the rest as it is.",
        )

    def seen(self, *, stopped: str = "") -> RepliesSeen:
        """Return what was counted."""
        return RepliesSeen(self.rows, dict(self.unusable.most_common()), tuple(self.samples), self.fenced, stopped)

    def notes(self) -> dict[str, int]:
        """Return what was done here to read answers; nothing where nothing was."""
        return {FENCED: self.fenced} if self.fenced else {}
