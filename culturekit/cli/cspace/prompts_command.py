"""`culturekit prompts build`: from the cultural space to prompts."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from culturekit.builders.prompting.prompts import PromptOptions
from culturekit.cli.cspace.review_commands import review_file
from culturekit.cli.options import Also, AsJson, Out, Seed, Wait
from culturekit.cli.stages import run_one
from culturekit.core.choices import PromptKind


def build(
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
    from culturekit.builders.prompting.prompts_stage import prompts_stage
    from culturekit.kg.concepts import load_concept

    wanted = replace(options, kinds=(kind,), review=review is not None)
    concepts = None if roots is None else [load_concept(name) for name in roots]
    stage = prompts_stage(cspace, wanted, seed=seed, concepts=concepts)
    with review_file(out, review):
        run_one(stage, out, also=also, wait=wait, as_json=as_json)
