"""Requests answered in batches, in their order, as the engine answers them one by one."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeAlias

import msgspec

from culturekit.errors import CultureKitError, UpstreamUnavailable, UsageError
from culturekit.llm.asking import Replay
from culturekit.llm.batches import (
    ENDED,
    Ask,
    BatchClient,
    Batched,
    BatchRecord,
    BatchResult,
    Caller,
    Clock,
    Creator,
    Job,
    JobBook,
    Pauses,
    Planned,
    Standing,
    WallClock,
    cut,
)
from culturekit.llm.client import Client, Failure, FailureKind, Outgoing, Request, Usage, for_storage
from culturekit.llm.dispatch import OutOfMoney, out_of_money, run_ended_by
from culturekit.llm.engine import AskOptions
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import Entry
from culturekit.llm.prices import check_alive
from culturekit.llm.purse import Purse, check_price
from culturekit.llm.reply_watch import ReplyWatch
from culturekit.llm.rows import Answered, Question
from culturekit.llm.usage import MOST_TOKENS, Budget, dollars, fully_counted
from culturekit.records.work import Progress

Pair: TypeAlias = tuple[tuple[Planned, BatchResult], bytes]  # a row with its result, and the body of its request
AT_ONCE = 500  # rows looked up in the journal together, and results in one commit
SUSPICIOUS = 10  # so many lines of which none can be read are not the fault of the lines
READINGS = 3  # how often the results are read when there are fewer of them than the provider counted
MISSING: Mapping[str, FailureKind] = {"expired": "timeout", "cancelled": "timeout", "failed": "server"}


@dataclass(slots=True)
class Gathered:
    """The results of one job by name; a name that came twice with different contents is in `conflicting`."""

    results: dict[str, BatchResult] = field(default_factory=dict)
    conflicting: dict[str, list[BatchResult]] = field(default_factory=dict)
    unknown: int = 0
    unreadable: int = 0

    def take(self, result: BatchResult, client: Client) -> None:
        """Add a result, or see that it is there already."""
        known = self.results.get(result.name)
        if known is None:
            self.results[result.name] = result
        elif not same(known, result, client):
            self.conflicting.setdefault(result.name, [known]).append(result)


def same(one: BatchResult, other: BatchResult, client: Client) -> bool:
    """Tell whether two results of a row say the same; numbers of the provider's own may differ."""
    if (one.kind, one.status, one.raw) == (other.kind, other.status, other.raw):
        return True
    if one.kind != "reply" or other.kind != "reply":
        return False
    first, second = client.read(one.raw), client.read(other.raw)
    return first.stop != "unreadable" and (first.text, first.stop) == (second.text, second.stop)


async def gather(batches: BatchClient, client: Client, job: Job, names: frozenset[str]) -> Gathered:
    """Read the results of a job, again if there are fewer than the provider says."""
    for _ in range(READINGS):
        gathered = Gathered()
        async for result in batches.results(job):
            if result is None:
                gathered.unreadable += 1
            elif result.name in names:
                gathered.take(result, client)
            else:
                gathered.unknown += 1
        if job.counted is None or len(gathered.results) + gathered.unknown >= min(job.counted, len(names)):
            break
    if not gathered.results and gathered.unreadable >= SUSPICIOUS:
        raise strange(job, gathered)
    return gathered


def strange(job: Job, gathered: Gathered) -> UpstreamUnavailable:
    """Say that nothing of what came can be used: asking again would buy all of it a second time."""
    return UpstreamUnavailable(
        "the results of a batch cannot be read",
        where=job.number,
        expected="lines that name our rows",
        found=f"{gathered.unreadable:,} that cannot be read",
        hint="They are kept with the provider; run the same command again, or with a newer culturekit.",
    )


def closed_results(gathered: Gathered, job: Job, rows: Iterable[Planned]) -> Iterator[tuple[Planned, BatchResult]]:
    """Give each row of a job exactly one result.

    Of a row with conflicting results none is believed: it counts as a failure that may pass, as does a missing one.
    """
    rejected = dict(job.rejected)
    for line, row in enumerate(rows, start=1):
        name = row.key.hex()
        result = gathered.results.get(name)
        if name in gathered.conflicting:
            yield row, conflict(name, gathered.conflicting[name])
        elif result is not None:
            yield row, result
        elif line in rejected:
            yield row, BatchResult(name, "rejected", 400, noted("rejected", rejected[line]), rejected[line])
        else:
            kind = job.kind if job.state == "failed" else MISSING.get(job.state, "server")
            yield row, BatchResult(name, kind, 0, noted("missing", job.state), f"no result in a job that {job.state}")


def conflict(name: str, results: list[BatchResult]) -> BatchResult:
    """Keep results that contradict each other together, as a failure."""
    raws = [result.raw.decode("utf-8", "replace") for result in results]
    together = msgspec.json.encode({"conflicting": raws})
    return BatchResult(name, "server", 200, together, "results that contradict", paid=results[0].billed)


def noted(what: str, why: str) -> bytes:
    """Write down why there is no result."""
    return msgspec.json.encode({what: why})


@dataclass(frozen=True, slots=True)
class Collector:
    """Brings the results of jobs into the journal."""

    batches: BatchClient
    client: Client
    caller: Caller
    book: JobBook
    journal: Journal
    purse: Purse

    async def collect(self, record: BatchRecord, job: Job) -> float:
        """Put the results of a job into the journal, those that are not there yet, and give what they cost.

        Raises:
            CultureKitError: a result says that no request of ours is welcome.
        """
        rows = self.book.rows(record)
        names = frozenset(row.key.hex() for row in rows)
        gathered = await self.caller.call(lambda: gather(self.batches, self.client, job, names))
        spent, ending = 0.0, None
        pairs = zip(closed_results(gathered, job, rows), self.book.bodies(record), strict=True)
        while some := list(islice(pairs, AT_ONCE)):
            fresh = self.fresh(record, some)
            ending = ending or next((result for _, result, _ in fresh if result.kind == "fatal"), None)
            spent += self.keep(record, fresh, share=record.reserved / len(rows))
        self.book.move(record, "collected")
        if ending is not None:
            detail = for_storage(self.client, ending.detail.encode()).decode()
            raise run_ended_by(Failure("fatal", detail, status=ending.status), self.caller.model)
        return spent

    def fresh(self, record: BatchRecord, some: Sequence[Pair]) -> list[tuple[Planned, BatchResult, bytes]]:
        """Leave out what an earlier collection, cut short, has put into the journal."""
        found = self.journal.found([row.key for (row, _), _ in some], run=record.run)
        known = {
            (entry.key, entry.attempt) for entries in found.values() for entry in entries if entry.run == record.run
        }
        return [(row, result, body) for (row, result), body in some if (row.key, row.attempt) not in known]

    def keep(self, record: BatchRecord, fresh: Sequence[tuple[Planned, BatchResult, bytes]], *, share: float) -> float:
        """Write results down in one commit; only then look into them for what they cost."""
        kept = [(row, result, body) for row, result, body in fresh if result.kind != "fatal"]
        model = self.client.model
        entries = [
            Entry(row.key, record.run, row.attempt, "batch", result.status, result.kind, stored, body, model=model)
            for row, result, body in kept
            for stored in [for_storage(self.client, result.raw)]
        ]
        numbers = self.journal.append_all(entries) if entries else []
        return sum(
            self.spent_on(number, result, body, share) for number, (_, result, body) in zip(numbers, kept, strict=True)
        )

    def spent_on(self, number: int, result: BatchResult, body: bytes, share: float) -> float:
        """Give what a result cost, or its share of what the job can cost at most where the counts are in doubt."""
        usage = Usage()
        if result.billed:
            usage = fully_counted(
                self.client.read(result.billed), Outgoing(body, max_tokens=MOST_TOKENS), self.client.identity
            ).usage
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


class BatchRunner:
    """Takes the rows of one run from round to round."""

    def __init__(
        self,
        client: Client,
        batches: BatchClient,
        journal: Journal,
        requests: Iterable[Request],
        options: AskOptions,
        run: str,
        progress: Progress | None,
        *,
        pauses: Pauses,
        clock: Clock,
    ) -> None:
        """Take what is asked; nothing is sent."""
        self.client, self.batches, self.journal, self.run, self.options = client, batches, journal, run, options
        self.purse = Purse(client.rate, client.identity, Budget(options.budget))
        self.purse.look_back(journal)
        self.purse.remember_in(journal, run)
        replay = Replay(journal, self.purse, client, run=run, tries=options.tries)
        self.rows = Rows(requests, Standing(client.identity, batches, journal, replay), options.watch)
        self.caller = Caller(clock, pauses, patience=options.patience, model=client.model)
        self.progress = progress
        self.book = JobBook(journal)
        self.creator = Creator(batches, client.identity, self.caller, self.book, run)
        self.collector = Collector(batches, client, self.caller, self.book, journal, self.purse)
        self.reserved: set[int] = set()
        self.short: float | None = None
        self.fruitless_since: float | None = None

    async def round(self) -> bool:
        """Ask what has to be asked, wait for its jobs and collect them; False when every row has ended.

        Raises:
            BudgetReached: there is money for none of the rows that are left.
            UpstreamUnavailable: the provider creates no job, or does not answer.
        """
        for record in self.book.unfinished():
            if record.phase == "sending":
                await self.creator.find(record)
        awaited = await self.ask()
        if self.short is not None and not awaited:
            budget = self.purse.budget
            ending = OutOfMoney(dollars(budget.limit or 0), budget.spent, self.short, self.purse.unsure)
            raise out_of_money(ending, self.client.model, done=self.rows.done(), total=len(self.rows.requests))
        await self.wait([self.book.records[number] for number in sorted(awaited)])
        return bool(self.rows.left())

    async def ask(self) -> set[int]:
        """Create jobs for what has to be asked; give the numbers of all jobs that rows wait for."""
        under_way = {row.key: record.number for record in self.book.unfinished() for row in self.book.rows(record)}
        awaited: set[int] = set()
        self.short = None
        async for plan in cut(self.rows.asks(under_way, awaited), self.batches, self):
            record = await self.creator.create(plan)
            if record.phase == "open":
                self.reserved.add(record.number)
                awaited.add(record.number)
            else:
                self.purse.budget.settle(plan.reserved, 0.0)
                self.fruitless("the provider creates no job")
        for number in awaited - self.reserved:
            self.reserve_again(self.book.records[number])
        return awaited

    async def wait(self, records: list[BatchRecord]) -> None:
        """Look at jobs, with growing pauses, until each has ended and is collected."""
        pause = 0.0
        while records:
            for record in list(records):
                job = await self.poll(record)
                if job.state in ENDED:
                    records.remove(record)
                    await self.finish(record, job)
            self.tell(len(records))
            if records:
                pause = self.caller.pauses.after(pause)
                await self.caller.clock.sleep(pause)

    async def poll(self, record: BatchRecord) -> Job:
        """Ask how a job is doing; one that the provider no longer knows has failed."""
        try:
            return await self.caller.call(lambda: self.batches.poll(record.job))
        except Failure as failure:
            if failure.status == 404:
                return Job(record.job, "failed", detail="the provider no longer knows it")
            raise run_ended_by(failure, self.client.model) from failure

    async def finish(self, record: BatchRecord, job: Job) -> None:
        """Collect a job that ended; one that was refused as a whole leaves its rows as they were."""
        spent = 0.0
        if job.state == "failed" and job.kind in {"busy", "fatal"} and not job.outputs:
            self.book.move(record, "void")
            if job.kind == "fatal":
                raise run_ended_by(Failure("fatal", job.detail), self.client.model)
            self.fruitless(job.detail)
        else:
            spent = await self.collector.collect(record, job)
            self.fruitless_since = None
        self.purse.budget.settle(record.reserved, spent)
        self.reserved.discard(record.number)

    def tell(self, jobs: int) -> None:
        """Say how it goes."""
        if self.progress is not None:
            paid = self.purse.paid
            cost = "cost unknown" if paid is None else f"${paid:,.4f}"
            done, total = self.rows.done(), len(self.rows.requests)
            self.progress.tell(f"{cost}, {done:,} of {total:,} rows, {jobs:,} batch jobs under way")

    def fruitless(self, why: str) -> None:
        """Pause after a job that came to nothing, and give up when patience ends."""
        now = self.caller.clock.now()
        self.fruitless_since = now if self.fruitless_since is None else self.fruitless_since
        if now - self.fruitless_since > self.caller.patience:
            raise UpstreamUnavailable(
                f"no batch could be placed for {self.caller.patience:g} s",
                where=self.client.model,
                found=why,
                hint="Everything bought is kept; run the same command again later.",
            )
        self.caller.hold(self.caller.pauses.longest)

    def reserve(self, ask: Ask) -> float | None:
        """Set aside what a row can cost at worst in a batch, if there is enough."""
        check_price(self.client)
        check_alive(self.client.identity, go_on=self.options.go_on)
        rate = self.client.rate
        question = Question(0, ask.row, ask.outgoing, ask.key)
        worst = 0.0 if rate is None else rate.batch * self.purse.worst(question)
        if self.purse.budget.reserve(worst):
            return worst
        self.short = worst
        return None

    def reserve_again(self, record: BatchRecord) -> None:
        """Set aside what a job of an earlier process can cost: it is bought, whether there is money or not."""
        self.reserved.add(record.number)
        self.purse.budget.settle(-record.reserved, 0.0)

    def too_large(self, ask: Ask, size: int) -> None:
        """Close a row that fits into no job."""
        raw = f'{{"too large for a batch":{size}}}'.encode()
        body = ask.outgoing.body
        entry = Entry(ask.key, self.run, ask.attempt, "batch", 413, "rejected", raw, body, model=self.client.model)
        self.journal.append_all([entry])


class Rows:
    """All rows, each known by its place. Of requests that come as a sequence only keys are held."""

    def __init__(self, requests: Iterable[Request], standing: Standing, watch: ReplyWatch | None = None) -> None:
        """Take what is asked; a row is looked at when it is needed. `watch` hears how rows end."""
        self.watch = watch
        self.requests: Sequence[Request] = requests if isinstance(requests, Sequence) else list(requests)
        self.standing = standing
        self.keys: list[bytes] = [b""] * len(self.requests)
        self.ended = bytearray(len(self.requests))
        self.bought = bytearray(len(self.requests))
        self.given = 0

    def left(self) -> int:
        """Count the rows that have not ended, as far as they were looked at."""
        return self.ended.count(0)

    def done(self) -> int:
        """Count the rows that have ended, as far as they were looked at."""
        return self.ended.count(1)

    def look(self, places: Sequence[int]) -> Iterator[tuple[int, Answered | Ask]]:
        """Tell where rows stand."""
        requests = [self.requests[place] for place in places]
        for place, request in zip(places, requests, strict=True):
            self.keys[place] = self.keys[place] or self.standing.key(request)
        return zip(places, self.standing.of_all(requests, [self.keys[place] for place in places]), strict=True)

    def asks(self, under_way: Mapping[bytes, int], awaited: set[int]) -> Iterator[list[Ask]]:
        """Give what has to be asked, each once, in order, a stretch of rows at a time.

        What is under way in a job is not asked; the job's number goes into `awaited`.

        Raises:
            UnusableReplies: most of what came cannot be used, repairs that were to be asked now included.
        """
        repairs = 0
        given: set[bytes] = set()
        places = [place for place, ended in enumerate(self.ended) if not ended]
        for start in range(0, len(places), AT_ONCE):
            asks = []
            for place, step in self.look(places[start : start + AT_ONCE]):
                if isinstance(step, Answered):
                    self.ended[place] = 1
                    if self.watch is not None:
                        self.watch.count(step)
                    continue
                repairs += step.row.repairing
                self.bought[place] = 1
                if step.key in under_way:
                    awaited.add(under_way[step.key])
                elif step.key not in given:
                    given.add(step.key)
                    asks.append(step)
            if asks and self.watch is not None and self.watch.stops_before(repairs):
                raise self.watch.error(self.standing.identity.model, repairs=repairs)
            yield asks

    def answers(self) -> Iterator[Answered]:
        """Give the rows that ended, in order, as far as none before them is missing."""
        while self.given < len(self.ended) and self.ended[self.given]:
            end = min(len(self.ended), self.given + AT_ONCE)
            gap = self.ended.find(0, self.given, end)
            for place, step in self.look(range(self.given, end if gap < 0 else gap)):
                if isinstance(step, Ask):
                    return
                self.given = place + 1
                yield replace(step, bought=bool(self.bought[place]))


PATIENT = Pauses()


def batches_of(client: Client) -> BatchClient:
    """Give the batches of a client; no SDK is imported yet.

    Raises:
        UsageError: it has none.
    """
    if isinstance(client, Batched):
        return client.batches()
    raise UsageError(
        f"{client.model} cannot be asked in batches",
        expected="a model of openai or google",
        hint="Ask it one by one: leave out batch=1.",
    )


def answer_batch(
    client: Client,
    batches: BatchClient,
    journal: Journal,
    requests: Iterable[Request],
    options: AskOptions,
    run: str,
    progress: Progress | None = None,
    *,
    pauses: Pauses = PATIENT,
    clock: Clock | None = None,
) -> Iterator[Answered]:
    """Answer requests; what the journal has is not bought again.

    Ctrl-C leaves at once: jobs go on at the provider, and whoever asks the same again collects them.

    Raises:
        BudgetReached: there is money for none of the rows that are left; everything bought is kept.
        UpstreamUnavailable: the provider creates no job, or does not answer; everything bought is kept.
        UsageError: a key, a model or a price is missing or wrong.
    """
    runner = BatchRunner(
        client,
        batches,
        journal,
        requests,
        options,
        run,
        progress,
        pauses=pauses,
        clock=clock or WallClock(),
    )
    with asyncio.Runner() as loop:
        try:
            going = True
            while going:
                ending: CultureKitError | None = None
                try:
                    going = loop.run(runner.round())
                except CultureKitError as error:
                    ending = error
                yield from runner.rows.answers()
                if ending is not None:
                    raise ending
        finally:
            loop.run(batches.close())
