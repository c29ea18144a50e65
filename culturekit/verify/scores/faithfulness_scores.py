"""Scores of DSG, VQAScore and quality, worked out again from what judges said and scorers gave."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer, Mean, t_answer
from culturekit.verify.scores.judged_images import JudgedImages, Place, judged_images
from culturekit.verify.scores.score_rows import SCORES_FILE, compare_row

__all__ = ["check_faithfulness"]

FEWEST = 20
"""Prompts that may speak for others."""

HOW = "worked out again from judgments, questions and quality"
Key = tuple[str, str, str, str | None, str | None]


def check_faithfulness(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Compare every row with what its judgments give, and the rows that are there with those there must be."""
    judged = judged_images(tree, stage, ledger)
    if judged is None:
        ledger.note(
            "scores", stage.name, "its inputs are not all here as tables; the means of its values are looked at"
        )
        return
    confidence = float(stage.manifest.options["means"]["confidence"])
    cells = dict(cells_of(judged, stage.manifest.options["means"]["by"]))
    there = set()
    for row in rows:
        about = row["about"]
        key = (row["metric"], about.get("judge") or about.get("scorer"), row["model"], row["concept"], row["country"])
        if row["group"] is not None:
            continue
        there.add(key)
        images = cells.get(key, {})
        if not images:
            ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a score of images that nobody judged", found=key)
            ledger.judge(stage.name, row, "wrong", HOW)
            continue
        answer = image_mean(images, judged.places, str(about["target"]), confidence)
        compare_row(stage.name, row, answer, len(images), HOW, ledger)
    for key in sorted(set(cells) - there, key=str):
        ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a score is missing", expected=key)


def cells_of(judged: JudgedImages, by: Sequence[Sequence[str]]) -> Iterator[tuple[Key, dict[str, float]]]:
    """Give the values of images by metric, judge, model, and concept and country where scores are parted by these."""
    levels = [(), *(tuple(level) for level in by if "region" not in level)]
    for (metric, judge), values in judged.values.items():
        cells: dict[Key, dict[str, float]] = {}
        for image, value in values.items():
            place = judged.places[image]
            for level in levels:
                parted = {name: getattr(place, name) for name in level}
                if None not in parted.values():
                    key = (metric, judge, place.model, parted.get("concept"), parted.get("country"))
                    cells.setdefault(key, {})[image] = value
        yield from cells.items()


def image_mean(images: Mapping[str, float], places: Mapping[str, Place], target: str, confidence: float) -> Answer:
    """Average images alike, with a t interval: over images within prompts, or over prompts."""
    prompts = [places[image].prompt for image in images]
    alone = any(prompt is None for prompt in prompts)
    groups: dict[str | None, list[float]] = {}
    for image, prompt in zip(images, prompts, strict=True):
        groups.setdefault(image if alone else prompt, []).append(images[image])
    values = list(images.values())
    value = values[0] if min(values) == max(values) else math.fsum(values) / len(values)
    variance, freedom = over_prompts(groups, value) if alone or target == "population" else within_prompts(groups)
    return t_answer(Mean(value, variance / len(values) ** 2, freedom), confidence)


def over_prompts(groups: Mapping[str | None, Sequence[float]], value: float) -> tuple[float, float]:
    """Let the totals of prompts scatter; too few say nothing."""
    count = len(groups)
    if count < FEWEST:
        return math.nan, 0.0
    totals = [math.fsum(one - value for one in own) for own in groups.values()]
    return count / (count - 1) * math.fsum(total**2 for total in totals), count - 1.0


def within_prompts(groups: Mapping[str | None, Sequence[float]]) -> tuple[float, float]:
    """Let images scatter within their prompts; a prompt of one image says nothing."""
    parts = []
    for own in groups.values():
        if len(own) < 2:
            return math.nan, 0.0
        middle = math.fsum(own) / len(own)
        squares = 0.0 if min(own) == max(own) else math.fsum((one - middle) ** 2 for one in own)
        parts.append((squares * len(own) / (len(own) - 1), len(own) - 1))
    total = math.fsum(part for part, _ in parts)
    if not total > 0:
        return 0.0, math.nan
    return total, total**2 / math.fsum(part**2 / freedom for part, freedom in parts)
