"""A provider without a wire: answers from a script, counts what it was asked, and says what it was asked how often."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from culturekit.llm.client import Failure, Identity, Outgoing, Quota, Rate, Reply, Request, Usage


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is answered about a row."""

    id: str
    verdict: str


Behaviour = Callable[[str, int], bytes | Failure]  # what happens to a row's id at its n-th request, from 1


def answer_for(identifier: str, *, verdict: str = "keep") -> bytes:
    """Give the bytes of a good reply."""
    text = json.dumps({"id": identifier, "verdict": verdict})
    return json.dumps({"text": text, "in": 50, "out": 10, "stop": "end"}).encode()


def questions(count: int) -> list[Request]:
    """Give requests about rows Q0, Q1 and so on."""
    return [
        Request("test", "Judge.", {"id": f"Q{number}"}, Verdict, {"id": (f"Q{number}",)}, max_tokens=20)
        for number in range(count)
    ]


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
