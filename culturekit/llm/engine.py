"""Many questions, each answered once: journalled first, never bought twice, within limits and a budget, in order.

```
requests -> composed, looked up in the journal -> answered from there, or
         -> what may go when (dispatch: rows, limits, outages, money) -> the wire -> the journal -> the answer
```

Ctrl-C while questions are under way: the first press winds down, the second leaves at once. Both are safe: what came
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

import msgspec

from culturekit.core.addresses import check_sending
from culturekit.core.choices import ANSWERED
from culturekit.core.errors import BudgetReached, CultureKitError
from culturekit.core.work import Progress
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
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import Entry, Reading, key_of
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
NOTHING = Outgoing(b"")  # what stands in a row that has ended, so that it holds on to nothing
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


class Asker:
    """One asking of one client into one journal, by whichever transport; what is journalled is not asked again."""

    def __init__(self, client: Client, journal: Journal, options: AskOptions, run: str) -> None:
        """Sum what the journal holds; nothing is sent yet."""
        self.client, self.journal, self.options, self.run = client, journal, options, run
        self.purse = Purse(client.rate, client.identity, Budget(options.budget))
        self.purse.look_back(journal)

    def check_sending(self) -> None:
        """Make sure that something may be sent, to a model that is there, at a price that is known."""
        check_sending(self.client.model)
        check_price(self.client)
        check_alive(self.client.identity, go_on=self.options.go_on)
        check_listed(self.client.identity, go_on=self.options.go_on)

    def take_in(self, question: Question, entries: Iterable[Entry]) -> bool:
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
        reply = self.counted(question, entry)
        if reply.stop == "unreadable":
            row = replace(row, tries=entry.attempt)
        step = heard(row, reply, tries=tries, charged=False)
        answers = isinstance(step, Answered) and step.outcome in ANSWERED
        if entry.run != self.run and not answers and entry.outcome not in ANSWERED:
            return question.row  # of other runs only answers count, and the invalid reply before a repaired one
        self._note(question, entry, reply, step)
        return step

    def counted(self, question: Question, entry: Entry) -> Reply:
        """Read a reply, and count what its server did not; of a row in a batch the request is composed for that."""
        reply, outgoing = self.client.read(entry.raw), question.outgoing
        if not outgoing.body and not (entry.outcome and reply.usage.counted == "provider"):
            outgoing = self.client.compose(question.row.request)
        return fully_counted(reply, outgoing, self.client.identity)

    def _note(self, question: Question, entry: Entry, reply: Reply, step: Row | Answered) -> None:
        """Note what an entry says, where a kill came before that."""
        outcome = reading_of(step, reply)
        if entry.outcome and not question.row.repairing and outcome != "invalid":
            return
        if entry.outcome:
            reading = Reading(outcome, reply.usage, self.purse.cost(reply.usage, entry.mode))
        else:
            reading = self.purse.reading(outcome, reply.usage, entry.mode)
            self.journal.note(entry.number, reading)
            if reply.usage.counted == "here" and question.outgoing.body:
                self.purse.doubt(max(self.purse.worst(question) - (reading.usd or 0.0), 0.0))
        if entry.outcome != "repaired":
            question.read.append((entry.number, reading))

    def note_repaired(self, question: Question) -> None:
        """Note that what came before a repaired answer is part of it."""
        if question.ended is not None and question.ended.outcome == "repaired":
            for number, reading in question.read[:-1]:
                self.journal.note(number, Reading("repaired", reading.usage, reading.usd))

    def out_of_money(self, needed: float, *, done: int, total: int | None) -> BudgetReached:
        """Build the error of a budget: how many rows are done, and what the rest needs, as far as can be told."""
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


class AskEngine(Asker):
    """Asks one by one: pulls, looks up, sends, and gives out in order; a run goes on after a kill under its tag."""

    def __init__(
        self, client: Client, journal: Journal, options: AskOptions, *, run: str = "", progress: Progress | None = None
    ) -> None:
        """Prepare everything but the wire, which starts with the first question that must be sent."""
        super().__init__(client, journal, options, run)
        self.source: Iterator[Request] = iter(())
        self.pulled, self.all_pulled = 0, False
        self.total: int | None = None
        self.rows: deque[Question] = deque()  # those between the first not given out and the last that was pulled
        self.asked: dict[bytes, Question] = {}
        self.weight = self.given = 0
        self.meter = _Meter(progress) if progress else None
        self.wire: Wire | None = None
        self.notices: WaitNotices | None = None
        self.left = False

    def ask_all(self, requests: Iterable[Request]) -> Generator[Answered]:
        """Answer requests, in their order; leave the wire in order, whatever happens.

        Raises:
            BudgetReached: the next request could cost more than is left; everything bought is kept.
            UnusableReplies: more than half of what came cannot be used; everything bought is kept.
            UpstreamUnavailable: the provider does not answer; everything bought is kept.
            UsageError: a key, a model or a price is missing or wrong.
            KeyboardInterrupt: the run was interrupted; everything bought is kept.
        """
        self.source = iter(requests)
        self.total = len(requests) if isinstance(requests, Sized) else None
        try:
            with _interruptible(self._leave):
                yield from self._answered()
        finally:
            self._leave()

    def _answered(self) -> Iterator[Answered]:
        watch = self.options.watch
        while True:
            while self.rows and (answered := self.rows[0].answered) is not None:
                self.rows.popleft()
                self.given += 1
                if watch is not None:
                    watch.count(answered)
                yield answered
            if self.notices is not None:
                for sentence in self.notices.due(time.monotonic()):
                    logger.warning("%s: %s", self.client.model, sentence)
            if self.meter is not None and self.wire is not None:
                self.meter.tell(self.purse, self.wire.dispatch.limiter)
            if watch is not None and watch.stops:
                self._end_unusable(watch)
            if (chunk := self._chunk()) > 0:
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
        if self.wire is not None:
            self.wire.stop(watch.error(self.client.model), grace=_LONGEST_FINISH)
            while (questions := self.wire.next_left(_TELL_SECONDS)) is not None:
                self._came_back(questions)
        raise watch.error(self.client.model)

    def _chunk(self) -> int:
        """Return how many rows may be pulled now: few, until it is known that replies can be used."""
        if self.all_pulled or len(self.rows) >= WINDOW or self.weight >= _WINDOW_BYTES:
            return 0
        ahead = None if self.options.watch is None else self.options.watch.ahead
        return CHUNK if ahead is None else min(ahead - len(self.rows), CHUNK)

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
        question.outgoing = self.client.compose(question.row.request)
        question.key = key_of(self.client.identity, question.outgoing)
        question.input_bound = question.failures = 0

    def _look_up(self, questions: Sequence[Question]) -> list[Question]:
        """Take questions as far as the journal goes; give those that must be sent."""
        to_send = []
        while questions:
            found = self.journal.found([question.key for question in questions], run=self.run)
            repairs = []
            for question in questions:
                if self.take_in(question, found.get(question.key, ())):
                    self._compose(question)
                    repairs.append(question)
                elif question.ended is not None:
                    self._close(question)
                elif self._is_first(question):
                    to_send.append(question)
            questions = repairs
        return to_send

    def _is_first(self, question: Question) -> bool:
        """Check whether nobody else is asking the same; a twin waits for what comes for the first."""
        first = self.asked.setdefault(question.key, question)
        if first is not question:
            first.twins.append(question)
            return False
        question.input_guess = estimate(question.outgoing, self.client.identity)
        self.weight += question.weight()
        return True

    def _came_back(self, questions: Sequence[Question]) -> list[Question]:
        """Read what left the wire: rows that ended, and rows whose repair is to be asked; give what must be sent."""
        to_look_up = []
        for question in questions:
            self.weight -= question.weight()
            del self.asked[question.key]
            to_look_up += question.twins
            question.twins = []
            if question.ended is None:
                self._compose(question)
                to_look_up.append(question)
            else:
                self._close(question)
        return self._look_up(to_look_up)

    def _close(self, question: Question) -> None:
        """Let go of what a row needed while it was asked."""
        ended = question.ended
        self.note_repaired(question)
        question.answered = replace(ended, bought=True) if ended is not None and question.bought else ended
        question.read, question.row, question.outgoing = [], _ENDED, NOTHING

    def _send(self, questions: Sequence[Question]) -> None:
        """Hand questions to the wire, which starts once it is clear that what is sent can be paid for."""
        if questions:
            self.wire = self.wire or self._start()
            self.wire.add(questions)

    def _start(self) -> "Wire":
        client, options = self.client, self.options
        self.check_sending()
        self.purse.remember_in(self.journal, self.run)
        hold = DurableHold(self.journal, client.identity, options.patience)
        began = time.monotonic()
        replied = probe_once(client, self.journal, self.purse, hold, run=self.run)
        limiter = Limiter(client.quota, options.concurrency)
        dispatch = Dispatch(client.model, limiter, self.purse, tries=options.tries, patience=options.patience)
        if not replied:
            dispatch.outage.sent(began)
        self.notices = WaitNotices(dispatch)
        return Wire(client, self.journal, dispatch, hold, run=self.run, longest=options.longest)

    def _wait(self) -> None:
        if self.wire is None:
            raise CultureKitError("rows are open and nothing is under way")
        questions = self.wire.next_left(_TELL_SECONDS)
        if questions is not None:
            self._send(self._came_back(questions))
            return
        ending = self.wire.dispatch.ending
        if isinstance(ending, OutOfMoney):
            done = self.given + sum(question.answered is not None for question in self.rows)
            raise self.out_of_money(ending.needed, done=done, total=self.total)
        raise ending or CultureKitError("the wire ended without a reason")

    def _leave(self) -> None:
        """Send nothing more, and wait a little for what is under way."""
        if self.wire is not None and not self.left:
            self.left = True
            self.wire.stop(KeyboardInterrupt(), grace=_DRAIN)
            self.wire.thread.join(_LEAVE)


class Wire:
    """Sends questions until told to stop; those that leave come back through `left`, None when nothing more comes.

    Whatever goes wrong in the thread, in a request, in the journal or between them, ends the dispatch with that error
    and puts None into `left`: whoever waits there never waits for a thread that has failed.
    """

    def __init__(
        self, client: Client, journal: Journal, dispatch: Dispatch, hold: DurableHold, *, run: str, longest: float
    ) -> None:
        """Start the thread."""
        self.client, self.journal, self.dispatch, self.hold = client, journal, dispatch, hold
        self.run, self.longest = run, longest
        dispatch.limiter.held_until = time.monotonic() + hold.left()
        self.asked: queue.SimpleQueue[Sequence[Question]] = queue.SimpleQueue()
        self.left: queue.SimpleQueue[list[Question] | None] = queue.SimpleQueue()
        self.leaving: list[Question] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.leave_by = math.inf
        self.started = threading.Event()
        self.thread = threading.Thread(target=self._talk, name="wire", daemon=True)
        self.thread.start()
        self.started.wait()

    def next_left(self, timeout: float) -> list[Question] | None:
        """Return what has left since the last call, waiting a while for it; None when nothing more comes."""
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
        self._wake()

    def stop(self, ending: BaseException, *, grace: float) -> None:
        """Send nothing more; what is under way may take some seconds still, then it is cancelled. From any thread."""
        self.dispatch.end(ending)
        self.leave_by = time.monotonic() + grace
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError, AttributeError):  # its loop has ended, or never began
            self.loop.call_soon_threadsafe(self.woken.set)

    def _talk(self) -> None:
        """Run the event loop of this thread; nothing that is raised in it gets lost."""
        try:
            asyncio.run(self._work())
        except BaseException as error:
            self.dispatch.end(error)
        finally:
            self.started.set()
            self.left.put(None)

    async def _work(self) -> None:
        """Send until the dispatch has ended, then wait for what is under way."""
        self.loop, self.woken = asyncio.get_running_loop(), asyncio.Event()
        self.started.set()
        try:
            await self._send_until_ended()
        except Exception as error:
            self.dispatch.end(error)
        finally:
            await self._drain()
            self._hand_over()

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
        """Wait until something happens, or until a time."""
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
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_LONGEST_CLOSE):
                await self.client.close()

    def _hand_over(self) -> None:
        if self.leaving:
            self.left.put(self.leaving)
            self.leaving = []

    async def _exchange(self, question: Question) -> None:
        if leaving := self.dispatch.purse.leaves(question):
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
        facts = self.dispatch.purse.came(question, sold=failure.may_be_sold)
        if failure.sent:
            entry = self._entry(question, failure.kind, failure.raw, failure.status, charged=charged)
            await self.journal.append(entry, facts)
        elif facts:
            self.journal.write_soon(facts)
        return self.dispatch.failure_kept(question, failure, charged=charged)

    async def _keep_reply(self, question: Question, raw: bytes) -> bool:
        """Journal a reply, then read it as it came."""
        purse, charged = self.dispatch.purse, self.dispatch.charges(question)
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
