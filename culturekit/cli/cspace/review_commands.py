"""`culturekit cspace review`: candidates that wait for a person, handed out and taken back."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.stages import run_one

__all__ = ["review_app"]

review_app = typer.Typer(no_args_is_help=True, help="Candidates that wait for a person: forms out, answers in.")

Kept = Annotated[Path, typer.Option(help="Table that `cspace filter` or `cspace complete` wrote.")]


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
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Write what waits for a person.

    As review.csv, for Label Studio, and as one offline form.
    """
    from culturekit.cli.cspace.review_file import review_file
    from culturekit.pipeline.steps.review_stages import review_export_stage

    with review_file(out, sheet):
        run_one(review_export_stage(kept, reviewers=reviewers), out, wait=wait, as_json=as_json)


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
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Turn decisions into verdicts, with who and when.

    Nothing is taken in while a row is wrong.
    """
    from culturekit.pipeline.steps.review_stages import ReviewFiles, review_stage

    stage = review_stage(kept, ReviewFiles(tuple(answers), project, by, on))
    run_one(stage, out, also=also, wait=wait, as_json=as_json)
