"""The verdicts of candidates: by rules, by what the judge is asked about the rest, and all in their order."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from culturekit.builders import wordings
from culturekit.builders.filtering.country_verdicts import REFUSED, WAITING, best_word, parted
from culturekit.builders.filtering.name_rules import name_problem
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import countries
from culturekit.llm.client import Request
from culturekit.llm.rows import Answered
from culturekit.records.choices import ANSWERED, VerdictWord
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


class FilterReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the judge answers about one candidate and country."""

    id: str
    verdict: VerdictWord


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a candidate; `outcome` says how asking the judge ended, and is empty where a rule decided.

    `by_country` has the verdict on each country that the judge was asked about, by its code.
    """

    verdict: VerdictWord
    reason: str
    detail: str = ""
    outcome: str = ""
    by_country: tuple[tuple[str, VerdictWord], ...] = ()

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
    if not concept.codes_of(row["country_qids"]):
        return Verdict("remove", "country out of scope")
    return None


def verdict_of(answered: Answered, *, model: str) -> Verdict:
    """Follow the judge's answer; where none came, the candidate is left for people to review."""
    if isinstance(answered.value, FilterReply):
        return Verdict(answered.value.verdict, f"judge {model}", outcome=answered.outcome)
    return Verdict("review", f"judge {model}: {answered.outcome}", outcome=answered.outcome)


def combined(by_country: Mapping[str, Verdict]) -> Verdict:
    """Make one verdict on a candidate of those on its countries; one that no answer came for is told."""
    words = tuple((iso, verdict.verdict) for iso, verdict in by_country.items())
    verdict, several = best_word(word for _, word in words), list(by_country.values())
    alike = [each for each in several if each.verdict == verdict]
    worst = next((each for each in several if each.set_aside), several[0])
    reason = next((each for each in alike if each.set_aside), alike[0]).reason
    return Verdict(verdict, reason, outcome=worst.outcome, by_country=words)


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
    """What all questions share: the instructions, the names of classes by QID, and those of countries by code."""

    instructions: str
    classes: Mapping[str, str]
    countries: Mapping[str, str]

    def about(self, row: Mapping[str, Any], concept: Concept) -> Iterator[Request]:
        """Write the questions about one candidate, one for each country in scope."""
        return (self.about_country(row, iso) for iso in concept.codes_of(row["country_qids"]))

    def about_country(self, row: Mapping[str, Any], iso: str) -> Request:
        """Write the question about a candidate and a country."""
        description = row["description"]
        data = {
            "id": row["qid"],
            "label": row["label"],
            "description": None if description is None else description[:MOST_CHARACTERS],
            "concept": row["concept"],
            "roots": named(row["roots"], self.classes),
            "classes": named([*row["p31"], *row["p279"]], self.classes),
            "country": self.countries[iso],
        }
        allowed = {"id": (str(row["qid"]),)}
        return Request(TASK, self.instructions, data, FilterReply, allowed=allowed, max_tokens=REPLY_TOKENS)


def questions_about(concepts: Sequence[Concept], labels: Mapping[str, str]) -> FilterQuestions:
    """Prepare the questions; `labels` names classes, those of the roots apart, which their configs name."""
    roots = {root.qid: root.label for concept in concepts for root in concept.roots}
    names = {iso: country.name for iso, country in countries().items()}
    return FilterQuestions(wording(), {**labels, **roots}, names)


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
        self.open: deque[tuple[int, str, bool]] = deque()
        self.begun: dict[str, Verdict] = {}
        self.known: dict[Verdict, Verdict] = {}

    def requests(self, rows: Iterator[Mapping[str, Any]]) -> Iterator[Request]:
        """Give the questions about each candidate that the rules leave open."""
        for row in rows:
            concept = self.concepts.get(row["concept"])
            verdict = rule_verdict(row, concept)
            place = len(self.all)
            self.all.append(verdict and self.shared(verdict))
            if verdict is None and concept is not None:
                codes = concept.codes_of(row["country_qids"])
                self.open.extend((place, iso, iso == codes[-1]) for iso in codes)
                yield from self.questions.about(row, concept)

    def settle(self, answered: Answered) -> bool:
        """Take the answer to the first question that is still open; tell whether its candidate is settled with it."""
        place, iso, is_last = self.open.popleft()
        self.begun[iso] = verdict_of(answered, model=self.model)
        if is_last:
            self.all[place] = self.shared(combined(self.begun))
            self.begun = {}
        return is_last

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

    def country_columns(self, start: int, stated: Sequence[Sequence[str]]) -> list[pl.Series]:
        """Give the countries that each verdict is about, those that wait beside them, and those that were refused."""
        own: list[list[list[str]]] = [[], [], []]
        for place, qids in enumerate(stated, start):
            verdict = self.all[place]
            words = dict(verdict.by_country) if verdict is not None else {}
            _, *parts = parted(qids, words) if words else ("", list(qids), [], [])
            for column, part in zip(own, parts, strict=True):
                column.append(part)
        names = ("country_qids", WAITING, REFUSED)
        return [pl.Series(name, rows, dtype=pl.List(pl.String)) for name, rows in zip(names, own, strict=True)]

    def outcomes(self) -> dict[str, int]:
        """Count how asking ended."""
        ended = Counter(verdict.outcome for verdict in self.all if verdict is not None and verdict.outcome)
        return dict(sorted(ended.items()))

    def set_aside(self) -> int:
        """Count the candidates that no answer came for."""
        return sum(verdict is not None and verdict.set_aside for verdict in self.all)
