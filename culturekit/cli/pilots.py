"""The pilot of a paid stage: a few rows first, to say what the rest costs, and whether its replies can be used."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import typer

from culturekit.cli.showing.progress import progress_for
from culturekit.cli.stages import stoppable
from culturekit.errors import UsageError
from culturekit.records.work import Engine, Progress

if TYPE_CHECKING:
    from culturekit.llm.reply_watch import RepliesSeen

__all__ = ["leave_if_unusable", "replies_lines", "tried"]

SHOWN = 200
"""Characters of a reply that are shown."""

Tried_co = TypeVar("Tried_co", covariant=True)


class Triable(Protocol[Tried_co]):
    """A paid stage that can be tried on a few rows."""

    @property
    def out(self) -> Path:
        """Where the stage will lie."""
        ...

    def pilot(self, size: int, *, engine: Engine, progress: Progress, wait: bool) -> Tried_co | None:
        """Try so many; None where nothing is left."""
        ...


def tried(run: Triable[Tried_co], size: int, *, what: str, wait: bool, as_json: bool) -> Tried_co:
    """Try a stage on a few rows, and say where nothing is left of `what`."""
    from culturekit.pipeline.workers.local_engine import LocalEngine

    with stoppable(), progress_for(as_json=as_json) as progress, LocalEngine(1) as engine:
        progress.stage("pilot")
        outcome = run.pilot(size, engine=engine, progress=progress, wait=wait)
    if outcome is None:
        raise UsageError(f"nothing is left to try: the {what} is done", where=str(run.out))
    return outcome


def replies_lines(replies: "RepliesSeen") -> Iterator[str]:
    """Say what of the replies could not be used, and show some; what came from outside cannot steer a terminal."""
    from culturekit.llm.journal.exchanges import shown_text

    if replies.fenced:
        yield f"  {replies.fenced:,} in a code fence, which was taken off"
    for why, count in replies.unusable.items():
        yield f"  {count:,} {why}"
    for outcome, raw in replies.unusable_samples:
        yield f"    {outcome:<9} {shown_text(raw, longest=SHOWN)}"


def leave_if_unusable(replies: "RepliesSeen") -> None:
    """Leave with 1 where a person has to look at replies before the rest is asked."""
    if replies.to_mend:
        count = sum(replies.unusable.values())
        typer.echo(replies.stopped or f"{count:,} of {replies.rows:,} replies are no answers: look at them", err=True)
        raise typer.Exit(1)
