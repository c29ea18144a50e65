"""Requests to ask; a provider without a wire that answers from a script; and a wire in simulated time."""

import asyncio
import hashlib
import heapq
import io
import itertools
import json
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Literal

import msgspec
from PIL import Image as Picture

from culturekit.llm.client import (
    Client,
    Failure,
    FreeClient,
    Identity,
    Image,
    Outgoing,
    Quota,
    Rate,
    Reply,
    Request,
    Usage,
)
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.dispatch import Dispatch, Later, Limiter
from culturekit.llm.purse import Purse
from culturekit.llm.rows import Question, Row
from culturekit.llm.usage import Budget, estimate
from tests.loopback import served


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    verdict: Literal["keep", "remove"]


def question(label: str = "feijoada", **parts: object) -> Request:
    whole = {
        "task": "cspace.filter", "instructions": "Judge the candidate.", "data": {"id": "Q1", "label": label},
        "reply": Verdict, "allowed": {"id": ("Q1",)},
    } | parts  # fmt: skip
    return Request(**whole)  # type: ignore[arg-type]


def picture(colour: str = "red") -> Image:
    held = io.BytesIO()
    Picture.new("RGB", (16, 8), colour).save(held, "PNG")
    content = held.getvalue()
    return Image(content, "image/png", hashlib.sha256(content).hexdigest(), 16, 8)


def client(spec: str) -> Client:
    made: Client | FreeClient = CLIENTS.make(spec)
    assert isinstance(made, Client)
    return made


def send(asked: Client, request: Request) -> bytes:
    async def once() -> bytes:
        try:
            return await asked.send(asked.compose(request))
        finally:
            await asked.close()

    return asyncio.run(once())


def sent(spec: str, request: Request) -> Reply:
    asked = client(spec)
    return asked.read(send(asked, request))


Behaviour = Callable[[str, int], bytes | Failure]  # what happens to a row's id at its n-th request, from 1


def answer_for(identifier: str, *, verdict: str = "keep") -> bytes:
    text = json.dumps({"id": identifier, "verdict": verdict})
    return json.dumps({"text": text, "in": 50, "out": 10, "stop": "end"}).encode()


def questions(count: int, *, max_tokens: int = 20) -> list[Request]:
    rows = [f"Q{number}" for number in range(count)]
    return [Request("test", "Judge.", {"id": row}, Verdict, {"id": (row,)}, max_tokens=max_tokens) for row in rows]


@dataclass
class FakeClient:
    """Speaks a protocol of its own: JSON with the text, the tokens and why it stopped."""

    behaviour: Behaviour = field(default=lambda identifier, _: answer_for(identifier))
    delay: float = 0.0
    rate: Rate | None = field(default_factory=lambda: Rate(1.0, 2.0))
    quota: Quota = field(default_factory=Quota)
    identity: Identity = field(default_factory=lambda: Identity("fake", "", "/ask", "fake-1"))
    asked: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    most_in_flight: int = 0
    usd: float = 0.0
    closed: int = 0
    model: str = "fake-1"
    caveat: str = ""
    options: Mapping[str, object] = field(default_factory=dict)

    def compose(self, request: Request) -> Outgoing:
        body = {"data": dict(request.data), "instructions": request.instructions}
        return Outgoing(json.dumps(body, sort_keys=True).encode(), sample=request.sample, max_tokens=request.max_tokens)

    async def send(self, outgoing: Outgoing) -> bytes:
        identifier = json.loads(outgoing.body)["data"]["id"]
        self.asked[identifier] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.delay)
        finally:
            self.in_flight -= 1
        came = self.behaviour(identifier, self.asked[identifier])
        if isinstance(came, Failure):
            raise came
        if self.rate is not None and b'"in"' in came:
            told = json.loads(came)
            self.usd += (told["in"] * self.rate.input + told["out"] * self.rate.output) / 1e6
        return came

    def read(self, raw: bytes) -> Reply:
        try:
            told = json.loads(raw)
        except ValueError:
            return Reply("", stop="unreadable", detail="not JSON")
        return Reply(told["text"], Usage(told["in"], told["out"]), told["stop"])

    async def close(self) -> None:
        self.closed += 1


CLIENT = FakeClient()


@dataclass(frozen=True)
class Turn:
    latency: float
    came: bytes | Failure


@dataclass
class Enforced:
    """A quota a minute over a sliding window, or a bucket of requests that fills up; the refused use nothing up."""

    requests: float = math.inf
    tokens: float = math.inf
    bucket: float = 0.0  # how much of a minute's requests it holds; 0: a window is kept
    taken: deque[tuple[float, int]] = field(default_factory=deque)
    held: tuple[float, float] | None = None

    def wait(self, now: float, tokens: int) -> float:
        if self.bucket:
            full, rate = self.requests * self.bucket, self.requests / 60.0
            left, before = self.held or (full, now)
            left = min(full, left + rate * (now - before))
            self.held = (left - (left >= 1), now)
            return 0.0 if left >= 1 else (1 - left) / rate
        while self.taken and self.taken[0][0] <= now - 60.0:
            self.taken.popleft()
        count, held, until = len(self.taken) + 1, tokens + sum(each for _, each in self.taken), now - 60.0
        for at, each in self.taken:  # who has to leave until there is room
            if count <= self.requests and held <= self.tokens:
                break
            count, held, until = count - 1, held - each, at
        if until > now - 60.0:
            return until + 60.0 - now
        self.taken.append((now, tokens))
        return 0.0


Provider = Callable[[str, int, float], Turn]  # row, number of the request for it from 1, time of arrival


@dataclass(frozen=True)
class Exchange:
    row: str
    sent: float
    ended: float
    came: bytes | Failure
    probe: bool


def question_of(place: int, request: Request) -> Question:
    outgoing = CLIENT.compose(request)
    key = f"{place}|".encode() + outgoing.body
    return Question(place, Row(request), outgoing, key, input_guess=estimate(outgoing))


@dataclass
class SimulatedWire:
    """Does what the real wire does, with a clock that jumps."""

    provider: Provider
    concurrency: int = 16
    quota: Quota = field(default_factory=Quota)
    tries: int = 6
    patience: float = 900.0
    budget: float | None = None
    rate: Rate | None = field(default_factory=lambda: Rate(1.0, 2.0))
    now: float = 1000.0

    def __post_init__(self) -> None:
        identity = Identity("fake", "http://127.0.0.1/v1", "/ask", "fake-1")
        self.purse = Purse(self.rate, identity, Budget(self.budget))
        self.limiter = Limiter(self.quota, self.concurrency)
        self.dispatch = Dispatch("fake-1", self.limiter, self.purse, tries=self.tries, patience=self.patience)
        self.events: list[tuple[float, int, Question, Turn, float]] = []
        self.exchanges: list[Exchange] = []
        self.counts: dict[str, int] = {}
        self.order = itertools.count()
        self.most_in_flight = self.open = 0

    def play(self, requests: Sequence[Request], *, until: float = math.inf) -> list[Question]:
        questions = [question_of(place, request) for place, request in enumerate(requests)]
        for question in questions:
            self.dispatch.add(question)
        self.open = len(questions)
        while self.open and self.now < until:
            later = self.send_all()
            if not self.events and self.dispatch.ending is not None:
                break
            self.now = max(self.now, min(later, self.events[0][0] if self.events else math.inf))
            assert self.now < math.inf, "rows wait for ever"
            while self.events and self.events[0][0] <= self.now:
                self.come_back(*heapq.heappop(self.events))
        return questions

    def send_all(self) -> float:
        """Send what may be sent now; give the time when to look again."""
        while not isinstance(move := self.dispatch.next(self.now), Later):
            identifier = str(json.loads(move.outgoing.body)["data"]["id"])
            self.counts[identifier] = self.counts.get(identifier, 0) + 1
            turn = self.provider(identifier, self.counts[identifier], self.now)
            heapq.heappush(self.events, (self.now + turn.latency, next(self.order), move, turn, self.now))
            self.most_in_flight = max(self.most_in_flight, len(self.events))
        return move.until

    def come_back(self, at: float, _: int, question: Question, turn: Turn, sent: float) -> None:
        identifier = str(json.loads(question.outgoing.body)["data"]["id"])
        self.exchanges.append(Exchange(identifier, sent, at, turn.came, self.dispatch.outage.open))
        if isinstance(turn.came, Failure):
            charged = self.dispatch.failure_came(question, turn.came, at)
            leaves = self.dispatch.failure_kept(question, turn.came, charged=charged)
        else:
            charged = self.dispatch.charges(question)
            leaves = self.dispatch.reply_kept(question, CLIENT.read(turn.came), charged=charged, now=at)
        self.open -= question.ended is not None
        if leaves and question.ended is None:
            question.outgoing = CLIENT.compose(question.row.request)
            question.failures = question.input_bound = 0
            self.dispatch.add(question)


@dataclass(frozen=True, slots=True)
class Heard:
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Listening:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    heard: list[Heard] = field(default_factory=list)
    url: str = ""


@contextmanager
def listening() -> Iterator[Listening]:
    told = Listening()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            told.heard.append(Heard(self.path, {k.lower(): v for k, v in self.headers.items()}, content))
            self.send_response(told.status)
            for name, value in {"Content-Length": str(len(told.body)), **told.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(told.body)

        def log_message(self, *parts: object) -> None:
            """Say nothing."""

    with served(Handler) as told.url:
        yield told
