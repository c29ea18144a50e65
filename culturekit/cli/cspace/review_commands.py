"""`culturekit cspace review`: candidates that wait for a person, handed out and taken back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.stages import run_one
from culturekit.core.errors import UsageError

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
    from culturekit.core.choices import VerdictWord
    from culturekit.core.schemas import VERDICTS
    from culturekit.people.candidate_review import First, Handing, review_export_stage

    if groups and sheet is not None:
        raise UsageError("a sheet has candidates one by one", expected="--sheet or --groups, not both")
    if graph is not None and not groups:
        raise UsageError("--graph has no effect alone", expected="--groups")
    words = [word_among(VerdictWord, text) for text in verdict or ["review"]]
    refused = (removed or table_beside(kept)) if "remove" in words else removed
    how = Handing(reviewers, groups, None if first is None else word_among(First, first), label_studio)
    told = verdicts or table_beside(kept, VERDICTS)
    stage = review_export_stage(kept, how, verdicts=words, removed=refused, told=told, graph=graph)
    with review_file(out, sheet):
        run_one(stage, out, wait=wait, as_json=as_json)


def word_among(known: Any, text: str) -> Any:  # noqa: ANN401 - a Literal, and one of its words
    """Read one of few words."""
    if text.lower() in get_args(known):
        return text.lower()
    raise UsageError("not one of the words", expected=" or ".join(get_args(known)), found=repr(text))


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
    if sheet is not None and sheet.is_dir():
        raise UsageError("a folder, not a sheet", where=str(sheet), expected="the name of a CSV file")
    left: typer.Exit | None = None
    try:
        yield
    except typer.Exit as exit_code:
        left = exit_code
    if sheet is not None:
        from culturekit.builders.prompting.prompts import REVIEW
        from culturekit.core.atomic import write_atomically

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
