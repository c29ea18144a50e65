"""Calls to a provider of batches: hints obeyed, pauses that grow, and an end to patience."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from culturekit.llm.client import Failure
from culturekit.llm.endings import given_up
from culturekit.llm.pace.wait_notices import APART, LONG_HOLD, answers_again, retrying, spoken
from culturekit.stages.offline import check_sending

__all__ = ["PASSING", "Caller", "Clock", "Pauses", "WallClock"]

PASSING = frozenset({"busy", "server", "timeout", "connection"})

logger = logging.getLogger(__name__)

Thing = TypeVar("Thing")


class Clock(Protocol):
    """What time it is, and how to wait; tests bring their own."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class WallClock:
    """The clock on the wall as it was in the beginning; from then on it never jumps."""

    def __init__(self) -> None:
        """Look at the wall once."""
        self.began = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970."""
        return self.began + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to wait between two looks at the jobs, in seconds.

    `settle` is how long after a creation that nobody saw the end of a job may still turn up at the provider.
    """

    first: float = 1.0
    longest: float = 60.0
    growth: float = 1.5
    settle: float = 10.0

    def after(self, pause: float) -> float:
        """Give the pause that follows one; the first follows none."""
        return min(max(self.first, pause * self.growth), self.longest)


class Caller:
    """Calls a provider until it answers; what one call learns about waiting holds for all of them."""

    def __init__(self, clock: Clock, pauses: Pauses, *, patience: float, model: str) -> None:
        """Start without a reason to wait."""
        self.model = model
        self.clock = clock
        self.pauses = pauses
        self.patience = patience
        self.closed_until = self.asked_until = 0.0
        self.last = ""
        self.failing_since: float | None = None
        self.spoke = -APART

    async def call(self, ask: Callable[[], Awaitable[Thing]], *, retried: frozenset[str] = PASSING) -> Thing:
        """Ask again while what went wrong may pass.

        Raises:
            Failure: of a kind that is not asked again.
            UpstreamUnavailable: it went on for longer than patience lasts.
        """
        check_sending(self.model)
        began = self.clock.now()
        pause, patience = 0.0, self.patience
        while True:
            await self.turn(began, patience)
            try:
                answer = await ask()
            except Failure as failure:
                pause = self.pauses.after(pause)
                if failure.wait is not None:
                    self.asked_until = max(self.asked_until, self.clock.now() + failure.wait)
                self.hold(failure.wait if failure.wait is not None else pause)
                self.last = failure.detail
                patience = min(self.patience, failure.patience or self.patience)
                if failure.sent and failure.kind not in retried:
                    raise
                self.fails(patience)
            else:
                self.answers()
                return answer

    async def turn(self, began: float, patience: float) -> None:
        """Wait until the provider wants to hear from us again.

        Raises:
            UpstreamUnavailable: that is later than patience lasts.
        """
        held = self.closed_until - self.clock.now()
        if self.closed_until - began > patience:
            asked = self.asked_until - self.clock.now()
            raise given_up(self.model, patience=patience, held_for=asked, last=self.last)
        if held >= LONG_HOLD:
            logger.warning("%s: nothing is sent for %s; Ctrl-C keeps everything", self.model, spoken(held))
        while (left := self.closed_until - self.clock.now()) > 0:
            await self.clock.sleep(left)

    def fails(self, patience: float) -> None:
        """Say that calls fail."""
        now = self.clock.now()
        self.failing_since = self.failing_since or now
        if now - self.spoke >= APART:
            self.spoke = now
            logger.warning("%s: %s", self.model, retrying(self.last, patience))

    def answers(self) -> None:
        """Say that calls succeed again."""
        if self.failing_since is not None:
            logger.warning("%s: %s", self.model, answers_again(self.clock.now() - self.failing_since))
        self.failing_since, self.spoke = None, -APART

    def hold(self, seconds: float) -> None:
        """Let nothing be sent for a while."""
        self.closed_until = max(self.closed_until, self.clock.now() + seconds)
