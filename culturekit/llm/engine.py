"""Many questions, each answered once: journalled first, never bought twice, within limits and a budget, in order.

```
requests -> composed, looked up in the journal -> answered from there, or
         -> a transport -> the journal -> the answer, a repair, or another try
```

A transport brings questions to the provider and what came into the journal: the wire below asks one by one, as the
dispatch allows; `batch_runner.Jobs` asks in batch jobs, which are collected later. All else is the same for both.

Ctrl-C while questions are on the wire: the first press winds down, the second leaves at once. Both are safe: what came
back is on disk before it counts. SIGTERM is heeded like the first press.
"""

import asyncio
import contextlib
import logging
import math
import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import chain, islice
from types import FrameType
from typing import Protocol

import msgspec

from culturekit.core.addresses import check_sending
from culturekit.core.choices import ANSWERED
from culturekit.core.errors import BudgetReached, CultureKitError
from culturekit.core.stage import Progress
from culturekit.llm.client import (
    LONGEST_TIMEOUT,
    PATIENCE,
    Client,
    Failure,
    FreeClient,
    Outgoing,
    Reply,
    Request,
    Usage,
    for_storage,
)
from culturekit.llm.dispatch import Dispatch, DurableHold, Later, Limiter, OutOfMoney, WaitNotices, run_ended_by
from culturekit.llm.journal import Entry, Journal, Reading, key_of
from culturekit.llm.price_update import check_listed
from culturekit.llm.prices import check_alive
from culturekit.llm.probing import probe_once
from culturekit.llm.purse import Purse, check_price
from culturekit.llm.rows import Answered, Question, ReplyWatch, Row, failed, heard, reading_of
from culturekit.llm.usage import Budget, dollars, estimate, fully_counted

logger = logging.getLogger(__name__)

CHUNK = 256  # requests that are composed and looked up together
WINDOW = 8192  # rows by which the wire may be ahead of the first row that has not ended
_WINDOW_BYTES = 64 * 2**20  # the same in bytes that leave
NOTHING = Outgoing(b"")  # what stands in a row that is not being asked, so that it holds on to nothing
_ENDED = Row(Request("", "", {}, msgspec.Struct))
# Seconds: that closing connections may take; that requests under way, which are paid for, may still take when the run
# has ended, when it ended because nothing comes, and when it was interrupted; until an interrupted run is left.
_LONGEST_CLOSE, _LONGEST_FINISH, _SHORT_FINISH, _DRAIN, _LEAVE = 2.0, 60.0, 2.0, 4.0, 4.8
_TELL_SECONDS, _SECONDS_BETWEEN, _SECONDS_LOOKED_BACK = 0.5, 1.0, 30.0
_INTERRUPTED = 130  # the exit code of a command that was interrupted


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How answers are bought; none of it decides what they say.

    `budget` is in US dollars; `patience` is how many seconds may pass without any reply before the run is given up,
    to be resumed later; `longest` is how many seconds one request of a client may take that knows no timeout itself.
    `watch` ends the run when most of what comes cannot be used. With `go_on` a model is asked that is shut.
    """

    concurrency: int = 16
    budget: float | None = None
    tries: int = 6
    patience: float = PATIENCE
    longest: float = 1.1 * LONGEST_TIMEOUT
    watch: ReplyWatch | None = None
    go_on: bool = False


class Transport(Protocol):
    """A way to the provider: it takes questions, reserves their money, and journals whatever comes of them.

    A question comes back when it has ended, when its repair is to be composed, or when the journal is to be looked at.
    """

    in_jobs: bool  # takes all rows before it sends any, and counts outcomes before each job

    @property
    def ending(self) -> BaseException | OutOfMoney | None:
        """Why nothing more comes, once nothing does."""

    def compose(self, request: Request) -> Outgoing:
        """Write a request as it will leave; nothing is sent."""

    def room(self, rows: int, /) -> int:
        """Return how many rows may be pulled now, where some have not ended."""

    def begin(self, engine: "AskEngine") -> None:
        """Prepare for the first questions that must be sent."""

    def add(self, questions: Sequence[Question]) -> None:
        """Take questions over."""

    def next_left(self, timeout: float, /) -> list[Question] | None:
        """Return what has left since the last call, perhaps nothing; None when nothing more comes."""

    def stop(self, ending: BaseException, /, *, grace: float) -> None:
        """Send nothing more; what is under way may take some seconds still."""

    def leave(self) -> None:
        """Stop at once, and close the connections."""


class AskEngine:
    """Asks one client into one journal, by either transport; a run goes on after a kill under its tag."""

    def __init__(
        self,
        client: Client,
        journal: Journal,
        options: AskOptions,
        *,
        run: str = "",
        progress: Progress | None = None,
        transport: Transport | None = None,
    ) -> None:
        """Sum what the journal holds; the transport, by default the wire, begins when something must be sent."""
        self.client, self.journal, self.options, self.run = client, journal, options, run
        self.purse = Purse(client.rate, client.identity, Budget(options.budget))
        self.purse.look_back(journal)
        self.progress, self.transport = progress, transport or Wire(client, options.watch)
        self.source: Iterator[Request] = iter(())
        self.pulled, self.all_pulled = 0, False
        self.total: int | None = None
        self.rows: deque[Question] = deque()  # those between the first not given out and the last that was pulled
        self.asked: dict[bytes, Question] = {}
        self.given = 0
        self.begun = False

    def ask_all(self, requests: Iterable[Request]) -> Generator[Answered]:
        """Answer requests, in their order; leave the transport in order, whatever happens.

        Batch jobs go on at the provider when the run is left, and whoever asks the same again collects them.

        Raises:
            BudgetReached: the next request could cost more than is left; everything bought is kept.
            UnusableReplies: more than half of what came cannot be used; everything bought is kept.
            UpstreamUnavailable: the provider does not answer, or creates no job; everything bought is kept.
            UsageError: a key, a model or a price is missing or wrong.
            KeyboardInterrupt: the run was interrupted; everything bought is kept.
        """
        self.source = iter(requests)
        self.total = len(requests) if isinstance(requests, Sized) else None
        leave = self.transport.leave
        try:
            with contextlib.nullcontext() if self.transport.in_jobs else _interruptible(leave):
                yield from self._answered()
        finally:
            leave()

    def _answered(self) -> Iterator[Answered]:
        watch = None if self.transport.in_jobs else self.options.watch
        while True:
            while self.rows and (answered := self.rows[0].answered) is not None:
                self.rows.popleft()
                self.given += 1
                if watch is not None:
                    watch.count(answered)
                yield answered
            if watch is not None and watch.stops:
                self._end_unusable(watch)
            if not self.all_pulled and (chunk := self.transport.room(len(self.rows))) > 0:
                self._send(self._pull(chunk))
            elif self.rows:
                self._wait()
            else:
                return

    def _end_unusable(self, watch: ReplyWatch) -> None:
        """End the run, if any row is left; what is under way is paid for, and waited for."""
        if not self.rows and not self.all_pulled:
            following = next(self.source, None)
            self.all_pulled = following is None
            self.source = self.source if following is None else chain([following], self.source)
        if not self.rows and self.all_pulled:
            return
        if self.begun:
            self.transport.stop(watch.error(self.client.model), grace=_LONGEST_FINISH)
            while (questions := self.transport.next_left(_TELL_SECONDS)) is not None:
                self._came_back(questions)
        raise watch.error(self.client.model)

    def _pull(self, chunk: int) -> list[Question]:
        """Pull some requests, take what the journal has, and give those that must be sent."""
        questions: list[Question] = []
        for request in islice(self.source, chunk):
            question = Question(self.pulled + len(questions), Row(request), NOTHING, b"")
            self._compose(question)
            questions.append(question)
        self.all_pulled = len(questions) < chunk
        self.pulled += len(questions)
        self.rows.extend(questions)
        return self._look_up(questions)

    def _compose(self, question: Question) -> None:
        """Compose what a row asks now; a repair has a key of its own."""
        question.outgoing = self.transport.compose(question.row.request)
        question.key = key_of(self.client.identity, question.outgoing)
        question.input_bound = question.failures = 0

    def _look_up(self, questions: Sequence[Question]) -> list[Question]:
        """Take questions as far as the journal goes; give those that must be sent."""
        to_send = []
        while questions:
            found = self.journal.found([question.key for question in questions], run=self.run)
            repairs = []
            for question in questions:
                if self._take_in(question, found.get(question.key, ())):
                    self._compose(question)
                    repairs.append(question)
                elif question.ended is not None:
                    self._close(question)
                elif (first := self.asked.setdefault(question.key, question)) is not question:
                    first.twins.append(question)  # a twin waits for what comes for the first
                else:
                    to_send.append(question)
            questions = repairs
        return to_send

    def _take_in(self, question: Question, entries: Iterable[Entry]) -> bool:
        """Take a question through its entries: of this run all count, of other runs only answers do.

        True when the question has changed to its repair, whose key has entries of its own.
        """
        for entry in entries:
            step, repairing = self._step(question, entry), question.row.repairing
            if isinstance(step, Answered):
                question.ended = step
                return False
            question.row = step
            if step.repairing and not repairing:
                return True
        return False

    def _step(self, question: Question, entry: Entry) -> Row | Answered:
        row, tries = question.row, self.options.tries
        if entry.kind != "reply":
            if entry.run != self.run or entry.kind == "fatal":
                return row
            failure = Failure(entry.kind, "", status=entry.status, raw=entry.raw)  # type: ignore[arg-type]
            return failed(replace(row, tries=entry.attempt), failure, tries=tries, charged=False)
        reply = self._counted(question, entry)
        if reply.stop == "unreadable":
            row = replace(row, tries=entry.attempt)
        step = heard(row, reply, tries=tries, charged=False)
        answers = isinstance(step, Answered) and step.outcome in ANSWERED
        if entry.run != self.run and not answers and entry.outcome not in ANSWERED:
            return question.row  # of other runs only answers count, and the invalid reply before a repaired one
        self._note(question, entry, reply, step)
        return step

    def _counted(self, question: Question, entry: Entry) -> Reply:
        """Read a reply, and count what its server did not."""
        return fully_counted(self.client.read(entry.raw), question.outgoing, self.client.identity)

    def _note(self, question: Question, entry: Entry, reply: Reply, step: Row | Answered) -> None:
        """Note what an entry says, where a kill came before that, or where it came with a job."""
        outcome = reading_of(step, reply)
        if entry.outcome and not question.row.repairing and outcome != "invalid":
            return
        if entry.outcome:
            reading = Reading(outcome, reply.usage, self.purse.cost(reply.usage, entry.mode))
        else:
            reading = self.purse.reading(outcome, reply.usage, entry.mode)
            self.journal.note(entry.number, reading)
            if reply.usage.counted == "here" and not (self.transport.in_jobs and entry.mode == "batch"):
                self.purse.doubt(max(self.purse.worst(question) - (reading.usd or 0.0), 0.0))
        if entry.outcome != "repaired":
            question.read.append((entry.number, reading))

    def _came_back(self, questions: Sequence[Question]) -> list[Question]:
        """Look at what has left the transport; give what must be sent."""
        to_look_up = []
        for question in questions:
            del self.asked[question.key]
            if question.ended is None:
                self._compose(question)
                to_look_up.append(question)
            else:
                self._close(question)
            to_look_up += question.twins
            question.twins = []
        return self._look_up(to_look_up)

    def _close(self, question: Question) -> None:
        """Give a row free to be given out, and let go of what it needed while it was asked."""
        ended = question.ended
        if ended is None:
            raise CultureKitError("a row is closed that has not ended")
        if ended.outcome == "repaired":  # what came before a repaired answer is part of it
            for number, reading in question.read[:-1]:
                self.journal.note(number, Reading("repaired", reading.usage, reading.usd))
        if self.transport.in_jobs and self.options.watch is not None:
            self.options.watch.count(ended)
        question.answered = replace(ended, bought=True) if question.bought else ended
        question.read, question.row, question.outgoing = [], _ENDED, NOTHING

    def _send(self, questions: Sequence[Question]) -> None:
        """Hand questions to the transport, which begins with the first of them."""
        if questions:
            if not self.begun:
                self.begun = True
                self.transport.begin(self)
            self.transport.add(questions)

    def check_sending(self) -> None:
        """Make sure that something may be sent, to a model that is there, at a price that is known."""
        check_sending(self.client.model)
        check_price(self.client)
        check_alive(self.client.identity, go_on=self.options.go_on)
        check_listed(self.client.identity, go_on=self.options.go_on)

    def _wait(self) -> None:
        questions = self.transport.next_left(_TELL_SECONDS)
        if questions is not None:
            self._send(self._came_back(questions))
            return
        ending = self.transport.ending
        if isinstance(ending, OutOfMoney):
            raise self._out_of_money(ending.needed)
        raise ending or CultureKitError("rows are open and nothing is under way")

    def done(self) -> int:
        """Count the rows that have ended."""
        return self.given + sum(question.answered is not None for question in self.rows)

    def _out_of_money(self, needed: float) -> BudgetReached:
        """Build the error of a budget: how many rows are done, and what the rest needs, as far as can be told."""
        done, total = self.done(), self.pulled if self.all_pulled else self.total
        spent, unsure = self.purse.budget.spent, self.purse.unsure
        rows = f"{done:,} rows are" if total is None else f"{done:,} of {total:,} rows are"
        more = f"the next question can cost up to ${needed:.6f}"
        hint = "Run the same command again with a larger budget."
        if total is not None and done and spent > 0.0:
            rest = (total - done) * spent / done
            more += f", and the rest about ${rest:.4g} at what rows cost so far"
            hint = f"Run the same command again with a budget of ${spent + rest + needed:.4g} or more."
        paid = f"${spent - unsure:.6f}"
        if unsure > 0.0:
            paid += f" and up to ${unsure:.6f} for replies that did not come or were not counted"
        return BudgetReached(
            f"the budget of ${dollars(self.purse.budget.limit or 0):g} is reached: {rows} done for {paid}, {more}",
            where=self.client.model,
            hint=f"Everything bought is kept. {hint}",
        )


class Wire:
    """The transport that asks one by one, in a thread of its own, until told to stop.

    Whatever goes wrong in the thread, in a request, in the journal or between them, ends the dispatch with that error
    and puts None into `left`: whoever waits there never waits for a thread that has failed.
    """

    in_jobs = False

    def __init__(self, client: Client, watch: ReplyWatch | None) -> None:
        """Name whom to ask; nothing is sent yet."""
        self.client, self.watch, self.compose = client, watch, client.compose
        self.asked: queue.SimpleQueue[Sequence[Question]] = queue.SimpleQueue()
        self.left: queue.SimpleQueue[list[Question] | None] = queue.SimpleQueue()
        self.leaving: list[Question] = []  # handed over once a turn of the loop, lest each wakes the other thread
        self.tasks: set[asyncio.Task[None]] = set()
        self.weight = 0
        self.leave_by = math.inf
        self.thread: threading.Thread | None = None

    def begin(self, engine: AskEngine) -> None:
        """Start the thread, once it is clear that what is sent can be paid for."""
        client, options = self.client, engine.options
        self.journal, self.run, self.purse, self.longest = engine.journal, engine.run, engine.purse, options.longest
        engine.check_sending()
        self.purse.remember_in(self.journal, self.run)
        self.hold = DurableHold(self.journal, client.identity, options.patience)
        began = time.monotonic()
        replied = probe_once(client, self.journal, self.purse, self.hold, run=self.run)
        limiter = Limiter(client.quota, options.concurrency)
        limiter.held_until = time.monotonic() + self.hold.left()
        self.dispatch = Dispatch(client.model, limiter, self.purse, tries=options.tries, patience=options.patience)
        if not replied:
            self.dispatch.outage.sent(began)
        self.notices = WaitNotices(self.dispatch)
        self.meter = _Meter(engine.progress) if engine.progress else None
        self.thread = threading.Thread(target=self._talk, name="wire", daemon=True)
        self.thread.start()

    @property
    def ending(self) -> BaseException | OutOfMoney | None:
        """Why the dispatch has ended."""
        return self.dispatch.ending

    def room(self, rows: int, /) -> int:
        """Leave room for few rows until it is known that replies can be used, and then for a window of them."""
        if rows >= WINDOW or self.weight >= _WINDOW_BYTES:
            return 0
        ahead = None if self.watch is None else self.watch.ahead
        return CHUNK if ahead is None else min(ahead - rows, CHUNK)

    def add(self, questions: Sequence[Question]) -> None:
        """Add questions, and guess what they will take."""
        for question in questions:
            question.input_guess = estimate(question.outgoing, self.client.identity)
            self.weight += question.weight()
        self.asked.put(questions)
        self._wake()

    def next_left(self, timeout: float, /) -> list[Question] | None:
        """Return what has left since the last call, waiting a while for it, and report how it goes."""
        for sentence in self.notices.due(time.monotonic()):
            logger.warning("%s: %s", self.client.model, sentence)
        if self.meter is not None:
            self.meter.tell(self.purse, self.dispatch.limiter)
        left: list[Question] = []
        with contextlib.suppress(queue.Empty):
            while (questions := self.left.get(timeout=0.0 if left else timeout)) is not None:
                left += questions
            if not left:
                return None
            self.left.put(None)
        self.weight -= sum(question.weight() for question in left)
        return left

    def stop(self, ending: BaseException, /, *, grace: float) -> None:
        """Send nothing more; what is under way may take some seconds still, then it is cancelled."""
        self.dispatch.end(ending)
        self.leave_by = time.monotonic() + grace
        self._wake()

    def leave(self) -> None:
        """Send nothing more, and wait a little for what is under way."""
        if self.thread is not None:
            thread, self.thread = self.thread, None
            self.stop(KeyboardInterrupt(), grace=_DRAIN)
            thread.join(_LEAVE)

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError, AttributeError):  # its loop has ended, or not begun
            self.loop.call_soon_threadsafe(self.woken.set)

    def _talk(self) -> None:
        """Run the event loop of this thread; nothing that is raised in it gets lost."""
        try:
            asyncio.run(self._work())
        except BaseException as error:
            self.dispatch.end(error)
        finally:
            self.left.put(None)

    async def _work(self) -> None:
        """Send until the dispatch has ended, then wait for what is under way."""
        self.woken = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        try:
            await self._send_until_ended()
        except Exception as error:
            self.dispatch.end(error)
        finally:
            await self._drain()

    async def _send_until_ended(self) -> None:
        """Send all that may be sent, and look again when something changes."""
        while True:
            self.woken.clear()
            while not self.asked.empty():
                for question in self.asked.get():
                    self.dispatch.add(question)
            self._hand_over()
            while not isinstance(move := self.dispatch.next(time.monotonic()), Later):
                task = self.loop.create_task(self._exchange(move))
                self.tasks.add(task)
                task.add_done_callback(self._came_back)
            if self.dispatch.ending is not None:
                return
            await self._change(move.until)

    def _came_back(self, task: "asyncio.Task[None]") -> None:
        """Look after what ended; an error that no client should raise ends the run."""
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.dispatch.end(error)
        self.woken.set()

    async def _change(self, until: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(None if math.isinf(until) else until):
                await self.woken.wait()

    async def _drain(self) -> None:
        """Wait for what is under way, which is paid for, but not without end; then close the connections."""
        until = time.monotonic() + (_SHORT_FINISH if self.dispatch.out_of_patience else _LONGEST_FINISH)
        while self.tasks and time.monotonic() < min(until, self.leave_by):
            self.woken.clear()
            await self._change(min(until, self.leave_by))
            self._hand_over()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self._hand_over()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_LONGEST_CLOSE):
                await self.client.close()

    def _hand_over(self) -> None:
        if self.leaving:
            self.left.put(self.leaving)
            self.leaving = []

    async def _exchange(self, question: Question) -> None:
        if leaving := self.purse.leaves(question):
            await self.journal.write(leaving)
        try:
            async with asyncio.timeout(self.longest):
                raw = await self.client.send(question.outgoing)
        except Failure as failure:
            leaves = await self._keep_failure(question, failure)
        except TimeoutError:
            leaves = await self._keep_failure(question, Failure("timeout", f"no reply in {self.longest:g} s"))
        else:
            leaves = await self._keep_reply(question, raw)
        if leaves:
            self.leaving.append(question)

    async def _keep_failure(self, question: Question, failure: Failure) -> bool:
        """Heed a failure at once, then journal it, unless nothing was asked."""
        charged = self.dispatch.failure_came(question, failure, time.monotonic())
        if failure.wait is not None:
            self.hold.keep(failure.wait)
        facts = self.purse.came(question, sold=failure.may_be_sold)
        if failure.sent:
            entry = self._entry(question, failure.kind, failure.raw, failure.status, charged=charged)
            await self.journal.append(entry, facts)
        elif facts:
            self.journal.write_soon(facts)
        return self.dispatch.failure_kept(question, failure, charged=charged)

    async def _keep_reply(self, question: Question, raw: bytes) -> bool:
        """Journal a reply, then read it as it came."""
        purse, charged = self.purse, self.dispatch.charges(question)
        stored = for_storage(self.client, raw)
        entry = self._entry(question, "reply", stored, 200, charged=charged)
        number = await self.journal.append(entry, purse.came(question))
        reply, unsure = self._read(question, raw, stored), purse.unsure
        leaves = self.dispatch.reply_kept(question, reply, charged=charged, now=time.monotonic())
        reading = purse.reading(reading_of(question.ended, reply), reply.usage)
        self.journal.note(number, reading)
        if purse.unsure > unsure:
            self.journal.write_soon([purse.unsure_fact()])
        question.read.append((number, reading))
        return leaves

    def _read(self, question: Question, raw: bytes, stored: bytes) -> Reply:
        """Read a reply as it came; where it echoes our key, as it is stored, as far as that says no less."""
        reply = fully_counted(self.client.read(raw), question.outgoing, self.client.identity)
        if stored == raw:
            return reply
        blanked = fully_counted(self.client.read(stored), question.outgoing, self.client.identity)
        return blanked if self._gist(question, blanked) == self._gist(question, reply) else reply

    def _gist(self, question: Question, reply: Reply) -> tuple[Reply, str]:
        """Return what a reply says apart from its words, and what its row makes of it."""
        step = heard(question.row, reply, tries=self.dispatch.tries)
        usage = reply.usage if reply.usage.counted == "provider" else Usage()
        return replace(reply, text="", detail="", usage=usage), reading_of(step, reply)

    def _entry(self, question: Question, kind: str, raw: bytes, status: int, *, charged: bool) -> Entry:
        """Make the journal's entry of an exchange; its attempt is how many tries are used up with it."""
        attempt, body = question.row.tries + charged, question.outgoing.body
        return Entry(question.key, self.run, attempt, "online", status, kind, raw, body, model=self.client.model)


class _Meter:
    """Reports progress at most once a second, money first, with the speed of the last half minute."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.last = time.monotonic()
        self.past: deque[tuple[float, int]] = deque([(self.last, 0)])

    def tell(self, purse: Purse, limiter: Limiter) -> None:
        now = time.monotonic()
        if now - self.last < _SECONDS_BETWEEN:
            return
        self.last = now
        self.past.append((now, purse.tokens))
        while now - self.past[0][0] > _SECONDS_LOOKED_BACK and len(self.past) > 2:
            self.past.popleft()
        since, before = self.past[0]
        speed = (purse.tokens - before) / max(now - since, 1e-9)
        self.progress.tell(f"{purse.paid_in_words}, {speed:,.0f} tokens/s, {limiter.in_words()}")


def ask_free(client: FreeClient, requests: Iterable[Request]) -> Iterator[Answered]:
    """Answer requests in their order; one reply that is no answer is repaired, as with any client.

    The same client says the same again, so there is one try.
    """
    for request in requests:
        step: Row | Answered = Row(request)
        while isinstance(step, Row):
            try:
                reply = client.ask(step.request)
            except Failure as failure:
                if failure.kind == "fatal":
                    raise run_ended_by(failure, client.model) from failure
                step = failed(step, failure, tries=1)
            else:
                unread = Answered("invalid", detail=reply.detail, raw=reply.text)
                step = unread if reply.stop == "unreadable" else heard(step, reply, tries=1)
        yield step


@contextlib.contextmanager
def _interruptible(wind_down: Callable[[], None]) -> Iterator[None]:
    """Call `wind_down` at the first SIGINT or SIGTERM, then raise KeyboardInterrupt; leave the process at the second.

    `wind_down` returns within a few seconds. Signals reach the main thread only; in another one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = False

    def heed(_: int, __: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            os._exit(_INTERRUPTED)
        pressed = True
        wind_down()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, heed) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
