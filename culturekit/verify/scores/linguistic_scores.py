"""Scores of dialects, tones, neutral prompts and questions, from the values behind them by their formulas."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer, mean, t_answer
from culturekit.verify.scores.score_rows import compare_row
from culturekit.verify.scores.tone_scores import deviation, distance, tone_answers

__all__ = ["check_linguistic"]

Rows = Sequence[dict[str, Any]]
HOW = "the value and its limits, from the values behind it by their formulas"
DEVIATION, OF = "question_sd", "question_share"
TOLERANCE = 1e-6


def check_linguistic(tree: RunTree, stage: FinishedStage, rows: Rows, ledger: Ledger) -> None:
    """Recompute every score that is no mean of values: gaps, spreads, shares, deviations."""
    path = stage.folder / "values.parquet"
    values = [{**row, "about": json.loads(row["params"])} for row in pl.read_parquet(path).to_dicts()]
    confidence = float(stage.manifest.options["confidence"])
    found = dict(found_in(rows, values, confidence)) | dict(tone_answers(tree, stage, rows, values))
    for row in rows:
        if row["row"] in found:
            compare_row(stage.name, row, found[row["row"]], None, HOW, ledger, tolerance=TOLERANCE)


def found_in(rows: Rows, values: Rows, confidence: float) -> Iterator[tuple[int, Answer]]:
    """Give what each row should say, as far as its values tell."""
    for row in rows:
        metric, about = row["metric"], row["about"]
        own = [value for value in values if value["model"] == row["model"]]
        if metric == "dialect_gap":
            sides = [by_prompt(own, "dialect_score", about, group=about[side]) for side in ("a", "b")]
            shared = sorted(sides[0].keys() & sides[1].keys())
            gaps = [mean(sides[0][key]).value - mean(sides[1][key]).value for key in shared]
            yield row["row"], t_answer(mean(gaps), confidence)
        elif metric.startswith("neutral_") and metric != "neutral_similarity":
            yield row["row"], neutral(metric, [one for one in own if one["metric"] == "neutral_similarity"], confidence)
        elif metric == DEVIATION:
            items = [one["value"] for one in own if one["metric"] == OF and one["group"] == row["group"]
                     and alike(one["about"], about)]  # fmt: skip
            yield row["row"], alone(deviation(items, 1) if len(items) > 1 else math.nan)


def alone(value: float) -> Answer:
    """Give a value that has no limits."""
    return Answer(value, math.nan, math.nan)


def alike(value: Mapping[str, Any], about: Mapping[str, Any]) -> bool:
    """Tell whether a value belongs to what a row is about: everything that both say is the same."""
    return all(value[name] == about[name] for name in value.keys() & about.keys() - {"target", "images_left_out"})


def by_prompt(values: Rows, metric: str, about: Mapping[str, Any], *, group: str) -> dict[str, list[float]]:
    """Gather the values of a metric and group by prompt."""
    found: dict[str, list[float]] = defaultdict(list)
    for one in values:
        if one["metric"] == metric and one["group"] == group and alike(one["about"], about):
            found[one["prompt_id"]].append(one["value"])
    return found


def neutral(metric: str, similar: Rows, confidence: float) -> Answer:
    """Measure how unevenly prompts resemble groups: each prompt alone, or the mean of all."""
    measure = deviation if "_std" in metric else distance
    prompts: dict[str, dict[str, float]] = defaultdict(dict)
    for one in similar:
        prompts[one["item"]][one["group"]] = one["value"]
    if metric.endswith("_of_means"):
        groups = sorted({group for own in prompts.values() for group in own})
        return alone(measure([fsum(own[group] for own in prompts.values()) / len(prompts) for group in groups]))
    return t_answer(mean([measure([*own.values()]) for own in prompts.values()]), confidence)
