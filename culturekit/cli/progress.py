"""How progress looks: a bar on a terminal, plain lines in a log, JSON lines for machines; always on stderr."""

import json
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

__all__ = ["CommandProgress", "progress_for"]

LINE_SECONDS = 5.0
"""How often a log hears of a stage that is still at work."""


class CommandProgress(Protocol):
    """What a command shows of its stages."""

    def stage(self, name: str) -> None:
        """Name the stage that begins."""
        ...

    def begin(self, total: int, unit: str) -> None:
        """Announce how many units there are to do."""
        ...

    def advance(self, done: int) -> None:
        """Count units as done."""
        ...

    def tell(self, totals: str) -> None:
        """Say what has been found so far."""
        ...


class LineProgress:
    """Plain or JSON lines, at most one every few seconds."""

    def __init__(self, *, as_json: bool) -> None:
        """Start with nothing to do."""
        self.as_json = as_json
        self.name, self.unit, self.total, self.done, self.totals = "", "", 0, 0, ""
        self.started = self.spoke = time.monotonic()

    def stage(self, name: str) -> None:
        """Name the stage that begins."""
        self.name = name

    def begin(self, total: int, unit: str) -> None:
        """Announce how many units there are to do."""
        self.unit, self.total, self.done, self.totals = unit, total, 0, ""
        self.started = self.spoke = time.monotonic()

    def advance(self, done: int) -> None:
        """Count units as done, and speak when it is time."""
        self.done += done
        now = time.monotonic()
        if now - self.spoke >= LINE_SECONDS and self.done < self.total:
            self.spoke = now
            self.speak(self.done / max(now - self.started, 1e-9))

    def tell(self, totals: str) -> None:
        """Keep what has been found so far for the next line."""
        self.totals = totals

    def speak(self, rate: float) -> None:
        """Write one line: how far, how fast, how long still."""
        left = (self.total - self.done) / rate if rate else 0.0
        if self.as_json:
            state = {"stage": self.name, "done": self.done, "total": self.total, "unit": self.unit}
            speed = {"per_second": round(rate, 1), "seconds_left": round(left, 1)}
            line = json.dumps({**state, **speed, **({"found": self.totals} if self.totals else {})})
        else:
            line = f"{self.name}: {self.done:,} of {self.total:,} {self.unit}, {rate:,.0f}/s, {left:,.0f} s left"
            line += f"; {self.totals}" if self.totals else ""
        print(line, file=sys.stderr, flush=True)


def progress_for(*, as_json: bool) -> AbstractContextManager[CommandProgress]:
    """Choose what fits where the command runs."""
    if not as_json and sys.stderr.isatty():
        from culturekit.cli.bar import BarProgress

        return BarProgress()
    return nullcontext(LineProgress(as_json=as_json))
