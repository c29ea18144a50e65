"""`culturekit cspace release` and `import`: cultural spaces of kept candidates, and of lists of somebody else."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from culturekit.builders.space.cspace import ReleaseOptions, read_formats
from culturekit.builders.space.space_stages import foreign_space_stage, release_stage
from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.stages import run_one
from culturekit.core.errors import UsageError


def release(
    kept: Annotated[
        list[Path], typer.Option(help="Table that `cspace filter` or `cspace complete` wrote. Repeatable.")
    ],
    out: Out,
    options: ReleaseOptions,
    checked: Annotated[
        Path | None, typer.Option(help="space_check.parquet that `cspace check score` wrote, for card and Croissant.")
    ] = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Write the cultural space, whole and by concept.

    A row per artifact that was kept and country, with checksums.
    """
    more = {None: (), "both": ("csv", "jsonl")}.get(also, (also,))
    options = replace(options, formats=read_formats(",".join((*options.formats, *more))))
    run_one(release_stage(kept, options, checked), out, wait=wait, as_json=as_json)


def pairs_in(columns: str) -> dict[str, str]:
    """Read what columns mean."""
    pairs = [part.partition("=") for part in columns.split(",") if part.strip()]
    if not all(equals and stated.strip() for _, equals, stated in pairs):
        raise UsageError(
            "columns are named in pairs", where="--columns", expected="name=dish,country=origin", found=columns
        )
    return {meant.strip().casefold(): stated.strip() for meant, _, stated in pairs}


def import_space(
    file: Annotated[Path, typer.Argument(help="CSV, JSON, JSON Lines or Parquet, with name, concept, country.")],
    out: Out,
    concept: Annotated[str, typer.Option(help="Concept of rows that name none.")] = "",
    columns: Annotated[
        str, typer.Option(help="What columns mean that are called otherwise, such as name=dish,country=origin.")
    ] = "",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Take in a list of artifacts.

    Countries by name, code or item, several a cell; what is left out says why.
    """
    run_one(foreign_space_stage(file, concept, pairs_in(columns)), out, wait=wait, as_json=as_json, also=also)
