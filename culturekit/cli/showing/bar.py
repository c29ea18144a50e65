"""A progress line with a bar, for a terminal; rich is imported only where one is shown."""

import time
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from culturekit.cli.showing.results import duration, rate_text

WIDEST_BAR, NARROWEST_BAR = 30, 8


class BarProgress:
    """One line for the stage at work, never wider than the terminal; it goes away at the end."""

    def __init__(self, console: Console | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare the line; it appears at once, and says how long a stage is at work that counts nothing yet."""
        self.console, self.clock = console or Console(stderr=True), clock
        self.name, self.unit, self.total, self.done, self.totals = "", "", 0, 0, ""
        self.started = clock()
        self.live = Live(console=self.console, transient=True, refresh_per_second=4, get_renderable=self.render)

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

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
        """Show what has been found so far."""
        self.totals = totals

    def render(self) -> Text:
        """Write the line as it stands."""
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
        return line if room < NARROWEST_BAR else f"{line} {bar(self.done / self.total, room)}"


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


def bar(share: float, width: int) -> str:
    """Draw how far it is."""
    full = round(min(share, 1.0) * width)
    return "━" * full + "╺" * (width - full)
