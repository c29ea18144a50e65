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
from dataclasses import replace

from culturekit.llm.client import Client, Failure, Reply, Usage, for_storage
from culturekit.llm.dispatch import Dispatch, Later
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import Entry
from culturekit.llm.pace import DurableHold
from culturekit.llm.rows import Question, heard, reading_of
from culturekit.llm.usage import fully_counted

LONGEST_CLOSE = 2.0  # seconds that closing connections may take
LONGEST_FINISH = 60.0  # seconds that requests under way may still take when the run has ended: they are paid for
SHORT_FINISH = 2.0  # the same when the run has ended because nothing comes


class Wire:
    """Sends questions until told to stop; those that leave come back through `left`, None when nothing more comes.

    Whatever goes wrong in the thread, in a request, in the journal or between them, ends the dispatch with that error
    and puts None into `left`: whoever waits there never waits for a thread that has failed.
    """

    def __init__(
        self, client: Client, journal: Journal, dispatch: Dispatch, hold: DurableHold, *, run: str, longest: float
    ) -> None:
        """Start the thread."""
        self.client = client
        self.journal = journal
        self.dispatch = dispatch
        self.hold = hold
        self.run = run
        self.longest = longest
        dispatch.limiter.held_until = time.monotonic() + hold.left()
        self.asked: queue.SimpleQueue[Sequence[Question]] = queue.SimpleQueue()
        self.left: queue.SimpleQueue[list[Question] | None] = queue.SimpleQueue()
        self.leaving: list[Question] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.leave_by = math.inf
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
        """Add questions, from any thread."""
        self.asked.put(questions)
        self.wake()

    def stop(self, ending: BaseException, *, grace: float) -> None:
        """Send nothing more; what is under way may take some seconds still, then it is cancelled. From any thread."""
        self.dispatch.end(ending)
        self.leave_by = time.monotonic() + grace
        self.wake()

    def wake(self) -> None:
        """Let the thread look around."""
        with contextlib.suppress(RuntimeError, AttributeError):  # its loop has ended, or never began
            self.loop.call_soon_threadsafe(self.woken.set)

    def talk(self) -> None:
        """Run the event loop of this thread; nothing that is raised in it gets lost."""
        try:
            asyncio.run(self.work())
        except BaseException as error:
            self.dispatch.end(error)
        finally:
            self.started.set()
            self.left.put(None)

    async def work(self) -> None:
        """Send until the dispatch has ended, then wait for what is under way."""
        self.loop, self.woken = asyncio.get_running_loop(), asyncio.Event()
        self.started.set()
        try:
            await self.send_until_ended()
        except Exception as error:
            self.dispatch.end(error)
        finally:
            await self.drain()
            self.hand_over()
            self.left.put(None)

    async def send_until_ended(self) -> None:
        """Send all that may be sent, and look again when something changes."""
        while True:
            self.woken.clear()
            while not self.asked.empty():
                for question in self.asked.get():
                    self.dispatch.add(question)
            self.hand_over()
            move = self.dispatch.next(time.monotonic())
            while not isinstance(move, Later):
                self.send(move)
                move = self.dispatch.next(time.monotonic())
            if self.dispatch.ending is not None:
                return
            await self.change(move.until)

    def send(self, question: Question) -> None:
        """Let a question be answered while others are sent."""
        task = self.loop.create_task(self.exchange(question))
        self.tasks.add(task)
        task.add_done_callback(self.came_back)

    def came_back(self, task: "asyncio.Task[None]") -> None:
        """Look after what ended; an error that no client should raise ends the run."""
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.dispatch.end(error)
        self.woken.set()

    async def change(self, until: float) -> None:
        """Wait until something happens, or until a time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(None if math.isinf(until) else until):
                await self.woken.wait()

    async def drain(self) -> None:
        """Wait for what is under way, which is paid for, but not without end; then close the connections."""
        until = time.monotonic() + (SHORT_FINISH if self.dispatch.out_of_patience else LONGEST_FINISH)
        while self.tasks and time.monotonic() < min(until, self.leave_by):
            self.woken.clear()
            await self.change(min(until, self.leave_by))
            self.hand_over()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        with contextlib.suppress(Exception):
            async with asyncio.timeout(LONGEST_CLOSE):
                await self.client.close()

    def hand_over(self) -> None:
        """Pass on what has left, all of one turn together."""
        if self.leaving:
            self.left.put(self.leaving)
            self.leaving = []

    async def exchange(self, question: Question) -> None:
        """Send a question, keep what comes, then look into it."""
        leaving = self.dispatch.purse.leaves(question)
        if leaving:
            await self.journal.write(leaving)
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
        """Heed a failure at once, then journal it, unless nothing was asked."""
        charged = self.dispatch.failure_came(question, failure, time.monotonic())
        if failure.wait is not None:
            self.hold.keep(failure.wait)
        facts = self.dispatch.purse.came(question, sold=failure.may_be_sold)
        if not failure.sent:
            if facts:
                self.journal.write_soon(facts)
            return self.dispatch.failure_kept(question, failure, charged=charged)
        entry = self.entry(question, failure.kind, failure.raw, failure.status, charged=charged)
        await self.journal.append(entry, facts)
        return self.dispatch.failure_kept(question, failure, charged=charged)

    async def keep_reply(self, question: Question, raw: bytes) -> bool:
        """Journal a reply, then read it as it came."""
        charged = self.dispatch.charges(question)
        stored = for_storage(self.client, raw)
        entry = self.entry(question, "reply", stored, 200, charged=charged)
        number = await self.journal.append(entry, self.dispatch.purse.came(question))
        reply = self.read(question, raw, stored)
        unsure = self.dispatch.purse.unsure
        leaves = self.dispatch.reply_kept(question, reply, charged=charged, now=time.monotonic())
        reading = self.dispatch.purse.reading(reading_of(question.ended, reply), reply.usage)
        self.journal.note(number, reading)
        if self.dispatch.purse.unsure > unsure:
            self.journal.write_soon([self.dispatch.purse.unsure_fact()])
        question.read.append((number, reading))
        return leaves

    def read(self, question: Question, raw: bytes, stored: bytes) -> Reply:
        """Read a reply as it came; where it echoes our key, as it is stored, as far as that says no less."""
        reply = fully_counted(self.client.read(raw), question.outgoing, self.client.identity)
        if stored == raw:
            return reply
        blanked = fully_counted(self.client.read(stored), question.outgoing, self.client.identity)
        return blanked if self.gist(question, blanked) == self.gist(question, reply) else reply

    def gist(self, question: Question, reply: Reply) -> tuple[Reply, str]:
        """Give what a reply says apart from its words, and what its row makes of it."""
        step = heard(question.row, reply, tries=self.dispatch.tries)
        usage = reply.usage if reply.usage.counted == "provider" else Usage()
        return replace(reply, text="", detail="", usage=usage), reading_of(step, reply)

    def entry(self, question: Question, kind: str, raw: bytes, status: int, *, charged: bool) -> Entry:
        """Make the journal's entry of an exchange; its attempt is how many tries are used up with it."""
        attempt = question.row.tries + charged
        body, model = question.outgoing.body, self.client.model
        return Entry(question.key, self.run, attempt, "online", status, kind, raw, body, model=model)
