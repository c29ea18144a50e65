"""Means of what a judge says, put right by people once more: item by item, from the values and the answers."""

import json
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer
from culturekit.verify.scores.people_answers import Answer as PeopleAnswer
from culturekit.verify.scores.people_answers import read_answers
from culturekit.verify.scores.score_rows import compare_row
from culturekit.verify.scores.student import t_quantile

__all__ = ["check_judged"]

Rows: TypeAlias = list[dict[str, Any]]

HOW = "from the values and the answers: each part of the marked items put right with the trust that the others give"
PARTS, FEWEST_ERRORS, ROUNDING = 5, 5, 1e-9
SHARES = frozenset(
    ("align", "ddiv", "dsg", "empty", "exag", "faith", "hal", "object_presence", "quality", "region_recognised", "sdiv",
     "vqascore")
)  # fmt: skip
"""Metrics from 0 to 1: no limit lies outside."""

IGNORED = ("images_left_out",)
ADDED = frozenset(
    (
        "alike", "choice", "confidence", "criterion", "labels", "marked", "people", "pool", "pools_by", "target",
        "trust",
    )
)  # fmt: skip
"""Params of a row that those of its values do not have, or have otherwise."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item: what the judge says, what it weighs, what varies with it, what people say, its weight among those."""

    judged: float
    weight: float
    cluster: str
    people: float | None
    drawn: float


def check_judged(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Put every score right again."""
    found = tree.inputs_of(stage)
    if found is None:
        ledger.not_verifiable(stage.name, rows, "the values or answers are not here")
        return
    options = stage.manifest.options
    answers = read_answers(found["annotations"], str(options["by"]))
    values = [
        one
        for role, path in found.items()
        if role.startswith("values-")
        for one in pl.read_parquet(path).iter_rows(named=True)
        if one["value"] is not None and math.isfinite(one["value"])
    ]
    chances = {
        one["image_id"]: float(one["chance"])
        for role, path in found.items()
        if role.startswith("sample")
        for one in pl.read_parquet(path).iter_rows(named=True)
    }
    said: dict[str, dict[str, list[float]]] = {}
    for each in answers:
        number = number_of(each, options)
        if number is not None:
            said.setdefault(each.pool, {}).setdefault(each.item, []).append(number)
    for row in rows:
        with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
            check_row(stage.name, row, values, said.get(row["about"].get("pool"), {}), chances, ledger)


def number_of(answer: PeopleAnswer, options: Mapping[str, Any]) -> float | None:
    """Say what an answer counts; None for one to another question, or that is no number."""
    if answer.criterion != options["criterion"] or options.get("scheme") not in (None, answer.scheme):
        return None
    if options.get("choice") is not None:
        return None if answer.choice is None else float(answer.choice == options["choice"])
    if answer.value is None or options.get("lowest") is None:
        return answer.value
    return (answer.value - float(options["lowest"])) / (float(options["highest"]) - float(options["lowest"]))


def check_row(
    folder: str,
    row: dict[str, Any],
    values: Rows,
    said: Mapping[str, Sequence[float]],
    chances: Mapping[str, float],
    ledger: Ledger,
) -> None:
    """Recompute one score."""
    about = row["about"]
    items = items_of(row, values, said, chances)
    confidence = float(about["confidence"])
    told: dict[str, object] = {}
    if about["labels"] == "judged":
        answer = alone(items, confidence)
    else:
        answer, trust = put_right(items, confidence)
        told = {"people": sum(one.people is not None for one in items), "trust": trust}
    if row["metric"] in SHARES:
        answer = Answer(*(min(max(number, 0.0), 1.0) for number in (answer.value, answer.low, answer.high)))
    compare_row(folder, row, answer, len(items), HOW, ledger, said=told)


def items_of(
    row: Mapping[str, Any], values: Rows, said: Mapping[str, Sequence[float]], chances: Mapping[str, float]
) -> list[Item]:
    """Gather the items of a score in their order, those of all countries where it is over these."""
    about = row["about"]
    same = [
        one for one in values if all(one[name] == row[name] for name in ("metric", "model", "benchmark", "concept"))
    ]
    same = [one for one in same if one["group"] == row["group"] and is_of(one["params"], about)]
    own = sorted([one for one in same if one["country"] == row["country"]] or same, key=lambda one: str(one["item"]))
    where = {(one["model"], one["item"]): one["country"] for one in values if one["country"] is not None}
    places = [(where.get((one["model"], one["item"])), one["prompt_id"] or one["item"]) for one in own]
    in_prompt = Counter(places)
    in_country = Counter(country for country, _ in in_prompt)
    weights = [
        1.0 if about["alike"] == "items"
        else 1 / in_prompt[place] / (in_country[place[0]] if about["alike"] == "countries" else 1)
        for place in places
    ]  # fmt: skip
    shared, every = sharing(own, chances), math.fsum(weights)
    found = []
    for one, place, weight in zip(own, places, weights, strict=True):
        people = statistics.fmean(said[one["item"]]) if one["item"] in said else None
        chance = chances.get(one["item"], 1.0) / shared.get(one["prompt_id"], 1)
        cluster = place[1] if about["target"] == "population" else one["item"]
        drawn = 0.0 if people is None else weight / every / chance
        found.append(Item(float(one["value"]), weight / every, cluster, people, drawn))
    total = math.fsum(one.drawn for one in found)
    if total == 0:
        return found
    return [Item(one.judged, one.weight, one.cluster, one.people, one.drawn / total) for one in found]


def is_of(params: str, about: Mapping[str, Any]) -> bool:
    """Tell whether values are of the score that a row is about."""
    own = {key: value for key, value in json.loads(params).items() if key not in IGNORED}
    alike = all(about.get(key) == value for key, value in own.items() if key not in ADDED)
    return alike and about.keys() - own.keys() <= ADDED


def sharing(own: Rows, chances: Mapping[str, float]) -> dict[str | None, int]:
    """Say by how many items a drawn prompt's chance is shared; nothing where items were drawn."""
    drawn = [one for one in own if one["item"] in chances]
    sizes: dict[str | None, int] = {}
    for one in own:
        sizes[one["prompt_id"]] = sizes.get(one["prompt_id"], 0) + 1
    if not drawn:
        return {}
    stand = math.fsum(1 / chances[one["item"]] for one in drawn)
    of_prompts = abs(math.log(stand / len(sizes))) < abs(math.log(stand / len(own)))
    return sizes if of_prompts else {}


def alone(items: Sequence[Item], confidence: float) -> Answer:
    """Average what the judge says; what varies are clusters."""
    value = math.fsum(one.weight * one.judged for one in items)
    added = [(one.cluster, one.weight * (one.judged - value)) for one in items]
    return around(value, added, len({one.cluster for one in items}), 0.0, confidence)


def put_right(items: Sequence[Item], confidence: float) -> tuple[Answer, float]:
    """Average what people say, and what the judge foretells of it; the trust in the judge beside it."""
    middle = math.fsum(one.weight * one.judged for one in items)
    marked = sorted({one.cluster for one in items if one.people is not None})
    part = {cluster: number % PARTS for number, cluster in enumerate(marked)}
    trusts = [trust_of(items, [part.get(one.cluster) for one in items], number, middle) for number in range(PARTS)]
    rectified = [
        (one, one.people - trusts[part[one.cluster]] * (one.judged - middle)) for one in items if one.people is not None
    ]
    value = math.fsum(one.drawn * number for one, number in rectified)
    trust = math.fsum(one.drawn * trusts[part[one.cluster]] for one, _ in rectified)
    asked = [one.drawn * (number - value) + one.weight * trust * (one.judged - middle) for one, number in rectified]
    others = [one for one in items if one.people is None]
    unasked = [one.weight * trust * (one.judged - middle) for one in others]
    added = [
        (one.cluster, number - statistics.fmean(side))
        for side, members in ((asked, [one for one, _ in rectified]), (unasked, others))
        for one, number in zip(members, side, strict=True)
    ]
    people = [one.people for one, _ in rectified if one.people is not None]
    errors = sum(one.people is not None and abs(one.people - one.judged) > ROUNDING for one, _ in rectified)
    missed = max(one.drawn for one, _ in rectified) * (max(people) - min(people)) if errors < FEWEST_ERRORS else 0.0
    rest = math.fsum(one.weight for one in others)
    return around(value, added, len(marked), missed, confidence), trust * (rest if others else 1.0)


def trust_of(items: Sequence[Item], parts: Sequence[int | None], without: int, middle: float) -> float:
    """Learn from the marked items of the other parts how far the judge foretells what people say."""
    learnt = [one for one, part in zip(items, parts, strict=True) if one.people is not None and part != without]
    total = math.fsum(one.drawn for one in learnt)
    means = [
        math.fsum(one.drawn * number for one, number in zip(learnt, side, strict=True)) / total
        for side in ([one.people or 0.0 for one in learnt], [one.judged for one in learnt])
    ]
    both = math.fsum(one.drawn * ((one.people or 0.0) - means[0]) * (one.judged - means[1]) for one in learnt) / total
    spread = math.fsum(one.weight * (one.judged - middle) ** 2 for one in items) * len(items) / (len(items) - 1)
    rest = math.fsum(one.weight for one in items if one.people is None)
    if spread <= ROUNDING**2:
        return 0.0
    return min(max(both / spread, 0.0), 1 / rest if rest > 0 else 1.0)


def around(value: float, added: Sequence[tuple[str, float]], clusters: int, missed: float, confidence: float) -> Answer:
    """Put t limits around a value, from what each cluster adds to it."""
    totals: dict[str, float] = {}
    for cluster, number in added:
        totals[cluster] = totals.get(cluster, 0.0) + number
    squares = math.fsum(number**2 for number in totals.values()) * clusters / (clusters - 1)
    margin = t_quantile(clusters - 1.0, confidence) * math.sqrt(squares + missed**2)
    return Answer(value, value - margin, value + margin)
