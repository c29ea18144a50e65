"""Rows answered in batches: each bought once, each in one outcome, whatever the provider and whoever kills do."""

import hashlib
import json
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import BudgetReached, IntegrityError, UnusableReplies, UpstreamUnavailable, UsageError
from culturekit.llm import batch_runner
from culturekit.llm.batch_runner import Clock, JobBook, Jobs, Planned, _Plan
from culturekit.llm.batches import BatchLimits, BatchResult, Job, JobState
from culturekit.llm.client import Failure, FailureKind, Image, Outgoing, Rate, Reply, Request, Usage
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Entry, Journal
from culturekit.llm.ledger import JournalPlace, read_ledger, spent_in_run, unsure_of
from culturekit.llm.rows import Answered, ReplyWatch
from culturekit.llm.usage import dollars, input_bound
from tests.effort import SHARED_FIXTURE, examples
from tests.llm.fake_client import FakeClient, answer_for, questions

SMALL = BatchLimits(rows=4, size=100_000)


class Killed(BaseException):
    """The process is no more."""


@dataclass
class TestClock(Clock):
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


@dataclass
class Desk:
    """Everything that outlives a process: the folder of the journal, and the shop."""

    folder: Path
    shop: Shop
    clock: TestClock
    limits: BatchLimits = SMALL
    files: bool = True

    def ask(self, requests: Sequence[Request], *, run: str = "run", **more: Any) -> list[Answered]:
        with Journal(self.folder) as journal:
            return list(self.answers(journal, requests, run=run, **more))

    def answers(
        self,
        journal: Journal,
        requests: Sequence[Request],
        *,
        run: str,
        tick: Callable[[], None] = lambda: None,
        options: AskOptions = AskOptions(),  # noqa: B008
    ) -> Iterator[Answered]:
        client = FakeClient(rate=Rate(1.0, 2.0))
        batches = FakeBatches(client, self.shop, self.limits, tick, self.files)
        yield from AskEngine(client, journal, options, run=run, transport=Jobs(batches, clock=self.clock)).ask_all(
            requests
        )
        assert batches.closed == 1

    def outcomes(self, count: int, **more: Any) -> list[str]:
        return [answer.outcome for answer in self.ask(questions(count), **more)]

    def dies_at(self, step: int, count: int) -> None:
        steps = iter(range(10**6))

        def tick() -> None:
            if next(steps) == step:
                raise Killed

        with pytest.raises(Killed):
            self.ask(questions(count), tick=tick)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "journal", Shop(), TestClock())


@pytest.mark.parametrize(("limits", "most"), [(SMALL, 4), (BatchLimits(rows=100, size=500), 4)])
def test_jobs_are_cut_by_rows_and_bytes(desk: Desk, limits: BatchLimits, most: int) -> None:
    desk.limits = limits
    assert all(answer.outcome == "ok" and answer.bought for answer in desk.ask(questions(10)))
    assert len(desk.shop.jobs) > 2 and set(desk.shop.bought.values()) == {1}
    assert max(len(sold.names) for sold in desk.shop.jobs.values()) <= most
    assert max(map(len, desk.shop.uploads.values())) <= limits.size


def test_images_wait_for_their_jobs_on_disk_and_reach_their_lines_whole(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_runner, "CHUNK", 4)
    size, count = 100_000, 60
    sent: set[tuple[str, str]] = set()

    class Noting(FakeBatches):
        def compose(self, request: Request) -> Outgoing:
            return replace(super().compose(request), images=request.images)

        def line(self, name: str, outgoing: Outgoing) -> bytes:
            sent.update((image.sha256, hashlib.sha256(image.content).hexdigest()) for image in outgoing.images)
            return super().line(name, outgoing)

    def requests() -> Iterator[Request]:
        for number, request in enumerate(questions(count)):
            content = number.to_bytes(4) * (size // 4)
            yield replace(request, images=(Image(content, "image/png", hashlib.sha256(content).hexdigest(), 1, 1),))

    bad = {"Q7": b'{"text": "no", "in": 1, "out": 1, "stop": "end"}'}
    desk.shop.behaviour = lambda identifier, _: bad.pop(identifier, None) or answer_for(identifier)
    batches = Noting(FakeClient(rate=Rate(1.0, 2.0)), desk.shop)
    tracemalloc.start()
    try:
        with Journal(desk.folder) as journal:
            jobs = Jobs(batches, clock=desk.clock)
            engine = AskEngine(batches.client, journal, AskOptions(), run="run", transport=jobs)
            outcomes = Counter(answer.outcome for answer in engine.ask_all(requests()))
        assert tracemalloc.get_traced_memory()[1] < count * size / 2
    finally:
        tracemalloc.stop()
    assert outcomes == {"ok": count - 1, "repaired": 1}
    assert len(sent) == count and all(wanted == found for wanted, found in sent)


def test_a_row_that_fits_into_no_job_is_invalid_and_costs_nothing(desk: Desk) -> None:
    big = replace(questions(1)[0], data={"id": "Q0", "label": "x" * 2000})
    desk.limits = BatchLimits(rows=100, size=1000)
    answers = desk.ask([big, *questions(3)[1:]])
    assert [answer.outcome for answer in answers] == ["invalid", "ok", "ok"]
    assert desk.shop.bought == {"Q1": 1, "Q2": 1}


def test_results_that_contradict_each_other_are_not_believed(desk: Desk) -> None:
    def contradict(results: list[BatchResult]) -> list[BatchResult]:
        return [*results, replace(results[2], raw=answer_for("Q2", verdict="remove"))]

    desk.shop.plans = [Plan(edit=contradict)]
    answers = desk.ask(questions(4))
    assert [answer.value.verdict for answer in answers] == ["keep"] * 4  # type: ignore[union-attr]
    assert desk.shop.bought == {"Q0": 1, "Q1": 1, "Q2": 2, "Q3": 1}


def test_an_invalid_reply_is_repaired_in_the_next_round(desk: Desk) -> None:
    first = {"Q1": answer_for("Q7"), "Q2": b'{"text": "no", "in": 1, "out": 1, "stop": "end"}'}
    desk.shop.behaviour = lambda identifier, _: first.pop(identifier, None) or answer_for(identifier)
    assert desk.outcomes(4) == ["ok", "repaired", "repaired", "ok"]
    assert [len(sold.names) for sold in desk.shop.jobs.values()] == [4, 2]
    lines = read_ledger([JournalPlace("filter", desk.folder / "replies.sqlite", finished=True)]).lines
    assert {line.outcome: line.requests for line in lines} == {"ok": 2, "repaired": 4}


def test_a_repair_that_could_not_be_read_is_paid_for_as_online(desk: Desk) -> None:
    replies = [b'{"text": "no", "in": 1, "out": 1, "stop": "end"}', b"<html>", answer_for("Q0")]
    shop, online_shop = iter(replies), iter(replies)
    desk.shop.behaviour = lambda *_: next(shop)
    with Journal(desk.folder.with_name("online")) as journal:
        online = list(
            AskEngine(FakeClient(lambda *_: next(online_shop)), journal, AskOptions(), run="run").ask_all(questions(1))
        )
    answers = desk.ask(questions(1))
    assert [answer.outcome for answer in answers] == [answer.outcome for answer in online] == ["repaired"]
    for folder in (desk.folder, desk.folder.with_name("online")):
        lines = read_ledger([JournalPlace("filter", folder / "replies.sqlite", finished=True)]).lines
        assert {line.outcome: line.requests for line in lines} == {"repaired": 3}


def test_a_batch_whose_first_replies_are_no_answers_is_not_repaired_unless_somebody_goes_on(desk: Desk) -> None:
    desk.limits = BatchLimits(rows=100, size=100_000)
    desk.shop.behaviour = lambda *_: b'{"text": "no", "in": 1, "out": 1, "stop": "end"}'
    with pytest.raises(UnusableReplies, match="30 of the first 30 rows"):
        desk.ask(questions(30), options=AskOptions(watch=ReplyWatch()))
    assert sum(desk.shop.bought.values()) == 30
    watch = ReplyWatch(go_on=True)
    assert desk.outcomes(30, options=AskOptions(watch=watch)) == ["invalid"] * 30
    assert (sum(desk.shop.bought.values()), watch.rows) == (60, 30)


@pytest.mark.parametrize("kind", ["busy", "server", "timeout"])
def test_a_hint_of_a_day_ends_the_run_at_once_and_the_next_run_asks(desk: Desk, kind: FailureKind) -> None:
    desk.shop.creations = [Failure(kind, "full", status=503, wait=86_400.0)]
    began = desk.clock.time
    with pytest.raises(UpstreamUnavailable, match="asks to wait 86400 s, longer than the patience"):
        desk.ask(questions(2))
    assert desk.clock.time - began < 60.0
    assert desk.outcomes(2) == ["ok", "ok"]
    assert set(desk.shop.bought.values()) == {1}


def test_a_clock_that_was_two_years_ahead_holds_nothing_up(desk: Desk) -> None:
    two_years, began = 2 * 365 * 86_400.0, desk.clock.time
    desk.clock.time += two_years
    desk.dies_at(2, 2)
    desk.clock.time -= two_years
    assert desk.outcomes(2) == ["ok", "ok"]
    assert desk.clock.time - began < 300.0


def test_pauses_between_looks_grow_up_to_a_minute(desk: Desk) -> None:
    desk.shop.plans = [Plan(polls=20)]
    desk.ask(questions(2))
    assert desk.clock.slept == sorted(desk.clock.slept)
    assert desk.clock.slept[0] == 1.0 and desk.clock.slept[-1] == 60.0 and len(desk.clock.slept) == 19


def test_a_crowded_provider_costs_no_tries_but_patience_with_it_ends(desk: Desk) -> None:
    crowded = Plan(state="failed", edit=lambda results: [], job=Job("", "failed", kind="busy", detail="too much"))
    desk.shop.plans = [crowded] * 3
    assert desk.outcomes(2, options=AskOptions(tries=2)) == ["ok", "ok"]
    desk.shop.plans = [crowded] * 100
    with pytest.raises(UpstreamUnavailable, match="too much"):
        desk.ask(questions(4))


def test_lines_that_a_provider_names_are_invalid_and_the_others_asked_so_many_times_again(desk: Desk) -> None:
    named = Job("", "failed", rejected=((2, "bad_line: no"),))
    desk.shop.plans = [Plan(state="failed", edit=lambda results: [], job=named)]
    assert desk.outcomes(4) == ["ok", "invalid", "ok", "ok"]
    desk.shop.behaviour = lambda identifier, _: BatchResult("", "server", 500, b"{}")
    assert desk.outcomes(6, options=AskOptions(tries=3))[4:] == ["exhausted"] * 2
    assert desk.shop.bought["Q4"] == desk.shop.bought["Q5"] == 3


def test_a_wrong_key_ends_the_run_and_can_be_mended_a_server_that_is_not_there_is_asked_again(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.shop.creations = [Failure("fatal", "wrong key", status=401)]
    with pytest.raises(UsageError, match="wrong key"):
        desk.ask(questions(2))
    desk.shop.creations = [Failure("connection", "connection refused", sent=False)] * 3
    assert desk.outcomes(2) == ["ok", "ok"]
    assert "connection refused: server does not answer, retrying for 15 minutes" in caplog.text
    assert "the server answers again" in caplog.text
    assert set(desk.shop.bought.values()) == {1}
    assert desk.shop.listings == 0  # what was refused is not looked for


def test_a_budget_is_never_passed_and_what_it_buys_is_kept(desk: Desk) -> None:
    client = FakeClient(rate=Rate(1.0, 2.0))
    worst = 0.5 * (input_bound(client.compose(questions(1)[0]), client.identity) * 1.0 + 20 * 2.0) / 1e6
    each = 0.5 * (50 * 1.0 + 10 * 2.0) / 1e6
    for process in ("first", "resumed"):
        got: list[Answered] = []
        with Journal(desk.folder) as journal, pytest.raises(BudgetReached):
            got.extend(desk.answers(journal, questions(9), run="run", options=AskOptions(budget=worst + 4.5 * each)))
        assert [answer.value.id for answer in got] == ["Q0", "Q1", "Q2", "Q3", "Q4"]  # type: ignore[union-attr]
        assert sum(desk.shop.bought.values()) == 5, process
    assert desk.outcomes(9) == ["ok"] * 9
    assert set(desk.shop.bought.values()) == {1}


@pytest.mark.parametrize(("rows", "run", "jobs"), [(8, "run", [4, 1, 3]), (4, "other", [4])])
def test_a_job_under_way_is_waited_for_and_what_it_may_cost_is_not_there_for_others(
    desk: Desk, rows: int, run: str, jobs: list[int]
) -> None:
    client = FakeClient(rate=Rate(1.0, 2.0))
    worst = 0.5 * (input_bound(client.compose(questions(1)[0]), client.identity) * 1.0 + 20 * 2.0) / 1e6
    desk.shop.plans = [Plan(polls=5)]
    desk.dies_at(5, 4)
    assert desk.outcomes(rows, run=run, options=AskOptions(budget=5.5 * worst)) == ["ok"] * rows
    assert [len(sold.names) for sold in desk.shop.jobs.values()] == jobs
    assert set(desk.shop.bought.values()) == {1}


def hostile(identifier: str, time: int) -> BatchResult | bytes:
    number = int(identifier[1:])
    if time == 1 and number % 5 == 1:
        return BatchResult("", "server", 500, b"{}")
    if number % 7 == 2 and time == 1:
        return b'{"text": "nonsense", "in": 5, "out": 5, "stop": "end"}'
    if number % 7 == 3:
        return b'{"text": "", "in": 5, "out": 5, "stop": "refusal"}'
    return answer_for(identifier)


class KilledJournal(Journal):
    """A journal whose process can be killed before and after each commit."""

    tick: Callable[[], None] = staticmethod(lambda: None)

    def remember(self, name: str, value: bytes) -> None:
        self.tick()
        super().remember(name, value)
        self.tick()

    def append_all(self, entries: Sequence[Entry], facts: Sequence[tuple[str, bytes | None]] = ()) -> list[int]:
        self.tick()
        numbers = super().append_all(entries, facts)
        self.tick()
        return numbers


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None, suppress_health_check=SHARED_FIXTURE)
@given(
    kills=st.lists(st.integers(0, 60), max_size=6),
    files=st.booleans(),
    rows=st.integers(1, 5),
    unsaid=st.lists(st.sampled_from(["", "unsaid"]), max_size=4),
)
def test_killed_anywhere_any_number_of_times_nothing_is_bought_twice(
    tmp_path_factory: pytest.TempPathFactory, kills: list[int], files: bool, rows: int, unsaid: list[str]
) -> None:
    def answered(kills: list[int], unsaid: list[Failure | str]) -> tuple[list[Answered], Shop, list[tuple[str, int]]]:
        folder = tmp_path_factory.mktemp("desk") / "journal"
        shop = Shop(behaviour=hostile, creations=unsaid)
        clock = TestClock()
        for kill in [*kills, None]:
            left = [kill]

            def tick(left: list[int | None] = left) -> None:
                if left[0] is not None:
                    left[0] -= 1
                    if left[0] < 0:
                        raise Killed

            client = FakeClient()
            batches = FakeBatches(client, shop, BatchLimits(rows, 100_000), tick, files)
            try:
                with KilledJournal(folder) as journal:
                    journal.tick = tick
                    engine = AskEngine(client, journal, AskOptions(), run="run", transport=Jobs(batches, clock=clock))
                    answers = list(engine.ask_all(questions(11)))
                    return answers, shop, sorted(journal.reader.execute("SELECT key, attempt FROM exchanges"))
            except Killed:
                continue
        raise AssertionError

    undisturbed, calm, calm_kept = answered([], [])
    disturbed, shop, disturbed_kept = answered(kills, list(unsaid))
    assert [replace(answer, bought=True) for answer in disturbed] == [
        replace(answer, bought=True) for answer in undisturbed
    ]
    assert shop.bodies == calm.bodies
    assert disturbed_kept == calm_kept


class Uncounted(FakeClient):
    def read(self, raw: bytes) -> Reply:
        return replace(super().read(raw), usage=Usage(0, 10, counted="here"))


class DyingJournal(Journal):
    def append_all(self, entries: Sequence[Entry], facts: Sequence[tuple[str, bytes | None]] = ()) -> list[int]:
        super().append_all(entries, facts)
        raise Killed


def test_results_that_nobody_counted_are_owed_at_their_worst_also_when_a_kill_follows_them(tmp_path: Path) -> None:
    client, shop = Uncounted(), Shop()

    def ask(journal: Journal, count: int) -> list[Answered]:
        options, jobs = AskOptions(budget=1.0), Jobs(FakeBatches(client, shop), clock=TestClock())
        return list(AskEngine(client, journal, options, run="run", transport=jobs).ask_all(questions(count)))

    with pytest.raises(Killed), DyingJournal(tmp_path) as dying:
        ask(dying, 2)
    with Journal(tmp_path) as journal:
        assert len(ask(journal, 3)) == 3
        reserved = sum(record.reserved for record in JobBook(journal).records.values())
    owed = dollars(unsure_of(journal.path, "run").picodollars)
    assert owed > 0.0 and spent_in_run(journal.path, "run") + owed == pytest.approx(reserved)
    assert shop.bought == {"Q0": 1, "Q1": 1, "Q2": 1}


@pytest.mark.parametrize("what", ["rows", "bodies"])
def test_a_job_whose_rows_or_bodies_are_gone_is_no_sound_journal(what: str, tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        book, plan = JobBook(journal), _Plan(rows=[Planned(b"a" * 32, 1)])
        plan.lines.close()
        book.begin(plan, run="run", begun=7.0, upload="file-1")
        journal.write_now([(f"batch/1/{what}", None)])
        with pytest.raises(IntegrityError, match=f"the {what} of batch job 1 are not in the journal"):
            list(getattr(JobBook(journal), what)(book.records[1]))
