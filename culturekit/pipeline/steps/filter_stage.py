"""The stages from candidates to what a judge keeps of them, and to what a model names and checks besides."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.builders.completing.completion import CompletionInputs, complete, prepare
from culturekit.builders.completing.completion_plan import (
    CompletionPilot,
    CompletionPlan,
    PlannedCells,
    plan_completion,
    try_cells,
)
from culturekit.builders.completing.completion_questions import CompletionLimits, cells_of, wordings
from culturekit.builders.completing.completion_state import CellState
from culturekit.builders.completing.item_facts import ItemNames
from culturekit.builders.filtering.candidate_verdicts import TASK, wording
from culturekit.builders.filtering.cspace_filter import PilotOutcome, ask_pilot, filter_candidates
from culturekit.builders.filtering.filter_plan import FilterPlan, plan_filter
from culturekit.families.handles.inputs import roles_of
from culturekit.kg.countries import country_files
from culturekit.kg.graph_tables import GraphTables
from culturekit.kg.walk.root_choice import Roots
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.ledger import journal_for
from culturekit.llm.models import quoted
from culturekit.pipeline.steps.asking_stage import asking_stage, scratch
from culturekit.pipeline.steps.concept_options import judged_concepts
from culturekit.pipeline.steps.extract_stages import described
from culturekit.records.schemas import CANDIDATES, DROPS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import AskingCommand, Typed
from culturekit.storage.digests import digest_bytes
from culturekit.storage.table_slices import TableSlices, slices_of

__all__ = ["COMPLETE", "FILTER", "CompletionOptions", "FilterOptions", "FilterReads", "complete_stage", "filter_stage"]


@dataclass(frozen=True, slots=True)
class FilterReads:
    """Candidates, and where they come from."""

    candidates: Annotated[Path, Field(description="Table that `kg extract` wrote.")]
    graph: Annotated[
        Path | None, Field(description="Graph of the candidates: it tells the judge what their classes are called.")
    ] = None

    def table(self, folder: Path) -> TableSlices:
        """Open the candidates, in a folder for what has to be sorted."""
        return slices_of(self.candidates, CANDIDATES, scratch=folder)

    def labels(self, table: TableSlices) -> dict[str, str]:
        """Name the classes of candidates, as far as the graph can."""
        return {} if self.graph is None else GraphTables(self.graph).class_names(table.slices(("p31", "p279")))


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """What candidates are judged for, and by whom."""

    roots: Roots
    judge: Annotated[
        str, Field(description="Who judges, as a SPEC: rules, openai:MODEL, google:MODEL, replay:FOLDER."), Typed("llm")
    ]


def filter_stage(given: FilterReads, options: FilterOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Judge candidates, and keep the reason of each drop."""
    client, concepts = CLIENTS.make(options.judge), options.roots

    def run(work: Work) -> Outcome:
        table = given.table(work.scratch)
        return filter_candidates(work, table, concepts, client, llm=llm, labels=given.labels(table))

    def plan(out: Path, _: object) -> FilterPlan:
        with scratch() as folder:
            table = given.table(folder)
            labels, journal = given.labels(table), journal_for(out)
            return plan_filter(table, concepts, client, labels=labels, journal=journal, batch=llm.batch)

    def pilot(work: Work, size: int) -> PilotOutcome:
        table = given.table(work.scratch)
        return ask_pilot(work, table, concepts, client, size=size, llm=llm, labels=given.labels(table))

    stage = Stage(
        "filter",
        "filter",
        4,
        run,
        {**roles_of(given), **country_files()},
        {"task": TASK, "wording": digest_bytes(wording().encode()), **judged_concepts(concepts)},
        packages=("msgspec", "polars"),
    )
    return asking_stage(stage, options.judge, client, unit="candidates", plan=plan, pilot=pilot, go_on=llm.go_on)


FILTER = AskingCommand(
    filter_stage,
    f"--candidates candidates/candidates.parquet --roots cuisine --llm {quoted('text-small')} --out kept --budget 20",
    pilot="Ask about so many candidates only, then say what the rest would cost.",
    again="Judge",
)


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
