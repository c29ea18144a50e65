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
import time
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from culturekit.core.errors import CultureKitError, UpstreamUnavailable, UsageError
from culturekit.llm.client import Failure, Identity, Quota, Reply, Usage
from culturekit.llm.journal import Journal
from culturekit.llm.purse import Purse
from culturekit.llm.rows import CLOSING, Answered, Question, Row, failed, failure_text, heard

logger = logging.getLogger(__name__)

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
_JITTER = 0.25  # waits are drawn out by up to this share, never shortened
# How many seconds later than a server's hint allows we begin, so that no rounding of a clock makes it too early.
_LATE = 0.002


def retry_wait(key: bytes, tries: int, *, hint: float | None = None) -> float:
    """Return the seconds until the next try: doubled with each that failed, and never less than a server's hint.

    The jitter comes from the key of the row, so that rows that failed together come back apart, and a schedule can be
    repeated.
    """
    if hint is not None:
        return max(hint, 0.0) + _LATE
    fraction = zlib.crc32(key + tries.to_bytes(4, "big")) / 2**32
    return min(FIRST_WAIT * 2.0 ** max(tries - 1, 0), LONGEST_WAIT) * (1.0 + _JITTER * fraction)


_STEP, _LARGEST_STEP, _SMALL_STEP = 0.01, 0.03, 0.0003
_SECONDS_TO_GROW = 20.0  # how long it takes, at most, from little to the ceiling
_REMEMBERED = 50.0  # requests over which the share of refusals is taken
_OFTEN = 0.25  # the share of refusals from which on the tempo is to blame
_A_MINUTE = 1.0 / 60.0
_NEAR = 0.05
_SLOWER, _MUCH_SLOWER = 0.9, 0.5  # what is left of the tempo after a refusal, and after one that follows closely
_SELDOM = 50  # successes between two refusals above which nothing has to be limited that is not limited yet
_CLOSELY = 30  # successes between two refusals below which the tempo is far from what is allowed, not a little above it


class _Tempo:
    """So many units a second; infinite as long as nothing is stated or learnt."""

    def __init__(self, a_minute: float | None) -> None:
        self.ceiling = math.inf if a_minute is None else a_minute * _HEADROOM / 60.0
        self.per_second = self.ceiling
        self.mark = self.tested = math.inf
        self.successes = _SELDOM
        self.refused_share = 0.0
        self.blameless = False

    def succeeded(self) -> None:
        """Grow a little: to the ceiling or the mark in good time, also where successes are seldom."""
        self.successes += 1
        self.refused_share -= self.refused_share / _REMEMBERED
        if self.per_second >= self.ceiling or math.isinf(self.per_second):
            return
        if self.mark * (1.0 - _NEAR) <= self.per_second < self.mark * (1.0 + _NEAR):
            step = _SMALL_STEP * self.mark
        else:
            least = 0.0 if math.isinf(min(self.ceiling, self.mark)) else 1.0 / _SECONDS_TO_GROW
            step = max(min(_STEP * self.per_second, _LARGEST_STEP), least)
        self.per_second = min(self.per_second + step, self.ceiling)

    def refused(self, *, minute: float, lately: float) -> None:
        """Slow down; what went through a second, in the last minute and lately, is a guess at what is allowed."""
        limited, successes = not math.isinf(self.per_second), self.successes
        self.successes = 0
        if self._blameless() or (not limited and successes >= _SELDOM):
            return
        before = self.per_second if limited else max(lately, minute, _A_MINUTE)
        if successes >= _CLOSELY and limited:
            self.mark, self.per_second = before, before * _SLOWER
        elif before * _MUCH_SLOWER <= minute <= before:
            self.mark, self.per_second = minute, minute * _SLOWER
        else:
            self.mark, self.per_second = math.inf, max(before, minute) * _MUCH_SLOWER
        if self.refused_share >= _OFTEN or self.mark < math.inf or math.isinf(self.tested):
            self.tested = before

    def _blameless(self) -> bool:
        """Tell whether refusals do not depend on the tempo: they are seldom, and half the tempo did not end them."""
        if self.refused_share >= _OFTEN:
            self.blameless = False
        elif self.per_second < self.tested * _MUCH_SLOWER and not math.isinf(self.tested):
            self.blameless = True
            self.per_second, self.mark, self.tested = self.ceiling, math.inf, math.inf
        return self.blameless


_HEADROOM = 0.97  # the share of a stated quota that is aimed at; the rest is for clocks that differ
_FIRST_WINDOW = 4.0  # how many requests go at once in the beginning
_FEWER = 0.7  # the share of them that is left after an overload
# Seconds for which nothing is sent after a refusal without a hint; doubled while nothing succeeds.
_FIRST_HOLD, _LONGEST_HOLD = 0.5, 20.0
_LEARNING = 0.05
# The statuses of servers that have too much to do, or a tired one behind them; a 500 is a matter of the request.
_OVERLOADED = frozenset({502, 503, 504, 529})
_LONGEST_PACE_WAIT = 60.0  # seconds; what is allowed a minute is allowed again by then, however much was sent at once
_MAKE_UP = 0.1  # seconds of the pace that may be sent at once, so that a late timer costs nothing of the quota
_MINUTE, _LATELY, _SHORTEST = 60.0, 2.0, 0.25


class Limiter:
    """The limits of one model in one run."""

    def __init__(self, quota: Quota, concurrency: int) -> None:
        """Start slowly, below what is allowed."""
        self.most = float(concurrency)
        self.window = min(_FIRST_WINDOW, self.most)
        self.slow_start_until = self.most
        self.quota = quota
        self.request_tempo, self.token_tempo = _Tempo(quota.requests), _Tempo(quota.tokens)
        self.requests, self.tokens = _Pace(), _Pace()
        self.granted: deque[int] = deque()  # the seconds in which requests succeeded, of the last minute
        self.first_granted = math.inf
        self.typical_output: float | None = None
        self.input_ratio = 1.0
        self.held_until = self.decreased_at = -math.inf
        self.hold = _FIRST_HOLD
        self._set_paces()

    def at_once(self) -> int:
        """Return how many requests may be under way at the same time."""
        return max(int(self.window), 1)

    def due(self, now: float) -> float:
        """Return when the next request may go, now or later."""
        return max(self.held_until, self.requests.due(now), self.tokens.due(now))

    def sent(self, input_guess: int, max_tokens: int, now: float) -> float:
        """Count a request as sent; give the tokens that it is expected to take."""
        output = max_tokens if self.typical_output is None else min(self.typical_output, max_tokens)
        expected = input_guess * self.input_ratio + output
        for pace, units in ((self.requests, 1.0), (self.tokens, expected)):
            pace.even = max(pace.even, now)
            pace.correct(units, now)
        return expected

    def succeeded(self, expected: float, input_guess: int, usage: Usage, now: float) -> None:
        """Record a reply, and of how many tokens it took in truth; learn what requests of this kind take."""
        self.tokens.correct(usage.input_tokens + usage.output_tokens - expected, now)
        if input_guess and usage.input_tokens:
            self.input_ratio += (usage.input_tokens / input_guess - self.input_ratio) * _LEARNING
        typical = usage.output_tokens if self.typical_output is None else self.typical_output
        self.typical_output = typical + (usage.output_tokens - typical) * _LEARNING
        self.first_granted = min(self.first_granted, now)
        self.granted.append(int(now))
        while self.granted[0] <= int(now) - _MINUTE:
            self.granted.popleft()
        self.hold = _FIRST_HOLD
        self.window = min(self.window + (1.0 if self.window < self.slow_start_until else 1.0 / self.window), self.most)
        self.request_tempo.succeeded()
        self.token_tempo.succeeded()
        self._set_paces()

    def failed(self, failure: Failure, now: float, *, sent: float) -> None:
        """Record a failure of a request that was sent at a time."""
        if failure.wait is not None:
            self.held_until = max(self.held_until, now + max(failure.wait, 0.0) + _LATE)
        if failure.kind == "busy":
            for tempo in (self.request_tempo, self.token_tempo):
                tempo.refused_share += (1.0 - tempo.refused_share) / _REMEMBERED
        too_much = failure.kind in {"busy", "timeout"} or failure.status in _OVERLOADED
        if not too_much or sent <= self.decreased_at:
            return
        self.decreased_at = now
        self.window = self.slow_start_until = max(self.window * _FEWER, 1.0)
        if failure.kind == "busy":
            self._slow_down(now, hinted=failure.wait is not None)

    def _slow_down(self, now: float, *, hinted: bool) -> None:
        """Go slower after a refusal; without a hint, wait longer each time until something succeeds."""
        if not hinted:
            self.held_until = max(self.held_until, now + self.hold)
            self.hold = min(self.hold * 2.0, _LONGEST_HOLD)
        if self.quota.requests is not None or self.quota.tokens is None:
            lasted = min(max(now - min(self.first_granted, now), _SHORTEST), _LATELY)
            lately = sum(second > now - _LATELY for second in self.granted) / lasted
            minute = sum(second > now - _MINUTE for second in self.granted) / _MINUTE
            self.request_tempo.refused(minute=minute, lately=lately)
        if self.quota.tokens is not None:
            self.token_tempo.refused(minute=0.0, lately=0.0)
        self._set_paces()

    def restart(self) -> None:
        """Begin slowly again after an outage."""
        self.window, self.slow_start_until = min(_FIRST_WINDOW, self.most), self.most
        for tempo in (self.request_tempo, self.token_tempo):
            tempo.per_second *= _MUCH_SLOWER
        self._set_paces()

    def _set_paces(self) -> None:
        self.requests.per_second = max(self.request_tempo.per_second, 1 / 60)
        self.tokens.per_second = max(self.token_tempo.per_second, 1.0)

    def in_words(self) -> str:
        """Say the limit in force now, for people."""
        pace = self.requests.per_second
        rate = "" if math.isinf(pace) else f", {pace * 60.0:,.0f} requests/min"
        return f"{self.at_once()} at once{rate}"


class _Pace:
    """So many units a second, a little of what was missed made up for, never more; without a rate, at any time."""

    def __init__(self) -> None:
        self.per_second = math.inf
        self.even = -math.inf  # when all that was sent would have been sent, had it gone evenly

    def due(self, now: float) -> float:
        return max(now, self.even - _MAKE_UP)

    def correct(self, units: float, now: float) -> None:
        """Count units on top, or take units back, that turned out to be more or fewer than thought."""
        self.even = min(self.even + units / self.per_second, now + _LONGEST_PACE_WAIT)


_WORTH_KEEPING = 0.25  # seconds; a shorter hint has expired before anything could be started again


class DurableHold:
    """When a model may be asked again: kept by the clock on the wall, which is believed as far as the hint goes."""

    def __init__(self, journal: Journal, identity: Identity, patience: float) -> None:
        """Name the model, and how long a run waits at most."""
        self.journal = journal
        self.model = identity.model
        self.fact = f"held:{identity.base_url} {identity.model}"
        self.patience = patience
        self.until = -math.inf
        self.passed_over = False

    def keep(self, wait: float) -> None:
        """Write down a hint that reaches further than those before."""
        until = time.monotonic() + wait
        if wait >= _WORTH_KEEPING and until > self.until:
            self.until = until
            self.journal.remember(self.fact, f"{time.time() + wait!r} {wait!r}".encode())

    def left(self) -> float:
        """Return the seconds that are still to be waited for.

        A clock that was ahead when the hint came, or is behind now, makes them no more than the hint itself. A hint
        longer than patience ended the run that got it: the next run was started to see whether the server answers.
        """
        try:
            until, *waits = [float(part) for part in (self.journal.recall(self.fact) or b"").split()]
        except ValueError:  # no hint, or none that can be read
            return 0.0
        left = until - time.time()
        wait = waits[0] if waits else left  # earlier versions did not note how long the hint was
        if not math.isfinite(left) or not math.isfinite(wait):
            return 0.0
        if left > 0.0 and wait > self.patience:
            if not self.passed_over:
                asked = f"earlier the server asked to be left alone for {left:.0f} s more"
                logger.warning("%s: %s; it is asked whether it answers now", self.model, asked)
            self.passed_over = True
            return 0.0
        return max(min(left, wait), 0.0)


# Statuses of a fatal failure that a flag, a key or a name mends.
_OF_THE_USER = frozenset({400, 401, 403, 404, 405, 422})


@dataclass(frozen=True, slots=True)
class OutOfMoney:
    """The next question may cost more than what is left."""

    needed: float


def run_ended_by(failure: Failure, model: str) -> CultureKitError:
    """Build the error of a fatal failure: the user's to mend where a key or a name is wrong, else the provider's."""
    hint = "Everything bought is kept; run the same command again when this is mended."
    kind = UsageError if failure.status in _OF_THE_USER or not failure.status else UpstreamUnavailable
    return kind(failure.detail, where=model, found=f"status {failure.status}" if failure.status else "", hint=hint)


def given_up(model: str, *, patience: float, held_for: float, last: str) -> UpstreamUnavailable:
    """Build the error of a provider that has brought nothing for too long, or says that it will not for as long."""
    hint = "Everything bought is kept; run the same command again later."
    what = f"no reply for {patience:g} s"
    if held_for > 0.0:
        what = f"the provider asks to wait {math.ceil(held_for)} s, longer than the patience of {patience:g} s"
    elif "connection refused" in last:
        hint = "Nobody listens there: start the server, or mend base_url; patience= in the SPEC waits longer. "
        hint += "Everything bought is kept."
    return UpstreamUnavailable(what, where=model, found=last, hint=hint)


_FAILING_ROWS = 8  # as many different rows in a row make an outage
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 20.0


class _Outage:
    """Whether the model as a whole is out of service, as far as what came back tells."""

    def __init__(self) -> None:
        self.failing: set[int] = set()
        self.last_success = -math.inf
        self.silent_since: float | None = None  # since when something is owed and nothing was answered
        self.opened_at = math.inf  # when it began
        self.next_probe = 0.0
        self.pause = _FIRST_PAUSE

    @property
    def open(self) -> bool:
        return self.opened_at < math.inf

    def sent(self, now: float) -> None:
        self.silent_since = now if self.silent_since is None else self.silent_since

    def succeeded(self, *, sent: float, now: float, owed: int) -> bool:
        """Record that a reply came; True when that ends an outage. One that was sent before the outage does not.

        `owed` is how many requests are still under way.
        """
        self.last_success = now
        self.silent_since = now if owed else None
        self.failing.clear()
        if self.open and sent < self.opened_at:
            return False
        ended, self.opened_at, self.pause = self.open, math.inf, _FIRST_PAUSE
        return ended

    def failed(self, row: int, *, first_sent: float, sent: float, now: float) -> bool:
        """Record a failed try of a row; give True when an outage begins with it.

        `first_sent` is when the first try of the row that failed was sent, `sent` when this one was.
        """
        if self.open:
            if sent >= self.opened_at:
                self.next_probe = now + self.pause
                self.pause = min(self.pause * 2.0, _LONGEST_PAUSE)
            return False
        if first_sent > self.last_success:
            self.failing.add(row)
        if len(self.failing) < _FAILING_ROWS:
            return False
        self.opened_at, self.next_probe = now, now + _FIRST_PAUSE
        self.pause = _FIRST_PAUSE * 2.0
        return True


_UNSENT_AT_MOST = 4  # tries after which the waits of a row that never left grow no more: who comes back is seen soon


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing may be sent before a time, or, without one, before something else happens."""

    until: float = math.inf


class Dispatch:
    """The state of all rows that are to be sent to one model."""

    def __init__(self, model: str, limiter: Limiter, purse: Purse, *, tries: int, patience: float) -> None:
        """Start with nothing to send."""
        self.model = model
        self.limiter = limiter
        self.purse = purse
        self.outage = _Outage()
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
        heapq.heappush(self.ready, (question.index, question))

    def end(self, ending: CultureKitError | OutOfMoney | BaseException) -> None:
        """Send nothing any more; the first reason counts."""
        self.ending = self.ending or ending

    def next(self, now: float) -> Question | Later:
        """Return what to do now."""
        silent_since = self.outage.silent_since
        gives_up = math.inf if silent_since is None else silent_since + self.patience
        if now >= gives_up or self.limiter.held_until > min(gives_up, now + self.patience):
            held_for = self.limiter.held_until - now
            self.out_of_patience = True
            self.end(given_up(self.model, patience=self.patience, held_for=held_for, last=self.last_failure))
        if self.ending is not None:
            return Later()
        while self.waiting and self.waiting[0][0] <= now:
            _, number, question = heapq.heappop(self.waiting)
            heapq.heappush(self.ready, (number, question))
        due = self._due(now)
        if due > now:
            return Later(min(due, gives_up))
        question = self._choose()
        if self.purse.reserve(question):
            self.in_flight += 1
            self.outage.sent(now)
            question.expected_tokens = self.limiter.sent(question.input_guess, question.outgoing.max_tokens, now)
            question.sent, question.bought = now, True
            return question
        heapq.heappush(self.ready, (question.index, question))
        if self.in_flight == 0:
            self.end(OutOfMoney(question.reserved))
        return Later()

    def _due(self, now: float) -> float:
        """Return when something can be sent, as far as is known now."""
        if not self.ready:
            return self.waiting[0][0] if self.waiting else math.inf
        if self.in_flight >= (1 if self.outage.open else self.limiter.at_once()):
            return math.inf
        return max(self.limiter.due(now), self.outage.next_probe if self.outage.open else now)

    def _choose(self) -> Question:
        """Take the first row in order; for a probe, the row that has failed least."""
        if not self.outage.open:
            return heapq.heappop(self.ready)[1]
        chosen = min(self.ready, key=lambda entry: (entry[1].failures, entry[0]))
        self.ready.remove(chosen)
        heapq.heapify(self.ready)
        return chosen[1]

    def charges(self, question: Question) -> bool:
        """Check whether a failure now is one of the row's tries: not in an outage, unless every row has failed."""
        others = self.unfailed - (question.failures == 0)
        return not self.outage.open or others == 0

    def failure_came(self, question: Question, failure: Failure, now: float) -> bool:
        """Record a failure the moment it comes, so that its hint counts at once; say whether it is charged."""
        charged = failure.sent and self.charges(question)
        self.failed = failure
        self.patience = min(self.full_patience, failure.patience or self.full_patience)
        stated = failure.detail if not failure.status else ""
        self.last_failure = stated or failure_text(failure.kind, failure.status)
        self.limiter.failed(failure, now, sent=question.sent)
        if failure.kind == "fatal":
            self.end(run_ended_by(failure, self.model))
        elif failure.kind in CLOSING:
            self._serving_again(question, now, owed=self.in_flight - 1)
        else:
            self._count_failure(question, now)
        tries = question.failures if failure.sent else min(question.failures, _UNSENT_AT_MOST)
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
        return self._stepped(question, failed(question.row, failure, tries=self.tries, charged=charged))

    def reply_kept(self, question: Question, reply: Reply, *, charged: bool, now: float) -> bool:
        """Count a reply that is on disk; True when the row leaves: it ended, or its repair is to be prepared."""
        self.in_flight -= 1
        if reply.stop == "unreadable":
            self.purse.doubt(question.reserved)
            self.purse.keep(question)
            self.last_failure = "a reply that cannot be read"
            self.failed = Failure("server", self.last_failure)
            self._count_failure(question, now)
            question.ready = now + retry_wait(question.key, question.failures)
        else:
            self.purse.settle(question, reply.usage)
            self._serving_again(question, now, owed=self.in_flight)
            # No more tokens than were asked for decide the pace, lest a claim of millions stops the run.
            sent, came = self.purse.bound(question), question.outgoing.max_tokens
            usage = Usage(min(reply.usage.input_tokens, sent), min(reply.usage.output_tokens, came))
            self.limiter.succeeded(question.expected_tokens, question.input_guess, usage, now)
        return self._stepped(question, heard(question.row, reply, tries=self.tries, charged=charged))

    def _serving_again(self, question: Question, now: float, *, owed: int) -> None:
        """Record that the provider answered; after an outage everything begins slowly."""
        self.failed, self.patience = None, self.full_patience
        if self.outage.succeeded(sent=question.sent, now=now, owed=owed):
            self.limiter.restart()

    def _count_failure(self, question: Question, now: float) -> None:
        """Count a failure that may pass, as evidence of an outage too."""
        if question.failures == 0:
            question.first_sent = question.sent
            self.unfailed -= 1
        question.failures += 1
        self.outage.failed(question.index, first_sent=question.first_sent, sent=question.sent, now=now)

    def _stepped(self, question: Question, step: Row | Answered) -> bool:
        """Put a row where its step leads: to its end, to its repair, or to wait for its next try."""
        if isinstance(step, Row) and step.repairing == question.row.repairing:
            question.row = step
            heapq.heappush(self.waiting, (question.ready, question.index, question))
            return False
        self.unfailed -= question.failures == 0
        if isinstance(step, Answered):
            question.ended = step
        else:
            question.row = step
        return True


_LASTING = 3.0
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

    def due(self, now: float) -> Iterator[str]:
        """List what is to be said now."""
        since = self.dispatch.outage.silent_since
        silent = 0.0 if since is None else now - since
        failed = self.dispatch.failed
        if failed is None:
            yield from self._about_quiet(silent, now)
        elif now >= self.failing_next and (silent >= _LASTING or not failed.sent or failed.kind == "timeout"):
            self.failing_next = now + APART
            self.failing_since = self.failing_since or now - silent
            yield retrying(self.dispatch.last_failure, self.dispatch.patience - silent)
        held = self.dispatch.limiter.held_until - now
        if held >= LONG_HOLD and now >= self.hold_next:
            self.hold_next = now + max(held, APART)
            yield f"the server asks to wait {spoken(held)}: nothing is sent until then; Ctrl-C keeps everything"

    def _about_quiet(self, silent: float, now: float) -> Iterator[str]:
        """Report that failures are over, or that replies are awaited."""
        if self.failing_since is not None:
            yield answers_again(now - self.failing_since)
            self.failing_since = None
        if silent >= self.quiet and self.dispatch.in_flight:
            self.quiet *= 2.0
            awaited = f"{self.dispatch.in_flight:,} awaited"
            left = spoken(self.dispatch.patience - silent)
            yield f"no reply for {spoken(silent)}, {awaited}; waiting for {left} more; Ctrl-C keeps everything"


def retrying(why: str, left: float) -> str:
    """Report that a server does not answer, why, and how long it is asked again."""
    return f"{why}: server does not answer, retrying for {spoken(left)}; Ctrl-C keeps everything"


def answers_again(after: float) -> str:
    """Report that it is over."""
    return f"the server answers again, after {spoken(after)}"


def spoken(seconds: float) -> str:
    """Write a length of time as people say it."""
    if seconds < 100.0:
        return f"{max(seconds, 0.0):.0f} s"
    return f"{seconds / 60.0:.0f} minutes" if seconds < 6000.0 else f"{seconds / 3600.0:.0f} hours"
