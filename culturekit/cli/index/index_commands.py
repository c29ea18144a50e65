"""`culturekit index`: artifacts as vectors, and images mapped to them."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.completions import spec_completer
from culturekit.cli.index.map_command import map_command, weights_of
from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Seed, Wait, Workers
from culturekit.cli.stages import run_one
from culturekit.records.choices import Aggregate, ChannelsName

__all__ = ["embed_command", "index_app"]

Index = Annotated[Path, typer.Option(help="Folder of the index; it is read and left as it is.")]


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


def diagnose_command(
    index: Annotated[Path, typer.Option(help="Folder that `index build` wrote.")],
    out: Out,
    matches: Annotated[
        list[Path] | None, typer.Option(help="Table that `index map` wrote, whose hubs are listed; may be repeated.")
    ] = None,
    aggregate: Annotated[Aggregate, typer.Option(help="How an artifact's vectors become its score.")] = "max",
    weights: Annotated[
        str | None, typer.Option(help="How much each channel counts, such as image=0.7,text=0.3. [all alike]")
    ] = None,
    size: Annotated[int, typer.Option(min=2, help="Images per batch of the ceiling.")] = 8,
    repeats: Annotated[int, typer.Option(min=1, max=65_535, help="Batches of the ceiling per concept.")] = 50,
    seed: Seed = 0,
    workers: Workers = None,
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Hold references out: precision and recall by country, the ceiling of a score, and the hubs of a mapping."""
    from culturekit.index.diagnosis.diagnosis import DiagnosisOptions
    from culturekit.index.matching.mapping_options import MappingOptions
    from culturekit.pipeline.steps.diagnosis_stages import diagnosis_stage

    tables = {f"matches-{number}": path for number, path in enumerate(matches or [])}
    mapping = MappingOptions(aggregate=aggregate, weights=weights_of(weights))
    stage = diagnosis_stage(index, tables, mapping, DiagnosisOptions(size, repeats), seed=seed)
    run_one(stage, out, workers=workers, engine=engine, also=also, wait=wait, as_json=as_json)


def shuffle_command(
    images: Annotated[Path, typer.Option(help="Images table.")],
    out: Out,
    tiles: Annotated[int, typer.Option(min=2, max=64, help="Tiles along each side of a picture.")] = 8,
    repeats: Annotated[int, typer.Option(min=0, help="Repeats of each prompt that are taken; 0 takes all.")] = 5,
    seed: Seed = 0,
    workers: Workers = None,
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Cut images into tiles and shuffle them: what such pictures score is the floor of a score."""
    from culturekit.index.diagnosis.shuffled_pictures import ShuffleOptions
    from culturekit.pipeline.steps.diagnosis_stages import shuffle_stage

    stage = shuffle_stage(images, ShuffleOptions(tiles, repeats), seed=seed, name="shuffled")
    run_one(stage, out, workers=workers, engine=engine, also=also, wait=wait, as_json=as_json)


def append_command(
    index: Index,
    out: Out,
    references: Annotated[
        Path | None, typer.Option(help="Images table of pictures; those the index has already are passed over.")
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts of the references; they say what each shows when its table does not.")
    ] = None,
    cspace: Annotated[
        Path | None, typer.Option(help="Cultural space with new artifacts; those known already must be unchanged.")
    ] = None,
    aliases: Annotated[
        Path | None, typer.Option(help="Other names of new artifacts: Parquet or CSV with artifact_id and alias.")
    ] = None,
    candidates: Annotated[Path | None, typer.Option(help="Candidates table; the aliases in it count as names.")] = None,
    encoder: Annotated[
        str | None, typer.Option(help="SPEC of the same encoder where its weights lie elsewhere now. [the index's]")
    ] = None,
    workers: Workers = None,
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Append pictures and artifacts to an index; only what is new is embedded."""
    from culturekit.index.folder.index_append import AppendFiles
    from culturekit.pipeline.steps.index_stages import append_stage

    files = AppendFiles(references, prompts, cspace, aliases, candidates)
    run_one(
        append_stage(index, files, encoder=encoder),
        out,
        workers=workers,
        engine=engine,
        also=also,
        wait=wait,
        as_json=as_json,
    )


def remove_command(
    index: Index,
    out: Out,
    artifacts: Annotated[
        Path | None, typer.Option(help="File of artifacts to remove: a table with artifact_id, or one id a line.")
    ] = None,
    artifact: Annotated[list[str] | None, typer.Option(help="Artifact to remove; may be given several times.")] = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Remove artifacts from an index; their vectors stay on disk until it is compacted."""
    from culturekit.index.folder.index_changes import listed_artifacts
    from culturekit.pipeline.steps.index_stages import remove_stage

    going = [*(artifact or []), *(listed_artifacts(artifacts) if artifacts else [])]
    run_one(remove_stage(index, going), out, also=also, wait=wait, as_json=as_json)


def compact_command(
    index: Index,
    out: Out,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Compact an index that was appended to or removed from: one array again, as if it had been built at once."""
    from culturekit.pipeline.steps.index_stages import compact_stage

    run_one(compact_stage(index), out, also=also, wait=wait, as_json=as_json)


index_app = typer.Typer(no_args_is_help=True, help="The index: artifacts as vectors, and images mapped to them.")

index_app.command(
    "build",
    epilog="Example: culturekit index build --cspace cspace/cspace.parquet --encoder embedded "
    "--references references/images.parquet --out index",
)(build_index_command)
index_app.command(
    "embed", epilog="Example: culturekit index embed --images images/images.parquet --encoder embedded --out vectors"
)(embed_command)
index_app.command(
    "map", epilog="Example: culturekit index map --index index --images images/images.parquet --out matches"
)(map_command)
index_app.command(
    "diagnose",
    epilog="Example: culturekit index diagnose --index index --matches matches/matches.parquet --out diagnosis",
)(diagnose_command)
index_app.command("shuffle", epilog="Example: culturekit index shuffle --images images/images.parquet --out shuffled")(
    shuffle_command
)
index_app.command(
    "append", epilog="Example: culturekit index append --index index --references more/images.parquet --out index-2"
)(append_command)
index_app.command("remove", epilog="Example: culturekit index remove --index index --artifact Q42 --out index-2")(
    remove_command
)
index_app.command("compact", epilog="Example: culturekit index compact --index index-2 --out index-3")(compact_command)
