"""The stage from candidates to what a judge keeps of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.builders.asking import asking_stage, judged_concepts, scratch
from culturekit.builders.filtering.cspace_filter import (
    TASK,
    FilterPlan,
    PilotOutcome,
    ask_pilot,
    filter_candidates,
    plan_filter,
    wording,
)
from culturekit.core.digests import digest_bytes
from culturekit.core.inputs import roles_of
from culturekit.core.schemas import CANDIDATES
from culturekit.core.stage import Stage
from culturekit.core.stage_command import AskingCommand, Typed
from culturekit.core.tables import TableSlices, slices_of
from culturekit.core.work import Outcome, Work
from culturekit.kg.concepts import Roots
from culturekit.kg.countries import country_files
from culturekit.kg.store import GraphTables
from culturekit.llm.answers import DEFAULTS, LlmOptions
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
