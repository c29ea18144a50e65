"""Rows answered in batches: what the journal lacks is asked, jobs are waited for, their results collected, all again.

Everything that decides what happens next is in the journal: after a kill the same rows stand where they stood. A row is
in one job at a time. A job that was begun and whose number is not known is looked for before its rows are asked again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from culturekit.errors import UpstreamUnavailable
from culturekit.llm.batches.batch_client import ENDED, BatchClient, Job
from culturekit.llm.batches.collecting import Collector
from culturekit.llm.batches.jobs import BatchRecord, JobBook
from culturekit.llm.batches.planning import Ask, Creator, Standing, cut
from culturekit.llm.batches.waiting import Caller, Clock, Pauses
from culturekit.llm.client import Client, Failure, Request
from culturekit.llm.endings import OutOfMoney, out_of_money, run_ended_by
from culturekit.llm.engine import AskOptions
from culturekit.llm.journal.journal import Journal
from culturekit.llm.journal.journal_entry import Entry
from culturekit.llm.journal.replaying import Replay
from culturekit.llm.money.asking_price import check_price
from culturekit.llm.money.budget import Budget, dollars
from culturekit.llm.money.purse import Purse
from culturekit.llm.outcomes import Answered
from culturekit.llm.question import Question
from culturekit.llm.reply_watch import ReplyWatch
from culturekit.records.work import Progress

__all__ = ["BatchRunner"]

AT_ONCE = 500
"""Rows looked up in the journal together."""


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
