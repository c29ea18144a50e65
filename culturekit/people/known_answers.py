"""Items whose right answers are known: a trial that everybody passes first, and gold items among the others."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import polars as pl

from culturekit.core.errors import UsageError
from culturekit.people.answers import Answered, KeyRow, meaning, meanings_of
from culturekit.people.items import Item, items_of_rows
from culturekit.people.scheme import Scheme, of_pictures

TRIAL, GOLD = "trial", "gold"  # the kinds of tasks whose answers are known
PARTED = " | "  # what stands between several answers to one question


def known_items(rows: pl.DataFrame, images: pl.DataFrame, scheme: Scheme, left_out: Counter[str]) -> list[Item]:
    """Make items of rows that have, besides what the form shows, a column of right answers for some questions.

    A picture that is right goes by its name in the scheme, an option of an item's own by its text; several are parted
    by a bar. An empty cell leaves a question free.
    """
    asked = [one.name for one in scheme.criteria if one.name in rows.columns and one.type != "text"]
    items = items_of_rows(rows, images, scheme, left_out)
    key = next(name for name in ("item_id", "triplet_id", "image_id") if name in rows.columns)
    right = {
        str(row[key]): {name: PARTED.join(sorted(part.strip() for part in str(row[name]).split("|")))
                        for name in asked if str(row[name] or "").strip()}
        for row in rows.iter_rows(named=True)
    }  # fmt: skip
    free = next((item.item_id for item in items if not right[item.item_id]), None)
    if free is not None:
        raise UsageError(
            "nobody knows what is right of a gold item", where=f"item {free!r}", found=", ".join(rows.columns),
            expected=f"a cell under one of {', '.join(one.name for one in scheme.criteria if one.type != 'text')}",
        )  # fmt: skip
    return [replace(item, known=right[item.item_id]) for item in items]


def held(answered: Answered, row: KeyRow, scheme: Scheme) -> Iterator[tuple[str, str, str, bool]]:
    """Hold the answers to a known item against what is right: question, answer, right one, and whether it holds."""
    right: Mapping[str, Any] = orjson.loads(row["expected"])
    if not set(right) <= {one.name for one in scheme.criteria} or not right:
        yield _place_held(answered, row, scheme, right)
        return
    offered = orjson.loads(row["options"])
    for name, wanted in right.items():
        criterion, chosen = scheme.criterion(name), answered.answers.get(name, ())
        if of_pictures(criterion):
            given = [row["places"][int(code) - 1] if code.isdigit() else code for code in chosen]
        else:
            given = [meaning(criterion, code, row, offered) for code in chosen]
        text = PARTED.join(sorted(given))
        near = criterion.type == "scale" and bool(given) and (
            abs(float(text) - float(wanted)) <= scheme.filters.repeat_distance
        )  # fmt: skip
        yield name, text, str(wanted), near or text == wanted


def _place_held(
    answered: Answered, row: KeyRow, scheme: Scheme, right: Mapping[str, str]
) -> tuple[str, str, str, bool]:
    """Hold what an audit says of a known picture against it: a part of the world that is right will do."""
    labels: dict[str, str] = {}
    for known in meanings_of(answered, row, scheme).values():
        labels |= {name: label for name, label in known.items() if name in ("artifact_id", "country", "continent")}
    agrees = bool(labels) == bool(right) and all(right.get(name, label) == label for name, label in labels.items())
    return scheme.criteria[0].name, PARTED.join(labels.values()), PARTED.join(right.values()), agrees


def passes(good: Sequence[tuple[Answered, KeyRow]], tasks: int, scheme: Scheme) -> bool:
    """Tell whether enough of so many tasks of a trial were answered right."""
    right = sum(all(holds for *_, holds in held(answered, row, scheme)) for answered, row in good)
    return right >= scheme.filters.pass_mark * tasks


def without_trial(good: Sequence[tuple[Answered, KeyRow]], key: pl.DataFrame, scheme: Scheme) -> set[str]:
    """Name those who did not pass the trial of their project, or did not take it; nobody where there is none."""
    tasks = Counter(key.filter(kind=TRIAL)["annotator_region"])
    taken: dict[str, list[tuple[Answered, KeyRow]]] = {}
    for answered, row in good:
        if row["kind"] == TRIAL:
            taken.setdefault(answered.annotator, []).append((answered, row))
    people = {(answered.annotator, row["annotator_region"]) for answered, row in good}
    return {name for name, home in people if tasks[home] and not passes(taken.get(name, ()), tasks[home], scheme)}
