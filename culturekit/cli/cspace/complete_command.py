"""`culturekit cspace complete`: what a collection lacks, proposed and checked by a model."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.options import Also, AsJson, Batch, Budget, Concurrency, GoOn, Out, Wait
from culturekit.cli.pilots import leave_if_unusable, replies_lines, tried
from culturekit.cli.stages import run_one

if TYPE_CHECKING:
    from culturekit.builders.completing.completion_plan import CompletionPlan
    from culturekit.builders.completing.completion_rounds import CompletionRounds
    from culturekit.llm.reply_watch import RepliesSeen

__all__ = ["complete_command"]

DROPS = "drops.parquet"
SAMPLED = 40
"""Proposals of a pilot that are shown."""


def complete_command(
    kept: Annotated[Path, typer.Option(help="Table that `cspace filter` wrote.")],
    roots: Annotated[list[str], typer.Option(help="Root config: a YAML file, or a shipped concept. Repeatable.")],
    llm: Annotated[str, typer.Option(help="Who proposes and checks, as a SPEC: openai:MODEL, google:MODEL, rules.")],
    out: Out,
    candidates: Annotated[
        Path | None, typer.Option(help="Table that `kg extract` wrote: a proposal that was dropped is found by it.")
    ] = None,
    drops: Annotated[
        Path | None, typer.Option(help="Why the filter dropped candidates. [drops.parquet beside the kept table]")
    ] = None,
    graph: Annotated[
        Path | None, typer.Option(help="Graph of the candidates: a proposal that it knows takes its QID.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=20, help="Rounds of asking for each concept and country.")] = 4,
    per_round: Annotated[int, typer.Option(min=1, max=100, help="Artifacts taken from one reply.")] = 20,
    per_cell: Annotated[
        int, typer.Option(min=1, max=10_000, help="Artifacts added to a concept in a country, in all.")
    ] = 60,
    shown: Annotated[
        int, typer.Option(min=0, max=1000, help="Names of what is there that go along with each question.")
    ] = 200,
    plan: Annotated[bool, typer.Option("--plan", help="Say what it could ask and cost; nothing is sent.")] = False,
    pilot: Annotated[
        int | None, typer.Option(min=1, help="Ask one round about so many pairs only, then say what the rest can cost.")
    ] = None,
    budget: Budget = None,
    concurrency: Concurrency = 16,
    batch: Batch = False,
    go_on: GoOn = False,
    beside: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of another paid stage, such as the filter's, under the same budget. Repeatable."),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Ask again: no answer is bought twice, and what brought none is asked anew."),
    ] = False,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Complete a collection: a model names what is missing, a second question checks each name."""
    from culturekit.builders.completing.completion import CompletionInputs
    from culturekit.builders.completing.completion_questions import CompletionLimits
    from culturekit.kg.concepts import load_concept
    from culturekit.llm.answers import LlmOptions
    from culturekit.pipeline.complete_run import CompleteRun

    found = kept.parent / DROPS if drops is None and (kept.parent / DROPS).is_file() else drops
    run = CompleteRun(
        CompletionInputs(kept, candidates, found, graph),
        tuple(load_concept(name) for name in roots),
        llm,
        out,
        CompletionLimits(rounds, per_round, per_cell, shown),
        LlmOptions(budget, concurrency, batch, tuple(beside or ()), go_on),
    )
    if plan:
        show_plan(run.plan(), as_json=as_json, pilot=None)
    elif pilot is not None:
        outcome, replies = tried(run, pilot, what="completion", wait=wait, as_json=as_json)
        show_plan(run.plan(outcome.checked), as_json=as_json, pilot=(outcome, replies))
        leave_if_unusable(replies)
    else:
        run_one(run.stage(), out, also=also, wait=wait, as_json=as_json, fresh=fresh)


def show_plan(plan: "CompletionPlan", *, as_json: bool, pilot: "tuple[CompletionRounds, RepliesSeen] | None") -> None:
    """Print a plan, and the pilot before it, if there was one."""
    from culturekit.builders.completing.completion_plan import completion_plan_lines

    if as_json:
        sums = {"requests": plan.requests, "tokens": plan.tokens, "usd": plan.usd, "most": plan.most}
        print(json.dumps({**asdict(plan), **sums, **({} if pilot is None else {"pilot": pilot_data(*pilot)})}))
        return
    if pilot is not None:
        for line in pilot_lines(*pilot):
            print(line)
    for line in completion_plan_lines(plan):
        print(line)
    print("nothing was sent" if pilot is None else "the same command without --pilot asks about the rest")


def pilot_data(pilot: "CompletionRounds", replies: "RepliesSeen") -> dict[str, object]:
    """Give what a pilot brought as data."""
    fates = Counter(row.outcome for row in pilot.proposals)
    samples = [(row.outcome, row.name, row.cell.id) for row in pilot.proposals[:SAMPLED]]
    told = {"asked": len(pilot.rounds), "outcomes": dict(pilot.ended_in())}
    return {**told, "proposals": dict(sorted(fates.items())), "samples": samples, "replies": asdict(replies)}


def pilot_lines(pilot: "CompletionRounds", replies: "RepliesSeen") -> Iterator[str]:
    """Say what a pilot brought: how its replies ended, what became of the proposals, what could not be used."""
    ended = ", ".join(f"{count:,} {outcome}" for outcome, count in pilot.ended_in().items())
    fates = Counter(row.outcome for row in pilot.proposals)
    yield f"pilot: one round of {len(pilot.rounds):,} pairs ({ended}); the answers are kept for the run"
    yield f"  proposals: {', '.join(f'{count:,} {fate}' for fate, count in sorted(fates.items())) or 'none'}"
    yield from replies_lines(replies)
    for row in pilot.proposals[:SAMPLED]:
        yield f"  {row.cell.id}: {row.name[:60]!r} {row.outcome} {row.reason}".rstrip()
