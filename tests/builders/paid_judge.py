"""A judge that has to be paid, without a network: it keeps count of what it is sent."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from culturekit.core.digests import canonical_json
from culturekit.llm.client import Failure, Identity, Outgoing, Quota, Rate, Reply, Request, Usage

NO_QUOTA, CHEAP = Quota(), Rate(1.0, 2.0)


def by_number(qid: str) -> str | Failure | Reply:
    """Judge by the number of the item, so that every way to end is met."""
    number = int(qid[1:])
    ways: Mapping[int, str | Failure | Reply] = {
        1: f'{{"id":"{qid}","verdict":"remove"}}', 2: f'{{"id":"{qid}","verdict":"review"}}',
        3: Reply("I cannot.", stop="refusal"), 4: Reply('{"id":', stop="length"), 5: Reply("", stop="blocked"),
        6: Failure("rejected", "no such thing", status=400), 7: f'{{"id":"Q{number + 1}","verdict":"keep"}}',
    }  # fmt: skip
    return ways.get(number % 10, f'{{"id":"{qid}","verdict":"keep"}}')


@dataclass
class PaidJudge:
    """Answers by the id in the data; `fails_after` makes the run end with a failure that no waiting mends."""

    judge: Callable[[str], str | Failure | Reply] = by_number
    fails_after: int | None = None
    sent: Counter[str] = field(default_factory=Counter)
    model: str = "paid-1"
    caveat: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    quota: Quota = NO_QUOTA
    rate: Rate | None = CHEAP

    @property
    def identity(self) -> Identity:
        return Identity("paid", "http://127.0.0.1/v1", "/judge", self.model)

    def compose(self, request: Request) -> Outgoing:
        body = canonical_json({"system": request.instructions, "data": dict(request.data)})
        return Outgoing(body, request.images, request.sample, request.max_tokens)

    async def send(self, outgoing: Outgoing) -> bytes:
        if self.fails_after is not None and self.sent.total() >= self.fails_after:
            raise Failure("fatal", "the key was withdrawn", status=401)
        found = re.search(rb'"id":"(Q[0-9]+)"', outgoing.body)
        assert found is not None
        qid = found[1].decode()
        self.sent[qid] += 1
        said = self.judge(qid)
        if isinstance(said, Failure):
            raise Failure(said.kind, said.detail, status=said.status)
        reply = said if isinstance(said, Reply) else Reply(said)
        return msgspec.json.encode({"text": reply.text, "stop": reply.stop})

    def read(self, raw: bytes) -> Reply:
        said = msgspec.json.decode(raw)
        return Reply(said["text"], Usage(100, 10), said["stop"])

    async def close(self) -> None:
        """There is nothing to close."""
