"""Running one stage for a command, and saying how it went."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from culturekit.cli.options import REPLACE
from culturekit.cli.showing import progress_for
from culturekit.core.choices import ExportChoice, ExportFormat
from culturekit.core.counting import counted, counted_reason
from culturekit.core.errors import UsageError
from culturekit.core.stage import MARKED, NOT_COMPARABLE, QUARANTINED

if TYPE_CHECKING:
    from culturekit.core.run import StageRun
    from culturekit.core.stage import Stage, Tried


MALFORMED = "malformed"  # How the reasons begin that set rows aside for a person to look at

# The share of malformed lines of a dump up to which they are told and are no finding, unless that is asked for.
BY_ACCIDENT = 0.001


EXPORTS: Mapping[ExportChoice | None, tuple[ExportFormat, ...]] = {
    None: (),
    "csv": ("csv",),
    "jsonl": ("jsonl",),
    "both": ("csv", "jsonl"),
}


def run_one(
    stage: "Stage",
    out: Path,
    *,
    wait: bool,
    as_json: bool,
    also: ExportChoice | None = None,
    workers: int | None = 1,
    engine: str = "local",
    fresh: bool = False,
    strict: bool = False,
) -> "StageRun":
    """Run a stage into a folder; leave with 1 when rows were set aside."""
    from culturekit.core.engines import engine_for
    from culturekit.core.run import run_stage

    pool = engine_for(engine, workers=workers, folder=out.parent)
    with stoppable(), progress_for(as_json=as_json) as progress, pool as at_work:
        progress.stage(stage.name)
        stage = replace(stage, exports=EXPORTS[also])
        run = run_stage(stage, out, engine=at_work, progress=progress, wait=wait, fresh=fresh, replace=REPLACE.get())
    print(json.dumps(as_data(run)) if as_json else line_about(run, width=0))
    for sentence in () if as_json else run.manifest.notes.get("summary", ()):
        print(sentence)
    for sentence in run.manifest.notes.get(NOT_COMPARABLE, ()):
        typer.echo(f"not comparable: {sentence}", err=True)
    if every := every_abstained(run):
        typer.echo(every, err=True)
        raise typer.Exit(1)
    leave_if_set_aside({"": run}, strict=strict, again=" The same command with --fresh asks about them once more.")
    return run


def leave_if_set_aside(runs: Mapping[str, "StageRun"], *, strict: bool, again: str = "") -> None:
    """Leave with 1 when rows of some stage wait for a person; the name of each begins what is said of it."""
    for few in filter(None, map(few_malformed, runs.values())):
        typer.echo(few, err=True)
    waiting = {name: run for name, run in runs.items() if set_aside(run, strict=strict)}
    for name, run in waiting.items():
        if findings := run.manifest.notes.get("findings"):
            typer.echo(f"{name}to be looked at: {'; '.join(findings)}", err=True)
        if QUARANTINED in run.manifest.counts:
            typer.echo(f"{name}{waiting_rows(run)}{again}", err=True)
    if waiting:
        raise typer.Exit(1)


@contextmanager
def stoppable() -> Iterator[None]:
    """Say what Ctrl-C leaves behind."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("interrupted: what was done is kept, and the same command goes on from there", err=True)
        raise


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


def set_aside(run: "StageRun", *, strict: bool) -> bool:
    """Tell whether rows wait for a person: dropped as malformed, kept without an answer, or found to be odd."""
    malformed = malformed_rows(run) > 0 and (strict or not few_malformed(run))
    return malformed or bool(run.manifest.notes.get("findings")) or run.manifest.counts.get(QUARANTINED, 0) > 0


def malformed_rows(run: "StageRun") -> int:
    """Count what was dropped as malformed."""
    return sum(count for reason, count in run.manifest.drops.items() if reason.startswith(MALFORMED))


def few_malformed(run: "StageRun") -> str:
    """Tell of malformed lines that are few enough in a dump to be an accident; empty where there are none, or more."""
    lines, malformed = run.manifest.counts.get("lines", 0), malformed_rows(run)
    if run.manifest.stage != "ingest" or not 0 < malformed <= BY_ACCIDENT * lines:
        return ""
    return (
        f"{malformed:,} of {lines:,} lines {'is' if malformed == 1 else 'are'} malformed and left out "
        f"({malformed / lines:.4%}); up to {BY_ACCIDENT:.1%} is no finding, unless with --strict"
    )


def every_abstained(run: "StageRun") -> str:
    """Say what to do where no margin is shown to keep the stated error, so that every image abstains."""
    found = run.manifest.notes.get("abstention")
    if not found or found["met"]:
        return ""
    return (
        f"every image abstains: no margin is shown to keep the error at or below {found['max_error']:g} with "
        f"{found['references']:,} {found['calibrated_on']} of {found['artifacts']:,} artifacts. Add references, "
        "allow a larger --max-error, or name more known images with --calibration."
    )


def waiting_rows(run: "StageRun") -> str:
    """Say how many rows got no answer, why, and what to do about it."""
    outcomes = run.manifest.notes.get("outcomes", {})
    why = ", ".join(f"{count:,} {name}" for name, count in outcomes.items() if name not in {"ok", "repaired"})
    count = run.manifest.counts[QUARANTINED]
    rows = counted(count, "rows got no answer and", verb="wait")
    return f"{rows} for a person to look at: {why}."


def as_data(run: "StageRun") -> dict[str, object]:
    """Give a stage's end as data."""
    return {
        "stage": run.manifest.stage, "folder": str(run.folder), "state": run.state, "counts": dict(run.manifest.counts),
        "drops": dict(run.manifest.drops),
        **{name: note for name, note in run.manifest.notes.items() if name == MARKED}, "sha256": run.manifest.sha256,
        "seconds": round(run.seconds, 3),
    }  # fmt: skip


def line_about(run: "StageRun", *, width: int) -> str:
    """Say in one line how a stage ended."""
    counts = ", ".join(counted(count, name) for name, count in run.manifest.counts.items() if count)
    drops = ", ".join(counted_reason(count, reason) for reason, count in run.manifest.drops.items())
    left_out = f" (left out: {drops})" if drops else ""
    marks = ", ".join(run.manifest.notes.get(MARKED, ()))
    left_out += f" (marked: {marks})" if marks else ""
    name = run.name if width else str(run.folder)
    return f"{name:<{width}}  {run.state:<7}  {counts or 'nothing'}{left_out}  {run.seconds:.1f} s"
