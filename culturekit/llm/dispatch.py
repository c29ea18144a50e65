"""What is sent when: rows, waits, limits, outages and money decide together.

Everything here is arithmetic on times that come in, so any schedule can be played without waiting. Whoever owns the
wire asks `next` until it says to wait, and reports how each request ended.

When everything fails, a circuit breaker lets one probe at a time go out, with growing pauses between. Rows that fail
while others succeed have themselves to blame; only rows whose every failure lies after the last success are evidence of
an outage.
"""

import heapq
import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from culturekit.errors import BudgetReached, CultureKitError, UpstreamUnavailable, UsageError
from culturekit.llm.client import Failure, Reply, Usage
from culturekit.llm.pace import Limiter, retry_wait
from culturekit.llm.purse import Purse
from culturekit.llm.rows import CLOSING, Answered, Question, Row, failed, failure_text, heard
from culturekit.llm.usage import dollars

# Statuses of a fatal failure that a flag, a key or a name mends.
OF_THE_USER = frozenset({400, 401, 403, 404, 405, 422})


@dataclass(frozen=True, slots=True)
class OutOfMoney:
    """The next question may cost more than what is left; `unsure` is what of the spent may not have been billed."""

    limit: float
    spent: float
    needed: float
    unsure: float = 0.0


def run_ended_by(failure: Failure, model: str) -> CultureKitError:
    """Make the error of a fatal failure: the user's to mend where a key or a name is wrong, else the provider's."""
    hint = "Everything bought is kept; run the same command again when this is mended."
    kind = UsageError if failure.status in OF_THE_USER or not failure.status else UpstreamUnavailable
    return kind(failure.detail, where=model, found=f"status {failure.status}" if failure.status else "", hint=hint)


def given_up(model: str, *, patience: float, held_for: float, last: str) -> UpstreamUnavailable:
    """Make the error of a provider that has brought nothing for too long, or says that it will not for as long."""
    hint = "Everything bought is kept; run the same command again later."
    if held_for > 0.0:
        return UpstreamUnavailable(
            f"the provider asks to wait {math.ceil(held_for)} s, longer than the patience of {patience:g} s",
            where=model,
            found=last,
            hint=hint,
        )
    if "connection refused" in last:
        hint = (
            "Nobody listens there: start the server, or mend base_url; patience= in the SPEC waits longer. Everything "
            "bought is kept."
        )
    return UpstreamUnavailable(f"no reply for {patience:g} s", where=model, found=last, hint=hint)


def out_of_money(money: OutOfMoney, model: str, *, done: int, total: int | None) -> BudgetReached:
    """Make the error of a budget: how many rows are done, and what the rest needs, as far as can be told."""
    rows = f"{done:,} rows are" if total is None else f"{done:,} of {total:,} rows are"
    more = f"the next question can cost up to ${money.needed:.6f}"
    if total is not None and done and money.spent > 0.0:
        rest = (total - done) * money.spent / done
        more += f", and the rest about ${rest:.4f} at what rows cost so far"
        hint = f"Run the same command again with a budget of ${money.spent + rest + money.needed:.4f} or more."
    else:
        hint = "Run the same command again with a larger budget."
    paid = f"${money.spent - money.unsure:.6f}"
    if money.unsure > 0.0:
        paid += f" and up to ${money.unsure:.6f} for replies that did not come or were not counted"
    return BudgetReached(
        f"the budget of ${money.limit:g} is reached: {rows} done for {paid}, {more}",
        where=model,
        hint=f"Everything bought is kept. {hint}",
    )


FAILING_ROWS = 8  # as many different rows in a row make an outage
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 20.0


class Outage:
    """Whether the model as a whole is out of service, as far as what came back tells."""

    def __init__(self) -> None:
        """Start with no evidence."""
        self.failing: set[int] = set()
        self.last_success = -math.inf
        # Since when something was sent and nothing was answered; None where nothing is owed.
        self.silent_since: float | None = None
        self.opened_at: float | None = None
        self.next_probe = 0.0
        self.pause = FIRST_PAUSE

    @property
    def open(self) -> bool:
        """Whether only probes may go out."""
        return self.opened_at is not None

    def sent(self, now: float) -> None:
        """Hear that a request left."""
        self.silent_since = now if self.silent_since is None else self.silent_since

    def succeeded(self, *, sent: float, now: float, owed: int) -> bool:
        """Hear that a reply came; True when that ends an outage. One that was sent before the outage does not.

        `owed` is how many requests are still under way.
        """
        self.last_success = now
        self.silent_since = now if owed else None
        self.failing.clear()
        if self.opened_at is not None and sent < self.opened_at:
            return False
        ended, self.opened_at, self.pause = self.open, None, FIRST_PAUSE
        return ended

    def failed(self, row: int, *, first_sent: float, sent: float, now: float) -> bool:
        """Hear that a try of a row failed; True when that begins an outage.

        `first_sent` is when the first try of the row that failed was sent, `sent` when this one was.
        """
        if self.opened_at is not None:
            if sent >= self.opened_at:
                self.next_probe = now + self.pause
                self.pause = min(self.pause * 2.0, LONGEST_PAUSE)
            return False
        if first_sent > self.last_success:
            self.failing.add(row)
        if len(self.failing) < FAILING_ROWS:
            return False
        self.opened_at, self.next_probe = now, now + FIRST_PAUSE
        self.pause = FIRST_PAUSE * 2.0
        return True

    def gives_up_at(self, patience: float) -> float:
        """Say when patience ends, if nothing succeeds until then."""
        return math.inf if self.silent_since is None else self.silent_since + patience


# Tries after which the waits of a row that never left grow no more: a server that comes back is seen soon.
UNSENT_AT_MOST = 4


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing may be sent before a time, or, without one, before something else happens."""

    until: float = math.inf


Move: TypeAlias = Question | Later  # what to do now: send this question, or wait


class Dispatch:
    """The state of all rows that are to be sent to one model."""

    def __init__(self, model: str, limiter: Limiter, purse: Purse, *, tries: int, patience: float) -> None:
        """Start with nothing to send."""
        self.model = model
        self.limiter = limiter
        self.purse = purse
        self.outage = Outage()
        self.tries = tries
        self.full_patience = self.patience = patience
        self.ready: list[tuple[int, Question]] = []
        self.waiting: list[tuple[float, int, Question]] = []
        self.in_flight = 0
        self.unfailed = 0
        self.last_failure = ""
        self.failed: Failure | None = None  # what came last, unless it was a reply
        self.out_of_patience = False
        self.ending: CultureKitError | OutOfMoney | BaseException | None = None

    def add(self, question: Question) -> None:
        """Add a row that has to be sent."""
        self.unfailed += question.failures == 0
        heapq.heappush(self.ready, (question.place, question))

    def end(self, ending: CultureKitError | OutOfMoney | BaseException) -> None:
        """Send nothing any more; the first reason counts."""
        self.ending = self.ending or ending

    def next(self, now: float) -> Move:
        """Say what to do now."""
        gives_up = self.outage.gives_up_at(self.patience)
        if now >= gives_up or self.limiter.held_until > min(gives_up, now + self.patience):
            held_for = self.limiter.held_until - now
            self.out_of_patience = True
            self.end(given_up(self.model, patience=self.patience, held_for=held_for, last=self.last_failure))
        if self.ending is not None:
            return Later()
        while self.waiting and self.waiting[0][0] <= now:
            _, place, question = heapq.heappop(self.waiting)
            heapq.heappush(self.ready, (place, question))
        due = self.due(now)
        if due > now:
            return Later(min(due, gives_up))
        question = self.choose()
        if self.purse.reserve(question):
            return self.send(question, now)
        heapq.heappush(self.ready, (question.place, question))
        if self.in_flight == 0:
            budget = self.purse.budget
            self.end(OutOfMoney(dollars(budget.limit or 0), budget.spent, question.reserved, self.purse.unsure))
        return Later()

    def due(self, now: float) -> float:
        """Say when something can be sent, as far as is known now."""
        if not self.ready:
            return self.waiting[0][0] if self.waiting else math.inf
        if self.in_flight >= (1 if self.outage.open else self.limiter.at_once()):
            return math.inf
        return max(self.limiter.due(now), self.outage.next_probe if self.outage.open else now)

    def choose(self) -> Question:
        """Take the first row in order; as a probe rather one that has not failed, or seldom."""
        if not self.outage.open:
            return heapq.heappop(self.ready)[1]
        chosen = min(self.ready, key=lambda entry: (entry[1].failures, entry[0]))
        self.ready.remove(chosen)
        heapq.heapify(self.ready)
        return chosen[1]

    def send(self, question: Question, now: float) -> Question:
        """Count a row as sent."""
        self.in_flight += 1
        self.outage.sent(now)
        question.expected_tokens = self.limiter.sent(question.input_guess, question.outgoing.max_tokens, now)
        question.sent = now
        question.bought = True
        return question

    def charges(self, question: Question) -> bool:
        """Say whether a failure now is one of the row's tries; in an outage it is not, unless every row has failed."""
        others = self.unfailed - (question.failures == 0)
        return not self.outage.open or others == 0

    def failure_came(self, question: Question, failure: Failure, now: float) -> bool:
        """Hear of a failure the moment it comes, so that its hint counts at once; say whether it is charged."""
        charged = failure.sent and self.charges(question)
        self.failed = failure
        self.patience = min(self.full_patience, failure.patience or self.full_patience)
        stated = failure.detail if not failure.status else ""
        self.last_failure = stated or failure_text(failure.kind, failure.status)
        self.limiter.failed(failure, now, sent=question.sent)
        if failure.kind == "fatal":
            self.end(run_ended_by(failure, self.model))
        elif failure.kind in CLOSING:
            self.serving_again(question, now, owed=self.in_flight - 1)
        else:
            self.count_failure(question, now)
        tries = question.failures if failure.sent else min(question.failures, UNSENT_AT_MOST)
        question.ready = now + retry_wait(question.key, tries, hint=failure.wait)
        return charged

    def failure_kept(self, question: Question, failure: Failure, *, charged: bool) -> bool:
        """Count a failure that is on disk; True when the row leaves."""
        self.in_flight -= 1
        if failure.may_be_sold:
            self.purse.keep(question)
        else:
            self.purse.free(question)
        if failure.kind == "fatal":
            return False
        return self.stepped(question, failed(question.row, failure, tries=self.tries, charged=charged))

    def reply_kept(self, question: Question, reply: Reply, *, charged: bool, now: float) -> bool:
        """Count a reply that is on disk; True when the row leaves: it ended, or its repair is to be prepared."""
        self.in_flight -= 1
        if reply.stop == "unreadable":
            self.purse.doubt(question.reserved)
            self.purse.keep(question)
            self.last_failure = "a reply that cannot be read"
            self.failed = Failure("server", self.last_failure)
            self.count_failure(question, now)
            question.ready = now + retry_wait(question.key, question.failures)
        else:
            self.purse.settle(question, reply.usage)
            self.serving_again(question, now, owed=self.in_flight)
            usage = self.believable(question, reply.usage)
            self.limiter.succeeded(question.expected_tokens, question.input_guess, usage, now)
        return self.stepped(question, heard(question.row, reply, tries=self.tries, charged=charged))

    def believable(self, question: Question, usage: Usage) -> Usage:
        """Give the tokens that decide the pace: no more than were asked for, lest a claim of millions stops the run."""
        sent, came = self.purse.bound(question), question.outgoing.max_tokens
        if usage.input_tokens <= sent and usage.output_tokens <= came:
            return usage
        return Usage(min(usage.input_tokens, sent), min(usage.output_tokens, came))

    def serving_again(self, question: Question, now: float, *, owed: int) -> None:
        """Hear that the provider answered; after an outage everything begins slowly."""
        self.failed, self.patience = None, self.full_patience
        if self.outage.succeeded(sent=question.sent, now=now, owed=owed):
            self.limiter.restart()

    def count_failure(self, question: Question, now: float) -> None:
        """Count a failure that may pass, as evidence of an outage too."""
        if question.failures == 0:
            question.first_sent = question.sent
            self.unfailed -= 1
        question.failures += 1
        self.outage.failed(question.place, first_sent=question.first_sent, sent=question.sent, now=now)

    def stepped(self, question: Question, step: Row | Answered) -> bool:
        """Put a row where its step leads: to its end, to its repair, or to wait for its next try."""
        if isinstance(step, Row) and step.repairing == question.row.repairing:
            question.row = step
            heapq.heappush(self.waiting, (question.ready, question.place, question))
            return False
        self.unfailed -= question.failures == 0
        if isinstance(step, Answered):
            question.ended = step
        else:
            question.row = step
        return True


logger = logging.getLogger(__name__)

LASTING = 3.0
# Seconds of failures, and of a wait that a server asks for, that are worth a line. A server that is not there, and a
# reply that took too long, are said at once.
LONG_HOLD = 3.0
APART = 60.0  # seconds between two lines about the same
QUIET = 15.0  # seconds without a reply after which a line says that one is awaited; twice as many the next time


class WaitNotices:
    """Watches the dispatch of one model."""

    def __init__(self, dispatch: Dispatch) -> None:
        """Start with nothing said."""
        self.dispatch = dispatch
        self.failing_since: float | None = None
        self.failing_next = self.hold_next = 0.0
        self.quiet = QUIET

    def give(self, now: float) -> None:
        """Say what is to be said now."""
        for sentence in self.due(now):
            logger.warning("%s: %s", self.dispatch.model, sentence)

    def due(self, now: float) -> Iterator[str]:
        """List what is to be said now."""
        since = self.dispatch.outage.silent_since
        silent = 0.0 if since is None else now - since
        failed = self.dispatch.failed
        if failed is None:
            yield from self.about_quiet(silent, now)
        elif now >= self.failing_next and (silent >= LASTING or not failed.sent or failed.kind == "timeout"):
            self.failing_next = now + APART
            self.failing_since = self.failing_since or now - silent
            yield retrying(self.dispatch.last_failure, self.dispatch.patience - silent)
        held = self.dispatch.limiter.held_until - now
        if held >= LONG_HOLD and now >= self.hold_next:
            self.hold_next = now + max(held, APART)
            yield f"the server asks to wait {spoken(held)}: nothing is sent until then; Ctrl-C keeps everything"

    def about_quiet(self, silent: float, now: float) -> Iterator[str]:
        """Say that failures are over, or that replies are awaited."""
        if self.failing_since is not None:
            yield answers_again(now - self.failing_since)
            self.failing_since = None
        if silent >= self.quiet and self.dispatch.in_flight:
            self.quiet *= 2.0
            awaited = f"{self.dispatch.in_flight:,} awaited"
            left = spoken(self.dispatch.patience - silent)
            yield f"no reply for {spoken(silent)}, {awaited}; waiting for {left} more; Ctrl-C keeps everything"


def retrying(why: str, left: float) -> str:
    """Say that a server does not answer, why, and how long it is asked again."""
    return f"{why}: server does not answer, retrying for {spoken(left)}; Ctrl-C keeps everything"


def answers_again(after: float) -> str:
    """Say that it is over."""
    return f"the server answers again, after {spoken(after)}"


def spoken(seconds: float) -> str:
    """Write a length of time as people say it."""
    if seconds < 100.0:
        return f"{max(seconds, 0.0):.0f} s"
    return f"{seconds / 60.0:.0f} minutes" if seconds < 6000.0 else f"{seconds / 3600.0:.0f} hours"
