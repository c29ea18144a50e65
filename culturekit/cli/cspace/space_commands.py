"""`culturekit cspace` and `culturekit prompts`: from candidates to the cultural space and its prompts."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.cli.options import Also, AsJson, Batch, Budget, Concurrency, GoOn, Out, Seed, Wait
from culturekit.cli.pilots import leave_if_unusable, replies_lines, tried
from culturekit.cli.stages import run_one
from culturekit.records.choices import DrawName, Included, PromptKind, TemplateSetName

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

cspace_app = typer.Typer(
    no_args_is_help=True,
    help="The cultural space: judged, completed and released artifacts.",
    cls=lazy_group("cspace", ELSEWHERE),
)
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
