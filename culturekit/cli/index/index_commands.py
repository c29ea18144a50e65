"""`culturekit index`: artifacts as vectors, and images mapped to them."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.cli.options import AsJson, EngineSpec, Out, Wait, Workers
from culturekit.cli.stages import run_one

__all__ = ["embed_command", "index_app"]

STEPS = "culturekit.pipeline.steps"
COMMANDS = {
    "build": CommandAt(f"{STEPS}.index_stages:BUILD"),
    "embed": CommandAt(
        "culturekit.cli.index.index_commands:embed_command",
        "--images images/images.parquet --encoder embedded --out vectors",
    ),
    "map": CommandAt(
        "culturekit.cli.index.map_command:map_command", "--index index --images images/images.parquet --out matches"
    ),
    "diagnose": CommandAt(f"{STEPS}.diagnosis_stages:DIAGNOSE"),
    "shuffle": CommandAt(f"{STEPS}.diagnosis_stages:SHUFFLE"),
    "append": CommandAt(f"{STEPS}.index_change_stages:APPEND"),
    "remove": CommandAt(f"{STEPS}.index_change_stages:REMOVE"),
    "compact": CommandAt(f"{STEPS}.index_change_stages:COMPACT"),
}

index_app = typer.Typer(
    no_args_is_help=True,
    help="The index: artifacts as vectors, and images mapped to them.",
    cls=lazy_group("index", COMMANDS),
)


def embed_command(
    encoder: Annotated[str, typer.Option(help="Who turns pictures or texts into vectors, as a SPEC.")],
    out: Out,
    images: Annotated[Path | None, typer.Option(help="Images table whose pictures are embedded.")] = None,
    texts: Annotated[
        list[Path] | None, typer.Option(help="Table of texts instead: Parquet, CSV or JSON lines; may be repeated.")
    ] = None,
    id_column: Annotated[
        str, typer.Option(help="Column with the id of each text. [prompt_id, id, or the text itself]")
    ] = "",
    text_column: Annotated[str, typer.Option(help="Column with the texts. [text, token or phrase]")] = "",
    workers: Workers = None,
    engine: EngineSpec = "local",
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Embed images or texts into a folder of vectors, which scores and `index map` take."""
    from culturekit.index.embedding.embed_table import EmbedSource
    from culturekit.index.models.text_files import TextColumns
    from culturekit.pipeline.steps.index_stages import embed_stage

    source = EmbedSource(images, tuple(texts or ()), TextColumns(id_column, text_column))
    run_one(embed_stage(source, encoder), out, workers=workers, engine=engine, wait=wait, as_json=as_json)
