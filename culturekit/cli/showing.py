"""How results and progress look: on a terminal, in a log, to a machine; progress always on stderr."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, Self

from culturekit.core.errors import JOINERS, printable

if TYPE_CHECKING:  # rich is imported only where a bar is shown
    from rich.console import Console
    from rich.text import Text

LINE_SECONDS = 5.0  # How often a log hears of a stage that is still at work
QUIET_SECONDS = 30.0  # After how long a log hears that a stage is still at work although nothing was counted

# After how many units, or a tenth of all, a log foretells how long the rest takes: the first wait for what begins.
FEW = 10

WIDEST_BAR, NARROWEST_BAR = 30, 8


class CommandProgress:
    """What a command shows of its stages: how far the one at work is."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with nothing to do."""
        self.clock, self.name = clock, ""
        self.begin(0, "")

    def stage(self, name: str) -> None:
        """Name the stage that begins."""
        self.name = name
        self.begin(0, "")

    def begin(self, total: int, unit: str) -> None:
        """Announce how many units there are to do."""
        self.unit, self.total, self.done, self.totals = unit, total, 0, ""
        self.started = self.clock()

    def advance(self, done: int) -> None:
        """Count units as done."""
        self.done += done

    def tell(self, totals: str) -> None:
        """Say what has been found so far."""
        self.totals = totals


class LineProgress(CommandProgress):
    """Plain or JSON lines, at most one every few seconds, and at least one every half minute."""

    def __init__(self, *, as_json: bool, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare to look whether anything was said lately."""
        self.speaking, self.ended = threading.RLock(), threading.Event()
        super().__init__(clock)
        self.as_json, self.spoke, self.entered = as_json, self.started, self.started
        self.beating = threading.Thread(target=self.beat, name="progress", daemon=True)

    def __enter__(self) -> Self:
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
            super().stage(name)
            self.entered = self.started

    def begin(self, total: int, unit: str) -> None:
        """Count from nothing; silence goes on where nothing was said."""
        with self.speaking:
            super().begin(total, unit)

    def advance(self, done: int) -> None:
        """Count units as done, and speak when it is time."""
        super().advance(done)
        if self.done < self.total:
            self.speak_at_work()

    def tell(self, totals: str) -> None:
        """Say what has been found so far, when it is time."""
        super().tell(totals)
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


class BarProgress(CommandProgress):
    """One line for the stage at work, never wider than the terminal; it goes away at the end."""

    def __init__(self, console: "Console | None" = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare the line; it appears at once, and says how long a stage is at work that counts nothing yet."""
        from rich.console import Console
        from rich.live import Live

        super().__init__(clock)
        self.console = console or Console(stderr=True)
        self.live = Live(console=self.console, transient=True, refresh_per_second=4, get_renderable=self.render)

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def render(self) -> "Text":
        """Write the line as it stands."""
        from rich.text import Text

        return Text(self.line(self.console.width), no_wrap=True, overflow="crop")

    def line(self, width: int) -> str:
        """Write the line so that it fits; what matters less is left out first."""
        passed = self.clock() - self.started
        if not self.total:
            return fitted([self.name, duration(passed)], [self.totals], width)
        rate = self.done / max(passed, 1e-9)
        left = f"{duration((self.total - self.done) / rate)} left" if rate else duration(passed)
        money, _, more = self.totals.partition(", ")
        line = fitted(
            [self.name, f"{self.done:,}/{self.total:,}", money, left],
            [self.unit, rate_text(rate) if rate else "", *more.split(", ")],
            width,
        )
        room = min(width - len(line) - 1, WIDEST_BAR)
        full = round(min(self.done / self.total, 1.0) * room)
        return line if room < NARROWEST_BAR else f"{line} {'━' * full}{'╺' * (room - full)}"


def fitted(needed: list[str], more: list[str], width: int) -> str:
    """Join what is needed, its first part shortened where there is no room, and as much more as fits."""
    parts = list(filter(None, needed))
    over = len("  ".join(parts)) - width
    if over > 0 and parts:
        parts[0] = parts[0][: max(len(parts[0]) - over - 1, 1)] + "…"
    for part in filter(None, more):
        if len("  ".join([*parts, part])) > width:
            break
        parts.append(part)
    return "  ".join(parts)[:width]


def progress_for(*, as_json: bool) -> AbstractContextManager[CommandProgress]:
    """Choose what fits where the command runs."""
    return BarProgress() if not as_json and sys.stderr.isatty() else LineProgress(as_json=as_json)


def show(result: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result as JSON, dataclasses and paths in it too, or in lines."""
    if as_json:
        print(json.dumps(result, ensure_ascii=False, default=_plain))
    else:
        for line in lines:
            print(line)


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a table whose columns are as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def foreign(lines: Iterable[str]) -> Iterator[str]:
    """Give what others wrote, such as labels of Wikidata, as lines that each stay one and steer no terminal."""
    return (printable(line, keep=JOINERS) for line in lines)


def duration(seconds: float) -> str:
    """Write a time in the unit that fits."""
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"


def rate_text(rate: float) -> str:
    """Write a speed in the unit that fits."""
    if rate >= 1.0:
        return f"{rate:,.0f}/s"
    return f"{rate * 60.0:.0f}/min" if rate * 60.0 >= 1.0 else f"{rate * 3600.0:.0f}/h"


def _plain(value: Any) -> object:  # noqa: ANN401 - whatever JSON does not know
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)
