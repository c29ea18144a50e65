"""A provider of batches without a wire, that can be told to fail, and whose clients can be killed anywhere."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from culturekit.llm.batch_runner import Clock
from culturekit.llm.batches import BatchLimits, BatchResult, Job, JobState
from culturekit.llm.client import Failure, Outgoing, Request
from tests.llm.fake_client import FakeClient, answer_for

SMALL = BatchLimits(rows=4, size=100_000)


class Killed(BaseException):
    """The process is no more."""


@dataclass
class TestClock(Clock):
    """Time passes only when somebody sleeps."""

    __test__ = False

    time: float = 1_000_000.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


@dataclass(frozen=True)
class Plan:
    """How a job goes: after some polls it ends; `edit` changes its results."""

    polls: int = 1
    state: JobState = "done"
    edit: Callable[[list[BatchResult]], list[BatchResult]] = lambda results: results
    counted: bool = True
    job: Job | None = None


@dataclass
class SoldJob:
    """A job at the provider."""

    job: Job
    names: list[str]
    plan: Plan
    results: list[BatchResult]
    polls: int = 0


Behaviour = Callable[[str, int], BatchResult | bytes]  # what becomes of a row's id at its n-th purchase, from 1


@dataclass
class Shop:
    """What the provider has: uploads, jobs, and a count of what was bought of it."""

    behaviour: Behaviour = lambda identifier, _: answer_for(identifier)
    plans: list[Plan] = field(default_factory=list)
    creations: list[Failure | str] = field(default_factory=list)
    uploads: dict[str, bytes] = field(default_factory=dict)
    jobs: dict[str, SoldJob] = field(default_factory=dict)
    bought: Counter[str] = field(default_factory=Counter)
    bodies: Counter[str] = field(default_factory=Counter)
    listings: int = 0

    def sell(self, lines: bytes, tag: str) -> Job:
        """Make a job; all its rows are bought."""
        names, results = [], []
        for line in lines.splitlines():
            row = json.loads(line)
            name, identifier = row["name"], row["body"]["data"]["id"]
            self.bought[identifier] += 1
            self.bodies[name] += 1
            came = self.behaviour(identifier, self.bodies[name])
            results.append(replace(came, name=name) if isinstance(came, BatchResult) else reply(name, came))
            names.append(name)
        plan = self.plans.pop(0) if self.plans else Plan()
        job = Job(f"job-{len(self.jobs) + 1}", "waiting", tag=tag, created=float(len(self.jobs)))
        self.jobs[job.number] = SoldJob(job, names, plan, plan.edit(results))
        return job


def reply(name: str, raw: bytes) -> BatchResult:
    """Make the result of a row that was answered."""
    return BatchResult(name, "reply", 200, raw)


@dataclass
class FakeBatches:
    """One process's way to the shop; `tick` is called before and after whatever the shop does."""

    client: FakeClient
    shop: Shop
    limits: BatchLimits = SMALL
    tick: Callable[[], None] = lambda: None
    files: bool = True
    closed: int = 0

    def compose(self, request: Request) -> Outgoing:
        return self.client.compose(request)

    def line(self, name: str, outgoing: Outgoing) -> bytes:
        return b'{"name":"' + name.encode() + b'","body":' + outgoing.body + b"}\n"

    async def upload(self, lines: BinaryIO, *, size: int, tag: str) -> str:
        self.tick()
        if not self.files:
            return ""
        lines.seek(0)
        name = f"file-{len(self.shop.uploads) + 1}"
        self.shop.uploads[name] = lines.read()
        assert len(self.shop.uploads[name]) == size
        self.tick()
        return name

    async def create(self, lines: BinaryIO, *, upload: str, tag: str) -> Job:
        self.tick()
        fault = self.shop.creations.pop(0) if self.shop.creations else ""
        if isinstance(fault, Failure):
            raise fault
        lines.seek(0)
        job = self.shop.sell(self.shop.uploads[upload] if upload else lines.read(), tag)
        self.tick()
        if fault == "unsaid":
            raise Failure("connection", "cut")
        return job

    async def find(self, tag: str) -> list[Job]:
        self.tick()
        self.shop.listings += 1
        return [sold.job for sold in self.shop.jobs.values() if sold.job.tag == tag]

    async def withdraw(self, upload: str) -> None:
        self.tick()
        self.shop.uploads.pop(upload, None)

    async def poll(self, number: str) -> Job:
        self.tick()
        sold = self.shop.jobs[number]
        sold.polls += 1
        if sold.polls < sold.plan.polls:
            return replace(sold.job, state="running")
        counted = len(sold.names) if sold.plan.counted else None
        ended = sold.plan.job or sold.job
        return replace(ended, number=number, tag=sold.job.tag, state=sold.plan.state, counted=counted)

    async def results(self, job: Job) -> AsyncIterator[BatchResult | None]:
        self.tick()
        for result in self.shop.jobs[job.number].results:
            yield result

    async def close(self) -> None:
        self.closed += 1
