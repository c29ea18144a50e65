"""`culturekit cspace` and `culturekit prompts`: from candidates to the cultural space and its prompts."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Batch, Budget, Concurrency, Out, Seed, Wait
from culturekit.cli.stages import run_one
from culturekit.records.choices import PromptKind, TemplateSetName

__all__ = ["cspace_app", "prompts_app"]

cspace_app = typer.Typer(no_args_is_help=True, help="The cultural space: judged, completed and released artifacts.")
prompts_app = typer.Typer(no_args_is_help=True, help="Prompts built from the cultural space.")

Roots = Annotated[list[str], typer.Option(help="Root config: a YAML file, or a shipped concept. Repeatable.")]


@cspace_app.command(
    "filter",
    epilog="Example: culturekit cspace filter --candidates candidates/candidates.parquet --roots cuisine "
    "--llm 'openai:gpt-4o-mini' --out kept --budget 20",
)
def filter_command(
    candidates: Annotated[Path, typer.Option(help="Table that `kg extract` wrote.")],
    roots: Roots,
    llm: Annotated[str, typer.Option(help="Who judges, as a SPEC: rules, openai:MODEL, google:MODEL, replay:FOLDER.")],
    out: Out,
    graph: Annotated[
        Path | None, typer.Option(help="Graph the candidates come from: it tells the judge what their classes are called.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Say what it would ask and cost; nothing is sent.")] = False,
    pilot: Annotated[
        int | None, typer.Option(min=1, help="Ask about so many candidates only, then say what the rest would cost.")
    ] = None,
    budget: Budget = None,
    concurrency: Concurrency = 16,
    batch: Batch = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Judge again: answers that are there stay bought, what brought none is asked.")
    ] = False,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Judge candidates; every one that is dropped keeps its reason."""
    from culturekit.cli.filter_runs import FilterRun, ask_pilot, show_plan
    from culturekit.kg.concepts import load_concept
    from culturekit.llm.answers import LlmOptions

    run = FilterRun(
        candidates, [load_concept(name) for name in roots], llm, out, graph, LlmOptions(budget, concurrency, batch)
    )
    if plan:
        show_plan(run, as_json=as_json)
    elif pilot is not None:
        ask_pilot(run, pilot, wait=wait, as_json=as_json)
    else:
        run_one(run.stage(), out, also=also, wait=wait, as_json=as_json, fresh=fresh)


@cspace_app.command(epilog="Example: culturekit cspace release --kept kept/kept.parquet --roots cuisine --out cspace")
def release(
    kept: Annotated[Path, typer.Option(help="Table that `cspace filter` wrote.")],
    roots: Roots,
    out: Out,
    popularity: Annotated[str, typer.Option(help="Where popularity comes from, as a SPEC.")] = "sitelinks",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Write the cultural space: one row per artifact and country."""
    from culturekit.kg.concepts import load_concept
    from culturekit.pipeline.graph_stages import release_stage

    stage = release_stage(kept, [load_concept(name) for name in roots], popularity)
    run_one(stage, out, also=also, wait=wait, as_json=as_json)


@prompts_app.command(epilog="Example: culturekit prompts build cube --cspace cspace/cspace.parquet --out prompts")
def build(
    kind: Annotated[PromptKind, typer.Argument(help="Kind of prompts.")],
    cspace: Annotated[Path, typer.Option(help="Table that `cspace release` wrote.")],
    out: Out,
    templates: Annotated[TemplateSetName, typer.Option(help="Template set.")] = "released",
    per: Annotated[
        int | None, typer.Option(min=1, help="Artifacts per country and concept, drawn by popularity. [all]")
    ] = None,
    seed: Seed = 0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Build prompts from the cultural space."""
    from culturekit.builders.prompts import PromptOptions
    from culturekit.pipeline.graph_stages import prompts_stage

    stage = prompts_stage(cspace, PromptOptions((kind,), templates, per), seed=seed)
    run_one(stage, out, also=also, wait=wait, as_json=as_json)
