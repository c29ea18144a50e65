"""A filter that may cost money: planned without sending anything, tried on a few candidates, then run."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from culturekit.builders.filtering.cspace_filter import PilotOutcome, ask_pilot
from culturekit.builders.filtering.filter_plan import FilterPlan, plan_filter
from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept
from culturekit.llm.answers import LlmOptions
from culturekit.llm.client import FreeClient
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.money.shared_budget import journal_for
from culturekit.pipeline.part_run import run_part
from culturekit.pipeline.steps.filter_stage import filter_stage, labels_of
from culturekit.records.schemas import CANDIDATES
from culturekit.records.work import Engine, Progress, Work
from culturekit.stages.stage import Stage
from culturekit.storage.table_slices import slices_of

__all__ = ["FilterRun"]

DEFAULTS = LlmOptions()


@dataclass(frozen=True, slots=True)
class FilterRun:
    """What is filtered, by whom, into which folder, and what that may cost."""

    candidates: Path
    concepts: tuple[Concept, ...]
    judge: str
    out: Path
    graph: Path | None = None
    llm: LlmOptions = DEFAULTS

    def stage(self, name: str = "filter") -> Stage:
        """Give the stage that does it."""
        return filter_stage(self.candidates, self.concepts, self.judge, llm=self.llm, graph=self.graph, name=name)

    def plan(self) -> FilterPlan:
        """Say what is to be asked and what it costs, from sizes or from what was asked already; nothing is sent."""
        client = CLIENTS.make(self.judge)
        with TemporaryDirectory(prefix="culturekit-plan-") as folder:
            source = slices_of(self.candidates, CANDIDATES, scratch=Path(folder))
            labels = labels_of(source, self.graph)
            return plan_filter(
                source, self.concepts, client, labels=labels, journal=journal_for(self.out), batch=self.llm.batch
            )

    def pilot(self, size: int, *, engine: Engine, progress: Progress, wait: bool) -> PilotOutcome | None:
        """Ask about a few candidates, where the run will find the answers; None where the filter is done already."""
        client = CLIENTS.make(self.judge)
        if isinstance(client, FreeClient):
            raise UsageError("a pilot tells what a paid judge costs, and this one is free", found=self.judge)

        def ask(work: Work) -> PilotOutcome:
            source = slices_of(self.candidates, CANDIDATES, scratch=work.scratch)
            labels = labels_of(source, self.graph)
            return ask_pilot(work, source, self.concepts, client, size=size, llm=self.llm, labels=labels)

        return run_part(self.stage(), self.out, ask, engine=engine, progress=progress, wait=wait)
