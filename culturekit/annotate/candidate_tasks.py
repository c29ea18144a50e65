"""Candidates that wait for a person as tasks of Label Studio and the offline form, and the decisions that come back."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import get_args

import polars as pl

from culturekit.annotate.exported_answers import read_exports
from culturekit.annotate.exported_json import Answered
from culturekit.annotate.importing import read_project, records_of
from culturekit.annotate.items import Item
from culturekit.annotate.scheme import Scheme
from culturekit.builders.filtering.candidate_review import (
    CandidateDecision,
    CandidateKey,
    DecisionWord,
    day_problem,
    shown_candidate,
)
from culturekit.errors import ConfigError, Problem
from culturekit.storage.package_data import shipped
from culturekit.storage.yaml_model import load_model

__all__ = ["candidate_items", "decisions_of_exports", "review_scheme"]

QUESTION = "decision"


def review_scheme() -> Scheme:
    """Load the form that asks about candidates."""
    return load_model(shipped("annotate/cspace_review.yaml"), Scheme)


def candidate_items(rows: pl.DataFrame, scheme: Scheme) -> list[Item]:
    """Make an item of every candidate."""
    items = []
    for row in rows.iter_rows(named=True):
        shown = shown_candidate(row)
        texts = {name: shown[name] for name in scheme.fields}
        about = {"model": None, "concept": row["concept"], "country": None, "group": None, "prompt_id": None}
        items.append(Item(f"{row['concept']} {row['qid']}", {}, texts, None, about))
    return items


def decisions_of_exports(
    exports: Sequence[Path], project: Path, known: Collection[CandidateKey], *, on: str | None
) -> list[CandidateDecision]:
    """Read the decisions of exports; nothing is imported while anything is wrong with one of them.

    `on` is the day of annotations that have none.

    Raises:
        ConfigError: every annotation that is not an answer to a task of the project, with its place.
    """
    name, scheme, key = read_project(project)
    taken = read_exports(records_of(exports), key, name, scheme)
    problems = [
        Problem(f"{row['reason']} {row['detail']}".strip(), row["file"], row["task_number"], row["field"])
        for row in taken.quarantine
    ]
    decisions: list[CandidateDecision] = []
    for answered, row in taken.good:
        place = (answered.record.file, answered.record.number)
        concept, _, qid = row["item_id"].partition(" ")
        (word,) = answered.answers[QUESTION]
        decided: dict[str, DecisionWord] = {known_word: known_word for known_word in get_args(DecisionWord)}
        day = day_of(answered) or on or ""
        if (concept, qid) not in known:
            problems.append(Problem(f"{qid!r} is no kept candidate of {concept!r}", *place))
        elif word in decided and (problem := day_problem(day)):
            problems.append(Problem(f"{problem}; name a day with --on", *place))
        elif word in decided:
            comment = answered.comments.get(QUESTION)
            decisions.append(CandidateDecision(concept, qid, answered.annotator, day, decided[word], comment, place[0]))
    if problems:
        raise ConfigError(problems)
    return decisions


def day_of(answered: Answered) -> str:
    """Read the day of an annotation; empty where the export does not say."""
    annotation = answered.record.value["annotations"][answered.number - 1]
    when = annotation.get("updated_at") or annotation.get("created_at")
    return when[:10] if isinstance(when, str) else ""
