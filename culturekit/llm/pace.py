"""When requests may go: limits that are stated or learnt, waits after failures, and hints that outlive a kill."""

import logging
import math
import time
import zlib
from collections import deque

from culturekit.llm.client import Failure, Identity, Quota, Usage
from culturekit.llm.journal import Journal

FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0

JITTER = 0.25  # waits are drawn out by up to this share, never shortened
# How many seconds later than a server's hint allows we begin, so that no rounding of a clock makes it too early.
LATE = 0.002


def retry_wait(key: bytes, tries: int, *, hint: float | None = None) -> float:
    """Give the seconds until the next try: doubled with each that failed, and never less than a server's hint.

    The jitter comes from the key of the row, so that rows that failed together come back apart, and a schedule can be
    repeated.
    """
    wait = min(FIRST_WAIT * 2.0 ** max(tries - 1, 0), LONGEST_WAIT)
    drawn_out = wait * (1.0 + JITTER * fraction(key, tries))
    return drawn_out if hint is None else upward(hint)


def upward(hint: float) -> float:
    """Give a server's hint with a little on top, because nothing may be sent before it has expired."""
    return max(hint, 0.0) + LATE


def fraction(key: bytes, tries: int) -> float:
    """Draw a number from 0 to 1 that differs between rows and tries, and is the same each time."""
    return zlib.crc32(key + tries.to_bytes(4, "big")) / 2**32


A_STEP = 0.01
A_STEP_AT_MOST = 0.03
A_SMALL_STEP = 0.0003
SECONDS_TO_GROW = 20.0  # how long it takes, at most, from little to the ceiling
REMEMBERED = 50.0
OFTEN = 0.25  # over how many requests the share of refusals is taken, and from which share on the tempo is to blame
A_MINUTE = 1.0 / 60.0
NEAR = 0.05
SLOWER = 0.9
MUCH_SLOWER = 0.5  # what is left of the tempo after a refusal; the second, after one that follows another closely
SELDOM = 50  # successes between two refusals above which nothing has to be limited that is not limited yet
CLOSELY = 30  # successes between two refusals below which the tempo is far from what is allowed, not a little above it


class Tempo:
    """So many units a second; infinite as long as nothing is stated or learnt."""

    def __init__(self, ceiling: float | None) -> None:
        """Start at the ceiling."""
        self.ceiling = math.inf if ceiling is None else ceiling
        self.per_second = self.ceiling
        self.mark = math.inf
        self.successes = SELDOM
        self.refused_share = 0.0
        self.tested = math.inf
        self.blameless = False

    def succeeded(self) -> None:
        """Grow a little."""
        self.successes += 1
        self.refused_share -= self.refused_share / REMEMBERED
        if self.per_second >= self.ceiling or math.isinf(self.per_second):
            return
        near = self.mark * (1.0 - NEAR) <= self.per_second < self.mark * (1.0 + NEAR)
        step = (
            A_SMALL_STEP * self.mark
            if near
            else max(min(A_STEP * self.per_second, A_STEP_AT_MOST), self.smallest_step())
        )
        self.per_second = min(self.per_second + step, self.ceiling)

    def smallest_step(self) -> float:
        """Give the step that leads to the ceiling or the mark in good time, also where successes are seldom."""
        goal = min(self.ceiling, self.mark)
        return 0.0 if math.isinf(goal) else 1.0 / SECONDS_TO_GROW

    def count_refusal(self) -> None:
        """Count one refusal of many that may be one event."""
        self.refused_share += (1.0 - self.refused_share) / REMEMBERED

    def refused(self, *, minute: float, lately: float) -> None:
        """Slow down; what went through a second, in the last minute and lately, is a guess at what is allowed."""
        if self.has_nothing_to_do_with_it() or (math.isinf(self.per_second) and self.successes >= SELDOM):
            self.successes = 0
            return
        before = max(lately, minute, A_MINUTE) if math.isinf(self.per_second) else self.per_second
        if self.successes >= CLOSELY and not math.isinf(self.per_second):
            self.mark, self.per_second = before, before * SLOWER
        elif before * MUCH_SLOWER <= minute <= before:
            self.mark, self.per_second = minute, minute * SLOWER
        else:
            self.mark, self.per_second = math.inf, max(before, minute) * MUCH_SLOWER
        if self.refused_share >= OFTEN or self.mark < math.inf or math.isinf(self.tested):
            self.tested = before
        self.successes = 0

    def has_nothing_to_do_with_it(self) -> bool:
        """Say whether refusals come whatever the tempo: half of it did not make them go away.

        A tempo that is too high is refused often; a little too high, it is not refused any more at half of it.
        """
        if self.refused_share >= OFTEN:
            self.blameless = False
        elif self.per_second < self.tested * MUCH_SLOWER and not math.isinf(self.tested):
            self.blameless = True
            self.per_second, self.mark, self.tested = self.ceiling, math.inf, math.inf
        return self.blameless

    def restart(self) -> None:
        """Begin at half after an outage."""
        if not math.isinf(self.per_second):
            self.per_second *= MUCH_SLOWER


HEADROOM = 0.97  # the share of a stated quota that is aimed at; the rest is for clocks that differ
FIRST_WINDOW = 4.0
FEWER = 0.7  # how many requests go at once in the beginning, and the share of them that is left after an overload
FIRST_HOLD = 0.5
LONGEST_HOLD = 20.0  # seconds for which nothing is sent after a refusal without a hint; doubled while nothing succeeds
LEARNING = 0.05

# The statuses of servers that have too much to do, or a tired one behind them; a 500 is a matter of the request.
OVERLOADED = frozenset({502, 503, 504, 529})
LONGEST_PACE_WAIT = 60.0  # seconds; what is allowed a minute is allowed again by then, however much was sent at once
MAKE_UP = 0.1  # seconds of the pace that may be sent at once, so that a late timer costs nothing of the quota
MINUTE = 60
LATELY = 2
SHORTEST = 0.25


class Limiter:
    """The limits of one model in one run."""

    def __init__(self, quota: Quota, concurrency: int) -> None:
        """Start slowly, below what is allowed."""
        self.most = float(concurrency)
        self.window = min(FIRST_WINDOW, self.most)
        self.slow_start_until = self.most
        self.quota = quota
        self.request_tempo, self.token_tempo = Tempo(a_second(quota.requests)), Tempo(a_second(quota.tokens))
        self.requests, self.tokens = Pace(), Pace()
        self.throughput = Throughput()
        self.typical_output: float | None = None
        self.input_ratio = 1.0
        self.held_until = self.decreased_at = -math.inf
        self.hold = FIRST_HOLD
        self.set_paces()

    def at_once(self) -> int:
        """Say how many requests may be under way at the same time."""
        return max(int(self.window), 1)

    def due(self, now: float) -> float:
        """Say when the next request may go, now or later."""
        return max(self.held_until, self.requests.due(now), self.tokens.due(now))

    def sent(self, input_guess: int, max_tokens: int, now: float) -> float:
        """Count a request as sent; give the tokens that it is expected to take."""
        output = max_tokens if self.typical_output is None else min(self.typical_output, max_tokens)
        expected = input_guess * self.input_ratio + output
        self.requests.sent(1.0, now)
        self.tokens.sent(expected, now)
        return expected

    def succeeded(self, expected: float, input_guess: int, usage: Usage, now: float) -> None:
        """Hear of a reply, and of how many tokens it took in truth."""
        self.tokens.correct(usage.input_tokens + usage.output_tokens - expected, now)
        self.learn(input_guess, usage)
        self.throughput.count(now)
        self.hold = FIRST_HOLD
        self.window = min(self.window + (1.0 if self.window < self.slow_start_until else 1.0 / self.window), self.most)
        self.request_tempo.succeeded()
        self.token_tempo.succeeded()
        self.set_paces()

    def learn(self, input_guess: int, usage: Usage) -> None:
        """Learn what requests of this kind take, from the last few dozen."""
        if input_guess and usage.input_tokens:
            self.input_ratio += (usage.input_tokens / input_guess - self.input_ratio) * LEARNING
        typical = usage.output_tokens if self.typical_output is None else self.typical_output
        self.typical_output = typical + (usage.output_tokens - typical) * LEARNING

    def failed(self, failure: Failure, now: float, *, sent: float) -> None:
        """Hear of a failure of a request that was sent at a time."""
        if failure.wait is not None:
            self.held_until = max(self.held_until, now + upward(failure.wait))
        if failure.kind == "busy":
            self.request_tempo.count_refusal()
            self.token_tempo.count_refusal()
        too_much = failure.kind in {"busy", "timeout"} or failure.status in OVERLOADED
        if not too_much or sent <= self.decreased_at:
            return
        self.decreased_at = now
        self.window = self.slow_start_until = max(self.window * FEWER, 1.0)
        if failure.kind == "busy":
            self.slow_down(now, hinted=failure.wait is not None)

    def slow_down(self, now: float, *, hinted: bool) -> None:
        """Go slower after a refusal; without a hint, wait longer each time until something succeeds."""
        if not hinted:
            self.held_until = max(self.held_until, now + self.hold)
            self.hold = min(self.hold * 2.0, LONGEST_HOLD)
        if self.quota.requests is not None or self.quota.tokens is None:
            self.request_tempo.refused(
                minute=self.throughput.a_second(MINUTE, now), lately=self.throughput.a_second(LATELY, now)
            )
        if self.quota.tokens is not None:
            self.token_tempo.refused(minute=0.0, lately=0.0)
        self.set_paces()

    def restart(self) -> None:
        """Begin slowly again after an outage."""
        self.window, self.slow_start_until = min(FIRST_WINDOW, self.most), self.most
        self.request_tempo.restart()
        self.token_tempo.restart()
        self.set_paces()

    def set_paces(self) -> None:
        """Let the tempos decide the paces."""
        self.requests.per_second = max(self.request_tempo.per_second, 1 / 60)
        self.tokens.per_second = max(self.token_tempo.per_second, 1.0)

    def in_words(self) -> str:
        """Say the limit in force now, for people."""
        pace = self.requests.per_second
        rate = "" if math.isinf(pace) else f", {pace * 60.0:,.0f} requests/min"
        return f"{self.at_once()} at once{rate}"


def a_second(a_minute: float | None) -> float | None:
    """Give what is aimed at of a stated quota."""
    return None if a_minute is None else a_minute * HEADROOM / 60.0


class Pace:
    """So many units a second, a little of what was missed made up for, never more; without a rate, at any time."""

    def __init__(self, per_second: float = math.inf) -> None:
        """Start with nothing sent."""
        self.per_second = per_second
        self.even = -math.inf  # when all that was sent would have been sent, had it gone evenly

    def due(self, now: float) -> float:
        """Say when the next unit may go, now or later."""
        return max(now, self.even - MAKE_UP)

    def sent(self, units: float, now: float) -> None:
        """Count units as sent."""
        self.even = max(self.even, now)
        self.correct(units, now)

    def correct(self, units: float, now: float) -> None:
        """Count units on top, or take units back, that turned out to be more or fewer than thought."""
        self.even = min(self.even + units / self.per_second, now + LONGEST_PACE_WAIT)


class Throughput:
    """Successes by second over the last minute; a ceiling can be read off when a provider begins to refuse."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.seconds: deque[tuple[int, int]] = deque()
        self.first: float | None = None

    def count(self, now: float) -> None:
        """Count one success."""
        if self.first is None:
            self.first = now
        second = int(now)
        if self.seconds and self.seconds[-1][0] == second:
            self.seconds[-1] = (second, self.seconds[-1][1] + 1)
        else:
            self.seconds.append((second, 1))
        while self.seconds[0][0] <= second - MINUTE:
            self.seconds.popleft()

    def a_second(self, seconds: int, now: float) -> float:
        """Give the successes a second within so many seconds."""
        since = now if self.first is None else self.first
        counted = sum(count for second, count in self.seconds if second > now - seconds)
        return counted / (seconds if seconds == MINUTE else min(max(now - since, SHORTEST), seconds))


WORTH_KEEPING = 0.25  # seconds; a shorter hint has expired before anything could be started again
logger = logging.getLogger(__name__)


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
        if wait >= WORTH_KEEPING and until > self.until:
            self.until = until
            self.journal.remember(self.fact, f"{time.time() + wait!r} {wait!r}".encode())

    def left(self) -> float:
        """Give the seconds that are still to be waited for.

        A clock that was ahead when the hint came, or is behind now, makes them no more than the hint itself. A hint
        longer than patience ended the run that got it: the next run was started to see whether the server answers.
        """
        until, wait = hint_of(self.journal.recall(self.fact))
        left = until - time.time()
        wait = left if wait is None else wait
        if left > 0.0 and wait > self.patience:
            if not self.passed_over:
                text = (
                    "%s: earlier the server asked to be left alone for %.0f s more; it is asked whether it answers now"
                )
                logger.warning(text, self.model, left)
            self.passed_over = True
            return 0.0
        return max(min(left, wait), 0.0)


def hint_of(known: bytes | None) -> tuple[float, float | None]:
    """Read a hint: until when, and how long it was, which earlier versions did not note; what is no hint has passed."""
    try:
        numbers = [float(part) for part in (known or b"").split()]
    except ValueError:
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        return -math.inf, None
    return numbers[0], numbers[1] if len(numbers) > 1 else None
