"""The thread that talks to the provider: an event loop that sends what the dispatch says and journals what comes.

A slow reader of the answers does not hold up the wire, and Ctrl-C reaches the thread that waits for the answers.
"""

import asyncio
import contextlib
import math
import queue
import threading
import time
from collections.abc import Sequence

from culturekit.llm.client import Client, Failure
from culturekit.llm.counted_here import fully_counted
from culturekit.llm.dispatch import Dispatch, Later
from culturekit.llm.durable_hold import DurableHold
from culturekit.llm.journal import Journal
from culturekit.llm.journal_entry import Entry, Reading
from culturekit.llm.question import Question
from culturekit.llm.row_automaton import reading_of

__all__ = ["LONGEST_FINISH", "Wire"]

LONGEST_CLOSE = 2.0
"""Seconds that closing connections may take."""

LONGEST_FINISH = 60.0
"""Seconds that requests under way may still take when the run has ended: they are paid for."""


class Wire:
    """Sends questions until told to stop; those that leave come back through `left`, None when nothing more comes."""

    def __init__(self, client: Client, journal: Journal, dispatch: Dispatch, *, run: str, longest: float) -> None:
        """Start the thread."""
        self.client = client
        self.journal = journal
        self.dispatch = dispatch
        self.run = run
        self.longest = longest
        self.holds = DurableHold(journal, client.identity)
        dispatch.limiter.held_until = time.monotonic() + self.holds.left()
        self.left: queue.SimpleQueue[list[Question] | None] = queue.SimpleQueue()
        self.leaving: list[Question] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.timer: asyncio.TimerHandle | None = None
        self.soon = self.ending = False
        self.started = threading.Event()
        self.thread = threading.Thread(target=self.talk, name="wire", daemon=True)
        self.thread.start()
        self.started.wait()

    def next_left(self, timeout: float) -> list[Question] | None:
        """Give what has left since the last call, waiting a while for it; None when nothing more comes."""
        try:
            left = self.left.get(timeout=timeout)
        except queue.Empty:
            return []
        while left is not None and not self.left.empty():
            more = self.left.get()
            if more is None:
                self.left.put(None)
                return left
            left = left + more
        return left

    def add(self, questions: Sequence[Question]) -> None:
        """Take questions in, from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended, and says why in `left`
            self.loop.call_soon_threadsafe(self.take, questions)

    def stop(self, ending: BaseException, *, grace: float) -> None:
        """Send nothing more; what is under way may take some seconds still, then it is cancelled. From any thread."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.wind_down, ending, grace)

    def talk(self) -> None:
        """Run the event loop of this thread."""
        asyncio.run(self.work())

    async def work(self) -> None:
        """Work until the dispatch has ended and nothing is under way."""
        self.loop = asyncio.get_running_loop()
        self.done = self.loop.create_future()
        self.started.set()
        try:
            await self.done
            await asyncio.gather(*self.tasks, return_exceptions=True)
            with contextlib.suppress(Exception):
                async with asyncio.timeout(LONGEST_CLOSE):
                    await self.client.close()
        finally:
            self.hand_over()
            self.left.put(None)

    def take(self, questions: Sequence[Question]) -> None:
        """Give questions to the dispatch."""
        for question in questions:
            self.dispatch.add(question)
        self.pump()

    def wind_down(self, ending: BaseException, grace: float) -> None:
        """End the dispatch, and cancel after a while what has not come back."""
        self.dispatch.end(ending)
        self.loop.call_later(grace, self.cancel)
        self.pump()

    def cancel(self) -> None:
        """Cancel what is under way."""
        for task in self.tasks:
            task.cancel()

    def pump(self) -> None:
        """Send all that may be sent now, and come back when something changes."""
        self.soon = False
        self.hand_over()
        move = self.dispatch.next(time.monotonic())
        while not isinstance(move, Later):
            task = self.loop.create_task(self.exchange(move))
            self.tasks.add(task)
            task.add_done_callback(self.came_back)
            move = self.dispatch.next(time.monotonic())
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None if math.isinf(move.until) else self.loop.call_at(move.until, self.pump)
        if self.dispatch.ending is not None:
            self.finish()

    def finish(self) -> None:
        """End the thread's work once nothing is under way, which is not waited for without end."""
        if not self.ending:
            self.ending = True
            self.loop.call_later(LONGEST_FINISH, self.cancel)
        if not self.tasks and not self.done.done():
            self.done.set_result(None)

    def came_back(self, task: "asyncio.Task[None]") -> None:
        """Look after what ended; an error that no client should raise ends the run."""
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.dispatch.end(error)
        if not self.soon:
            self.soon = True
            self.loop.call_soon(self.pump)

    def hand_over(self) -> None:
        """Pass on what has left, all of one turn together."""
        if self.leaving:
            self.left.put(self.leaving)
            self.leaving = []

    async def exchange(self, question: Question) -> None:
        """Send a question, keep what comes, then look into it."""
        try:
            async with asyncio.timeout(self.longest):
                raw = await self.client.send(question.outgoing)
        except Failure as failure:
            leaves = await self.keep_failure(question, failure)
        except TimeoutError:
            leaves = await self.keep_failure(question, Failure("timeout", f"no reply in {self.longest:g} s"))
        else:
            leaves = await self.keep_reply(question, raw)
        if leaves:
            self.leaving.append(question)

    async def keep_failure(self, question: Question, failure: Failure) -> bool:
        """Heed a failure at once, then journal it."""
        charged = self.dispatch.failure_came(question, failure, time.monotonic())
        if failure.wait is not None:
            self.holds.keep(failure.wait)
        await self.journal.append(self.entry(question, failure.kind, failure.raw, failure.status, charged=charged))
        return self.dispatch.failure_kept(question, failure, charged=charged)

    async def keep_reply(self, question: Question, raw: bytes) -> bool:
        """Journal a reply, then read it."""
        charged = self.dispatch.charges(question)
        number = await self.journal.append(self.entry(question, "reply", raw, 200, charged=charged))
        reply = fully_counted(self.client.read(raw), question.outgoing, self.client.identity)
        leaves = self.dispatch.reply_kept(question, reply, charged=charged, now=time.monotonic())
        reading = Reading(reading_of(question.ended, reply), reply.usage, self.dispatch.purse.cost(reply.usage))
        self.journal.note(number, reading)
        question.read.append((number, reading))
        return leaves

    def entry(self, question: Question, kind: str, raw: bytes, status: int, *, charged: bool) -> Entry:
        """Make the journal's entry of an exchange; its attempt is how many tries are used up with it."""
        attempt = question.row.tries + charged
        body, model = question.outgoing.body, self.client.model
        return Entry(question.key, self.run, attempt, "online", status, kind, raw, body, model=model)
