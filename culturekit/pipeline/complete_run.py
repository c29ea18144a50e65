"""A completion that may cost money: planned without sending anything, tried on a few cells, then run."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from culturekit.builders.completing.completion import CompletionInputs, complete, prepare, try_cells
from culturekit.builders.completing.completion_cells import cells_of
from culturekit.builders.completing.completion_plan import CompletionPlan, PlannedCells, plan_completion
from culturekit.builders.completing.completion_questions import CompletionLimits, wordings
from culturekit.builders.completing.completion_rounds import CompletionRounds
from culturekit.builders.completing.completion_state import CellState
from culturekit.builders.filtering.item_facts import ItemNames
from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country_files
from culturekit.llm.answers import LlmOptions
from culturekit.llm.client import FreeClient, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.money.asking_price import check_asking
from culturekit.llm.money.shared_budget import journal_for
from culturekit.llm.reply_watch import RepliesSeen
from culturekit.pipeline.part_run import run_part
from culturekit.pipeline.steps.extract_stages import described
from culturekit.pipeline.steps.filter_stage import judge_inputs, judge_options
from culturekit.records.work import Engine, Progress, Work
from culturekit.stages.stage import Stage
from culturekit.storage.digests import digest_bytes

__all__ = ["CompleteRun", "complete_stage"]

DEFAULTS, LIMITS = LlmOptions(), CompletionLimits()


@dataclass(frozen=True, slots=True)
class CompleteRun:
    """What is completed, by whom, into which folder, how far, and what that may cost."""

    inputs: CompletionInputs
    concepts: tuple[Concept, ...]
    proposer: str
    out: Path
    limits: CompletionLimits = LIMITS
    llm: LlmOptions = DEFAULTS

    def stage(self, name: str = "completion") -> Stage:
        """Give the stage that does it."""
        return complete_stage(self.inputs, self.concepts, self.proposer, limits=self.limits, llm=self.llm, name=name)

    def plan(self, pilot: Sequence[Request] = ()) -> CompletionPlan:
        """Say what can be asked at most and what it costs; `pilot` are the checks that a pilot asked."""
        client, cells = CLIENTS.make(self.proposer), cells_of(self.concepts)
        with TemporaryDirectory(prefix="culturekit-plan-") as folder:
            if self.inputs.kept.is_file():
                tables = replace(self.inputs, graph=None).open(Path(folder))
                completion = prepare(tables, self.concepts, cells, self.limits)
                planned = PlannedCells(completion.states, self.limits, completion.names)
            else:
                states = [CellState(cell, (), self.limits) for cell in cells]
                planned = PlannedCells(states, self.limits, ItemNames(self.concepts, None), known=False)
            return plan_completion(planned, client, journal=journal_for(self.out), batch=self.llm.batch, pilot=pilot)

    def pilot(
        self, size: int, *, engine: Engine, progress: Progress, wait: bool
    ) -> tuple[CompletionRounds, RepliesSeen] | None:
        """Do one round of a few cells, where the run will find the answers; None where the completion is done."""
        client = CLIENTS.make(self.proposer)
        if isinstance(client, FreeClient):
            raise UsageError("a pilot tells what a paid proposer costs, and this one is free", found=self.proposer)

        def ask(work: Work) -> tuple[CompletionRounds, RepliesSeen]:
            return try_cells(work, self.inputs, self.concepts, client, size=size, limits=self.limits, llm=self.llm)

        return run_part(self.stage(), self.out, ask, engine=engine, progress=progress, wait=wait)


def complete_stage(
    inputs: CompletionInputs,
    concepts: Sequence[Concept],
    proposer: str,
    *,
    limits: CompletionLimits = LIMITS,
    llm: LlmOptions = DEFAULTS,
    name: str = "completion",
) -> Stage:
    """Complete a collection; as with the filter, money and speed decide nothing and are no part of the key."""
    client = CLIENTS.make(proposer)
    looked_up = {"candidates": inputs.candidates, "drops": inputs.drops, "graph": inputs.graph}
    return Stage(
        name,
        "completion",
        2,
        lambda work: complete(work, inputs, concepts, client, limits=limits, llm=llm),
        {
            "kept": inputs.kept,
            **{role: path for role, path in looked_up.items() if path is not None},
            **country_files(),
            **judge_inputs(proposer),
        },
        {
            **judge_options(proposer, client),
            "limits": asdict(limits),
            "wordings": {task: digest_bytes(text.encode()) for task, text in wordings().items()},
            **described(concepts),
        },
        packages=("msgspec", "polars"),
        before=partial(check_asking, client),
    )
