"""A progress bar with rate and time left, for a terminal; rich is imported only where one is shown."""

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

__all__ = ["BarProgress"]


class RateColumn(ProgressColumn):
    """How many units a second."""

    def render(self, task: Task) -> Text:
        """Write the rate, once there is one."""
        return Text("" if task.speed is None else f"{task.speed:,.0f}/s")


class BarProgress:
    """One bar for the stage at work; it goes away at the end."""

    def __init__(self) -> None:
        """Prepare the bar; it appears with the first stage that counts something."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), RateColumn())
        self.bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("", visible=False)
        self.name = self.unit = ""

    def __enter__(self) -> Self:
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
        self.unit = unit
        self.bar.reset(self.task, total=total, description=f"{self.name} ({unit})", visible=True)

    def advance(self, done: int) -> None:
        """Count units as done."""
        self.bar.advance(self.task, done)

    def tell(self, totals: str) -> None:
        """Show what has been found so far."""
        self.bar.update(self.task, description=f"{self.name} ({self.unit}; {totals})")
