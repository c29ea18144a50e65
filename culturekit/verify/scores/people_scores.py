"""Agreement of people, and how well metrics follow them, worked out again from answers; limits are not drawn again."""

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.people_answers import Answer, read_answers
from culturekit.verify.scores.score_rows import close, wrong_row

__all__ = ["CORRELATIONS", "check_agreement", "check_meta"]

Row: TypeAlias = dict[str, Any]
DRAWN = "; its limits are draws that are not drawn again"
FROM_ANSWERS = "from the answers, pair by pair" + DRAWN
FROM_VALUES = "from the values and the answers" + DRAWN
LARGEST = 1500
"""Items above which a correlation by pairs would take minutes."""


def check_agreement(tree: RunTree, stage: FinishedStage, rows: Sequence[Row], ledger: Ledger) -> None:
    """Work out the agreement of pools, and their differences, from the answers that counted."""
    counted = stage.folder / "annotations.parquet"
    path = counted if counted.is_file() else tree.source(stage, "annotations")
    if path is None:
        return
    answers = read_answers(path, str(stage.manifest.options["by"]))
    for row in rows:
        with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
            found = agreement_of(row, answers)
            if found is not None:
                judge(stage.name, row, found, FROM_ANSWERS, ledger)


def agreement_of(row: Row, answers: Sequence[Answer]) -> float | None:
    """Work out one row; None for a metric that nothing here works out."""
    about = row["about"]
    own = [each for each in answers if (each.scheme, each.criterion) == (about.get("scheme"), about.get("criterion"))]
    if row["metric"] in {"pool_difference", "pool_correlation"}:
        first, second = (means_of(own, about[side], about.get("choice")) for side in ("a", "b"))
        pairs = [(first[item], second[item]) for item in sorted(first.keys() & second.keys())]
        if row["metric"] == "pool_difference":
            return statistics.fmean(one - other for one, other in pairs)
        return CORRELATIONS[about["method"]](pairs)
    measure = MEASURES.get(row["metric"])
    if measure is None:
        return None
    items = items_of([each for each in own if each.pool == about["pool"]])
    return measure([each for each in items.values() if len(each) > 1], about.get("level", "nominal"))


def items_of(answers: Sequence[Answer]) -> dict[str, list[Any]]:
    """Gather the answers to each item: numbers where there are any, else choices."""
    scaled = any(each.value is not None for each in answers)
    found: dict[str, list[Any]] = {}
    for each in answers:
        said = each.value if scaled else each.choice
        if said is not None:
            found.setdefault(each.item, []).append(said)
    return found


def means_of(answers: Sequence[Answer], pool: str, choice: str | None) -> dict[str, float]:
    """Average the answers of a pool to each item; of a choice, the share that chose it."""
    own = items_of([each for each in answers if each.pool == pool])
    return {
        item: statistics.fmean(said if choice is None else [float(one == choice) for one in said])
        for item, said in own.items()
    }


Items: TypeAlias = Sequence[Sequence[Any]]


def pairwise(items: Items, level: str) -> float:
    """Average over items the share of pairs that agree."""
    del level
    return statistics.fmean(agreeing(said) for said in items) if items else math.nan


def agreeing(said: Sequence[Any]) -> float:
    """Give the share of pairs of answers to an item that agree."""
    return statistics.fmean(float(one == other) for one, other in combinations(said, 2))


def unanimous(items: Items, level: str) -> float:
    """Give the share of items that everybody answered alike."""
    del level
    return statistics.fmean(float(len(set(said)) == 1) for said in items) if items else math.nan


def fleiss(items: Items, level: str) -> float:
    """Hold the agreement against that of the shares of all answers."""
    total = Counter(one for said in items for one in said)
    if len(total) < 2:
        return math.nan
    chance = math.fsum((count / total.total()) ** 2 for count in total.values())
    return (pairwise(items, level) - chance) / (1 - chance)


def alpha(items: Items, level: str) -> float:
    """Hold the disagreement of pairs within items against that of all pairs of answers: Krippendorff's coincidences."""
    together: dict[tuple[Any, Any], float] = defaultdict(float)
    for said in items:
        for one, other in permutations(said, 2):
            together[one, other] += 1 / (len(said) - 1)
    margins: dict[Any, float] = defaultdict(float)
    for (one, _), count in together.items():
        margins[one] += count
    total = math.fsum(margins.values())
    if len(margins) < 2:
        return math.nan
    distance = distances(level, margins)
    observed = math.fsum(count * distance(one, other) for (one, other), count in together.items())
    expected = math.fsum(
        margins[one] * margins[other] * distance(one, other) for one, other in permutations(margins, 2)
    )
    return 1 - (total - 1) * observed / expected


def distances(level: str, margins: Mapping[Any, float]) -> Callable[[Any, Any], float]:
    """Give the squared distance of two answers: of their names, of their ranks, or of themselves."""
    if level == "nominal":
        return lambda one, other: float(one != other)
    if level == "interval":
        return lambda one, other: float((one - other) ** 2)

    def ordinal(one: Any, other: Any) -> float:  # noqa: ANN401 - an answer is a number or a text
        low, high = sorted((one, other))
        between = math.fsum(count for answer, count in margins.items() if low <= answer <= high)
        return (between - (margins[low] + margins[high]) / 2) ** 2

    return ordinal


MEASURES: Mapping[str, Callable[[Items, str], float]] = {
    "pairwise_agreement": pairwise,
    "unanimous_agreement": unanimous,
    "fleiss_kappa": fleiss,
    "krippendorff_alpha": alpha,
}


def judge(folder: str, row: Row, found: float, how: str, ledger: Ledger) -> None:
    """Compare the value of a row."""
    if close(row["value"], found):
        ledger.judge(folder, row, "consistent", how)
        return
    wrong_row(folder, row, "the value is not what the answers give", expected=found, found=row["value"], ledger=ledger)
    ledger.judge(folder, row, "wrong", how)


def check_meta(tree: RunTree, stage: FinishedStage, rows: Sequence[Row], ledger: Ledger) -> None:
    """Work out the correlations of metrics with what people said, over all models and for each."""
    path = tree.source(stage, "annotations")
    options = stage.manifest.options
    if path is None or options.get("level", "item") != "item" or options.get("scheme"):
        return
    answers = read_answers(path, str(options["by"]))
    values = values_of(tree, stage)
    for row in rows:
        if row["metric"] != "human_correlation" or "criterion" not in row["about"].get("with", {}):
            continue
        with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
            pairs = pairs_of(row, values, answers)
            if len(pairs) > LARGEST:
                ledger.judge(stage.name, row, "not verifiable", f"more than {LARGEST:,} items, pair by pair")
                continue
            judge(stage.name, row, CORRELATIONS[row["about"]["method"]](pairs), FROM_VALUES, ledger)


def values_of(tree: RunTree, stage: FinishedStage) -> dict[tuple[str, str, str], dict[str, tuple[str, float]]]:
    """Gather values by metric, params and benchmark: of each item its model and number."""
    own = stage.folder / "values.parquet"
    paths: list[Path] = [path for role, path in tree.sources_of(stage, "values.parquet") if role.startswith("values-")]
    found: dict[tuple[str, str, str], dict[str, tuple[str, float]]] = {}
    for path in [*paths, *([own] if own.is_file() else [])]:
        for row in pl.read_parquet(path).iter_rows(named=True):
            if row["value"] is not None and math.isfinite(row["value"]):
                key = (row["metric"], row["params"], row["benchmark"])
                found.setdefault(key, {}).setdefault(row["item"], (row["model"], row["value"]))
    return found


def pairs_of(
    row: Row, values: Mapping[tuple[str, str, str], Mapping[str, tuple[str, float]]], answers: Sequence[Answer]
) -> list[tuple[float, float]]:
    """Pair a metric with what a pool said, item by item."""
    about, person = row["about"], row["about"]["with"]
    own = [each for each in answers if (each.scheme, each.criterion) == (person["scheme"], person["criterion"])]
    said = means_of(own, person["pool"], person.get("choice"))
    metric = next(
        items for (name, params, benchmark), items in values.items()
        if (name, benchmark) == (about["metric"], about["benchmark"]) and same_params(params, about["params"])
    )  # fmt: skip
    wanted = row["model"]
    return [
        (value, said[item]) for item, (model, value) in sorted(metric.items())
        if item in said and wanted in {"all", model}
    ]  # fmt: skip


def same_params(text: str, params: Mapping[str, Any]) -> bool:
    """Tell whether params are those of a row, but for what was left out."""
    stated = {name: value for name, value in json.loads(text).items() if name != "images_left_out"}
    return stated == dict(params)


Pairs: TypeAlias = Sequence[tuple[float, float]]


def pearson(pairs: Pairs) -> float:
    """Divide the covariance by both deviations."""
    if not pairs:
        return math.nan
    x, y = zip(*pairs, strict=True)
    centre_x, centre_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    own = math.fsum((one - centre_x) ** 2 for one in x), math.fsum((one - centre_y) ** 2 for one in y)
    if len(set(x)) < 2 or len(set(y)) < 2:
        return math.nan
    return math.fsum((a - centre_x) * (b - centre_y) for a, b in pairs) / math.sqrt(own[0] * own[1])


def spearman(pairs: Pairs) -> float:
    """Correlate ranks."""
    if not pairs:
        return math.nan
    x, y = zip(*pairs, strict=True)
    return pearson(list(zip(ranks(x), ranks(y), strict=True)))


def ranks(values: Sequence[float]) -> list[float]:
    """Rank values, ties in the middle."""
    ordered = sorted(values)
    places: dict[float, list[int]] = {}
    for place, value in enumerate(ordered, start=1):
        places.setdefault(value, []).append(place)
    return [(places[value][0] + places[value][-1]) / 2 for value in values]


def kendall(pairs: Pairs) -> float:
    """Count pairs of items that both order alike, less those that they do not; ties are left out on either side."""
    surplus = apart_x = apart_y = 0
    for (a, b), (c, d) in combinations(pairs, 2):
        surplus += ((a > c) - (a < c)) * ((b > d) - (b < d))
        apart_x += a != c
        apart_y += b != d
    return surplus / math.sqrt(apart_x * apart_y) if apart_x and apart_y else math.nan


CORRELATIONS: Mapping[str, Callable[[Pairs], float]] = {"spearman": spearman, "kendall": kendall, "pearson": pearson}
