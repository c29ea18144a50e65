"""The stage from candidates to what a judge keeps of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.builders.asking import asking_stage, judged_concepts, scratch
from culturekit.builders.filtering.cspace_filter import (
    TASK,
    FilterPlan,
    FilterQuestions,
    PilotOutcome,
    ask_pilot,
    filter_candidates,
    plan_filter,
    questions_about,
    wording,
)
from culturekit.core.declared import AskingCommand, Typed
from culturekit.core.digests import digest_bytes
from culturekit.core.inputs import roles_of
from culturekit.core.schemas import CANDIDATES
from culturekit.core.stage import Stage
from culturekit.core.tables import TableSlices, slices_of
from culturekit.core.work import Work
from culturekit.kg.concepts import Concept, Roots
from culturekit.kg.countries import country_files
from culturekit.kg.store import GraphTables
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.ledger import journal_for
from culturekit.llm.models import quoted

# The stages from the roots of concepts to candidates: over a graph, or over what an endpoint answers.


@dataclass(frozen=True, slots=True)
class FilterReads:
    """Candidates, and where they come from."""

    candidates: Annotated[Path, Field(description="Table that `kg extract` wrote.")]
    graph: Annotated[
        Path | None, Field(description="Graph of the candidates: it tells the judge what their classes are called.")
    ] = None


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """What candidates are judged for, and by whom."""

    roots: Roots
    judge: Annotated[
        str, Field(description="Who judges, as a SPEC: rules, openai:MODEL, google:MODEL, replay:FOLDER."), Typed("llm")
    ]
    reasons: Annotated[
        bool, Field(description="The judge says why, in a few words, and how surely; `--plan` says what that costs.")
    ] = True


def filter_stage(given: FilterReads, options: FilterOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Judge candidates, and keep the reason of each drop."""
    client, concepts = CLIENTS.make(options.judge), options.roots

    def opened(folder: Path) -> tuple[TableSlices, Sequence[Concept], Client | FreeClient, FilterQuestions]:
        table = slices_of(given.candidates, CANDIDATES, scratch=folder)
        frames = table.slices(("p31", "p279"))
        labels = {} if given.graph is None else GraphTables(given.graph).class_names(frames)
        return table, concepts, client, questions_about(concepts, labels, reasons=options.reasons)

    def plan(out: Path, _: object) -> FilterPlan:
        with scratch() as folder:
            return plan_filter(*opened(folder), journal=journal_for(out), batch=llm.batch)

    def pilot(work: Work, size: int) -> PilotOutcome:
        return ask_pilot(work, *opened(work.scratch), size=size, llm=llm)

    stage = Stage(
        "filter",
        "filter",
        5,
        lambda work: filter_candidates(work, *opened(work.scratch), llm=llm),
        {**roles_of(given), **country_files()},
        {
            "task": TASK,
            "wording": digest_bytes(wording().encode()),
            **judged_concepts(concepts),
            **({} if options.reasons else {"reasons": False}),
        },
        packages=("msgspec", "polars"),
    )
    return asking_stage(stage, options.judge, client, unit="candidates", plan=plan, pilot=pilot, llm=llm)


FILTER = AskingCommand(
    filter_stage,
    f"--candidates candidates/candidates.parquet --roots cuisine --llm {quoted('text-small')} --out kept --budget 20",
    pilot="Ask about so many candidates only, then say what the rest would cost.",
    again="Judge",
)
