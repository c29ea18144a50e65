"""What filtering candidates would take: how many the rules decide, what is left to the judge, and its price."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from culturekit.builders.filtering.candidate_verdicts import candidate_rows, questions_about
from culturekit.builders.filtering.pilot import left_to_the_judge
from culturekit.kg.concepts import Concept
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.cost_plan import CostPlan, cost_plan_lines, plan_requests
from culturekit.llm.ledger import read_spending
from culturekit.stages.asking import Left
from culturekit.storage.table_slices import TableSlices

__all__ = ["FilterPlan", "plan_filter"]


@dataclass(frozen=True, slots=True)
class FilterPlan:
    """Candidates, how many of them the rules drop, and what asking about the rest takes."""

    judge: str
    candidates: int
    dropped_by_rules: int
    cost: CostPlan

    @property
    def judged(self) -> int:
        """How many candidates are left to the judge; each is asked about once a country in scope."""
        return self.candidates - self.dropped_by_rules

    @property
    def units(self) -> int:
        """What is asked about."""
        return self.candidates

    @property
    def left(self) -> Left:
        """What is left to ask."""
        return self.cost.left

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        yield (
            f"{self.candidates:,} candidates: rules drop {self.dropped_by_rules:,}, "
            f"{self.judged:,} are left to {self.judge}, in {self.cost.requests:,} requests: one a country in scope"
        )
        if self.cost.most == 0.0 and self.cost.input_tokens == 0 and self.cost.bought < self.cost.requests:
            yield f"{self.judge} answers in this process and costs nothing"
        else:
            yield from cost_plan_lines(self.cost)


def plan_filter(
    source: TableSlices,
    concepts: Sequence[Concept],
    client: Client | FreeClient,
    *,
    labels: Mapping[str, str],
    journal: Path | None,
    batch: bool,
) -> FilterPlan:
    """Plan, offline; `journal` is the file of what was bought already."""
    by_name = {concept.concept: concept for concept in concepts}
    questions = questions_about(concepts, labels)
    judged = 0

    def requests() -> Iterator[Request]:
        nonlocal judged
        for row in left_to_the_judge(candidate_rows(source), by_name):
            judged += 1
            yield from questions.about(row, by_name[row["concept"]])

    cost = plan_requests(client, requests(), spent=read_spending(journal), batch=batch)
    return FilterPlan(client.model, source.rows, source.rows - judged, cost)
