"""`culturekit cspace` and `culturekit prompts`: from candidates to the cultural space and its prompts."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.cli.options import Also, AsJson, Batch, Budget, Concurrency, GoOn, Out, Wait
from culturekit.cli.pilots import leave_if_unusable, replies_lines, tried
from culturekit.cli.stages import run_one
from culturekit.records.choices import Included

if TYPE_CHECKING:
    from culturekit.builders.filtering.cspace_filter import PilotOutcome
    from culturekit.builders.filtering.filter_plan import FilterPlan

__all__ = ["cspace_app", "prompts_app"]

ELSEWHERE = {
    "complete": CommandAt(
        "culturekit.cli.cspace.complete_command:complete_command",
        "--kept kept/kept.parquet --candidates candidates/candidates.parquet --graph graph --roots cuisine "
        "--llm 'openai:gpt-4o-mini' --out completion --budget 20",
    ),
    "diff": CommandAt("culturekit.cli.cspace.diff_command:diff", "runs/2025 runs/2026 --out changes"),
    "review": CommandAt("culturekit.cli.cspace.review_commands:review_app"),
}
PROMPTS = {
    "build": CommandAt(
        "culturekit.cli.cspace.prompts_command:build",
        "cube --cspace cspace/cspace.parquet --quota 10 --review sheet.csv --out prompts",
    )
}

cspace_app = typer.Typer(
    no_args_is_help=True,
    help="The cultural space: judged, completed and released artifacts.",
    cls=lazy_group("cspace", ELSEWHERE),
)
prompts_app = typer.Typer(
    no_args_is_help=True, help="Prompts built from the cultural space.", cls=lazy_group("prompts", PROMPTS)
)

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
        Path | None,
        typer.Option(help="Graph of the candidates: it tells the judge what their classes are called."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Say what it would ask and cost; nothing is sent.")] = False,
    pilot: Annotated[
        int | None, typer.Option(min=1, help="Ask about so many candidates only, then say what the rest would cost.")
    ] = None,
    budget: Budget = None,
    concurrency: Concurrency = 16,
    batch: Batch = False,
    go_on: GoOn = False,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Judge again: no answer is bought twice, and what brought none is asked anew."),
    ] = False,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Judge candidates; every one that is dropped keeps its reason."""
    from culturekit.kg.concepts import load_concept
    from culturekit.llm.answers import LlmOptions
    from culturekit.pipeline.filter_run import FilterRun

    options = LlmOptions(budget, concurrency, batch, go_on=go_on)
    run = FilterRun(candidates, tuple(load_concept(name) for name in roots), llm, out, graph, options)
    if plan:
        show_plan(run.plan(), as_json=as_json, pilot=None)
    elif pilot is not None:
        outcome = tried(run, pilot, what="filter", wait=wait, as_json=as_json)
        show_plan(run.plan(), as_json=as_json, pilot=outcome)
        leave_if_unusable(outcome.replies)
    else:
        run_one(run.stage(), out, also=also, wait=wait, as_json=as_json, fresh=fresh)


def show_plan(plan: "FilterPlan", *, as_json: bool, pilot: "PilotOutcome | None") -> None:
    """Print a plan, and the pilot before it, if there was one."""
    from culturekit.builders.filtering.filter_plan import filter_plan_lines

    if as_json:
        print(json.dumps({**asdict(plan), **({} if pilot is None else {"pilot": asdict(pilot)})}))
        return
    if pilot is not None:
        ended, verdicts = (
            ", ".join(f"{count:,} {name}" for name, count in counts.items())
            for counts in (pilot.outcomes, pilot.verdicts)
        )
        print(f"pilot: asked about {pilot.asked:,} candidates ({ended}); their answers are kept for the run")
        print(f"  verdicts: {verdicts or 'none'}")
        for line in replies_lines(pilot.replies):
            print(line)
        for verdict, label, concept in pilot.samples:
            print(f"    {verdict:<9} {label[:60]!r} ({concept})")
    for line in filter_plan_lines(plan):
        print(line)
    print("nothing was sent" if pilot is None else "the same command without --pilot asks about the rest")


@cspace_app.command(
    epilog="Example: culturekit cspace release --kept kept/kept.parquet --roots cuisine --format parquet,jsonl,csv "
    "--out cspace"
)
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
