"""Gaps between groups of countries, and ranks of models, recomputed."""

import itertools
import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer, t_answer
from culturekit.verify.scores.comparisons import Side, check_corrections, check_p, gap_of, known_values
from culturekit.verify.scores.score_rows import SCORES_FILE, close, compare_row, wrong_row

__all__ = ["check_gaps", "check_ranks"]

OF_PEOPLE = "group"
"""The scheme whose groups stand in the values themselves."""

COUNTS = ("images_left_out",)
"""Params in which values of one score may differ."""

FEWEST_PROMPTS = 20
FLIPS = 9999
HOW_OF_GAPS = (
    "from the values: means of images, prompts and countries of each group, Welch's t; paired prompts by sign flips"
)

Values: TypeAlias = Sequence[Mapping[str, Any]]


def check_gaps(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Recompute every gap, the correction of its p value, and which gaps there must be."""
    sources = tree.inputs_of(stage)
    if sources is None:
        ledger.not_verifiable(stage.name, rows, "the values that were compared are not here")
        return
    options = stage.manifest.options
    known = known_values(sources.values(), COUNTS)
    values = [{**one, "side": side} for one in known if (side := side_of(one, options)) is not None]
    expected = {place_of(score, a, b): (score, a, b) for score, a, b in pairs_of(values)}
    for row in rows:
        with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
            about = row["about"]
            score = (row["model"], row["benchmark"], about["metric"], about["of"], row["concept"])
            key = place_of(score, about["a"], about["b"])
            if key not in expected or row["metric"] != "group_gap":
                ledger.broken("scores", f"{stage.name}/{SCORES_FILE} row {row['row']}", "is no gap of the values")
                ledger.judge(stage.name, row, "wrong", HOW_OF_GAPS)
                continue
            del expected[key]
            check_row(stage.name, row, values, options, ledger)
    for score, a, b in expected.values():
        ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a gap is missing", expected=f"{a} - {b} of {score}")
    check_corrections(stage.name, rows, options["correction"], ledger)


def side_of(value: Mapping[str, Any], options: Mapping[str, Any]) -> str | None:
    """Give the group that a value belongs to."""
    found = value["group"] if options["scheme"] == OF_PEOPLE else options["groups"].get(value["country"])
    return None if found is None else str(found)


def place_of(score: tuple[Any, ...], a: str, b: str) -> str:
    """Name a gap, whatever the order of its params."""
    return json.dumps([score, a, b], sort_keys=True)


def pairs_of(values: Values) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    """Give every two groups of every score of a model, and over its concepts where there are several."""
    scores: dict[str, tuple[tuple[Any, ...], dict[str | None, set[str]]]] = {}
    for one in values:
        score = (one["model"], one["benchmark"], one["metric"], one["about"])
        concepts = scores.setdefault(json.dumps(score, sort_keys=True), (score, {}))[1]
        concepts.setdefault(one["concept"], set()).add(one["side"])
    for score, concepts in scores.values():
        if None not in concepts and len(concepts) > 1:
            concepts[None] = set().union(*concepts.values())
        for concept, sides in concepts.items():
            for a, b in itertools.combinations(sorted(sides), 2):
                yield (*score, concept), a, b


def check_row(folder: str, row: dict[str, Any], values: Values, options: Mapping[str, Any], ledger: Ledger) -> None:
    """Recompute one gap."""
    about = row["about"]
    same = [
        one for one in values
        if (one["model"], one["benchmark"], one["metric"]) == (row["model"], row["benchmark"], about["metric"])
        and one["about"] == about["of"]
    ]  # fmt: skip
    own = [one for one in same if one["concept"] == row["concept"]] or same
    first, second = (part_of(own, about[side]) for side in ("a", "b"))
    prompts = [{prompt for country in side.values() for prompt in country} for side in (first, second)]
    paired = prompts[0] == prompts[1] and options["scheme"] == OF_PEOPLE
    target = target_of(first, second) if options["target"] == "auto" else options["target"]
    if paired:
        first, second = without_countries(first), without_countries(second)
    gap, p, drawn = gap_of(first, second, {"paired": paired, "target": target, "resamples": FLIPS})
    units = [sum(map(len, side.values())) for side in (first, second)]
    said = {
        "scheme": options["scheme"], "target": target, "paired": paired, "prompts": units[0] if paired else sum(units),
        "countries": {about[side]: countries_of(own, about[side]) for side in ("a", "b")},
    }  # fmt: skip
    n = sum(one["side"] in {about["a"], about["b"]} for one in own)
    compare_row(folder, row, t_answer(gap, float(options["confidence"])), n, HOW_OF_GAPS, ledger, said=said)
    check_p(folder, row, p, FLIPS if drawn else None, ledger)


def part_of(values: Values, group: str) -> Side:
    """Gather the values of a group by country and prompt."""
    side: Side = {}
    for one in values:
        if one["side"] == group:
            side.setdefault(one["country"] or "", {}).setdefault(one["unit_id"], []).append(one["value"])
    return side


def countries_of(values: Values, group: str) -> list[str]:
    """List the countries that stand for a group."""
    return sorted({str(one["country"]) for one in values if one["side"] == group and one["country"] is not None})


def target_of(first: Side, second: Side) -> str:
    """Say what a gap can speak about: other prompts need 20 of them, and two in each country."""
    counts = [len(prompts) for side in (first, second) for prompts in side.values()]
    return "population" if sum(counts) >= FEWEST_PROMPTS and min(counts) > 1 else "these"


def without_countries(side: Side) -> Side:
    """Put the prompts of all countries together: pairs are of prompts."""
    prompts: dict[str, list[float]] = {}
    for country in side.values():
        for prompt, values in country.items():
            prompts.setdefault(prompt, []).extend(values)
    return {"": prompts}


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
    paths = tree.inputs_of(stage)
    if paths is None:
        ledger.not_verifiable(stage.name, rows, "the scores that were compared are not here")
        return
    known = scores_by_key(paths.values())
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


def scores_by_key(paths: Iterable[Path]) -> dict[str, dict[str, dict[str, Any]]]:
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
