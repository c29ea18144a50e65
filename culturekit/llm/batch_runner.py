"""Requests answered in batches, in their order, as the engine answers them one by one."""

import asyncio
import hashlib
import logging
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, Literal, TypeAlias, TypeVar, cast

import msgspec

from culturekit.core.addresses import check_sending
from culturekit.core.errors import CultureKitError, IntegrityError, UpstreamUnavailable, UsageError
from culturekit.core.work import Progress
from culturekit.llm.batches import ENDED, BatchClient, Batched, BatchResult, Job
from culturekit.llm.client import Client, Failure, FailureKind, Outgoing, Request, Usage, for_storage
from culturekit.llm.dispatch import APART, LONG_HOLD, answers_again, given_up, retrying, run_ended_by, spoken
from culturekit.llm.endpoints import is_elsewhere
from culturekit.llm.engine import NOTHING, Asker, AskOptions
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import Entry, key_of
from culturekit.llm.rows import Answered, Question, Row
from culturekit.llm.usage import MOST_TOKENS, fully_counted

logger = logging.getLogger(__name__)

_Thing = TypeVar("_Thing")
_Phase: TypeAlias = Literal["sending", "open", "collected", "void"]

_AT_ONCE = 500  # rows looked up in the journal together, and results in one commit
_SUSPICIOUS = 10  # so many lines of which none can be read are not the fault of the lines
_READINGS = 3  # how often the results are read when there are fewer of them than the provider counted
_IN_MEMORY = 8_000_000  # lines beyond as many bytes wait on disk
_KEY_BYTES = hashlib.sha256().digest_size
_ROW_BYTES = _KEY_BYTES + 4

_PASSING = frozenset({"busy", "server", "timeout", "connection"})
_UNCLEAR = frozenset({"server", "timeout", "connection"})  # failures after which the job may be there all the same
_NO_SUCH_PLACE = frozenset({404, 405, 501})  # statuses of a server that does not know what it was asked for
_MISSING: Mapping[str, FailureKind] = {"expired": "timeout", "cancelled": "timeout", "failed": "server"}


class Clock:
    """A clock that starts at the time of the system and never jumps. Tests bring their own."""

    def __init__(self) -> None:
        """Start the clock."""
        self.began = time.time() - time.monotonic()

    def now(self) -> float:
        """Give the seconds since 1970."""
        return self.began + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to wait between two looks at the jobs, in seconds.

    `settle` is how long after a creation that nobody saw the end of a job may still turn up at the provider.
    """

    first: float = 1.0
    longest: float = 60.0
    growth: float = 1.5
    settle: float = 10.0

    def after(self, pause: float) -> float:
        """Return the pause that follows one; the first follows none."""
        return min(max(self.first, pause * self.growth), self.longest)


class _Caller:
    """Calls a provider until it answers; what one call learns about waiting holds for all of them."""

    def __init__(self, clock: Clock, pauses: Pauses, *, patience: float, model: str) -> None:
        self.model, self.clock, self.pauses, self.patience = model, clock, pauses, patience
        self.closed_until = self.asked_until = 0.0
        self.last, self.spoke = "", -APART
        self.failing_since: float | None = None

    async def call(self, ask: Callable[[], Awaitable[_Thing]], *, retried: frozenset[str] = _PASSING) -> _Thing:
        """Ask again while what went wrong may pass."""
        check_sending(self.model)
        began, pause, patience = self.clock.now(), 0.0, self.patience
        while True:
            await self._turn(began, patience)
            try:
                answer = await ask()
            except Failure as failure:
                now, pause = self.clock.now(), self.pauses.after(pause)
                if failure.wait is not None:
                    self.asked_until = max(self.asked_until, now + failure.wait)
                self.hold(pause if failure.wait is None else failure.wait)
                self.last, patience = failure.detail, min(self.patience, failure.patience or self.patience)
                if failure.sent and failure.kind not in retried:
                    raise
                self.failing_since = self.failing_since or now
                if now - self.spoke >= APART:
                    self.spoke = now
                    logger.warning("%s: %s", self.model, retrying(self.last, patience))
            else:
                if self.failing_since is not None:
                    logger.warning("%s: %s", self.model, answers_again(self.clock.now() - self.failing_since))
                self.failing_since, self.spoke = None, -APART
                return answer

    async def _turn(self, began: float, patience: float) -> None:
        """Wait until the provider wants to hear from us again."""
        if self.closed_until - began > patience:
            asked = self.asked_until - self.clock.now()
            raise given_up(self.model, patience=patience, held_for=asked, last=self.last)
        if (held := self.closed_until - self.clock.now()) >= LONG_HOLD:
            logger.warning("%s: nothing is sent for %s; Ctrl-C keeps everything", self.model, spoken(held))
        while (left := self.closed_until - self.clock.now()) > 0:
            await self.clock.sleep(left)

    def hold(self, seconds: float) -> None:
        self.closed_until = max(self.closed_until, self.clock.now() + seconds)


@dataclass(frozen=True, slots=True)
class Planned:
    """A row of a job: the content key of its request, and which attempt at it this is."""

    key: bytes
    attempt: int


@dataclass(frozen=True, slots=True)
class _BatchRecord:
    """What is written down of a job; `number` is ours, `job` the provider's, `begun` when it began to be created."""

    number: int
    run: str
    phase: _Phase
    begun: float
    reserved: float
    upload: str = ""
    job: str = ""


class JobBook:
    """The jobs of one journal, in the order in which they were planned."""

    def __init__(self, journal: Journal) -> None:
        """Read what is written down."""
        self.journal = journal
        self.records: dict[int, _BatchRecord] = {}
        while (raw := journal.recall(f"batch/{len(self.records) + 1}/job")) is not None:
            record = msgspec.json.decode(raw, type=_BatchRecord)
            self.records[record.number] = record

    def tag(self, run: str, number: int | None = None) -> str:
        """Name a job, or the one that will be begun next, as the provider knows it."""
        return f"culturekit-{run}-{number or len(self.records) + 1}"

    def begin(self, plan: "_Plan", *, run: str, begun: float, upload: str) -> _BatchRecord:
        """Write down that a job is about to be created, its rows and their bodies first."""
        number = len(self.records) + 1
        packed = b"".join(row.key + row.attempt.to_bytes(_ROW_BYTES - _KEY_BYTES, "big") for row in plan.rows)
        self.journal.remember(f"batch/{number}/rows", packed)
        self.journal.remember(f"batch/{number}/bodies", b"".join([*plan.pressed, plan.press.flush()]))
        return self.move(_BatchRecord(number, run, "sending", begun, plan.reserved, upload), "sending")

    def move(self, record: _BatchRecord, phase: _Phase, *, job: str = "") -> _BatchRecord:
        """Write down how far a job is."""
        record = replace(record, phase=phase, job=job or record.job)
        self.journal.remember(f"batch/{record.number}/job", msgspec.json.encode(record))
        self.records[record.number] = record
        return record

    def unfinished(self) -> list[_BatchRecord]:
        """List the jobs whose results are not all in the journal."""
        return [record for record in self.records.values() if record.phase in {"sending", "open"}]

    def rows(self, record: _BatchRecord) -> list[Planned]:
        """Read the rows of a job, in the order of its lines."""
        packed = self._recalled(record, "rows")
        rows = (packed[start : start + _ROW_BYTES] for start in range(0, len(packed), _ROW_BYTES))
        return [Planned(row[:_KEY_BYTES], int.from_bytes(row[_KEY_BYTES:], "big")) for row in rows]

    def bodies(self, record: _BatchRecord) -> Iterator[bytes]:
        """Read the bodies of a job's requests, in the order of its lines."""
        return iter(zlib.decompress(self._recalled(record, "bodies")).splitlines())

    def _recalled(self, record: _BatchRecord, what: str) -> bytes:
        value = self.journal.recall(f"batch/{record.number}/{what}")
        if value is None:
            raise IntegrityError(
                f"the {what} of batch job {record.number} are not in the journal",
                hint="Put a backup of the journal in its place; without them the results of the job cannot be placed.",
            )
        return value


@dataclass(slots=True)
class _Plan:
    """A job to be: its lines, whose they are, their bodies pressed together, and what they can cost at worst."""

    lines: BinaryIO = field(
        default_factory=lambda: cast(BinaryIO, tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115
    )
    rows: list[Planned] = field(default_factory=list)
    press: Any = field(default_factory=lambda: zlib.compressobj(6))
    pressed: list[bytes] = field(default_factory=list)
    size: int = 0
    reserved: float = 0.0

    def add(self, question: Question, line: bytes, cost: float) -> None:
        """Put a row in; canonical JSON has no line feed in it."""
        self.lines.write(line)
        self.rows.append(Planned(question.key, question.row.tries + 1))
        self.pressed.append(self.press.compress(question.outgoing.body + b"\n"))
        self.size += len(line)
        self.reserved += cost


@dataclass(slots=True)
class _Gathered:
    """The results of one job by name; a name that came twice with different contents is in `conflicting`."""

    results: dict[str, BatchResult] = field(default_factory=dict)
    conflicting: dict[str, list[BatchResult]] = field(default_factory=dict)
    unknown: int = 0
    unreadable: int = 0

    def take(self, result: BatchResult, client: Client) -> None:
        """Add a result, or see that it is there already."""
        first = self.results.setdefault(result.name, result)
        if first is not result and not _same(first, result, client):
            self.conflicting.setdefault(result.name, [first]).append(result)

    def closed(self, job: Job, rows: Iterable[Planned]) -> Iterator[tuple[Planned, BatchResult]]:
        """Yield each row of a job exactly one result.

        Of a row with conflicting results none is believed: it counts as a failure that may pass, as a missing one does.
        """
        rejected = dict(job.rejected)
        for line, row in enumerate(rows, start=1):
            name = row.key.hex()
            if several := self.conflicting.get(name):
                raw = msgspec.json.encode({"conflicting": [one.raw.decode("utf-8", "replace") for one in several]})
                yield row, BatchResult(name, "server", 200, raw, "results that contradict", paid=several[0].billed)
            elif name in self.results:
                yield row, self.results[name]
            elif line in rejected:
                raw = msgspec.json.encode({"rejected": rejected[line]})
                yield row, BatchResult(name, "rejected", 400, raw, rejected[line])
            else:
                kind = job.kind if job.state == "failed" else _MISSING.get(job.state, "server")
                raw = msgspec.json.encode({"missing": job.state})
                yield row, BatchResult(name, kind, 0, raw, f"no result in a job that {job.state}")


def _same(one: BatchResult, other: BatchResult, client: Client) -> bool:
    """Check whether two results of a row say the same; numbers of the provider's own may differ."""
    if (one.kind, one.status, one.raw) == (other.kind, other.status, other.raw):
        return True
    if one.kind != "reply" or other.kind != "reply":
        return False
    first, second = client.read(one.raw), client.read(other.raw)
    return first.stop != "unreadable" and (first.text, first.stop) == (second.text, second.stop)


def batches_of(client: Client) -> BatchClient:
    """Return the batches of a client; no SDK is imported yet."""
    if isinstance(client, Batched):
        return client.batches()
    raise UsageError(
        f"{client.model} cannot be asked in batches",
        expected="a model of openai or google",
        hint="Ask it one by one: leave out batch=1.",
    )


class BatchRunner(Asker):
    """Takes the rows of one run from round to round; each row is known by its place.

    Of requests that come as a sequence only keys are held: a row is looked at when it is needed.
    """

    def __init__(
        self,
        client: Client,
        batches: BatchClient,
        journal: Journal,
        requests: Iterable[Request],
        options: AskOptions,
        run: str,
        progress: Progress | None = None,
        *,
        pauses: Pauses = Pauses(),
        clock: Clock | None = None,
    ) -> None:
        """Take what is asked; nothing is sent."""
        super().__init__(client, journal, options, run)
        self.purse.remember_in(journal, run)
        self.batches, self.progress, self.pauses, self.clock = batches, progress, pauses, clock or Clock()
        self.requests: Sequence[Request] = requests if isinstance(requests, Sequence) else list(requests)
        self.keys: list[bytes] = [b""] * len(self.requests)
        self.ended, self.bought = bytearray(len(self.requests)), bytearray(len(self.requests))
        self.given = 0
        self.caller = _Caller(self.clock, pauses, patience=options.patience, model=client.model)
        self.book = JobBook(journal)
        self.reserved: set[int] = set()
        self.short: float | None = None
        self.fruitless_since: float | None = None

    def answers(self) -> Iterator[Answered]:
        """Answer the requests; what the journal has is not bought again.

        Ctrl-C leaves at once: jobs go on at the provider, and whoever asks the same again collects them.

        Raises:
            BudgetReached: there is money for none of the rows that are left; everything bought is kept.
            UpstreamUnavailable: the provider creates no job, or does not answer; everything bought is kept.
            UsageError: a key, a model or a price is missing or wrong.
        """
        with asyncio.Runner() as loop:
            try:
                going = True
                while going:
                    ending: CultureKitError | None = None
                    try:
                        going = loop.run(self._round())
                    except CultureKitError as error:
                        ending = error
                    yield from self._given_out()
                    if ending is not None:
                        raise ending
            finally:
                loop.run(self.batches.close())

    def _given_out(self) -> Iterator[Answered]:
        while self.given < len(self.ended) and self.ended[self.given]:
            end = min(len(self.ended), self.given + _AT_ONCE)
            gap = self.ended.find(0, self.given, end)
            for question in self._look(range(self.given, end if gap < 0 else gap)):
                if question.ended is None:
                    return
                self.given = question.place + 1
                yield replace(question.ended, bought=bool(self.bought[question.place]))

    def _look(self, places: Sequence[int]) -> Iterator[Question]:
        """Replay the journal for some rows; compose the next request of those that have not ended."""
        questions = []
        for index in places:
            request = self.requests[index]
            self.keys[index] = self.keys[index] or self._key(request)
            questions.append(Question(index, Row(request), NOTHING, self.keys[index]))
        found = self.journal.found(list({question.key: None for question in questions}), run=self.run)
        for question in questions:
            entries: Sequence[Entry] = found.get(question.key, ())
            while self.take_in(question, entries):
                question.key = self._key(question.row.request)
                entries = self.journal.found([question.key], run=self.run).get(question.key, ())
            if question.ended is None:
                question.outgoing = self.batches.compose(question.row.request)
            else:
                self.note_repaired(question)
            yield question

    def _key(self, request: Request) -> bytes:
        return key_of(self.client.identity, self.batches.compose(request))

    async def _round(self) -> bool:
        """Ask what has to be asked, wait for its jobs and collect them; False when every row has ended."""
        for record in self.book.unfinished():
            if record.phase == "sending":
                await self._find(record)
        awaited = await self._ask()
        if self.short is not None and not awaited:
            raise self.out_of_money(self.short, done=self.ended.count(1), total=len(self.requests))
        await self._wait([self.book.records[number] for number in sorted(awaited)])
        return bool(self.ended.count(0))

    async def _ask(self) -> set[int]:
        """Create jobs for what has to be asked; give the numbers of all jobs that rows wait for."""
        under_way = {row.key: record.number for record in self.book.unfinished() for row in self.book.rows(record)}
        awaited: set[int] = set()
        self.short = None
        async for plan in self._plans(self._asks(under_way, awaited)):
            record = await self._create(plan)
            if record.phase == "open":
                self.reserved.add(record.number)
                awaited.add(record.number)
            else:
                self.purse.budget.settle(plan.reserved, 0.0)
                self._fruitless("the provider creates no job")
        for number in awaited - self.reserved:  # of an earlier process: bought, whether there is money or not
            self.reserved.add(number)
            self.purse.budget.settle(-self.book.records[number].reserved, 0.0)
        return awaited

    def _asks(self, under_way: Mapping[bytes, int], awaited: set[int]) -> Iterator[list[Question]]:
        """Yield what has to be asked, each once, in order, a stretch of rows at a time.

        What is under way in a job is not asked; the job's number goes into `awaited`.
        """
        watch, repairs, given = self.options.watch, 0, set[bytes]()
        places = [index for index, ended in enumerate(self.ended) if not ended]
        for start in range(0, len(places), _AT_ONCE):
            asks = []
            for question in self._look(places[start : start + _AT_ONCE]):
                if question.ended is not None:
                    self.ended[question.place] = 1
                    if watch is not None:
                        watch.count(question.ended)
                    continue
                repairs += question.row.repairing
                self.bought[question.place] = 1
                if question.key in under_way:
                    awaited.add(under_way[question.key])
                elif question.key not in given:
                    given.add(question.key)
                    asks.append(question)
            if asks and watch is not None and watch.stops_before(repairs):
                raise watch.error(self.client.identity.model, repairs=repairs)
            yield asks

    async def _plans(self, asks: Iterable[Sequence[Question]]) -> AsyncIterator[_Plan]:
        """Cut into plans as long as the money lasts; all asks are gone through.

        A plan is closed when the next one is asked for.
        """
        limits, plan, money_left = self.batches.limits, _Plan(), True
        try:
            for some in asks:
                await asyncio.sleep(0)
                for question in some if money_left else ():
                    line = self.batches.line(question.key.hex(), question.outgoing)
                    if len(line) > limits.size:
                        planned, raw = Planned(question.key, question.row.tries + 1), b'{"too large for a batch":%d}'
                        self._keep([(planned, "rejected", 413, raw % len(line), question.outgoing.body)])
                        continue
                    if len(plan.rows) >= limits.rows or plan.size + len(line) > limits.size:
                        yield plan
                        plan.lines.close()
                        plan = _Plan()
                    self.check_sending()
                    rate = self.client.rate
                    worst = 0.0 if rate is None else rate.batch * self.purse.worst(question)
                    if not self.purse.budget.reserve(worst):
                        self.short, money_left = worst, False
                        break
                    plan.add(question, line, worst)
            if plan.rows:
                yield plan
        finally:
            plan.lines.close()

    async def _create(self, plan: _Plan) -> _BatchRecord:
        """Create a job; the record says `void` when it came to nothing."""
        tag = self.book.tag(self.run)
        try:
            upload = await self.caller.call(lambda: self.batches.upload(plan.lines, size=plan.size, tag=tag))
        except Failure as failure:
            raise self._not_created(failure) from failure
        record = self.book.begin(plan, run=self.run, begun=self.clock.now(), upload=upload)
        try:
            job = await self.caller.call(
                lambda: self.batches.create(plan.lines, upload=upload, tag=tag), retried=frozenset({"busy"})
            )
        except Failure as failure:
            if failure.kind in _UNCLEAR:
                return await self._find(record)
            self.book.move(record, "void")
            raise self._not_created(failure) from failure
        return self.book.move(record, "open", job=job.number)

    def _not_created(self, failure: Failure) -> CultureKitError:
        """Build the error of a job that cannot be created: a server of one's own may know no batches at all."""
        if failure.status not in _NO_SUCH_PLACE or not is_elsewhere(self.client.identity):
            return run_ended_by(failure, self.client.identity.model)
        return UsageError(
            "this server has no batch API",
            where=self.client.identity.base_url,
            expected="a server that takes files and batches, as the provider's own does",
            found=f"status {failure.status}",
            hint="Nothing was bought. Ask it one by one: leave out --batch.",
        )

    async def _find(self, record: _BatchRecord) -> _BatchRecord:
        """Look for a job that was begun and whose number nobody stored; without one, make sure that none can come.

        A creation may still be under way somewhere: its lines are withdrawn, and some time is given to it.
        """
        tag = self.book.tag(record.run, record.number)
        try:
            found = await self.caller.call(lambda: self.batches.find(tag))
            if not found:
                if record.upload:
                    await self.caller.call(lambda: self.batches.withdraw(record.upload))
                left = record.begun + self.pauses.settle - self.clock.now()
                await self.clock.sleep(min(max(left, 0.0), self.pauses.settle))  # no clock that was ahead is waited for
                found = await self.caller.call(lambda: self.batches.find(tag))
        except Failure as failure:
            raise run_ended_by(failure, self.client.model) from failure
        return self.book.move(record, "open", job=found[0].number) if found else self.book.move(record, "void")

    async def _wait(self, records: list[_BatchRecord]) -> None:
        """Look at jobs, with growing pauses, until each has ended and is collected."""
        pause = 0.0
        while records:
            for record in list(records):
                try:
                    job = await self.caller.call(partial(self.batches.poll, record.job))
                except Failure as failure:
                    if failure.status != 404:
                        raise run_ended_by(failure, self.client.model) from failure
                    job = Job(record.job, "failed", detail="the provider no longer knows it")
                if job.state in ENDED:
                    records.remove(record)
                    await self._finish(record, job)
            if self.progress is not None:
                rows = f"{self.ended.count(1):,} of {len(self.requests):,} rows"
                self.progress.tell(f"{self.purse.paid_in_words}, {rows}, {len(records):,} batch jobs under way")
            if records:
                pause = self.pauses.after(pause)
                await self.clock.sleep(pause)

    async def _finish(self, record: _BatchRecord, job: Job) -> None:
        """Collect a job that ended; one that was refused as a whole leaves its rows as they were."""
        spent = 0.0
        if job.state == "failed" and job.kind in {"busy", "fatal"} and not job.outputs:
            self.book.move(record, "void")
            if job.kind == "fatal":
                raise run_ended_by(Failure("fatal", job.detail), self.client.model)
            self._fruitless(job.detail)
        else:
            spent = await self._collect(record, job)
            self.fruitless_since = None
        self.purse.budget.settle(record.reserved, spent)
        self.reserved.discard(record.number)

    def _fruitless(self, why: str) -> None:
        """Pause after a job that came to nothing, and give up when patience ends."""
        now, patience = self.clock.now(), self.caller.patience
        self.fruitless_since = now if self.fruitless_since is None else self.fruitless_since
        if now - self.fruitless_since > patience:
            raise UpstreamUnavailable(
                f"no batch could be placed for {patience:g} s",
                where=self.client.model,
                found=why,
                hint="Everything bought is kept; run the same command again later.",
            )
        self.caller.hold(self.pauses.longest)

    async def _collect(self, record: _BatchRecord, job: Job) -> float:
        """Put the results of a job into the journal, those that are not there yet, and give what they cost."""
        rows = self.book.rows(record)
        names = frozenset(row.key.hex() for row in rows)
        gathered = await self.caller.call(lambda: self._gather(job, names))
        spent, ending, share = 0.0, None, record.reserved / len(rows)
        pairs = zip(gathered.closed(job, rows), self.book.bodies(record), strict=True)
        while some := list(islice(pairs, _AT_ONCE)):
            found = self.journal.found([row.key for (row, _), _ in some], run=record.run)
            kept = {  # by an earlier collection, cut short
                (entry.key, entry.attempt) for entries in found.values() for entry in entries if entry.run == record.run
            }
            fresh = [(row, result, body) for (row, result), body in some if (row.key, row.attempt) not in kept]
            ending = ending or next((result for _, result, _ in fresh if result.kind == "fatal"), None)
            fresh = [each for each in fresh if each[1].kind != "fatal"]
            numbers = self._keep(
                [(row, result.kind, result.status, result.raw, body) for row, result, body in fresh], run=record.run
            )
            spent += sum(self._spent_on(number, *each[1:], share) for number, each in zip(numbers, fresh, strict=True))
        self.book.move(record, "collected")
        if ending is not None:
            detail = for_storage(self.client, ending.detail.encode()).decode()
            raise run_ended_by(Failure("fatal", detail, status=ending.status), self.client.model)
        return spent

    async def _gather(self, job: Job, names: frozenset[str]) -> _Gathered:
        """Read the results of a job, again if there are fewer than the provider says."""
        for _ in range(_READINGS):
            gathered = _Gathered()
            async for result in self.batches.results(job):
                if result is None:
                    gathered.unreadable += 1
                elif result.name in names:
                    gathered.take(result, self.client)
                else:
                    gathered.unknown += 1
            if job.counted is None or len(gathered.results) + gathered.unknown >= min(job.counted, len(names)):
                break
        if not gathered.results and gathered.unreadable >= _SUSPICIOUS:  # asking again would buy all of it again
            raise UpstreamUnavailable(
                "the results of a batch cannot be read",
                where=job.number,
                expected="lines that name our rows",
                found=f"{gathered.unreadable:,} that cannot be read",
                hint="They are kept with the provider; run the same command again, or with a newer culturekit.",
            )
        return gathered

    def _keep(self, rows: Sequence[tuple[Planned, str, int, bytes, bytes]], *, run: str = "") -> list[int]:
        """Write results down in one commit, each of a row with kind, status, raw bytes and body."""
        model, run = self.client.model, run or self.run
        entries = [
            Entry(row.key, run, row.attempt, "batch", status, kind, for_storage(self.client, raw), body, model=model)
            for row, kind, status, raw, body in rows
        ]
        return self.journal.append_all(entries) if entries else []

    def _spent_on(self, number: int, result: BatchResult, body: bytes, share: float) -> float:
        """Return what a result cost, or its share of what the job can cost at most where the counts are in doubt."""
        usage = Usage()
        if result.billed:
            reply, sent = self.client.read(result.billed), Outgoing(body, max_tokens=MOST_TOKENS)
            usage = fully_counted(reply, sent, self.client.identity).usage
        if result.kind != "reply":
            self.journal.note(number, self.purse.reading(result.kind, usage, "batch"))
        usd = self.purse.cost(usage, "batch") or 0.0
        if usage.doubt:
            self.purse.warn_of_doubt(usage.doubt)
        most = usd if usage.counted == "provider" else max(usd, share)
        if most > usd:
            self.purse.doubt(most - usd)
            self.journal.write_soon([self.purse.unsure_fact()])
        return most
