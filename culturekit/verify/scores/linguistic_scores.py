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
from culturekit.verify.scores.score_rows import close, wrong_row

__all__ = ["check_linguistic"]

Rows = Sequence[dict[str, Any]]
HOW = "the value, from those behind it by its formula; its limits are not recomputed"
TONES = range(1, 11)
DEVIATION, OF = "question_sd", "question_share"


def check_linguistic(tree: RunTree, stage: FinishedStage, rows: Rows, ledger: Ledger) -> None:
    """Recompute every score that is no mean of values: gaps, spreads, shares, deviations."""
    path = stage.folder / "values.parquet"
    values = [{**row, "about": json.loads(row["params"])} for row in pl.read_parquet(path).to_dicts()]
    recomputed = dict(found_in(tree, stage, rows, values))
    for row in rows:
        found = recomputed.get(row["row"])
        if found is None:
            continue
        if close(row["value"], found, tolerance=1e-6):
            ledger.judge(stage.name, row, "consistent", HOW)
            continue
        wrong_row(stage.name, row, "is not what its values give", expected=found, found=row["value"], ledger=ledger)
        ledger.judge(stage.name, row, "wrong", HOW)


def found_in(tree: RunTree, stage: FinishedStage, rows: Rows, values: Rows) -> Iterator[tuple[int, float]]:
    """Give what each row should say, as far as its values tell."""
    of_people = people_shares(tree, stage, rows, values)
    for row in rows:
        metric, about = row["metric"], row["about"]
        own = [value for value in values if value["model"] == row["model"]]
        if metric == "dialect_gap":
            sides = [by_prompt(own, "dialect_score", about, group=about[side]) for side in ("a", "b")]
            shared = sides[0].keys() & sides[1].keys()
            yield row["row"], fsum(mean(sides[0][key]) - mean(sides[1][key]) for key in sorted(shared)) / len(shared)
        elif metric.startswith("neutral_") and metric != "neutral_similarity":
            yield row["row"], neutral(metric, [one for one in own if one["metric"] == "neutral_similarity"])
        elif metric == DEVIATION:
            items = [one["value"] for one in own if one["metric"] == OF and one["group"] == row["group"]
                     and alike(one["about"], about)]  # fmt: skip
            yield row["row"], deviation(items, 1) if len(items) > 1 else math.nan
        elif metric in ("tone_share", "tone_std", "tone_mad"):
            shares = of_people.get(key_of(row)) if "pool" in about else found_shares(own, row)
            if shares is not None:
                yield row["row"], spread(metric, about, shares)


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


def mean(numbers: Sequence[float]) -> float:
    """Average numbers."""
    return fsum(numbers) / len(numbers)


def deviation(numbers: Sequence[float], less: int = 0) -> float:
    """Give the standard deviation, over n or over n less one."""
    middle = mean(numbers)
    return math.sqrt(fsum((one - middle) ** 2 for one in numbers) / (len(numbers) - less))


def distance(numbers: Sequence[float]) -> float:
    """Give the mean absolute deviation."""
    middle = mean(numbers)
    return mean([abs(one - middle) for one in numbers])


def neutral(metric: str, similar: Rows) -> float:
    """Measure how unevenly prompts resemble groups: each prompt alone, or the mean of all."""
    measure = deviation if "_std" in metric else distance
    prompts: dict[str, dict[str, float]] = defaultdict(dict)
    for one in similar:
        prompts[one["item"]][one["group"]] = one["value"]
    if metric.endswith("_of_means"):
        groups = sorted({group for own in prompts.values() for group in own})
        return measure([mean([own[group] for own in prompts.values()]) for group in groups])
    return mean([measure([*own.values()]) for own in prompts.values()])


def found_shares(values: Rows, row: Mapping[str, Any]) -> list[float] | None:
    """Count the tones that a rule found."""
    tones = [one["value"] for one in values if one["metric"] == "mean_tone" and one["group"] == row["group"]
             and alike(one["about"], row["about"])]  # fmt: skip
    return [sum(close(tone, number) for tone in tones) / len(tones) for number in TONES] if tones else None


def spread(metric: str, about: Mapping[str, Any], shares: Sequence[float]) -> float:
    """Give a share, or how far shares lie from a tenth."""
    if metric == "tone_share":
        return min(max(shares[int(about["tone"]) - 1], 0.0), 1.0)
    return deviation(shares) if metric == "tone_std" else distance(shares)


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Name the pictures, and the pool of people, and whether these put a rule right."""
    return row["model"], row["group"], row["about"].get("pool"), row["about"].get("labels")


def people_shares(tree: RunTree, stage: FinishedStage, rows: Rows, values: Rows) -> dict[tuple[Any, ...], list[float]]:
    """Count what people said, and put the shares of a rule right by what they said of the drawn pictures."""
    wanted = {key_of(row) for row in rows if row["metric"].startswith("tone_") and "pool" in row["about"]}
    drawn, said = tree.sources_of(stage, "audit_sample.parquet"), tree.sources_of(stage, "annotations.parquet")
    images, prompts = tree.sources_of(stage, "images.parquet"), tree.source(stage, "prompts")
    if not wanted or not said or not images or prompts is None:
        return {}
    asked = dict(pl.read_parquet(prompts).select("prompt_id", "group").iter_rows())
    made = pl.concat([pl.read_parquet(path).select("image_id", "model", "prompt_id", "status") for _, path in images])
    sample = {image for _, path in drawn for image in pl.read_parquet(path)["image_id"]}
    told = pl.read_parquet(said[0][1]).filter(criterion="monk_tone").to_dicts()
    rule = {one["item"]: round(one["value"]) for one in values if one["metric"] == "mean_tone" and one["group"] is None
            and "pool" not in one["about"]}  # fmt: skip
    found = {}
    for model, group, pool, labels in wanted:
        every = [row["image_id"] for row in made.to_dicts() if row["model"] == model and row["status"] == "ok"
                 and row["prompt_id"] in asked and group in (None, asked[row["prompt_id"]])]  # fmt: skip
        people: dict[str, list[float]] = defaultdict(list)
        for row in told:
            if row["annotator_region"] == pool and (labels is None or row["item_id"] in sample):
                people[row["item_id"]] += [] if row["value"] is None else [row["value"]]
        if labels is None:
            seen = [image for image in every if people.get(image)]
            found[model, group, pool, labels] = [
                mean([people[image].count(tone) / len(people[image]) for image in seen]) for tone in TONES
            ]
        else:
            found[model, group, pool, labels] = put_right(every, rule, people)
    return found


def put_right(every: Sequence[str], rule: Mapping[str, int], people: Mapping[str, list[float]]) -> list[float]:
    """Add to what people say of their pictures what the rule says of all, less what it says of theirs."""
    seen = [image for image in every if image in people]
    said = {image: [people[image].count(tone) / max(1, len(people[image])) for tone in TONES] for image in seen}
    machine = {image: [float(rule.get(image) == tone) for tone in TONES] for image in every}
    y, f, everywhere = ([mean([table[image][tone - 1] for image in among]) for tone in TONES]
                        for table, among in ((said, seen), (machine, seen), (machine, every)))  # fmt: skip
    both = fsum((said[i][t] - y[t]) * (machine[i][t] - f[t]) for i in seen for t in range(len(TONES)))
    alone = fsum((machine[i][t] - f[t]) ** 2 for i in seen for t in range(len(TONES)))
    trust = min(max(both / alone, 0.0), 1.0) if alone > 0 else 0.0
    told = [float(y[t] + trust * (everywhere[t] - f[t])) for t in range(len(TONES))]
    return [one / fsum(told) for one in told]
