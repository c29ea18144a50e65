"""Rows answered in batches: what the journal lacks is asked, jobs are waited for, their results collected, all again.

Everything that decides what happens next is in the journal: after a kill the same rows stand where they stood. A row is
in one job at a time. A job that was begun and whose number is not known is looked for before its rows are asked again.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from culturekit.errors import BudgetReached, CultureKitError, UpstreamUnavailable
from culturekit.llm.batches.batch_client import ENDED, BatchClient, Job
from culturekit.llm.batches.collecting import Collector
from culturekit.llm.batches.creating import Creator
from culturekit.llm.batches.jobs import BatchRecord, JobBook
from culturekit.llm.batches.planning import cut
from culturekit.llm.batches.rows import Rows
from culturekit.llm.batches.standing import Ask, Standing
from culturekit.llm.batches.waiting import Caller, Clock, Pauses, WallClock, end_of_run
from culturekit.llm.budget import Budget
from culturekit.llm.client import Client, Failure, Outgoing, Request, Usage
from culturekit.llm.journal import Journal
from culturekit.llm.journal_entry import Entry
from culturekit.llm.money import Money
from culturekit.llm.outcomes import Answered
from culturekit.llm.tokens import input_bound

__all__ = ["Allowed", "BatchRunner", "answer_batch"]


class Allowed(Protocol):
    """What of the engine's options concerns batches."""

    @property
    def tries(self) -> int:
        """How often a row is asked at most."""
        ...

    @property
    def patience(self) -> float:
        """How long a provider may not answer, in seconds."""
        ...


class BatchRunner:
    """Takes the rows of one run from round to round."""

    def __init__(
        self,
        client: Client,
        batches: BatchClient,
        journal: Journal,
        requests: Iterable[Request],
        options: Allowed,
        run: str,
        *,
        budget: Budget,
        pauses: Pauses,
        clock: Clock,
    ) -> None:
        """Take what is asked; nothing is sent."""
        self.client, self.batches, self.journal, self.run, self.budget = client, batches, journal, run, budget
        rate = client.rate
        half = None if rate is None else replace(rate, input=rate.input * rate.batch, output=rate.output * rate.batch)
        self.online, self.batch = Money(rate, budget), Money(half, budget)
        self.rows = Rows(requests, Standing(client, batches, journal, self.cost, run, options.tries))
        self.caller = Caller(clock, pauses, options.patience)
        self.book = JobBook(journal)
        self.creator = Creator(batches, self.caller, self.book, run)
        self.collector = Collector(batches, client, self.caller, self.book, journal, self.batch.cost)
        self.reserved: set[int] = set()
        self.refused = 0.0
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
        if self.refused and not awaited:
            raise budget_reached(self.budget, self.refused)
        await self.wait([self.book.records[number] for number in sorted(awaited)])
        return bool(self.rows.left())

    async def ask(self) -> set[int]:
        """Create jobs for what has to be asked; give the numbers of all jobs that rows wait for."""
        under_way = {row.key: record.number for record in self.book.unfinished() for row in self.book.rows(record)}
        awaited: set[int] = set()
        self.refused = 0.0
        asks = self.rows.asks(under_way, awaited)
        for plan in cut(asks, self.batches, worst=self.worst, reserve=self.reserve, too_large=self.too_large):
            record = await self.creator.create(plan)
            if record.phase == "open":
                self.fruitless_since = None
                self.reserved.add(record.number)
                awaited.add(record.number)
            else:
                self.budget.settle(plan.reserved, 0.0)
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
            raise end_of_run(failure) from failure

    async def finish(self, record: BatchRecord, job: Job) -> None:
        """Collect a job that ended; one that was refused as a whole leaves its rows as they were."""
        spent = 0.0
        if job.state == "failed" and job.kind in {"busy", "fatal"} and not job.outputs:
            self.book.move(record, "void")
            if job.kind == "fatal":
                raise end_of_run(Failure("fatal", job.detail))
            self.fruitless(job.detail)
        else:
            spent = await self.collector.collect(record, job)
            self.fruitless_since = None
        self.budget.settle(record.reserved, spent)
        self.reserved.discard(record.number)

    def fruitless(self, why: str) -> None:
        """Pause after a job that came to nothing, and give up when patience ends."""
        now = self.caller.clock.now()
        self.fruitless_since = now if self.fruitless_since is None else self.fruitless_since
        if now - self.fruitless_since > self.caller.patience:
            raise UpstreamUnavailable(
                f"no batch could be placed for {self.caller.patience:.0f} seconds: {why}",
                hint="What was bought is kept; run the same command again later.",
            )
        self.caller.hold(self.caller.pauses.longest)

    # Money

    def cost(self, entry: Entry, usage: Usage) -> float | None:
        """Price what a reply used, by how it was bought."""
        return (self.batch if entry.mode == "batch" else self.online).cost(usage)

    def worst(self, outgoing: Outgoing) -> float:
        """Give the most that a row can cost."""
        return self.batch.worst(input_bound(outgoing, self.client.identity), outgoing)

    def reserve(self, usd: float) -> bool:
        """Set money aside for a row, if there is enough."""
        if self.budget.reserve(usd):
            return True
        self.refused = usd
        return False

    def reserve_again(self, record: BatchRecord) -> None:
        """Set aside what a job of an earlier process can cost: it is bought, whether there is money or not."""
        self.reserved.add(record.number)
        self.budget.settle(-record.reserved, 0.0)

    def too_large(self, ask: Ask, size: int) -> None:
        """Close a row that fits into no job."""
        raw = f'{{"too large for a batch":{size}}}'.encode()
        self.journal.append_all(
            [Entry(ask.key, self.run, ask.attempt, "batch", 413, "rejected", raw, ask.outgoing.body)]
        )


def budget_reached(budget: Budget, needed: float) -> BudgetReached:
    """Say what the next row could cost."""
    return BudgetReached(
        "the next row could cost more than what is left of the budget",
        expected=f"at most ${(budget.limit or 0.0) - budget.spent:.6f}",
        found=f"${needed:.6f} at worst",
        hint="What was bought is kept. Raise the budget and run the same command again.",
    )


def answer_batch(
    client: Client,
    batches: BatchClient,
    journal: Journal,
    requests: Iterable[Request],
    options: Allowed,
    run: str,
    *,
    budget: Budget,
    pauses: Pauses = Pauses(),
    clock: Clock | None = None,
) -> Iterator[Answered]:
    """Answer requests in batches, in their order; what the journal has is not bought again.

    Ctrl-C leaves at once: jobs go on at the provider, and whoever asks the same again collects them.

    Raises:
        BudgetReached: there is money for none of the rows that are left.
        UpstreamUnavailable: the provider creates no job, or does not answer.
        UsageError: the provider takes no request of ours.
    """
    runner = BatchRunner(
        client, batches, journal, requests, options, run, budget=budget, pauses=pauses, clock=clock or WallClock()
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
