"""`culturekit annotate`: forms for people, their answers, and the tables these make."""

import json
import shlex
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.cli.options import Also, AsJson, Out, Wait, Workers
from culturekit.cli.showing import aligned, progress_for, show
from culturekit.cli.stage_command import run_one
from culturekit.core.errors import UsageError

if TYPE_CHECKING:
    from culturekit.metrics.corrected.audit_sampling import Drawing
    from culturekit.metrics.corrected.looks import Goal
    from culturekit.people.answer_desk import AnswerDesk

ELSEWHERE = {
    "export": CommandAt(
        "culturekit.cli.export_command:export",
        "cube --images a/images.parquet --images b/images.parquet --prompts prompts/prompts.parquet --out to-rate",
    ),
    "aggregate": CommandAt("culturekit.people.stages:AGGREGATE"),
    "coding-sheet": CommandAt("culturekit.recipes.inclusion.people:coding_sheet"),
    "coded": CommandAt("culturekit.recipes.inclusion.people:coded"),
}

annotate_app = typer.Typer(
    no_args_is_help=True, help="People in the loop: forms out, answers in.", cls=lazy_group("annotate", ELSEWHERE),
)  # fmt: skip


@annotate_app.command(
    "import", epilog="Example: culturekit annotate import answers-1.json answers-2.json --project to-rate --out rated"
)
def import_command(
    exports: Annotated[list[Path], typer.Argument(help="JSON exports of Label Studio, or files that the form saved.")],
    project: Annotated[Path, typer.Option(help="Folder that `annotate export` wrote, with the key.")],
    out: Out,
    pool: Annotated[
        str | None, typer.Option(help="Name of the pool of people in audits. [the region of each annotator]")
    ] = None,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="People whose answers are nearly the same are several; else one counts.")
    ] = False,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Take in answers of people.

    What is wrong goes to quarantine with the reason, and the command leaves with 1.
    """
    from culturekit.people.stages import import_stage

    run_one(import_stage(project, exports, pool=pool, distinct=distinct), out, also=also, wait=wait, as_json=as_json)


@annotate_app.command(epilog="Example: culturekit annotate status rated")
def status(
    folder: Annotated[
        Path,
        typer.Argument(help="What `annotate import` or `aggregate` wrote; or a form that `annotate serve` keeps open."),
    ],
    as_json: AsJson = False,
) -> None:
    """Show how each person did.

    Answers, checks, repeats, gold items, agreement with others, minutes; whether they count, and why not.
    """
    from culturekit.people.importing import raters_in
    from culturekit.scores.answers import STATUS, status_line, who_counted

    raters = raters_in(folder)
    rows = raters.to_dicts()
    show(rows, aligned([STATUS, *map(status_line, rows)]), as_json=as_json)
    if not as_json and (sentence := who_counted(raters)):
        typer.echo(sentence, err=True)


@annotate_app.command(epilog="Example: culturekit annotate serve runs/cube --people 2")
def serve(
    run: Annotated[
        Path,
        typer.Argument(help="Finished run, with matches of every model; or the folder of a form that was exported."),
    ],
    images: Annotated[
        int | None, typer.Option(min=30, help="Images of each model to draw; each concept gets 30 or more. [150]")
    ] = None,
    people: Annotated[int | None, typer.Option(min=1, max=50, help="People who look at every image. [3]")] = None,
    gold: Annotated[
        Path | None,
        typer.Option(help="Known pictures, as for `annotate export`. [the references, where they say what they show]"),
    ] = None,
    drawing: Annotated[
        str | None,
        typer.Option(
            help="images, or batches: whole batches of 8 settle every kernel, with any number of prompts; each concept "
            "gets 12 or more. [images]"
        ),
    ] = None,
    look: Annotated[
        list[int] | None,
        typer.Option(
            help="Images of each model after which to look whether models are told apart, 50 or more; repeatable. Who "
            "is told apart, or cannot be, is asked about no more."
        ),
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(help="What looks are for: order, every pair of models; or top, the one that shows most. [order]"),
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="Of a form for people of several regions: where those are who answer now.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port on this machine; 0 takes a free one.")] = 0,
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals",
            help="Tell corrected intervals after every 30 answers. Who stops when one pleases makes it lie.",
        ),
    ] = False,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Let people audit a run, or fill in a form, in browsers.

    It keeps every answer, and ends with Ctrl-C.
    """
    from culturekit.core.engines import engine_for
    from culturekit.people.answer_desk import FormServer
    from culturekit.people.export import PROJECT_FILE
    from culturekit.recipes.cube.served_audit import AuditSize, Narrowing, audit_desk, form_desk
    from culturekit.report.report_stage import folders_of

    form = (run / PROJECT_FILE).is_file()
    if form and any((images, people, gold, drawing, look, goal, intervals)):
        raise UsageError("a form has its size already", where=str(run), hint="Give --region and --port alone.")
    if region is not None and not form:
        raise UsageError("audits are for people of any region", where=str(run), hint="Leave --region out.")
    pool = engine_for("local", workers=workers, folder=run)
    with progress_for(as_json=as_json) as progress, pool as engine:
        progress.stage("audit")
        size = AuditSize(
            images, people, gold, cast("Drawing | None", drawing), tuple(look or ()), cast("Goal | None", goal)
        )
        opened = form_desk(run, region) if form else audit_desk(run, size, engine=engine, progress=progress)
        with opened as desk, FormServer(desk, port=port) as server:
            tell = partial(typer.echo, err=True)
            if desk.looks and intervals:
                raise UsageError("an audit that has looks tells no running intervals", hint="Leave --intervals out.")
            narrowing = Narrowing(folders_of(run), desk, engine, tell) if intervals or desk.looks else None
            if narrowing is not None and desk.looks and desk.whole_look:
                narrowing.look_now()  # nobody is asked again about models that are done

            def saved() -> None:
                progress.tell(desk.progress)
                if narrowing is not None:
                    narrowing.heard()

            server.saved = saved
            typer.echo(f"{desk.together}; each is kept in {desk.journal.path}. Ctrl-C ends.\n{desk.size}", err=True)
            if not form and not desk.tests_people:
                tell("No known pictures are among them: nobody sees how often people are right. See --gold.")
            progress.stage("answers")
            progress.tell(desk.together)
            print(json.dumps({"address": server.address}) if as_json else server.address, flush=True)
            with suppress(KeyboardInterrupt):
                server.serve_forever()
            if narrowing is not None and desk.answered:
                narrowing.look_now()
    counts = {"answered": desk.answered, "wanted": desk.wanted, "people": desk.people}
    print(json.dumps(counts) if as_json else desk.together)
    if desk.answered:
        words = _taking_in(run, desk, form=form)
        typer.echo(f"Next: culturekit {shlex.join(map(str, words))}", err=True)


def _taking_in(run: Path, desk: "AnswerDesk", *, form: bool) -> list[str | Path]:
    """Give the command that takes answers in: that of the run, or for a form outside a run the one of its kind."""
    from culturekit.core.inputs import recorded
    from culturekit.core.run import RECIPE_RECORD

    root, scheme = run.parent if form else run, desk.scheme.name
    answers: list[str | Path] = [desk.journal.path, "--project", run]
    if (root / RECIPE_RECORD).is_file():
        return ["run", root / RECIPE_RECORD, "--workdir", root]
    if scheme == "cspace_check":
        return ["cspace", "check", "score", "--project", run, "--out", root / "checked"]
    if scheme in {"cspace_groups", "cspace_review"}:
        return ["cspace", "review", "import", *answers, "--kept", recorded(run, "kept"), "--out", root / "reviewed"]
    return ["annotate", "import", *answers, "--out", root / "rated"]
