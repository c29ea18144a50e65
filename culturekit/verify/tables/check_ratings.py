"""Tables of ratings, cell by cell: means over items of the means of their annotators, and shares of choices."""

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.people_answers import Answer, PeopleAnswers, answers_behind
from culturekit.verify.scores.score_rows import close

__all__ = ["check_ratings"]

CHECK = "ratings"
Place: TypeAlias = tuple[Any, ...]
"""Scheme, question, pool, model, concept, country; of a share also the choice."""


def check_ratings(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Recompute the tables of a stage that put answers together."""
    behind = answers_behind(tree, stage)
    if behind is None:
        ledger.note(CHECK, stage.name, "the answers behind its tables are not here: not verifiable")
        return
    compare(stage, "rating_table", means_of(behind), ledger)
    compare(stage, "choice_table", shares_of(behind), ledger)
    check_answers(stage, behind, ledger)


def cells(behind: PeopleAnswers, wanted: Iterable[Answer]) -> dict[Place, dict[str, list[Answer]]]:
    """Sort answers into the cells of a table, item by item: of each concept, and of all together."""
    found: dict[Place, dict[str, list[Answer]]] = {}
    for answer in wanted:
        about = behind.items.get(answer.item)
        if about is None:
            continue
        model = about["model"] or "(no model)"
        for concept in {about["concept"], None}:
            place = (answer.scheme, answer.criterion, answer.pool, model, concept, about["country"])
            found.setdefault(place, {}).setdefault(answer.item, []).append(answer)
    return found


def means_of(behind: PeopleAnswers) -> dict[Place, dict[str, Any]]:
    """Average the ratings of every cell."""
    rated = [answer for answer in behind.answers if answer.value is not None and math.isfinite(answer.value)]
    table = {}
    for place, items in cells(behind, rated).items():
        scores = [statistics.fmean(number(answer) for answer in own) for own in items.values()]
        spreads = [statistics.stdev(map(number, own)) for own in items.values() if len(own) > 1]
        mean = statistics.fmean(scores)
        table[place] = {
            "mean": mean,
            "sd": statistics.stdev(scores) if len(scores) > 1 else None,
            "within": statistics.fmean(spreads) if spreads else None,
            "items": len(items),
            "annotators": len({answer.annotator for own in items.values() for answer in own}),
            "answers": sum(map(len, items.values())),
        }
    return table


def number(answer: Answer) -> float:
    """Read a rating."""
    return float(answer.value or 0.0)


def shares_of(behind: PeopleAnswers) -> dict[Place, dict[str, Any]]:
    """Give the share of each choice in every cell, of the questions that are answered in words only."""
    scaled = {(answer.scheme, answer.criterion) for answer in behind.answers if answer.value is not None}
    chosen = [
        answer
        for answer in behind.answers
        if answer.choice is not None and (answer.scheme, answer.criterion) not in scaled
    ]
    table = {}
    for place, items in cells(behind, chosen).items():
        for choice in {str(answer.choice) for own in items.values() for answer in own}:
            shares = [sum(answer.choice == choice for answer in own) / len(own) for own in items.values()]
            table[*place, choice] = {
                "rate": statistics.fmean(shares),
                "items": len(items),
                "answers": sum(answer.choice == choice for own in items.values() for answer in own),
            }
    return table


def compare(stage: FinishedStage, name: str, expected: Mapping[Place, Mapping[str, Any]], ledger: Ledger) -> None:
    """Hold a table against what was worked out again, row by row."""
    keys = [
        "scheme",
        "criterion",
        "pool",
        "model",
        "concept",
        "country",
        *(["choice"] if name == "choice_table" else []),
    ]
    path = stage.folder / f"{name}.parquet"
    seen = set()
    for row in pl.read_parquet(path).iter_rows(named=True):
        place = tuple(row[key] for key in keys)
        seen.add(place)
        where = f"{stage.name}/{name}.parquet ({', '.join(str(part) for part in place if part is not None)})"
        if place not in expected:
            ledger.broken(CHECK, where, "nobody rated what this cell is about")
            continue
        for column, value in expected[place].items():
            if not close(row[column], value):
                ledger.broken(CHECK, where, f"{column} is not what the answers give", expected=value, found=row[column])
        if name == "rating_table" and row["mark"] != marked(place, expected[place]["mean"]):
            ledger.broken(CHECK, where, "the mark is not that of the mean", found=row["mark"])
    missing = expected.keys() - seen
    if missing:
        ledger.broken(
            CHECK, f"{stage.name}/{name}.parquet", f"{len(missing)} cells are missing", found=min(map(str, missing))
        )
    ledger.count("cells of rating tables", len(seen))


def marked(place: Place, mean: float) -> str | None:
    """Name the mark of a cell; what several may be chosen of has none."""
    if "/" in place[1]:
        return None
    return "below 2" if mean < 2 else "below 3" if mean < 3 else None


def check_answers(stage: FinishedStage, behind: PeopleAnswers, ledger: Ledger) -> None:
    """Make sure that the answers which the stage says counted are those that do."""
    counted = {(answer.item, answer.annotator, answer.scheme, answer.criterion) for answer in behind.answers}
    columns = ["item_id", "annotator", "scheme", "criterion"]
    stated = set(pl.read_parquet(stage.folder / "annotations.parquet", columns=columns).select(columns).iter_rows())
    if counted != stated:
        ledger.broken(
            CHECK, f"{stage.name}/annotations.parquet", "are not the answers that count", expected=len(counted),
            found=f"{len(stated)}, {len(stated - counted)} of them others",
        )  # fmt: skip
