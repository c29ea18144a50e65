"""Shares of labels, and means of values, by one plain rule.

What the values themselves are made from (vectors of a model, answers of a judge, ratings) is not worked out again, so
that such a score is consistent at best.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import mean, wilson
from culturekit.verify.scores.diversity_scores import NAMES
from culturekit.verify.scores.score_rows import close, wrong_row
from culturekit.verify.scores.student import t_quantile
from culturekit.verify.scores.vendi import LEVELS, spelled

__all__ = ["CONFIDENCE", "check_distributions", "check_means", "check_nothing_known"]

CHECK = "distributions"
FEWEST_BATCHES = 20
CONFIDENCE = 0.95


def check_distributions(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Compare a table of distributions with the counts of nearest matches."""
    sources = tree.inputs_of(stage)
    if sources is None:
        ledger.note(CHECK, stage.name, "its matches are not here")
        return
    tables = [pl.read_parquet(path).filter(pl.col("rank") == 1) for path in sources.values()]
    nearest = [row for one in tables for row in one.to_dicts()]
    batches: defaultdict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    shown: defaultdict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for row in nearest:
        batch = row["image_id"] if row["prompt_id"] is None else f"{row['prompt_id']}\n{row['repeat']}"
        for concept in {row["concept"], None}:
            batches[row["model"], concept][batch] += 1
            for level in LEVELS:
                shown[row["model"], concept, level, folded(row[level])][batch] += 1
    table = pl.read_parquet(stage.folder / "distributions.parquet").to_dicts()
    for row in table:
        key = (row["model"], row["concept"], row["level"], folded(row["label"]))
        images, count = batches[key[:2]].total(), shown[key].total()
        share = count / images if images else 0.0
        low, high = limits(shown[key], batches[key[:2]]) if count else (None, None)
        agrees = count == row["images"] and close(row["share"], share)
        if not agrees or not same(row["ci_low"], low) or not same(row["ci_high"], high):
            ledger.broken(
                CHECK, f"{stage.name}/distributions.parquet", f"the count of {row['label']} of {row['model']} is wrong",
                expected=f"{count} images, {share}, limits {low} and {high}",
                found=f"{row['images']} images, {row['share']}, limits {row['ci_low']} and {row['ci_high']}",
            )  # fmt: skip
    ledger.count("shares of labels counted", len(table))


def limits(shown: Counter[str], batches: Counter[str]) -> tuple[float | None, float | None]:
    """Give Wilson's limits at as many independent images as would scatter as the batches do."""
    n, k = batches.total(), len(batches)
    if k < FEWEST_BATCHES:
        return None, None
    share = shown.total() / n
    spread = math.fsum((found - batches[batch] * share) ** 2 for batch, found in shown.items())
    spread += share**2 * sum(size**2 for batch, size in batches.items() if batch not in shown)
    variance = k / (k - 1) * spread / n**2
    worth = share * (1 - share) / variance if variance > 0 and 0 < share < 1 else float(k)
    worth = min(worth, float(n))
    return wilson(share, worth, t_quantile(k - 1, CONFIDENCE))


def same(found: float | None, expected: float | None) -> bool:
    """Compare two limits, one of which may be missing."""
    return found is expected if found is None or expected is None else close(found, expected)


def folded(label: str | None) -> str | None:
    """Take differences of spelling out of a label."""
    return None if label is None else spelled(label)


Values = list[tuple[str, str, float]]
"""Country, prompt and value of items."""

MEANS = frozenset(
    (
        "align", "appeal_in_manifold", "appeal_with_similarity", "c3", "c3_image", "c3_object", "c3_text",
        "clip_score", "closer_choice_rate", "ddiv", "dialect_score", "empty", "exag", "faith", "hal", "in_region_rate",
        "mean_tone", "neutral_similarity", "object_clip_score", "object_presence", "object_seen", "question_share",
        "rating_mean", "region_clip_score", "region_recognised", "sdiv", "theme_share",
    )
)  # fmt: skip
"""Metrics that are means of the values beside them."""

OF_ITEMS = "the mean of its values"
OF_PROMPTS = "the mean of its values over prompts"
OF_COUNTRIES = "the mean of its values over prompts and countries"
OTHER = "what it is made from is not a mean of the values beside it, and nothing here works this metric out"
NO_VALUES = "no values stand beside it, and nothing here works this metric out"


def check_means(stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Compare scores that nothing else looked at with the means of their values."""
    judged = {verdict.row for verdict in ledger.verdicts if verdict.folder == stage.name}
    own, by_place = read_values(stage.folder / "values.parquet")
    for row in rows:
        if row["row"] in judged:
            continue
        if not in_order(row):
            judge_disorder(stage.name, row, ledger)
            continue
        values = own.get(tuple(row[name] for name in NAMES))
        if values is None and row["country"] is None:
            values = by_place.get((row["metric"], row["model"], row["benchmark"], row["concept"]), [])
            values = in_group(values, row["group"], stage.manifest.options.get("groups"))
        if not values:
            ledger.judge(stage.name, row, "not verifiable", NO_VALUES)
            continue
        judge_mean(stage.name, row, values, ledger)


def check_nothing_known(stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger, *, why: str) -> None:
    """Say of the scores of a stage without a check that nothing recomputes them, and why."""
    for row in rows:
        if in_order(row):
            ledger.judge(stage.name, row, "not verifiable", why)
        else:
            judge_disorder(stage.name, row, ledger)


def judge_disorder(folder: str, row: dict[str, Any], ledger: Ledger) -> None:
    """Say that the limits of a score cannot be."""
    limits = f"{row['ci_low']} to {row['ci_high']}"
    wrong_row(folder, row, "the value lies outside its interval", expected=limits, found=row["value"], ledger=ledger)
    ledger.judge(folder, row, "wrong", "the value against its interval")


def judge_mean(folder: str, row: dict[str, Any], values: Values, ledger: Ledger) -> None:
    """Say which mean of its values a score is; a metric that is one by its formula has to be one."""
    found = dict(means_of(values))
    how = next((how for how, mean_value in found.items() if close(row["value"], mean_value)), None)
    if how is None and row["metric"] in MEANS:
        wrong_row(
            folder, row, "the value is not the mean of the values behind it", expected=found[OF_COUNTRIES],
            found=row["value"], ledger=ledger,
        )  # fmt: skip
        ledger.judge(folder, row, "wrong", OF_COUNTRIES)
        return
    ledger.judge(folder, row, "consistent" if how else "not verifiable", how or OTHER)


def in_group(values: Values, group: str | None, groups: object) -> Values:
    """Keep the values of the countries of a group; all where a score is of none."""
    if group is None:
        return values
    members = dict(groups) if isinstance(groups, Mapping) else {}
    return [one for one in values if members.get(one[0]) == group]


def in_order(row: Mapping[str, Any]) -> bool:
    """Tell whether the limits lie in order; intervals of a correction of bias may leave the plain value out."""
    low, high = row["ci_low"], row["ci_high"]
    return low is None or high is None or math.isnan(low) or math.isnan(high) or low <= high or close(low, high)


def read_values(path: Path) -> tuple[dict[tuple[Any, ...], Values], dict[tuple[Any, ...], Values]]:
    """Read values under the score that they went into, and those of countries under the score of all."""
    own: dict[tuple[Any, ...], Values] = {}
    placed: dict[tuple[Any, ...], Values] = {}
    if not path.is_file():
        return own, placed
    for row in pl.read_parquet(path).iter_rows(named=True):
        if row["value"] is None or not math.isfinite(row["value"]):
            continue
        item = (row["country"] or "", row["prompt_id"] or row["item"], float(row["value"]))
        own.setdefault(tuple(row[name] for name in NAMES), []).append(item)
        if row["country"] is not None:
            key = (row["metric"], row["model"], row["benchmark"], row["concept"])
            placed.setdefault(key, []).append(item)
    return own, placed


def means_of(values: Values) -> Iterator[tuple[str, float]]:
    """Give the means that a score can be."""
    yield OF_ITEMS, mean([value for *_, value in values]).value
    countries: dict[str, dict[str, list[float]]] = {}
    for country, prompt, value in values:
        countries.setdefault(country, {}).setdefault(prompt, []).append(value)
    prompts = {country: [mean(members).value for members in own.values()] for country, own in countries.items()}
    yield OF_PROMPTS, mean([one for own in prompts.values() for one in own]).value
    yield OF_COUNTRIES, mean([mean(own).value for own in prompts.values()]).value
