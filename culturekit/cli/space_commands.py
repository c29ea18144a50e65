"""`culturekit cspace release`, `cspace import` and `prompts build`: cultural spaces written, taken in, asked about."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from culturekit.builders.prompting.prompts import PromptOptions
from culturekit.builders.space.cspace import ReleaseOptions, foreign_space_stage, read_formats, release_stage
from culturekit.cli.options import Also, AsJson, Out, Seed, Wait
from culturekit.cli.review_commands import review_file
from culturekit.cli.stage_command import run_one
from culturekit.core.choices import PromptKind
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


def build_prompts(
    kind: Annotated[PromptKind, typer.Argument(help="Kind of prompts.")],
    cspace: Annotated[Path, typer.Option(help="Table that `cspace release` wrote, or a file in the public layout.")],
    out: Out,
    options: PromptOptions,
    roots: Annotated[
        list[str] | None,
        typer.Option(help="Root configs whose countries each get the quota. Repeatable. [those of the release]"),
    ] = None,
    review: Annotated[
        Path | None, typer.Option(help="Sheet to write for people who accept, reject or rename what was drawn.")
    ] = None,
    seed: Seed = 0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Build prompts from the cultural space."""
    from culturekit.builders.prompting.prompts import prompts_stage
    from culturekit.kg.concepts import load_concept

    wanted = replace(options, kinds=(kind,), review=review is not None)
    concepts = None if roots is None else [load_concept(name) for name in roots]
    stage = prompts_stage(cspace, wanted, seed=seed, concepts=concepts)
    with review_file(out, review):
        run_one(stage, out, also=also, wait=wait, as_json=as_json)
