"""`culturekit annotate`: forms for people, their answers, and the tables these make."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.cli.options import Also, AsJson, Out, Seed, Wait, Workers
from culturekit.cli.showing.progress import progress_for
from culturekit.cli.stages import run_one
from culturekit.defaults import SHORTLIST

__all__ = ["annotate_app"]

ELSEWHERE = {"aggregate": CommandAt("culturekit.pipeline.steps.aggregate_stage:AGGREGATE")}

annotate_app = typer.Typer(
    no_args_is_help=True,
    help="People in the loop: forms out, answers in.",
    cls=lazy_group("annotate", ELSEWHERE),
)


@annotate_app.command(
    epilog="Example: culturekit annotate export cube --images a/images.parquet --images b/images.parquet "
    "--prompts prompts/prompts.parquet --out to-rate"
)
def export(
    scheme: Annotated[str, typer.Argument(help="A shipped scheme, such as cube or audit, or the path of a YAML file.")],
    images: Annotated[list[Path], typer.Option(help="Table of images; repeat it, such as for each model.")],
    out: Out,
    prompts: Annotated[Path | None, typer.Option(help="What the images were made for.")] = None,
    items: Annotated[
        Path | None, typer.Option(help="Items that show several images or have fields of their own: Parquet or CSV.")
    ] = None,
    sample: Annotated[Path | None, typer.Option(help="Only these images: what `score audit-sample` wrote.")] = None,
    cspace: Annotated[Path | None, typer.Option(help="Artifacts, countries and continents to choose from.")] = None,
    matches: Annotated[
        list[Path] | None, typer.Option(help="What the images were mapped to; decides which artifacts are offered.")
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            help="Pictures known to show what `truth_artifact_id` says (null: no culture), put among those of an audit "
            "to see how often raters are right."
        ),
    ] = None,
    gold_per_sheet: Annotated[
        int, typer.Option(min=10, max=1000, help="Such pictures in each sheet, where --gold is given.")
    ] = 10,
    shortlist: Annotated[int, typer.Option(min=2, max=200, help="Artifacts that each image is offered.")] = SHORTLIST,
    in_region: Annotated[int, typer.Option(min=0, max=50, help="Annotators of an item's own region.")] = 3,
    out_of_region: Annotated[int, typer.Option(min=0, max=50, help="Annotators of other regions.")] = 0,
    region: Annotated[
        list[str] | None, typer.Option(help="Where annotators are found; repeatable. [the regions of the items]")
    ] = None,
    per_sheet: Annotated[int, typer.Option(min=1, max=1000, help="Most items of one sheet.")] = 40,
    checks: Annotated[int, typer.Option(min=0, max=20, help="Attention checks in each sheet.")] = 2,
    repeats: Annotated[
        int, typer.Option(min=0, max=100, help="Items that each sheet asks twice; of three items at most one.")
    ] = 3,
    pictures_at: Annotated[
        str, typer.Option(help="How Label Studio addresses the pictures.")
    ] = "/data/local-files/?d=pictures/",
    form_at: Annotated[str, typer.Option(help="Web address of the form; writes links for Prolific.")] = "",
    completion: Annotated[str, typer.Option(help="Web address that ends a Prolific study.")] = "",
    seed: Seed = 0,
    workers: Workers = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Write blinded tasks for Label Studio and as one offline form; the key stays beside what is handed out."""
    from culturekit.annotate.export import ExportOptions
    from culturekit.annotate.prolific import checked_address
    from culturekit.annotate.quotas import Quotas
    from culturekit.pipeline.steps.annotate_stages import ExportFiles, export_stage

    options = ExportOptions(
        Quotas(in_region, out_of_region, tuple(sorted(set(region or ())))),
        per_sheet=per_sheet,
        checks=checks,
        repeats=repeats,
        gold=gold_per_sheet,
        pictures_at=pictures_at,
        form_at=checked_address(form_at, name="--form-at") if form_at else "",
        completion=checked_address(completion, name="--completion") if completion else "",
    )
    files = ExportFiles(images, prompts, items, sample, cspace, matches or (), gold)
    stage = export_stage(files, scheme, options, shortlist=shortlist, seed=seed)
    run_one(stage, out, wait=wait, as_json=as_json, workers=workers)


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
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Take in answers; what is wrong goes to quarantine with the reason, and the command leaves with 1."""
    from culturekit.pipeline.steps.annotate_stages import import_stage

    run_one(import_stage(project, exports, pool=pool), out, also=also, wait=wait, as_json=as_json)


@annotate_app.command(epilog="Example: culturekit annotate serve runs/cube --people 2")
def serve(
    run: Annotated[Path, typer.Argument(help="Finished run, with matches of every model.")],
    images: Annotated[
        int | None, typer.Option(min=30, help="Images of each model to draw; each concept gets 30 or more. [150]")
    ] = None,
    people: Annotated[int | None, typer.Option(min=1, max=50, help="People who look at every image. [3]")] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port on this machine; 0 takes a free one.")] = 0,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Let people audit a run in their browsers: draws the images once, keeps every answer, and ends with Ctrl-C."""
    from culturekit.annotate.form_server import FormServer
    from culturekit.pipeline.served_audit import AuditSize, audit_desk, journal_of
    from culturekit.pipeline.steps.report_stage import folders_of
    from culturekit.pipeline.workers.engines import engine_for

    hands = engine_for("local", workers=workers, folder=run)
    with progress_for(as_json=as_json) as progress, hands as engine:
        progress.stage("audit")
        with (
            audit_desk(run, AuditSize(images, people), engine=engine, progress=progress) as desk,
            FormServer(desk, port=port, saved=lambda: progress.tell(desk.together)) as server,
        ):
            typer.echo(f"{desk.together}; each is kept in {journal_of(folders_of(run))}. Ctrl-C ends.", err=True)
            print(json.dumps({"address": server.address}) if as_json else server.address, flush=True)
            with suppress(KeyboardInterrupt):
                server.serve_forever()
    told = {"answered": desk.answered, "wanted": desk.wanted, "people": desk.people}
    print(json.dumps(told) if as_json else desk.together)
    if desk.answered:
        typer.echo(f"Next, for the corrected report: culturekit run RECIPE --workdir {run}", err=True)
