"""Agreement of people, and how well metrics follow them, worked out again from answers; limits are not drawn again."""

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any, TypeAlias

import numpy as np
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
    """Work out the correlations of metrics with what people said, and with each other: over all models and for each."""
    path, options = tree.source(stage, "annotations"), stage.manifest.options
    if (path is None and "annotations" in stage.manifest.inputs) or options.get("level", "item") != "item":
        return
    answers = [] if path is None else read_answers(path, str(options["by"]))
    values, human = values_of(tree, stage, "values-"), values_of(tree, stage, "human-")
    groups = options.get("groups") or {}
    for row in rows:
        other = row["about"].get("with", {})
        with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
            if "criterion" in other:
                own = [one for one in answers if (one.scheme, one.criterion) == (other["scheme"], other["criterion"])]
                said: Mapping[Any, float] = means_of(own, other["pool"], other.get("choice"))
            else:
                kind = human if row["metric"] == "human_correlation" else values
                own_values = series(kind, other).items()
                said = {item if kind is human else (item, model): one.value for (item, model), one in own_values}
            pairs = [
                (one.value, said[key])
                for (item, model), one in sorted(series(values, row["about"]).items())
                for key in ((item, model) if (item, model) in said else item,)
                if key in said and row["model"] in {"all", model} and row["group"] in {None, groups.get(one.country)}
            ]
            judge(stage.name, row, CORRELATIONS[row["about"]["method"]](pairs), FROM_VALUES, ledger)


@dataclass(frozen=True, slots=True)
class Valued:
    """An item as values have it."""

    value: float
    country: str | None


Series: TypeAlias = Mapping[tuple[str, str], Valued]
"""By item and model."""


def values_of(tree: RunTree, stage: FinishedStage, roles: str) -> list[tuple[Row, Series]]:
    """Gather values of some roles by metric, benchmark and params, each with its items."""
    own = [stage.folder / "values.parquet"] if roles == "values-" else []
    paths = [path for role, path in tree.sources_of(stage, "values.parquet") if role.startswith(roles)]
    found: dict[tuple[str, ...], dict[tuple[str, str], Valued]] = {}
    for path in [*paths, *(path for path in own if path.is_file())]:
        for row in pl.read_parquet(path).iter_rows(named=True):
            if row["value"] is not None and math.isfinite(row["value"]):
                items = found.setdefault((row["metric"], row["benchmark"], row["params"]), {})
                known = items.get((row["item"], row["model"]))
                if known is None or known.country is None:
                    items[row["item"], row["model"]] = Valued(row["value"], row["country"])
    return [({"metric": metric, "benchmark": benchmark, "params": params}, items)
            for (metric, benchmark, params), items in found.items()]  # fmt: skip


def series(values: Sequence[tuple[Row, Series]], about: Row) -> Series:
    """Find the values that a correlation names."""
    return next(
        items for own, items in values
        if all(own[name] == about[name] for name in ("metric", "benchmark"))
        and same_params(own["params"], about["params"])
    )  # fmt: skip


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
    if not pairs:
        return math.nan
    x, y = (np.sign(np.subtract.outer(side, side)) for side in np.array(pairs).T)
    apart_x, apart_y = float(np.abs(x).sum()), float(np.abs(y).sum())
    return float((x * y).sum()) / math.sqrt(apart_x * apart_y) if apart_x and apart_y else math.nan


CORRELATIONS: Mapping[str, Callable[[Pairs], float]] = {"spearman": spearman, "kendall": kendall, "pearson": pearson}
