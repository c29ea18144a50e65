"""`culturekit cspace` and `culturekit prompts`: from candidates to the cultural space and its prompts."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.cli.options import Also, AsJson, Out, Seed, Wait
from culturekit.cli.stages import run_one
from culturekit.records.choices import DrawName, Included, PromptKind, TemplateSetName

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

cspace_app = typer.Typer(
    no_args_is_help=True,
    help="The cultural space: judged, completed and released artifacts.",
    cls=lazy_group("cspace", COMMANDS),
)
prompts_app = typer.Typer(no_args_is_help=True, help="Prompts built from the cultural space.")

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


@prompts_app.command(
    epilog="Example: culturekit prompts build cube --cspace cspace/cspace.parquet --quota 10 --review sheet.csv "
    "--out prompts"
)
def build(
    kind: Annotated[PromptKind, typer.Argument(help="Kind of prompts.")],
    cspace: Annotated[Path, typer.Option(help="Table that `cspace release` wrote, or a file in the public layout.")],
    out: Out,
    templates: Annotated[TemplateSetName, typer.Option(help="Template set.")] = "released",
    per: Annotated[
        int | None, typer.Option(min=1, help="At most so many artifacts per country and concept, by popularity. [all]")
    ] = None,
    quota: Annotated[
        str | None,
        typer.Option(help="So many artifacts per country and concept: a number, or a YAML or CSV table of quotas."),
    ] = None,
    roots: Annotated[
        list[str] | None,
        typer.Option(help="Root configs whose countries each get the quota. Repeatable. [those of the release]"),
    ] = None,
    draw: Annotated[DrawName, typer.Option(help="The seed's draw, or a fresh one beside a public one.")] = "seeded",
    public: Annotated[
        str | None, typer.Option(help="Published draw, in the public layout, that a fresh one has nothing of.")
    ] = None,
    review: Annotated[
        Path | None, typer.Option(help="Sheet to write for people who accept, reject or rename what was drawn.")
    ] = None,
    decisions: Annotated[
        list[str] | None,
        typer.Option(
            help="Review sheet that was filled in; the next draw replaces what it rejects. "
            "Repeatable; a later sheet counts more."
        ),
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option(help="Language of the prompts, en or one with a translation. Repeatable. [en]")
    ] = None,
    translations: Annotated[
        list[str] | None, typer.Option(help="YAML file of templates in a language, verified by a speaker. Repeatable.")
    ] = None,
    public_layout: Annotated[
        bool, typer.Option("--public-layout", help="Write cube.json too, in the layout that CUBE-1K was released in.")
    ] = False,
    statements: Annotated[str | None, typer.Option(help="Kept candidates, whose statements go into cube.json.")] = None,
    seed: Seed = 0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Build prompts from the cultural space."""
    from culturekit.builders.prompting.prompt_options import PromptOptions
    from culturekit.cli.cspace.review_file import review_file
    from culturekit.kg.concepts import load_concept
    from culturekit.pipeline.steps.graph_stages import prompts_stage

    options = PromptOptions(
        (kind,), templates, per, quota, draw, public, review is not None, tuple(decisions or ()),
        tuple(language or ("en",)), tuple(translations or ()), public_layout, statements,
    )  # fmt: skip
    concepts = None if roots is None else [load_concept(name) for name in roots]
    stage = prompts_stage(cspace, options, seed=seed, concepts=concepts)
    with review_file(out, review):
        run_one(stage, out, also=also, wait=wait, as_json=as_json)
