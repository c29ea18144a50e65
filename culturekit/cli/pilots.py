"""What a stage would ask, before it asks: its plan, and a pilot of a few rows, to say what the rest costs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from culturekit.cli.showing.progress import progress_for
from culturekit.cli.stages import stoppable
from culturekit.core.errors import UsageError

if TYPE_CHECKING:
    from culturekit.core.stage import Stage, Tried


def tell(stage: "Stage", out: Path, *, pilot: int | None, wait: bool, as_json: bool) -> None:
    """Print what a stage would ask, after a pilot where one is wanted; leave with 1 where its replies are of no use."""
    if stage.asking is None:
        raise UsageError("nobody is asked", found=stage.name)
    tried = None if pilot is None else tried_first(stage, out, pilot, wait=wait, as_json=as_json)
    plan = stage.asking.plan(out, tried)
    if as_json:
        print(json.dumps({**plan.as_data(), **({} if tried is None else {"pilot": tried.as_data()})}))
    else:
        for line in (*(tried.lines() if tried else ()), *plan.lines()):
            print(line)
        print("nothing was sent" if tried is None else "the same command without --pilot asks about the rest")
    if tried is not None and tried.to_mend:
        typer.echo(tried.to_mend, err=True)
        raise typer.Exit(1)


def tried_first(stage: "Stage", out: Path, size: int, *, wait: bool, as_json: bool) -> "Tried":
    """Try a stage on a few rows; the answers lie where it will find them."""
    from culturekit.core.engines import LocalEngine
    from culturekit.core.run import run_part

    if stage.asking is None or stage.asking.pilot is None or stage.asking.free:
        judge = "" if stage.asking is None else stage.asking.judge
        raise UsageError("a pilot tells what a paid judge costs, and this one is free", found=judge)
    ask = stage.asking.pilot
    with stoppable(), progress_for(as_json=as_json) as progress, LocalEngine(1) as engine:
        progress.stage("pilot")
        tried = run_part(stage, out, lambda work: ask(work, size), engine=engine, progress=progress, wait=wait)
    if tried is None:
        raise UsageError(f"nothing is left to try: the {stage.name} is done", where=str(out))
    return tried
