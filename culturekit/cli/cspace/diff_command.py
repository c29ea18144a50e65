"""`culturekit cspace diff`: what became of a cultural space, and what made it so."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.options import REPLACE, Also, AsJson, Wait
from culturekit.cli.showing.progress import progress_for
from culturekit.cli.showing.results import show as show_result
from culturekit.cli.stages import EXPORTS, stoppable
from culturekit.core.errors import UsageError

if TYPE_CHECKING:
    from culturekit.core.choices import ExportChoice
    from culturekit.core.run import StageRun


FINDINGS = 1


def diff(
    before: Annotated[Path, typer.Argument(help="Cultural space: a run folder, a release folder or its table.")],
    after: Annotated[Path, typer.Argument(help="The one to compare it with, with what lies behind it.")],
    out: Annotated[Path | None, typer.Option(help="Folder for diff.parquet, the table of all changes.")] = None,
    show: Annotated[int, typer.Option(min=0, max=1_000_000, help="Changes to print with their evidence.")] = 20,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Say which rows of two releases differ, and why.

    Added, removed, renamed or reclassified; leave with 1 when there are any.
    """
    if out is None and (also is not None or wait):
        raise UsageError("--also and --wait are about a folder", expected="--out as well")
    with ExitStack() as stack:
        folder = out or Path(stack.enter_context(TemporaryDirectory(prefix="culturekit-diff-"))) / "diff"
        run = run_diff(before, after, folder, also=also, wait=wait, as_json=as_json)
        tell(run, before, after, show=show, as_json=as_json, kept=out is not None)
        different = bool(run.manifest.counts["diff"] or run.manifest.notes["untold"])
    if different:
        raise typer.Exit(FINDINGS)


def run_diff(
    before: Path, after: Path, folder: Path, *, also: "ExportChoice | None", wait: bool, as_json: bool
) -> "StageRun":
    """Compare as a stage, into a folder."""
    from culturekit.core.engines import LocalEngine
    from culturekit.core.run import run_stage
    from culturekit.trail.space_causes import space_diff_stage

    stage = replace(space_diff_stage(before, after), exports=EXPORTS[also])
    with stoppable(), progress_for(as_json=as_json) as progress, LocalEngine(1) as engine:
        progress.stage(stage.name)
        return run_stage(stage, folder, engine=engine, progress=progress, wait=wait, replace=REPLACE.get())


def tell(run: "StageRun", before: Path, after: Path, *, show: int, as_json: bool, kept: bool) -> None:
    """Print what was found."""
    from culturekit.core.schemas import DIFF
    from culturekit.core.tables import read_table
    from culturekit.trail.space_causes import diff_lines

    rows, notes = read_table(run.folder / "diff.parquet", DIFF), run.manifest.notes
    stated = {"before": before, "after": after, "counts": dict(run.manifest.counts), **notes}
    data = {**stated, "out": run.folder if kept else None, "rows": rows.to_dicts()}
    show_result(data, diff_lines(rows, notes, show=show), as_json=as_json)
