"""`culturekit generate` and `culturekit index`: from prompts to images to their nearest artifacts."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Seed, Wait, Workers
from culturekit.cli.stages import run_one
from culturekit.records.choices import Aggregate

__all__ = ["generate", "index_app"]

index_app = typer.Typer(no_args_is_help=True, help="The index: artifacts as vectors, and images mapped to them.")


def generate(
    backend: Annotated[str, typer.Option(help="Who makes the images, as a SPEC.")],
    prompts: Annotated[Path, typer.Option(help="Table that `prompts build` wrote.")],
    out: Out,
    repeats: Annotated[int, typer.Option(min=1, help="How often each prompt is repeated.")] = 1,
    slots: Annotated[int, typer.Option(min=1, max=255, help="Images per prompt and repeat.")] = 1,
    model: Annotated[str | None, typer.Option(help="Name of the model in the tables. [the SPEC's name]")] = None,
    seed: Seed = 0,
    workers: Workers = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Make images of prompts, each a file and a row; what could not be made is a row with its reason."""
    from culturekit.generation.runner import ImagePlan
    from culturekit.pipeline.image_stages import cspace_behind, generate_stage
    from culturekit.registry import parse_spec

    stage = generate_stage(
        prompts,
        ImagePlan(repeats, slots),
        backend=backend,
        model=model or parse_spec(backend).name,
        seed=seed,
        name="images",
        cspace=cspace_behind(prompts),
    )
    run_one(stage, out, workers=workers, also=also, wait=wait, as_json=as_json)


@index_app.command(
    epilog="Example: culturekit index build --cspace cspace/cspace.parquet --encoder embedded "
    "--references references/images.parquet --out index"
)
def build(
    cspace: Annotated[Path, typer.Option(help="Table that `cspace release` wrote.")],
    encoder: Annotated[str, typer.Option(help="Who turns pictures into vectors, as a SPEC.")],
    references: Annotated[Path, typer.Option(help="Images table of pictures that show the artifacts.")],
    out: Out,
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts of the references; they say what each shows when its table does not.")
    ] = None,
    workers: Workers = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Build the index of a cultural space from reference pictures."""
    from culturekit.pipeline.image_stages import index_stage

    stage = index_stage(cspace, references, encoder=encoder, prompts=prompts)
    run_one(stage, out, workers=workers, also=also, wait=wait, as_json=as_json)


@index_app.command(
    "map", epilog="Example: culturekit index map --index index --images images/images.parquet --out matches"
)
def map_command(
    index: Annotated[Path, typer.Option(help="Folder that `index build` wrote.")],
    images: Annotated[Path, typer.Option(help="Images table.")],
    out: Out,
    k: Annotated[int, typer.Option(min=1, max=100, help="Artifacts to keep per image.")] = 5,
    aggregate: Annotated[Aggregate, typer.Option(help="How an artifact's references become its score.")] = "max",
    workers: Workers = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Map every image to its nearest artifacts, with margins."""
    from culturekit.index.mapping import MappingOptions
    from culturekit.pipeline.image_stages import map_stage

    stage = map_stage(index, images, MappingOptions(k, aggregate), name="matches")
    run_one(stage, out, workers=workers, also=also, wait=wait, as_json=as_json)
