"""Many questions, each answered once: journalled first, never bought twice, within limits and a budget, in order.

```
requests -> composed, looked up in the journal (asking) -> answered from there (replaying), or
         -> what may go when (dispatch: rows, limits, outages, money) -> the wire -> the journal -> the answer
```

Ctrl-C while questions are under way: the first press winds down, the second leaves at once. Both are safe: what came
back is on disk before it counts. SIGTERM is heeded like the first press.
"""

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from types import FrameType

from culturekit.errors import CultureKitError
from culturekit.llm.asking import Asking, Replay
from culturekit.llm.client import LONGEST_TIMEOUT, PATIENCE, Client, Failure, FreeClient, Request
from culturekit.llm.dispatch import Dispatch, OutOfMoney, WaitNotices, out_of_money, run_ended_by
from culturekit.llm.journal import Journal
from culturekit.llm.pace import DurableHold, Limiter
from culturekit.llm.prices import check_alive
from culturekit.llm.probing import probe_once
from culturekit.llm.purse import Purse, check_price
from culturekit.llm.reply_watch import ReplyWatch
from culturekit.llm.rows import Answered, Question, Row, failed, heard
from culturekit.llm.usage import Budget
from culturekit.llm.wire import LONGEST_FINISH, Wire
from culturekit.records.work import Progress
from culturekit.stages.offline import check_sending


def ask_free(client: FreeClient, requests: Iterable[Request]) -> Iterator[Answered]:
    """Answer requests in their order; one reply that is no answer is repaired, as with any client."""
    for request in requests:
        step: Row | Answered = Row(request)
        while isinstance(step, Row):
            step = ask_once(client, step)
        yield step


def ask_once(client: FreeClient, row: Row) -> Row | Answered:
    """Ask what a row asks now; the same client says the same again, so there is one try."""
    try:
        reply = client.ask(row.request)
    except Failure as failure:
        if failure.kind == "fatal":
            raise run_ended_by(failure, client.model) from failure
        return failed(row, failure, tries=1)
    if reply.stop == "unreadable":
        return Answered("invalid", detail=reply.detail, raw=reply.text)
    return heard(row, reply, tries=1)


INTERRUPTED = 130  # the exit code of a command that was interrupted


@contextlib.contextmanager
def interruptible(wind_down: Callable[[], None]) -> Iterator[None]:
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
            os._exit(INTERRUPTED)
        pressed = True
        wind_down()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, heed) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


DRAIN_SECONDS = 4.0  # how long replies under way are waited for when a run is interrupted
LEAVE_SECONDS = 4.8
TELL_SECONDS = 0.5

SECONDS_BETWEEN = 1.0
SECONDS_LOOKED_BACK = 30.0


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How answers are bought; none of it decides what they say.

    `budget` is in US dollars; `patience` is how many seconds may pass without any reply before the run is given up,
    to be resumed later; `longest` is how many seconds one request of a client may
    take that knows no timeout itself. `watch` ends the run when most of what comes cannot be used. With `go_on` a model
    is asked that is shut.
    """

    concurrency: int = 16
    budget: float | None = None
    tries: int = 6
    patience: float = PATIENCE
    longest: float = 1.1 * LONGEST_TIMEOUT
    watch: ReplyWatch | None = None
    go_on: bool = False


class AskEngine:
    """Answers requests through one client and one journal; a run may go on after a kill under the same tag."""

    def __init__(
        self,
        client: Client | FreeClient,
        journal: Journal | None,
        options: AskOptions,
        *,
        run: str = "",
        progress: Progress | None = None,
    ) -> None:
        """Name what works together; nothing is sent yet. A free client needs no journal."""
        self.client = client
        self.journal = journal
        self.options = options
        self.run = run
        self.progress = progress

    def ask_all(self, requests: Iterable[Request]) -> Iterator[Answered]:
        """Answer requests, in their order.

        Raises:
            BudgetReached: the next request could cost more than is left; everything bought is kept.
            UnusableReplies: more than half of what came cannot be used; everything bought is kept.
            UpstreamUnavailable: the provider does not answer; everything bought is kept.
            UsageError: a key, a model or a price is missing or wrong.
            KeyboardInterrupt: the run was interrupted; everything bought is kept.
        """
        if isinstance(self.client, FreeClient):
            yield from ask_free(self.client, requests)
            return
        if self.journal is None:
            raise CultureKitError("a client that costs money needs a journal")
        total = len(requests) if isinstance(requests, Sized) else None
        yield from Pass(self, self.client, self.journal, requests, total).answers()


class Pass:
    """One call of `ask_all`: pulls, looks up, sends, and gives out in order."""

    def __init__(
        self, engine: AskEngine, client: Client, journal: Journal, requests: Iterable[Request], total: int | None
    ) -> None:
        """Prepare everything but the wire, which starts with the first question that must be sent."""
        options = engine.options
        self.engine, self.client, self.journal, self.options = engine, client, journal, options
        self.purse = Purse(client.rate, client.identity, Budget(options.budget))
        self.purse.look_back(journal)
        replay = Replay(journal, self.purse, client, run=engine.run, tries=options.tries)
        self.asking = Asking(client, journal, replay, requests, watch=options.watch)
        self.total = total
        self.meter = AskProgress(engine.progress) if engine.progress else None
        self.wire: Wire | None = None
        self.notices: WaitNotices | None = None
        self.given = 0
        self.left = False

    def answers(self) -> Iterator[Answered]:
        """Give the answers out; leave the wire behind in order, whatever happens."""
        try:
            with interruptible(self.leave):
                yield from self.answered()
        finally:
            self.leave()

    def answered(self) -> Iterator[Answered]:
        """Give the answers out as they come."""
        while True:
            for answered in self.asking.closed():
                self.given += 1
                if self.options.watch is not None:
                    self.options.watch.count(answered)
                yield answered
            self.tell()
            self.look_at_replies()
            if self.asking.has_room():
                self.send(self.asking.pull())
            elif self.asking.rows:
                self.wait()
            else:
                return

    def look_at_replies(self) -> None:
        """End the run where most of what came cannot be used; what is under way is paid for, and waited for."""
        watch = self.options.watch
        if watch is None or not watch.stops or not self.asking.unfinished():
            return
        if self.wire is not None:
            self.wire.stop(watch.error(self.client.model), grace=LONGEST_FINISH)
            while (questions := self.wire.next_left(TELL_SECONDS)) is not None:
                self.asking.came_back(questions)
        raise watch.error(self.client.model)

    def send(self, questions: Sequence[Question]) -> None:
        """Hand questions to the wire."""
        if not questions:
            return
        if self.wire is None:
            self.wire = self.start()
        self.wire.add(questions)

    def start(self) -> Wire:
        """Start the wire, once it is clear that what is sent can be paid for."""
        check_sending(self.client.model)
        check_price(self.client)
        check_alive(self.client.identity, go_on=self.options.go_on)
        self.purse.remember_in(self.journal, self.engine.run)
        hold = DurableHold(self.journal, self.client.identity, self.options.patience)
        began = time.monotonic()
        replied = probe_once(self.client, self.journal, self.purse, hold, run=self.engine.run)
        limiter = Limiter(self.client.quota, self.options.concurrency)
        dispatch = Dispatch(
            self.client.model, limiter, self.purse, tries=self.options.tries, patience=self.options.patience
        )
        if not replied:
            dispatch.outage.sent(began)
        self.notices = WaitNotices(dispatch)
        return Wire(self.client, self.journal, dispatch, hold, run=self.engine.run, longest=self.options.longest)

    def wait(self) -> None:
        """Wait until some questions come back, and pass them on."""
        if self.wire is None:
            raise CultureKitError("rows are open and nothing is under way")
        questions = self.wire.next_left(TELL_SECONDS)
        if questions is None:
            raise self.ending(self.wire)
        self.send(self.asking.came_back(questions))

    def ending(self, wire: Wire) -> BaseException:
        """Say why the wire ended before the rows did."""
        ending = wire.dispatch.ending
        if isinstance(ending, OutOfMoney):
            done = self.given + sum(question.answered is not None for question in self.asking.rows)
            return out_of_money(ending, self.client.model, done=done, total=self.total)
        return ending or CultureKitError("the wire ended without a reason")

    def leave(self) -> None:
        """Send nothing more, and wait a little for what is under way."""
        if self.wire is not None and not self.left:
            self.left = True
            self.wire.stop(KeyboardInterrupt(), grace=DRAIN_SECONDS)
            self.wire.thread.join(LEAVE_SECONDS)

    def tell(self) -> None:
        """Say how it goes, and what is waited for."""
        if self.notices is not None:
            self.notices.give(time.monotonic())
        if self.meter is not None and self.wire is not None:
            limit = self.wire.dispatch.limiter.in_words()
            self.meter.tell(tokens=self.purse.tokens, spent=self.purse.paid, limit=limit)


class AskProgress:
    """Counts, and tells at most once a second."""

    def __init__(self, progress: Progress) -> None:
        """Start with nothing done."""
        self.progress = progress
        self.last = time.monotonic()
        self.past: deque[tuple[float, int]] = deque([(self.last, 0)])

    def tell(self, *, tokens: int, spent: float | None, limit: str) -> None:
        """Say how it goes, if it is time."""
        now = time.monotonic()
        if now - self.last < SECONDS_BETWEEN:
            return
        self.last = now
        self.past.append((now, tokens))
        while now - self.past[0][0] > SECONDS_LOOKED_BACK and len(self.past) > 2:
            self.past.popleft()
        self.progress.tell(self.line(spent, limit))

    def line(self, spent: float | None, limit: str) -> str:
        """Write the line, money first; its speed is that of the last half minute."""
        (since, tokens_then), (now, tokens) = self.past[0], self.past[-1]
        cost = "cost unknown" if spent is None else f"${spent:,.4f}"
        return f"{cost}, {(tokens - tokens_then) / max(now - since, 1e-9):,.0f} tokens/s, {limit}"
