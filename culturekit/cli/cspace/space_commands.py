"""`culturekit cspace` and `culturekit prompts`: from candidates to the cultural space and its prompts."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.stages import run_one
from culturekit.records.choices import Included

__all__ = ["cspace_app", "prompts_app"]

HERE, STEPS = "culturekit.cli.cspace", "culturekit.pipeline.steps"
COMMANDS = {
    "filter": CommandAt(f"{STEPS}.filter_stage:FILTER"),
    "release": CommandAt(
        f"{HERE}.space_commands:release",
        "--kept kept/kept.parquet --roots cuisine --format parquet,jsonl,csv --out cspace",
    ),
    "complete": CommandAt(f"{STEPS}.completion_stage:COMPLETE"),
    "diff": CommandAt(f"{HERE}.diff_command:diff", "runs/2025 runs/2026 --out changes"),
    "review": CommandAt(f"{HERE}.review_commands:review_app"),
}
PROMPTS = {
    "build": CommandAt(
        f"{HERE}.prompts_command:build",
        "cube --cspace cspace/cspace.parquet --quota 10 --review sheet.csv --out prompts",
    )
}

cspace_app = typer.Typer(
    no_args_is_help=True,
    help="The cultural space: judged, completed and released artifacts.",
    cls=lazy_group("cspace", COMMANDS),
)
prompts_app = typer.Typer(
    no_args_is_help=True, help="Prompts built from the cultural space.", cls=lazy_group("prompts", PROMPTS)
)

Roots = Annotated[list[str], typer.Option(help="Root config: a YAML file, or a shipped concept. Repeatable.")]


def release(
    kept: Annotated[
        list[Path], typer.Option(help="Table that `cspace filter` or `cspace complete` wrote. Repeatable.")
    ],
    roots: Roots,
    out: Out,
    popularity: Annotated[str, typer.Option(help="Where popularity comes from, as a SPEC.")] = "sitelinks",
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="Forms to write, divided by commas: parquet, jsonl, csv, public, ntriples, turtle, json-ld.",
        ),
    ] = "parquet",
    include: Annotated[
        Included | None, typer.Option(help="Release what waits for a person, too; manifest and card say how many.")
    ] = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Write the cultural space: a row per artifact that was kept and country, whole and by concept, with checksums."""
    from culturekit.builders.space.release_files import read_formats
    from culturekit.kg.concepts import load_concept
    from culturekit.pipeline.steps.graph_stages import release_stage

    more = {None: "", "both": ",csv,jsonl"}.get(also, f",{also}")
    concepts = [load_concept(name) for name in roots]
    stage = release_stage(
        kept, concepts, popularity, read_formats(form + more), include=() if include is None else (include,)
    )
    run_one(stage, out, wait=wait, as_json=as_json)
