"""Jobs created so that none is bought twice: written down before and after, looked for when nobody saw the end."""

from dataclasses import dataclass

from culturekit.llm.batches.batch_client import BatchClient, Job
from culturekit.llm.batches.jobs import BatchRecord, JobBook
from culturekit.llm.batches.planning import Plan
from culturekit.llm.batches.waiting import Caller
from culturekit.llm.client import Failure
from culturekit.llm.endings import run_ended_by

__all__ = ["Creator"]

UNCLEAR = frozenset({"server", "timeout", "connection"})
"""Failures after which the job may be there all the same."""


@dataclass(frozen=True, slots=True)
class Creator:
    """Creates the jobs of one run."""

    batches: BatchClient
    caller: Caller
    book: JobBook
    run: str

    async def create(self, plan: Plan) -> BatchRecord:
        """Create a job; the record says `void` when it came to nothing.

        Raises:
            CultureKitError: the provider does not take it.
        """
        tag = self.book.next_tag(self.run)
        try:
            upload = await self.caller.call(lambda: self.batches.upload(plan.lines, size=plan.size, tag=tag))
        except Failure as failure:
            raise run_ended_by(failure, self.caller.model) from failure
        record = self.book.begin(
            plan.rows,
            plan.bodies.pressed(),
            run=self.run,
            begun=self.caller.clock.now(),
            reserved=plan.reserved,
            upload=upload,
        )
        try:
            job = await self.caller.call(
                lambda: self.batches.create(plan.lines, upload=upload, tag=tag),
                retried=frozenset({"busy"}),
            )
        except Failure as failure:
            if failure.kind in UNCLEAR:
                return await self.find(record)
            self.book.move(record, "void")
            raise run_ended_by(failure, self.caller.model) from failure
        return self.book.move(record, "open", job=job.number)

    async def find(self, record: BatchRecord) -> BatchRecord:
        """Look for a job that was begun and whose number nobody stored; without one, make sure that none can come.

        A creation may still be under way somewhere: its lines are withdrawn, and some time is given to it.
        """
        found = await self.listed(record)
        if not found:
            if record.upload:
                await self.caller.call(lambda: self.batches.withdraw(record.upload))
            settled = record.begun + self.caller.pauses.settle
            if (left := settled - self.caller.clock.now()) > 0:  # a clock that was ahead is not waited for
                await self.caller.clock.sleep(min(left, self.caller.pauses.settle))
            found = await self.listed(record)
        if not found:
            return self.book.move(record, "void")
        return self.book.move(record, "open", job=found[0].number)

    async def listed(self, record: BatchRecord) -> list[Job]:
        """List the jobs that carry the tag of a record."""
        try:
            return await self.caller.call(lambda: self.batches.find(record.tag))
        except Failure as failure:
            raise run_ended_by(failure, self.caller.model) from failure
