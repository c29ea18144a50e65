"""`culturekit index`: artifacts as vectors, and images mapped to them."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.map_command import map_command
from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Wait, Workers
from culturekit.cli.stages import run_one

__all__ = ["index_app"]

index_app = typer.Typer(no_args_is_help=True, help="The index: artifacts as vectors, and images mapped to them.")


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
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Build the index of a cultural space from reference pictures."""
    from culturekit.pipeline.index_stages import index_stage

    stage = index_stage(cspace, references, encoder=encoder, prompts=prompts)
    run_one(stage, out, workers=workers, engine=engine, also=also, wait=wait, as_json=as_json)


index_app.command(
    "map", epilog="Example: culturekit index map --index index --images images/images.parquet --out matches"
)(map_command)
