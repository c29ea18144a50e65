"""The judge's questions: one request for each candidate that the rules leave open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from culturekit.builders import wordings
from culturekit.builders.filtering.verdicts import FilterReply
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import by_qid
from culturekit.llm.client import Request

__all__ = [
    "COLUMNS",
    "MOST_CHARACTERS",
    "MOST_LISTED",
    "TASK",
    "WORDING",
    "FilterQuestions",
    "named",
    "questions_about",
    "wording",
]

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
