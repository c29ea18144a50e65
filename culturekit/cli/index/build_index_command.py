"""`culturekit index build`: a cultural space to an index."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.completions import spec_completer
from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Wait, Workers
from culturekit.cli.stages import run_one
from culturekit.records.choices import ChannelsName

__all__ = ["build_index_command"]


def build_index_command(
    cspace: Annotated[Path, typer.Option(help="Table that `cspace release` wrote.")],
    encoder: Annotated[
        str,
        typer.Option(
            help="Who turns pictures and texts into vectors, as a SPEC.",
            autocompletion=spec_completer("culturekit.index.encoders:ENCODERS"),
        ),
    ],
    out: Out,
    references: Annotated[
        Path | None, typer.Option(help="Images table of pictures that show the artifacts, several of each or one.")
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts of the references; they say what each shows when its table does not.")
    ] = None,
    channel: Annotated[
        ChannelsName | None, typer.Option(help="How artifacts are known. [all that encoder and references allow]")
    ] = None,
    templates: Annotated[
        Path | None, typer.Option(help="YAML file of wordings for the text channel. [shipped ones]")
    ] = None,
    aliases: Annotated[
        Path | None, typer.Option(help="Other names: Parquet or CSV with artifact_id and alias.")
    ] = None,
    candidates: Annotated[Path | None, typer.Option(help="Candidates table; the aliases in it count as names.")] = None,
    countries_in_texts: Annotated[
        bool, typer.Option("--countries-in-texts", help="Use the wordings that name an artifact's countries, too.")
    ] = False,
    workers: Workers = None,
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Build the index of a cultural space from reference pictures, from names, or from both."""
    from culturekit.index.folder.build import IndexFiles, IndexOptions
    from culturekit.pipeline.steps.index_stages import index_stage

    files = IndexFiles(cspace, references, prompts, aliases, candidates, templates)
    stage = index_stage(files, IndexOptions(encoder, channel, countries_in_texts))
    run_one(stage, out, workers=workers, engine=engine, also=also, wait=wait, as_json=as_json)
