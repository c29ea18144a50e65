"""The verdicts of all candidates in their order, while the answers to the open ones are still coming."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from culturekit.builders.filtering.filter_requests import COLUMNS, FilterQuestions
from culturekit.builders.filtering.verdicts import Verdict, rule_verdict, verdict_of
from culturekit.kg.concepts import Concept
from culturekit.llm.client import Request
from culturekit.llm.outcomes import Answered
from culturekit.storage.table_slices import TableSlices

__all__ = ["CandidateVerdicts", "candidate_rows"]


def candidate_rows(source: TableSlices) -> Iterator[Mapping[str, Any]]:
    """Read what rules and judge look at, row by row."""
    for frame in source.slices(COLUMNS):
        yield from frame.iter_rows(named=True)


class CandidateVerdicts:
    """Rules decide while requests are drawn from it; answers are put in their places as they come, in that order."""

    def __init__(self, concepts: Sequence[Concept], questions: FilterQuestions, *, model: str) -> None:
        """Start with no candidate."""
        self.concepts = {concept.concept: concept for concept in concepts}
        self.questions = questions
        self.model = model
        self.all: list[Verdict | None] = []
        self.open: deque[int] = deque()
        self.known: dict[Verdict, Verdict] = {}

    def requests(self, rows: Iterator[Mapping[str, Any]]) -> Iterator[Request]:
        """Give the question about each candidate that the rules leave open."""
        for row in rows:
            verdict = rule_verdict(row, self.concepts.get(row["concept"]))
            if verdict is None:
                self.open.append(len(self.all))
            self.all.append(verdict and self.shared(verdict))
            if verdict is None:
                yield self.questions.about(row)

    def settle(self, answered: Answered) -> None:
        """Take the answer to the first question that is still open."""
        self.all[self.open.popleft()] = self.shared(verdict_of(answered, model=self.model))

    def shared(self, verdict: Verdict) -> Verdict:
        """Keep equal verdicts once: there are few, for many candidates."""
        return verdict if verdict.detail else self.known.setdefault(verdict, verdict)

    def columns(self, start: int, stop: int) -> list[pl.Series]:
        """Give the verdicts of some candidates, all settled, as columns."""
        own = [verdict for verdict in self.all[start:stop] if verdict is not None]
        return [
            pl.Series("verdict", [verdict.verdict for verdict in own], dtype=pl.String),
            pl.Series("reason", [verdict.reason for verdict in own], dtype=pl.String),
            pl.Series("detail", [verdict.detail or None for verdict in own], dtype=pl.String),
        ]

    def outcomes(self) -> dict[str, int]:
        """Count how asking ended."""
        ended = Counter(verdict.outcome for verdict in self.all if verdict is not None and verdict.outcome)
        return dict(sorted(ended.items()))

    def set_aside(self) -> int:
        """Count the candidates that no answer came for."""
        return sum(verdict is not None and verdict.set_aside for verdict in self.all)
