"""`culturekit generate`: from prompts to images."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Seed, Wait, Workers
from culturekit.cli.stages import run_one

__all__ = ["generate"]


def generate(
    backend: Annotated[str, typer.Option(help="Who makes the images, as a SPEC.")],
    prompts: Annotated[Path, typer.Option(help="Table that `prompts build` wrote.")],
    out: Out,
    repeats: Annotated[int, typer.Option(min=1, help="How often each prompt is repeated.")] = 1,
    slots: Annotated[int, typer.Option(min=1, max=255, help="Images per prompt and repeat.")] = 1,
    model: Annotated[str | None, typer.Option(help="Name of the model in the tables. [the SPEC's name]")] = None,
    seed: Seed = 0,
    workers: Workers = None,
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Make images of prompts, each a file and a row; what could not be made is a row with its reason."""
    from culturekit.generation.runner import ImagePlan
    from culturekit.pipeline.generate_stage import cspace_behind, generate_stage
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
    run_one(stage, out, workers=workers, engine=engine, also=also, wait=wait, as_json=as_json)
