"""The transport of the engine in batches: jobs are created, found again, awaited and collected into the journal."""

import asyncio
import hashlib
import logging
import os
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, Literal, TypeAlias, TypeVar, cast

import msgspec

from culturekit.core.addresses import check_sending
from culturekit.core.errors import CultureKitError, IntegrityError, UpstreamUnavailable, UsageError
from culturekit.llm.batches import ENDED, BatchClient, Batched, BatchResult, Job
from culturekit.llm.client import Client, Failure, FailureKind, Image, Outgoing, Usage, for_storage
from culturekit.llm.dispatch import (
    APART,
    LONG_HOLD,
    OutOfMoney,
    answers_again,
    given_up,
    retrying,
    run_ended_by,
    spoken,
)
from culturekit.llm.endpoints import is_elsewhere
from culturekit.llm.engine import CHUNK, NOTHING, AskEngine
from culturekit.llm.journal import Entry, Journal
from culturekit.llm.rows import Question
from culturekit.llm.usage import MOST_TOKENS, fully_counted

logger = logging.getLogger(__name__)

_Thing = TypeVar("_Thing")
_Phase: TypeAlias = Literal["sending", "open", "collected", "void"]

_AT_ONCE = 500  # results that are looked up in the journal together, and written in one commit
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


class _ImagesOnDisk(Sequence[Image]):
    """Images of a question that waits for its job, in a file: those of ten thousand questions would fill the memory."""

    def __init__(self, file: BinaryIO, images: Sequence[Image]) -> None:
        """Write the images to the end of the file."""
        self.file, self.kept = file, list[tuple[int, int, Image]]()
        for image in images:
            self.kept.append((file.seek(0, os.SEEK_END), len(image.content), replace(image, content=b"")))
            file.write(image.content)

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: int) -> Image:  # type: ignore[override] # nobody asks for a slice
        start, size, image = self.kept[index]
        self.file.seek(start)
        return replace(image, content=self.file.read(size))


class Jobs:
    """Asks in batch jobs, as a transport of the engine: what it is given comes back when its jobs are collected."""

    in_jobs = True

    def __init__(self, batches: BatchClient, *, pauses: Pauses = Pauses(), clock: Clock | None = None) -> None:
        """Name where jobs are created; nothing is sent."""
        self.batches, self.pauses, self.clock, self.compose = batches, pauses, clock or Clock(), batches.compose
        self.open = ExitStack()
        self.loop = self.open.enter_context(asyncio.Runner())
        self.pending: list[Question] = []
        self.counted = False
        self.reserved: set[int] = set()
        self.short: float | None = None
        self.ending: OutOfMoney | None = None
        self.fruitless_since: float | None = None

    def begin(self, engine: AskEngine) -> None:
        """Read what jobs there are."""
        self.engine, self.client, self.journal, self.run = engine, engine.client, engine.journal, engine.run
        self.purse, self.book = engine.purse, JobBook(engine.journal)
        self.caller = _Caller(self.clock, self.pauses, patience=engine.options.patience, model=self.client.model)
        file = tempfile.TemporaryFile(dir=self.journal.folder)  # noqa: SIM115 - closed when `open` is
        self.images = cast(BinaryIO, self.open.enter_context(file))

    def room(self, _rows: int, /) -> int:
        """Take all rows before any is sent."""
        return CHUNK

    def add(self, questions: Sequence[Question]) -> None:
        """Take questions over; each is composed again when it goes into a job, lest all bodies are held at once."""
        for question in questions:
            question.outgoing, question.bought = NOTHING, True
            request = question.row.request
            if request.images and not isinstance(request.images, _ImagesOnDisk):
                on_disk = _ImagesOnDisk(self.images, request.images)
                question.row = replace(question.row, request=replace(request, images=on_disk))
        self.pending += questions

    def next_left(self, _timeout: float, /) -> list[Question] | None:
        """Ask what has to be asked, wait for its jobs and collect them; None when there is money for no question."""
        return self.loop.run(self._round())

    def stop(self, _ending: BaseException, /, *, grace: float) -> None:
        """Leave jobs as they are: they go on at the provider."""

    def leave(self) -> None:
        """Close the connections."""
        with self.open:
            self.loop.run(self.batches.close())

    async def _round(self) -> list[Question] | None:
        if not self.counted:  # when all rows have been looked up, and so all that a kill left unread is read
            self.counted = True
            self.purse.remember_in(self.journal, self.run)
        for record in self.book.unfinished():
            if record.phase == "sending":
                await self._find(record)
        asked, self.pending = self.pending, []
        awaited = await self._ask(asked)
        if self.short is not None and not awaited:
            self.ending = OutOfMoney(self.short)
            return None
        await self._wait([self.book.records[number] for number in sorted(awaited)])
        return asked

    async def _ask(self, asked: Sequence[Question]) -> set[int]:
        """Create jobs for what is not under way in one; give the numbers of all jobs that rows wait for."""
        under_way = {row.key: record.number for record in self.book.unfinished() for row in self.book.rows(record)}
        awaited = {under_way[question.key] for question in asked if question.key in under_way}
        fresh = [question for question in asked if question.key not in under_way]
        watch, repairs = self.engine.options.watch, sum(question.row.repairing for question in asked)
        if fresh and watch is not None and watch.stops_before(repairs):
            raise watch.error(self.client.identity.model, repairs=repairs)
        for number in awaited - self.reserved:  # of an earlier process: bought, whether there is money or not
            self.reserved.add(number)
            self.purse.budget.settle(-self.book.records[number].reserved, 0.0)
        self.short = None
        async for plan in self._plans(fresh):
            record = await self._create(plan)
            if record.phase == "open":
                self.reserved.add(record.number)
                awaited.add(record.number)
            else:
                self.purse.budget.settle(plan.reserved, 0.0)
                self._fruitless("the provider creates no job")
        return awaited

    async def _plans(self, fresh: Sequence[Question]) -> AsyncIterator[_Plan]:
        """Cut into plans as long as the money lasts; a plan is closed when the next one is asked for."""
        limits, plan = self.batches.limits, _Plan()
        try:
            for count, question in enumerate(fresh):
                if count % _AT_ONCE == 0:
                    await asyncio.sleep(0)
                request = question.row.request
                # Its images are read once here, and looked at often.
                question.outgoing = self.compose(replace(request, images=tuple(request.images)))
                line = self.batches.line(question.key.hex(), question.outgoing)
                if len(line) > limits.size:
                    planned, body = Planned(question.key, question.row.tries + 1), question.outgoing.body
                    raw = b'{"too large for a batch":%d}' % len(line)
                    self.journal.append_all([self._entry(planned, "rejected", 413, raw, body, self.run)])
                    continue
                if len(plan.rows) >= limits.rows or plan.size + len(line) > limits.size:
                    yield plan
                    plan.lines.close()
                    plan = _Plan()
                self.engine.check_sending()
                rate = self.client.rate
                worst = 0.0 if rate is None else rate.batch * self.purse.worst(question)
                if not self.purse.budget.reserve(worst):
                    self.short = worst
                    break
                plan.add(question, line, worst)
                question.outgoing = NOTHING
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
            if self.engine.progress is not None:
                rows = f"{self.engine.done():,} of {self.engine.pulled:,} rows"
                self.engine.progress.tell(f"{self.purse.paid_in_words}, {rows}, {len(records):,} batch jobs under way")
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
            spent += self._keep_results(fresh, record, share)
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

    def _keep_results(
        self, results: Sequence[tuple[Planned, BatchResult, bytes]], record: _BatchRecord, share: float
    ) -> float:
        """Write results down, with what is in doubt of their cost in the same commit; give what they cost at most."""
        spent, usages, unsure = 0.0, [], self.purse.unsure
        for _, result, body in results:
            usage = Usage()
            if result.billed:
                reply, sent = self.client.read(result.billed), Outgoing(body, max_tokens=MOST_TOKENS)
                usage = fully_counted(reply, sent, self.client.identity).usage
            usd = self.purse.cost(usage, "batch") or 0.0
            if usage.doubt:
                self.purse.warn_of_doubt(usage.doubt)
            most = usd if usage.counted == "provider" else max(usd, share)
            self.purse.doubt(most - usd)
            usages.append(usage)
            spent += most
        entries = [
            self._entry(row, result.kind, result.status, result.raw, body, record.run) for row, result, body in results
        ]
        numbers = self.journal.append_all(entries, [self.purse.unsure_fact()] if self.purse.unsure > unsure else [])
        for number, (_, result, _), usage in zip(numbers, results, usages, strict=True):
            if result.kind != "reply":
                self.journal.note(number, self.purse.reading(result.kind, usage, "batch"))
        return spent

    def _entry(self, row: Planned, kind: str, status: int, raw: bytes, body: bytes, run: str) -> Entry:
        raw, model = for_storage(self.client, raw), self.client.model
        return Entry(row.key, run, row.attempt, "batch", status, kind, raw, body, model=model)
