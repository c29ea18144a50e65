"""`culturekit cspace diff` and `cspace review`: what changed, and what waits for a person.

What their stages need is loaded when they run, so that the commands start quickly.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, get_args

import typer

from culturekit.cli.options import REPLACE, Also, AsJson, Out, Wait
from culturekit.cli.showing import progress_for
from culturekit.cli.showing import show as show_result
from culturekit.cli.stage_command import EXPORTS, run_one, stoppable
from culturekit.core.choices import VerdictWord
from culturekit.core.errors import UsageError, check_choice

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
    from culturekit.core.engines import LocalEngine
    from culturekit.core.run import run_stage
    from culturekit.core.schemas import DIFF
    from culturekit.core.tables import read_table
    from culturekit.trail.space_causes import diff_lines, space_diff_stage

    if out is None and (also is not None or wait):
        raise UsageError("--also and --wait are about a folder", expected="--out as well")
    with ExitStack() as stack:
        folder = out or Path(stack.enter_context(TemporaryDirectory(prefix="culturekit-diff-"))) / "diff"
        stage = replace(space_diff_stage(before, after), exports=EXPORTS[also])
        with stoppable(), progress_for(as_json=as_json) as progress, LocalEngine(1) as engine:
            progress.stage(stage.name)
            run = run_stage(stage, folder, engine=engine, progress=progress, wait=wait, replace=REPLACE.get())
        rows, notes, counts = read_table(folder / "diff.parquet", DIFF), run.manifest.notes, dict(run.manifest.counts)
        data = {"before": before, "after": after, "counts": counts, **notes, "out": out, "rows": rows.to_dicts()}
        show_result(data, diff_lines(rows, notes, show=show), as_json=as_json)
    if counts["diff"] or notes["untold"]:
        raise typer.Exit(FINDINGS)


# Candidates that wait for a person, handed out and taken back.

review_app = typer.Typer(no_args_is_help=True, help="Candidates that wait for a person: forms out, answers in.")

Kept = Annotated[Path, typer.Option(help="Table that `cspace filter` or `cspace complete` wrote.")]
Removed = Annotated[
    Path | None,
    typer.Option(help="Table of what the judge removed. [removed.parquet beside --kept, where it is there]"),
]


@review_app.command(
    epilog="Example: culturekit cspace review export --kept kept/kept.parquet --sheet sheet.csv --out to-review"
)
def export(
    kept: Kept,
    out: Out,
    reviewers: Annotated[int, typer.Option(min=1, max=50, help="People who look at each candidate, in forms.")] = 1,
    sheet: Annotated[
        Path | None, typer.Option(help="A copy of review.csv to fill in; one that says something else stays.")
    ] = None,
    verdict: Annotated[
        list[str] | None,
        typer.Option(help="What a person looks at: what waits (review), was kept, was removed. Repeatable. [review]"),
    ] = None,
    removed: Removed = None,
    groups: Annotated[
        bool, typer.Option("--groups", help="By class, root and reason: one answer decides about a whole group.")
    ] = False,
    first: Annotated[
        str | None,
        typer.Option(help="What comes first: size (of groups), popularity, or confidence, the judge's lowest."),
    ] = None,
    verdicts: Annotated[
        Path | None, typer.Option(help="What the judge said. [verdicts.parquet beside --kept, where it is there]")
    ] = None,
    graph: Annotated[Path | None, typer.Option(help="Graph that names the classes of groups.")] = None,
    label_studio: Annotated[bool, typer.Option("--label-studio", help="Tasks of Label Studio, too.")] = False,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Write what waits for a person.

    As a form for `annotate serve`, or to hand out, and one by one as review.csv.
    """
    from culturekit.builders.filtering.candidate_review import table_beside
    from culturekit.core.schemas import VERDICTS
    from culturekit.people.candidate_review import First, Handing, review_export_stage

    if groups and sheet is not None:
        raise UsageError("a sheet has candidates one by one", expected="--sheet or --groups, not both")
    if graph is not None and not groups:
        raise UsageError("--graph has no effect alone", expected="--groups")
    words: list[Any] = [text.lower() for text in verdict or ["review"]]
    order: Any = first and first.lower()
    for option, word, known in (*(("--verdict", word, VerdictWord) for word in words), ("--first", order, First)):
        if word is not None:
            check_choice(option, word, get_args(known))
    refused = (removed or table_beside(kept)) if "remove" in words else removed
    how = Handing(reviewers, groups, order, label_studio)
    verdict_table = verdicts or table_beside(kept, VERDICTS)
    stage = review_export_stage(kept, how, verdicts=words, removed=refused, told=verdict_table, graph=graph)
    with review_file(out, sheet):
        run_one(stage, out, wait=wait, as_json=as_json)


@review_app.command(
    "import",
    epilog="Example: culturekit cspace review import review.csv --kept kept/kept.parquet --by Ada --on 2026-11-22 "
    "--out reviewed",
)
def import_command(
    answers: Annotated[
        list[Path], typer.Argument(help="Sheets that were filled in, or JSON of Label Studio or the form.")
    ],
    kept: Kept,
    out: Out,
    project: Annotated[
        Path | None, typer.Option(help="Folder that `cspace review export` wrote; JSON is read with it.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Who decided, where a row of a sheet does not say.")] = None,
    on: Annotated[str | None, typer.Option(help="The day, YYYY-MM-DD, where a row does not say.")] = None,
    removed: Removed = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Turn decisions into verdicts, with who and when.

    Nothing is taken in while a row is wrong.
    """
    from culturekit.builders.filtering.candidate_review import table_beside
    from culturekit.people.candidate_review import ReviewFiles, review_stage

    stage = review_stage(kept, ReviewFiles(tuple(answers), project, by, on), removed=removed or table_beside(kept))
    run_one(stage, out, also=also, wait=wait, as_json=as_json)


@contextmanager
def review_file(out: Path, sheet: Path | None) -> Iterator[None]:
    """Copy the sheet that a stage in `out` wrote, also when quotas were not met; None asks for no copy."""
    from culturekit.builders.prompting.prompts import REVIEW
    from culturekit.core.atomic import write_atomically

    if sheet is not None and sheet.is_dir():
        raise UsageError("a folder, not a sheet", where=str(sheet), expected="the name of a CSV file")
    left: typer.Exit | None = None
    try:
        yield
    except typer.Exit as exit_code:
        left = exit_code
    if sheet is not None:
        content = (out / REVIEW).read_bytes()
        if sheet.exists() and sheet.read_bytes() != content:
            raise UsageError(
                "this sheet is there already and may hold decisions: it is not written over", where=str(sheet),
                hint=f"Name another file; the new sheet is also {out / REVIEW}.",
            )  # fmt: skip
        sheet.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(sheet, content)
    if left is not None:
        raise left
