"""Differences and ranks of models by corrected diversity, worked out again from the scores that were compared."""

import itertools
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer
from culturekit.verify.scores.comparisons import check_corrections
from culturekit.verify.scores.score_rows import close, compare_row, wrong_row

__all__ = ["check_ranks"]

HOW = "from the corrected scores compared: limits by the distances of both models' limits, ranks by the p values stated"
OF_ONE_MODEL = {
    "audited",
    "marked",
    "country_only",
    "continent_only",
    "no_continent",
    "cannot_tell",
    "if_alike",
    "if_different",
}
PLACE = ("benchmark", "concept", "country", "group")


def check_ranks(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Work out every difference and every rank."""
    paths = [tree.source(stage, role) for role in sorted(stage.manifest.inputs)]
    if None in paths:
        for row in rows:
            ledger.judge(stage.name, row, "not verifiable", "the scores that were compared are not here")
        return
    known = scores_by_key([path for path in paths if path is not None])
    differences = [row for row in rows if row["metric"] == "model_difference"]
    for row in differences:
        with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
            check_difference(stage, row, known, ledger)
    check_corrections(stage.name, differences, stage.manifest.options["correction"], ledger)
    for row in rows:
        if row["metric"] == "model_rank":
            with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
                check_rank(stage, row, known, differences, ledger)
    check_complete(stage.name, rows, known, ledger)


def scores_by_key(paths: Sequence[Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Gather the corrected scores that have limits: what is scored -> model -> row."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for path in paths:
        for row in pl.read_parquet(path).to_dicts():
            about = json.loads(row["params"])
            if about.get("labels") == "corrected" and None not in (row["ci_low"], row["ci_high"]):
                of = {name: value for name, value in about.items() if name not in OF_ONE_MODEL}
                found.setdefault(key_of(row["metric"], of, row), {})[row["model"]] = row
    return found


def key_of(metric: str, of: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Name what is scored."""
    return json.dumps([metric, of, [row[name] for name in PLACE]], sort_keys=True)


def beside(stage: FinishedStage, rows: Iterable[Mapping[str, Any]]) -> dict[str, object]:
    """Say what stands beside numbers of some scores: all that stands beside any of these; not in earlier versions."""
    marks = {mark for row in rows for mark in json.loads(row["params"]).get("marked", ())}
    return {"marked": sorted(marks) or None} if stage.manifest.version > 1 else {}


def check_difference(
    stage: FinishedStage, row: dict[str, Any], known: Mapping[str, Mapping[str, Mapping[str, Any]]], ledger: Ledger
) -> None:
    """Work one difference out, and its p value."""
    about = row["about"]
    models = known[key_of(about["metric"], about["of"], row)]
    one, other = models[about["a"]], models[about["b"]]
    gap = one["value"] - other["value"]
    down = math.sqrt((one["value"] - one["ci_low"]) ** 2 + (other["ci_high"] - other["value"]) ** 2)
    up = math.sqrt((one["ci_high"] - one["value"]) ** 2 + (other["value"] - other["ci_low"]) ** 2)
    said, answer = beside(stage, (one, other)), Answer(gap, gap - down, gap + up)
    compare_row(stage.name, row, answer, one["n"] + other["n"], HOW, ledger, said=said)
    normal = statistics.NormalDist()
    towards = down if gap > 0 else up
    times = normal.inv_cdf((1 + float(about["of"]["confidence"])) / 2)
    p = math.erfc(times * abs(gap) / towards / math.sqrt(2)) if towards else float(gap == 0)
    if not close(about["p"], p, tolerance=1e-7):
        wrong_row(stage.name, row, "p is not what the scores give", expected=p, found=about["p"], ledger=ledger)


def check_rank(
    stage: FinishedStage,
    row: dict[str, Any],
    known: Mapping[str, Mapping[str, Mapping[str, Any]]],
    differences: Sequence[dict[str, Any]],
    ledger: Ledger,
) -> None:
    """Work one rank out from the differences that are surely none of chance."""
    about = row["about"]
    key = key_of(about["metric"], about["of"], row)
    models = known[key]
    rank = 1 + sum(one["value"] > models[row["model"]]["value"] for one in models.values())
    best, worst = 1, len(models)
    for one in differences:
        told = one["about"]
        same = key_of(told["metric"], told["of"], one) == key
        if not same or row["model"] not in (told["a"], told["b"]):
            continue
        if told["p_corrected"] < 1 - float(about["of"]["confidence"]):
            ahead = (one["value"] > 0) == (told["a"] == row["model"])
            best, worst = (best, worst - 1) if ahead else (best + 1, worst)
    said = {"models": len(models), **beside(stage, models.values())}
    answer = Answer(float(rank), float(best), float(worst))
    compare_row(stage.name, row, answer, models[row["model"]]["n"], HOW, ledger, said=said)


def check_complete(
    folder: str,
    rows: Sequence[dict[str, Any]],
    known: Mapping[str, Mapping[str, Mapping[str, Any]]],
    ledger: Ledger,
) -> None:
    """Compare the pairs and models that are there with those that there must be."""
    pairs = {(key, pair) for key, models in known.items() for pair in itertools.combinations(sorted(models), 2)}
    ranked = {(key, model) for key, models in known.items() if len(models) > 1 for model in models}
    for row in rows:
        about = row["about"]
        key = key_of(about["metric"], about["of"], row)
        pairs.discard((key, tuple(sorted((about.get("a", ""), about.get("b", ""))))))
        if row["metric"] == "model_rank":
            ranked.discard((key, row["model"]))
    for what in sorted(map(str, pairs | ranked)):
        ledger.broken("scores", f"{folder}/scores.parquet", "a difference or a rank is missing", expected=what)
