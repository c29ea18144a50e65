"""How progress looks: a bar on a terminal, plain lines in a log, JSON lines for machines; always on stderr."""

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, Self

from culturekit.cli.showing.results import duration, rate_text

LINE_SECONDS = 5.0  # How often a log hears of a stage that is still at work
QUIET_SECONDS = 30.0  # After how long a log hears that a stage is still at work although nothing was counted

# After how many units, or a tenth of all, a log foretells how long the rest takes: the first wait for what begins.
FEW = 10


class CommandProgress(Protocol):
    """What a command shows of its stages."""

    def stage(self, name: str) -> None:
        """Name the stage that begins."""

    def begin(self, total: int, unit: str) -> None:
        """Announce how many units there are to do."""

    def advance(self, done: int) -> None:
        """Count units as done."""

    def tell(self, totals: str) -> None:
        """Say what has been found so far."""


class LineProgress:
    """Plain or JSON lines, at most one every few seconds, and at least one every half minute."""

    def __init__(self, *, as_json: bool, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with nothing to do."""
        self.as_json, self.clock = as_json, clock
        self.name, self.unit, self.total, self.done, self.totals = "", "", 0, 0, ""
        self.started = self.spoke = self.entered = clock()
        self.speaking, self.ended = threading.RLock(), threading.Event()
        self.beating = threading.Thread(target=self.beat, name="progress", daemon=True)

    def __enter__(self) -> Self:
        """Begin to look whether anything was said lately."""
        self.beating.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.beating.join()

    def beat(self) -> None:
        """Speak now and then, whatever the stage is busy with."""
        while not self.ended.wait(1.0):
            self.speak_after(QUIET_SECONDS)

    def stage(self, name: str) -> None:
        """Name the stage that begins."""
        with self.speaking:
            self.name, self.entered = name, self.clock()
            self.restart(0, "")

    def begin(self, total: int, unit: str) -> None:
        """Announce how many units there are to do."""
        with self.speaking:
            self.restart(total, unit)

    def restart(self, total: int, unit: str) -> None:
        """Count from nothing; silence goes on where nothing was said."""
        self.unit, self.total, self.done, self.totals = unit, total, 0, ""
        self.started = self.clock()

    def advance(self, done: int) -> None:
        """Count units as done, and speak when it is time."""
        self.done += done
        if self.done < self.total:
            self.speak_at_work()

    def tell(self, totals: str) -> None:
        """Say what has been found so far, when it is time."""
        self.totals = totals
        self.speak_at_work()

    def speak_at_work(self) -> None:
        """Write a line now and then of a stage that is at work for some time; short ones are told when they end."""
        if self.clock() - self.entered >= LINE_SECONDS:
            self.speak_after(LINE_SECONDS)

    def speak_after(self, seconds: float) -> None:
        """Write a line if none was written for so long."""
        with self.speaking:
            now = self.clock()
            if now - self.spoke >= seconds:
                self.spoke = now
                print(self.line(now - self.started), file=sys.stderr, flush=True)

    def line(self, passed: float) -> str:
        """Write one line: how far, how fast, how long still."""
        rate = self.done / max(passed, 1e-9)
        left = (self.total - self.done) / rate if rate else None
        if self.as_json:
            state = {"stage": self.name, "done": self.done, "total": self.total, "unit": self.unit}
            speed = {"per_second": round(rate, 1), "seconds_left": None if left is None else round(left, 1)}
            return json.dumps({**state, **speed, **({"found": self.totals} if self.totals else {})})
        if not self.total:
            return f"{self.name}: at work for {duration(passed)}" + (f"; {self.totals}" if self.totals else "")
        parts = [f"{self.name}: {self.done:,} of {self.total:,} {self.unit}"]
        if self.done >= min(FEW, self.total / FEW):
            parts += [rate_text(rate), f"{duration(left or 0.0)} left"]
        elif passed >= LINE_SECONDS:
            parts.append(f"after {duration(passed)}")
        return ", ".join(parts) + (f"; {self.totals}" if self.totals else "")


def progress_for(*, as_json: bool) -> AbstractContextManager[CommandProgress]:
    """Choose what fits where the command runs."""
    if not as_json and sys.stderr.isatty():
        from culturekit.cli.showing.bar import BarProgress

        return BarProgress()
    return LineProgress(as_json=as_json)
