"""`culturekit generate`: from prompts to images."""

import json
import re
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Prices, Seed, Wait, Workers, spec_completer
from culturekit.cli.showing import progress_for
from culturekit.cli.stage_command import run_one, stoppable, tell, unstated
from culturekit.core.declared import Typed
from culturekit.core.errors import UsageError
from culturekit.core.registry import parse_spec
from culturekit.generation.runner import SIZE, ImagePlan
from culturekit.llm.answers import DEFAULTS, LlmOptions

if TYPE_CHECKING:
    from culturekit.core.stage import Stage
    from culturekit.generation.folder.folder_run import ImageFolder


ONE_EACH = ImagePlan()


def generate(
    backend: Annotated[
        str,
        typer.Option(
            help="Who makes the images, as a SPEC; `folder:DIR` takes images that exist already.",
            autocompletion=spec_completer("culturekit.generation.backend:BACKENDS"),
        ),
    ],
    out: Out,
    prompts: Annotated[
        Path | None, typer.Option(help="Table that `prompts build` wrote; only a folder of images can do without.")
    ] = None,
    repeats: Annotated[int | None, unstated(ImagePlan, "repeats")] = None,
    slots: Annotated[int | None, unstated(ImagePlan, "slots")] = None,
    model: Annotated[
        str | None, typer.Option(help="Name of the model in the tables; of a folder with several, the one to take.")
    ] = None,
    form: Annotated[ImagePlan, Typed(only=("size", "format", "seeds"))] = ONE_EACH,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show how the files of a folder map to prompts; writes nothing.")
    ] = False,
    pilot: Annotated[
        bool, typer.Option("--pilot", help="Make only two images of a local model, and say how long the rest takes.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what a paid service would be asked and cost; nothing is sent.")
    ] = False,
    llm: Annotated[LlmOptions, Typed(only=("budget", "concurrency", "batch", "go_on"))] = DEFAULTS,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Generate again: no image is bought twice, and what brought none is asked anew."),
    ] = False,
    prices: Prices = None,
    seed: Seed = 0,
    workers: Workers = None,
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Make images of prompts, each a file and a row.

    What could not be made is a row with its reason.
    """
    from culturekit.generation.backend import FOLDER, is_paid

    paid = is_paid(backend)
    if not paid and (plan or llm != DEFAULTS):
        raise UsageError("--plan, --budget, --concurrency, --batch and --go-on are for paid services", found=backend)
    if paid and pilot:
        raise UsageError("a pilot times a local model", found=backend, hint="Write --plan to see what images cost.")
    if parse_spec(backend).name == FOLDER:
        from culturekit.generation.folder.folder_run import image_folder, stage_of

        if pilot:
            raise UsageError("a pilot times a model, and these images exist already", hint="Leave --pilot away.")
        if form.size is not None:
            raise UsageError("images that exist already have their size", hint="Leave --size away.")
        folder = image_folder(backend, prompts, model=model, repeats=repeats, slots=slots)
        if dry_run:
            dry_run_of(folder, as_json=as_json)
            return
        stage = stage_of(folder, form=form.format)
    else:
        from culturekit.generation.backend import BACKENDS
        from culturekit.generation.stages.generate_stage import cspace_behind, generate_stage

        if form.size is not None and not re.match(SIZE, form.size):
            raise UsageError("a size is width x height", expected="such as 512x512", found=repr(form.size))
        BACKENDS.check(backend)
        if prompts is None:
            raise UsageError("images are made of prompts, and none are given", hint="Add --prompts FILE.")
        if dry_run:
            problem = "--dry-run shows how the files of a folder map to prompts"
            raise UsageError(problem, expected="--backend folder:DIR")
        wanted = replace(form, repeats=repeats or 1, slots=slots or 1)
        stage = generate_stage(
            prompts, wanted, backend=backend, model=model or parse_spec(backend).name, seed=seed,
            cspace=cspace_behind(prompts), llm=llm,
        )  # fmt: skip
        if pilot:
            try_out(prompts, wanted, stage, out, seed=seed, workers=workers, wait=wait, as_json=as_json)
            return
    if plan:
        tell(stage, out, pilot=None, wait=wait, as_json=as_json)
        return
    run_one(stage, out, workers=workers, engine=engine, also=also, wait=wait, as_json=as_json, fresh=fresh)


def try_out(
    prompts: Path, plan: ImagePlan, stage: "Stage", out: Path, *, seed: int, workers: int | None, wait: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Make two images and say how long the rest would take."""
    from culturekit.core.engines import LocalEngine
    from culturekit.generation.stages.generate_stage import run_pilot

    with stoppable(), progress_for(as_json=as_json) as progress, LocalEngine(workers) as engine:
        pace = run_pilot(prompts, plan, stage, out, seed=seed, engine=engine, progress=progress, wait=wait)
    if as_json:
        print(json.dumps(None if pace is None else asdict(pace)))
    elif pace is None:
        print("nothing is left to try: all images are there")
    else:
        minutes = pace.seconds_per_image * pace.left / 60
        print(
            f"pilot: {pace.seconds_per_image:.3g} s for an image, so about {minutes:,.1f} minutes for the "
            f"{pace.left:,} that are left; the same command without --pilot makes them"
        )


def dry_run_of(folder: "ImageFolder", *, as_json: bool) -> None:
    """Show what would come of a folder; leave with 1 when something should be looked at first."""
    from culturekit.generation.folder.folder_listing import shown
    from culturekit.generation.folder.folder_preview import preview_lines, preview_of

    with tempfile.TemporaryDirectory() as scratch:
        preview = preview_of(*folder.plan(Path(scratch)))
    data = json.dumps(preview.as_data(), ensure_ascii=False)
    for line in [data] if as_json else preview_lines(preview):
        print(shown(line))
    if preview.findings:
        typer.echo(f"to be looked at: {'; '.join(preview.findings)}", err=True)
        raise typer.Exit(1)
