"""`culturekit generate`: from prompts to images."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Seed, Wait, Workers
from culturekit.cli.stages import run_one
from culturekit.records.choices import PictureFormat

if TYPE_CHECKING:
    from culturekit.pipeline.stage import Stage

__all__ = ["generate"]


def generate(
    backend: Annotated[
        str, typer.Option(help="Who makes the images, as a SPEC; `folder:DIR` takes images that exist already.")
    ],
    out: Out,
    prompts: Annotated[
        Path | None, typer.Option(help="Table that `prompts build` wrote; only a folder of images can do without.")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="How often each prompt is repeated. [1]", show_default=False)
    ] = None,
    slots: Annotated[
        int | None, typer.Option(min=1, max=255, help="Images per prompt and repeat. [1]", show_default=False)
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Name of the model in the tables; of a folder with several, the one to take.")
    ] = None,
    image_format: Annotated[
        PictureFormat, typer.Option("--format", help="Form of the files that are written; both keep every pixel.")
    ] = "png",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show how the files of a folder map to prompts; writes nothing.")
    ] = False,
    seed: Seed = 0,
    workers: Workers = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Make images of prompts, each a file and a row; what could not be made is a row with its reason."""
    from culturekit.generation.folder_options import FOLDER
    from culturekit.registry import parse_spec

    if parse_spec(backend).name == FOLDER:
        from culturekit.cli.folder_dry_run import dry_run_of
        from culturekit.pipeline.folder_stage import image_folder, stage_of

        folder = image_folder(backend, prompts, model=model, repeats=repeats, slots=slots)
        if dry_run:
            dry_run_of(folder, as_json=as_json)
            return
        stage = stage_of(folder, name="images", form=image_format)
    else:
        stage = made(backend, prompts, model, repeats, slots, image_format, seed, dry_run=dry_run)
    run_one(stage, out, workers=workers, also=also, wait=wait, as_json=as_json)


def made(
    backend: str,
    prompts: Path | None,
    model: str | None,
    repeats: int | None,
    slots: int | None,
    image_format: PictureFormat,
    seed: int,
    *,
    dry_run: bool,
) -> "Stage":
    """Describe the stage of a backend that makes images."""
    from culturekit.errors import UsageError
    from culturekit.generation.backends import BACKENDS
    from culturekit.generation.runner import ImagePlan
    from culturekit.pipeline.generate_stage import cspace_behind, generate_stage
    from culturekit.registry import parse_spec

    BACKENDS.check(backend)
    if prompts is None:
        raise UsageError("images are made of prompts, and none are given", hint="Add --prompts FILE.")
    if dry_run:
        raise UsageError("--dry-run shows how the files of a folder map to prompts", expected="--backend folder:DIR")
    return generate_stage(
        prompts,
        ImagePlan(repeats or 1, slots or 1, format=image_format),
        backend=backend,
        model=model or parse_spec(backend).name,
        seed=seed,
        name="images",
        cspace=cspace_behind(prompts),
    )
