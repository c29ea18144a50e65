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


class LineProgress:
    """Plain or JSON lines, at most one every few seconds."""

    def __init__(self, *, as_json: bool) -> None:
        """Start with nothing to do."""
        self.as_json = as_json
        self.name, self.unit, self.total, self.done = "", "", 0, 0
        self.started = self.spoke = time.monotonic()

    def stage(self, name: str) -> None:
        """Name the stage that begins."""
        self.name = name

    def begin(self, total: int, unit: str) -> None:
        """Announce how many units there are to do."""
        self.unit, self.total, self.done = unit, total, 0
        self.started = self.spoke = time.monotonic()

    def advance(self, done: int) -> None:
        """Count units as done, and speak when it is time."""
        self.done += done
        now = time.monotonic()
        if now - self.spoke >= LINE_SECONDS and self.done < self.total:
            self.spoke = now
            self.speak(self.done / max(now - self.started, 1e-9))

    def speak(self, rate: float) -> None:
        """Write one line: how far, how fast, how long still."""
        left = (self.total - self.done) / rate if rate else 0.0
        if self.as_json:
            state = {"stage": self.name, "done": self.done, "total": self.total, "unit": self.unit}
            line = json.dumps({**state, "per_second": round(rate, 1), "seconds_left": round(left, 1)})
        else:
            line = f"{self.name}: {self.done:,} of {self.total:,} {self.unit}, {rate:,.0f}/s, {left:,.0f} s left"
        print(line, file=sys.stderr, flush=True)


class BarProgress:
    """A bar with rate and time left, for a terminal."""

    def __init__(self) -> None:
        """Prepare the bar; it appears with the first stage that counts something."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("", visible=False)
        self.name = ""

    def __enter__(self) -> "BarProgress":
        """Show the bar."""
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        self.bar.stop()

    def stage(self, name: str) -> None:
        """Name the stage that begins."""
        self.name = name

    def begin(self, total: int, unit: str) -> None:
        """Announce how many units there are to do."""
        self.bar.reset(self.task, total=total, description=f"{self.name} ({unit})", visible=True)

    def advance(self, done: int) -> None:
        """Count units as done."""
        self.bar.advance(self.task, done)


def progress_for(*, as_json: bool) -> AbstractContextManager[CommandProgress]:
    """Choose what fits where the command runs."""
    if not as_json and sys.stderr.isatty():
        return BarProgress()
    return nullcontext(LineProgress(as_json=as_json))
