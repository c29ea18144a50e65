"""The verdicts of candidates: by rules, by what the judge is asked about the rest, and all in their order."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec
import polars as pl

from culturekit.builders import wordings
from culturekit.builders.filtering.name_rules import name_problem
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import by_qid
from culturekit.llm.client import Request
from culturekit.llm.rows import Answered
from culturekit.records.choices import ANSWERED
from culturekit.storage.table_slices import TableSlices

__all__ = [
    "COLUMNS",
    "MOST_CHARACTERS",
    "MOST_LISTED",
    "TASK",
    "WORDING",
    "CandidateVerdicts",
    "FilterQuestions",
    "FilterReply",
    "Verdict",
    "candidate_rows",
    "named",
    "questions_about",
    "rule_verdict",
    "verdict_of",
    "wording",
]

VerdictWord: TypeAlias = Literal["keep", "remove", "review"]


class FilterReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the judge answers about one candidate."""

    id: str
    verdict: VerdictWord


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a candidate; `outcome` says how asking the judge ended, and is empty where a rule decided."""

    verdict: VerdictWord
    reason: str
    detail: str = ""
    outcome: str = ""

    @property
    def set_aside(self) -> bool:
        """Whether no answer came of it, so that a person has to look."""
        return self.outcome not in {"", *ANSWERED}


def rule_verdict(row: Mapping[str, Any], concept: Concept | None) -> Verdict | None:
    """Remove what needs no judge; None leaves the candidate to the judge."""
    if concept is None:
        return Verdict("remove", "concept not in the root configs given", row["concept"])
    problem = name_problem(row["label"], languages=concept.languages)
    if problem is not None:
        return Verdict("remove", *problem)
    if concept.countries != "all" and not concept.codes_of(row["country_qids"]):
        return Verdict("remove", "country out of scope")
    return None


def verdict_of(answered: Answered, *, model: str) -> Verdict:
    """Follow the judge's answer; where none came, the candidate is left for people to review."""
    if isinstance(answered.value, FilterReply):
        return Verdict(answered.value.verdict, f"judge {model}", outcome=answered.outcome)
    return Verdict("review", f"judge {model}: {answered.outcome}", outcome=answered.outcome)


TASK = "cspace.filter"
WORDING = "cspace_filter.txt"
COLUMNS = ("concept", "qid", "label", "description", "country_qids", "roots", "p31", "p279")
"""What of a candidate the rules and the judge look at."""

MOST_LISTED = 20
MOST_CHARACTERS = 600
"""No honest description comes near; a dishonest one costs no more than this."""

REPLY_TOKENS = 256


def wording() -> str:
    """Read the judge's instructions; their hash is part of what decides a verdict."""
    return wordings.wording(WORDING.removesuffix(".txt"))


@dataclass(frozen=True, slots=True)
class FilterQuestions:
    """What all questions share: the instructions, and the names of classes and countries by QID."""

    instructions: str
    classes: Mapping[str, str]
    countries: Mapping[str, str]

    def about(self, row: Mapping[str, Any]) -> Request:
        """Write the question about one candidate."""
        description = row["description"]
        data = {
            "id": row["qid"],
            "label": row["label"],
            "description": None if description is None else description[:MOST_CHARACTERS],
            "concept": row["concept"],
            "roots": named(row["roots"], self.classes),
            "classes": named([*row["p31"], *row["p279"]], self.classes),
            "countries": named(row["country_qids"], self.countries),
        }
        allowed = {"id": (str(row["qid"]),)}
        return Request(TASK, self.instructions, data, FilterReply, allowed=allowed, max_tokens=REPLY_TOKENS)


def questions_about(concepts: Sequence[Concept], labels: Mapping[str, str]) -> FilterQuestions:
    """Prepare the questions; `labels` names classes, those of the roots apart, which their configs name."""
    roots = {root.qid: root.label for concept in concepts for root in concept.roots}
    countries = {qid: country.name for qid, country in by_qid().items()}
    return FilterQuestions(wording(), {**labels, **roots}, countries)


def named(qids: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Name items, each once; one without a name is known by its QID."""
    return list(dict.fromkeys(names.get(qid, qid) for qid in qids[:MOST_LISTED]))


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
