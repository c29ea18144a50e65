"""`culturekit index embed`: images or texts to a folder of vectors."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import AsJson, EngineSpec, Out, Wait, Workers
from culturekit.cli.stages import run_one

__all__ = ["embed_command"]


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
