"""`culturekit index append`, `remove` and `compact`: an index that changes without being built again."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Wait, Workers
from culturekit.cli.stages import run_one

__all__ = ["append_command", "compact_command", "remove_command"]

Index = Annotated[Path, typer.Option(help="Folder of the index; it is read and left as it is.")]


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
    from culturekit.pipeline.steps.index_change_stages import append_stage

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
    from culturekit.pipeline.steps.index_change_stages import remove_stage

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
    from culturekit.pipeline.steps.index_change_stages import compact_stage

    run_one(compact_stage(index), out, also=also, wait=wait, as_json=as_json)
