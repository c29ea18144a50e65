"""The stage that completes a collection by what a model says is missing."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.builders.asking import asking_stage, scratch
from culturekit.builders.completing.completion import (
    CompletionInputs,
    CompletionPilot,
    CompletionPlan,
    PlannedCells,
    complete,
    plan_completion,
    prepare,
    try_cells,
)
from culturekit.builders.completing.completion_lookup import ItemNames
from culturekit.builders.completing.completion_names import CompletionLimits, cells_of, wordings
from culturekit.builders.completing.completion_rounds import CellState
from culturekit.core.digests import digest_bytes
from culturekit.core.inputs import roles_of
from culturekit.core.schemas import DROPS
from culturekit.core.stage import Stage
from culturekit.core.stage_command import AskingCommand, Typed
from culturekit.core.work import Work
from culturekit.kg.concepts import Roots
from culturekit.kg.countries import country_files
from culturekit.kg.exchange.extract_stage import described
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.ledger import journal_for
from culturekit.llm.models import quoted

LIMITS = CompletionLimits()


@dataclass(frozen=True, slots=True)
class CompletionOptions:
    """What a collection is completed with, by whom, and how far."""

    roots: Roots
    proposer: Annotated[
        str, Field(description="Who proposes and checks, as a SPEC: openai:MODEL, google:MODEL, rules."), Typed("llm")
    ]
    limits: CompletionLimits = LIMITS


def complete_stage(given: CompletionInputs, options: CompletionOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Complete a collection."""
    client, concepts, limits = CLIENTS.make(options.proposer), options.roots, options.limits

    def plan(out: Path, tried: CompletionPilot | None) -> CompletionPlan:
        """Say what can be asked at most: with the names that are there, or before they are known."""
        cells = cells_of(concepts)
        with scratch() as folder:
            if given.kept.is_file():
                completion = prepare(replace(given, graph=None).open(folder), concepts, cells, limits)
                planned = PlannedCells(completion.states, limits, completion.names)
            else:
                states = [CellState(cell, (), limits) for cell in cells]
                planned = PlannedCells(states, limits, ItemNames(concepts, None), known=False)
            checked = () if tried is None else tried.tried.checked
            return plan_completion(planned, client, journal=journal_for(out), batch=llm.batch, pilot=checked)

    def pilot(work: Work, size: int) -> CompletionPilot:
        return try_cells(work, given, concepts, client, size=size, limits=limits, llm=llm)

    stage = Stage(
        "completion",
        "completion",
        2,
        lambda work: complete(work, given, concepts, client, limits=limits, llm=llm),
        {**roles_of(given), **country_files()},
        {
            "limits": asdict(limits),
            "wordings": {task: digest_bytes(text.encode()) for task, text in wordings().items()},
            **described(concepts),
        },
        packages=("msgspec", "polars"),
    )
    return asking_stage(
        stage, options.proposer, client, unit="pairs", plan=plan, pilot=pilot, ahead=True, go_on=llm.go_on
    )


@dataclass(frozen=True, slots=True)
class SharedBudget(LlmOptions):
    """How answers are bought from a budget that other stages pay from, too."""

    beside: Annotated[
        tuple[Path, ...],
        Field(description="Folder of another paid stage, such as the filter's, under the same budget. Repeatable."),
        Typed(needs="budget"),
    ] = ()


def complete_filtered(given: CompletionInputs, options: CompletionOptions, llm: SharedBudget) -> Stage:
    """Complete a collection by what a model says is missing.

    A second question checks each name.
    """
    beside = given.kept.parent / f"{DROPS.name}.parquet"
    found = beside if given.drops is None and beside.is_file() else given.drops
    return complete_stage(replace(given, drops=found), options, llm)


COMPLETE = AskingCommand(
    complete_filtered,
    "--kept kept/kept.parquet --candidates candidates/candidates.parquet --graph graph --roots cuisine "
    f"--llm {quoted('text-small')} --out completion --budget 20",
    plan="Say what it could ask and cost; nothing is sent.",
    pilot="Ask one round about so many pairs only, then say what the rest can cost.",
)
