"""Agreement of instruments on the order of models, worked out again from their scores."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer
from culturekit.verify.scores.score_rows import compare_row, read_rows, wrong_row

__all__ = ["check_stability", "ranking_rows", "tau_b"]

OWN = ("images_left_out", "method", "encoder")
"""Parameters that say which instrument made a score."""

STABLE = 0.8
ROUNDING = 1e-9
"""At the limit itself either word is right: earlier versions took 4/5, as it is reckoned, to lie below."""
HOW = "from the scores of both instruments: Kendall's tau-b, pair by pair of models"


def check_stability(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Work out every correlation of two rankings."""
    found = {role: tree.source(stage, role) for role in stage.manifest.inputs}
    ranking_rows(stage.name, rows, {role: read_rows(path) for role, path in found.items() if path is not None}, ledger)


def ranking_rows(
    folder: str, rows: Sequence[dict[str, Any]], scores: Mapping[str, Sequence[dict[str, Any]]], ledger: Ledger
) -> None:
    """Work out the correlations among some rows from the scores of each instrument; other rows are left alone."""
    ranked = {name: rankings(own) for name, own in scores.items()}
    for row in (row for row in rows if row["metric"] == "ranking_stability"):
        with ledger.guarded("scores", f"{folder} row {row['row']}"):
            first, second = row["about"]["between"]
            if first not in ranked or second not in ranked:
                ledger.judge(folder, row, "not verifiable", "the scores of an instrument are not here")
                continue
            check_row(folder, row, ranked[first], ranked[second], ledger)


def rankings(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Gather the values of models under what was scored."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if math.isfinite(row["value"]) and row["about"].get("labels") not in {"truth", "corrected"}:
            found.setdefault(key_of(row, row["metric"], row["about"]), {})[row["model"]] = row["value"]
    return found


def key_of(row: Mapping[str, Any], metric: str, about: Mapping[str, Any]) -> str:
    """Name what was scored, whatever the instrument."""
    kept = {key: value for key, value in about.items() if key not in OWN}
    return json.dumps(
        [metric, *(row[name] for name in ("benchmark", "concept", "country", "group")), kept], sort_keys=True
    )


def check_row(
    folder: str, row: dict[str, Any], one: Mapping[str, Mapping[str, float]],
    other: Mapping[str, Mapping[str, float]], ledger: Ledger,
) -> None:  # fmt: skip
    """Work one correlation out."""
    about = {key: value for key, value in row["about"].items() if key not in {"metric", "between", "stable"}}
    key = key_of(row, row["about"]["metric"], about)
    if key not in one or key not in other:
        wrong_row(
            folder, row, "one of the instruments has no such score", expected="one each", found=key, ledger=ledger
        )
        ledger.judge(folder, row, "wrong", HOW)
        return
    models = sorted(set(one[key]) & set(other[key]))
    tau = tau_b([one[key][model] for model in models], [other[key][model] for model in models])
    answer = Answer(tau, math.nan, math.nan)
    said = {} if abs(tau - STABLE) <= ROUNDING else {"stable": tau >= STABLE}
    compare_row(folder, row, answer, len(models), HOW, ledger, said=said)


def tau_b(x: Sequence[float], y: Sequence[float]) -> float:
    """Give Kendall's tau-b: pairs in the same order less pairs in the opposite one, over what ties leave of them."""
    agree = ties_x = ties_y = pairs = 0
    for i in range(len(x)):
        for j in range(i):
            pairs += 1
            a, b = sign(x[i] - x[j]), sign(y[i] - y[j])
            agree += a * b
            ties_x += a == 0
            ties_y += b == 0
    room = math.sqrt((pairs - ties_x) * (pairs - ties_y))
    return agree / room if room else math.nan


def sign(number: float) -> int:
    """Give -1, 0 or 1."""
    return (number > 0) - (number < 0)
