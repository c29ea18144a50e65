"""`culturekit index map`: from images to their nearest artifacts."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Wait, Workers
from culturekit.cli.stages import run_one
from culturekit.records.choices import Aggregate

__all__ = ["map_command"]


def map_command(
    index: Annotated[Path, typer.Option(help="Folder that `index build` wrote.")],
    images: Annotated[Path, typer.Option(help="Images table.")],
    out: Out,
    k: Annotated[int, typer.Option(min=1, max=100, help="Artifacts to keep per image.")] = 5,
    aggregate: Annotated[Aggregate, typer.Option(help="How an artifact's references become its score.")] = "max",
    workers: Workers = None,
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Map every image to its nearest artifacts, with margins."""
    from culturekit.index.mapping import MappingOptions
    from culturekit.pipeline.index_stages import map_stage

    stage = map_stage(index, images, MappingOptions(k, aggregate), name="matches")
    run_one(stage, out, workers=workers, engine=engine, also=also, wait=wait, as_json=as_json)
