"""`culturekit run`, `plan`, `demo`, `report` and `publish`: whole recipes."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.options import AsJson, EngineSpec, GoOn, Out, Prices, Wait, Workers, complete_recipe
from culturekit.cli.showing import progress_for, show
from culturekit.cli.stage_command import as_data, leave_if_set_aside, line_about, run_one, stoppable
from culturekit.core.errors import counted

if TYPE_CHECKING:
    from culturekit.core.run import StageRun


RUNS = Path("runs")
NAME_WIDTH = 18

RecipeName = Annotated[
    Path, typer.Argument(help="Recipe file, or the name of a shipped one.", autocompletion=complete_recipe)
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Set values of the recipe, key=value, one or several. Repeatable.")
]
Workdir = Annotated[Path | None, typer.Option(help="Folder of the run. [runs/NAME]")]


def run(
    recipe: RecipeName,
    settings: Settings = None,
    until: Annotated[str | None, typer.Option(help="Stop after this stage.")] = None,
    fresh: Annotated[
        list[str] | None,
        typer.Option(help="Do this stage again; `images` means all images. No answer is bought twice. Repeatable."),
    ] = None,
    workdir: Workdir = None,
    workers: Workers = None,
    engine: EngineSpec = "local",
    go_on: GoOn = False,
    prices: Prices = None,
    wait: Wait = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Leave with 1 for any malformed line of a dump; else 0.1% are only told.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a recipe, and go on where it was cut.

    Finished stages whose inputs and options have not changed are reused.
    """
    from culturekit.config.kinds import recipe_kind
    from culturekit.config.load import find_recipe, load_any_recipe
    from culturekit.core.engines import engine_for
    from culturekit.core.run import Run
    from culturekit.recipes.run_recipe import run_recipe

    path = find_recipe(str(recipe))
    wanted, folder = load_any_recipe(path, settings or ()).going_on(go_on), workdir or RUNS / path.stem

    def finished(stage_run: "StageRun") -> None:
        if not as_json and stage_run.state != "reused":
            typer.echo(line_about(stage_run, width=NAME_WIDTH), err=True)

    pool = engine_for(engine, workers=workers, folder=folder)
    with stoppable(), progress_for(as_json=as_json) as progress, pool as at_work:
        runs = run_recipe(
            wanted, folder, engine=at_work, progress=progress, until=until, fresh=fresh or (), wait=wait,
            on_start=lambda stage: progress.stage(stage.name), on_end=finished,
        )  # fmt: skip
    name, file = ("report", "report.html") if wanted.evaluated else ("card", "README.md")
    page, last = folder / name / file, None
    if name in {stage_run.name for stage_run in runs} and page.is_file():
        below = page.is_absolute() and page.is_relative_to(Path.cwd())
        last = str(page.relative_to(Path.cwd()) if below else page)
    headline: Iterable[str] = ()
    if not as_json:
        reused = sum(stage_run.state == "reused" for stage_run in runs)
        typer.echo(f"{counted(len(runs), 'stages')}: {reused} reused, {len(runs) - reused} done", err=True)
        headline = recipe_kind(wanted.recipe).headline(Run(folder, wanted.evaluated, tuple(run.name for run in runs)))
    lines = (*headline, *([f"{name}: {last}"] if last else ()))
    show({"stages": [as_data(stage_run) for stage_run in runs], name: last}, lines, as_json=as_json)
    leave_if_set_aside({f"{stage_run.name}: ": stage_run for stage_run in runs}, strict=strict)


def demo(
    recipe: Annotated[str, typer.Argument(help="Which recipe: cube, cultivate, c3, linguistic or inclusion.")] = "cube",
    workdir: Workdir = None,
    workers: Workers = None,
    engine: EngineSpec = "local",
    go_on: GoOn = False,
    prices: Prices = None,
    as_json: AsJson = False,
) -> None:
    """Run a recipe on what comes with culturekit.

    Of cube: which of these five models is lying?
    """
    workdir = workdir or RUNS / recipe
    run(Path(recipe), workdir=workdir, workers=workers, engine=engine, go_on=go_on, prices=prices, as_json=as_json)


def plan(
    recipe: RecipeName,
    settings: Settings = None,
    workdir: Workdir = None,
    pilot: Annotated[
        bool,
        typer.Option(
            "--pilot",
            help="Make two images of each local model and time local encoders first, to say how long they take.",
        ),
    ] = False,
    go_on: GoOn = False,
    prices: Prices = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Say what a run would do, cost and take.

    Nothing is sent, and without a pilot nothing is written.
    """
    from culturekit.config.kinds import recipe_kind
    from culturekit.config.load import find_recipe, load_any_recipe
    from culturekit.core.engines import LocalEngine
    from culturekit.recipes.planning import pilot_encoders, pilot_models, plan_lines, plan_recipe

    path = find_recipe(str(recipe))
    wanted, folder = load_any_recipe(path, settings or ()).going_on(go_on), workdir or RUNS / path.stem
    paces = {}
    if pilot:
        with stoppable(), progress_for(as_json=as_json) as progress, LocalEngine(workers) as engine:
            paces = pilot_encoders(wanted, folder, on_start=progress.stage)
            pilot_models(wanted, folder, engine=engine, progress=progress, on_start=progress.stage)
    with progress_for(as_json=as_json) as progress:
        progress.stage("plan")
        steps = plan_recipe(wanted, folder, paces=paces)
    lines = (*plan_lines(steps), *recipe_kind(wanted.recipe).plan(wanted))
    show([step.as_data() for step in steps], lines, as_json=as_json)


def report(
    run_folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs.")],
    out: Out,
    pdf: Annotated[Path | None, typer.Option(help="PDF file, printed by Chromium with all that folds open.")] = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Write the report of a run, or a page that compares several.

    A report is one HTML file, with thumbnails beside it.
    """
    from culturekit.recipes.run_recipe import report_of
    from culturekit.recipes.several_runs import several_runs_stage
    from culturekit.report.write import browser, print_page

    if pdf is not None:
        browser()
    stage = report_of(run_folders[0]) if len(run_folders) == 1 else several_runs_stage(run_folders)
    run_one(stage, out, wait=wait, as_json=as_json)
    if pdf is not None:
        print_page(out / "report.html", pdf)


def site(
    run_folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs.")],
    out: Out,
    dataset: Annotated[
        str | None,
        typer.Option(help="Dataset on the Hub, OWNER/NAME, that results for model repositories name. [none written]"),
    ] = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Write runs as a folder of static pages.

    A page a model and an artifact; and results for Every Eval Ever and the Hub.
    """
    from culturekit.recipes.several_runs import site_stage

    run_one(site_stage(run_folders, dataset), out, wait=wait, as_json=as_json)


def publish(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    to: Annotated[str, typer.Option(help="Dataset on the Hub to write: hub:USER/NAME.")],
    public: Annotated[
        bool, typer.Option("--public", help="Let anybody see a dataset that is new. [only its owner]")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write images, scores and card of a run as a Hub dataset.

    The token is that of the environment, HF_TOKEN. What is there already is not sent again.
    """
    from culturekit.recipes.publish_run import publish_run

    with stoppable(), progress_for(as_json=as_json) as progress:
        progress.stage("publish")
        done = publish_run(run, to, public=public, progress=progress)
    there = ", ".join(f"{count:,} {kind}" for kind, count in done.files.items())
    lines = [
        f"{done.url} ({'only its owner sees it' if done.private else 'anybody sees it'}): {there}",
        f"sent: {counted(done.sent[0], 'files')}, {done.sent[1]:,} bytes",
        *(f"not published: {one}" for one in done.left_out),
    ]
    show(done, lines, as_json=as_json)
