"""The answers behind tables of ratings, read and set aside anew."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.verify.run_tree import FinishedStage, RunTree

__all__ = ["FLAGS", "Answer", "PeopleAnswers", "answers_behind", "pool_of", "read_answers"]

FLAGS = ("attention-failed", "inconsistent-repeats", "too-fast")
RECRUITMENT = "recruitment:"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of one person to one question about one item."""

    item: str
    annotator: str
    pool: str
    scheme: str
    criterion: str
    value: float | None
    choice: str | None


@dataclass(frozen=True, slots=True)
class PeopleAnswers:
    """The answers that count, and what the items are; None where an input is not here."""

    answers: Sequence[Answer]
    items: Mapping[str, Mapping[str, Any]]


def answers_behind(tree: RunTree, stage: FinishedStage) -> PeopleAnswers | None:
    """Read the inputs of a stage that put answers together; None where one of them is not here."""
    roles = ["annotations", *(role for role in sorted(stage.manifest.inputs) if plain(role) == "more")]
    about = ["items", *(role for role in sorted(stage.manifest.inputs) if plain(role) == "more-items")]
    files = [tree.source(stage, role) for role in roles]
    tables = [tree.source(stage, role) for role in about]
    if any(path is None for path in (*files, *tables)):
        return None
    by = str(stage.manifest.options["by"])
    keep, only = (set(as_list(stage.manifest.options.get(name))) for name in ("keep", "only"))
    answers = [
        answer
        for path in files
        if path is not None
        for answer, flags in read_rows(path, by)
        if not (flags & set(FLAGS)) - keep and (not only or answer.pool in only)
    ]
    items = {
        row["item_id"]: row
        for path in tables
        if path is not None
        for row in pl.read_parquet(path).iter_rows(named=True)
    }
    return PeopleAnswers(answers, items)


def plain(role: str) -> str:
    """Leave the number out of a role."""
    return role.rstrip("0123456789").rstrip("-")


def as_list(value: object) -> list[str]:
    """Read an option that is a list of texts, or not there."""
    return [str(each) for each in value] if isinstance(value, list | tuple) else []


def read_answers(path: Path, by: str) -> list[Answer]:
    """Read the answers of a table that count: those without a flag."""
    return [answer for answer, flags in read_rows(path, by) if not flags & set(FLAGS)]


def read_rows(path: Path, by: str) -> Iterator[tuple[Answer, set[str]]]:
    """Read answers with their flags."""
    for row in pl.read_parquet(path).iter_rows(named=True):
        yield (
            Answer(
                row["item_id"], row["annotator"], pool_of(row, by), row["scheme"], row["criterion"], row["value"],
                row["choice"],
            ),
            set(row["flags"]),
        )  # fmt: skip


def pool_of(row: Mapping[str, Any], by: str) -> str:
    """Name the pool of an annotator."""
    if by == "region":
        return str(row["annotator_region"])
    if by == "in-region":
        return {True: "in-region", False: "out-of-region"}.get(row["in_region"], "unknown")
    found = next((flag for flag in row["flags"] if flag.startswith(RECRUITMENT)), None)
    return "unknown" if found is None else str(found).removeprefix(RECRUITMENT)
