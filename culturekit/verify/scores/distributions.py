"""Distributions of labels, counted again from the matches."""

import math
from collections import Counter, defaultdict
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import wilson
from culturekit.verify.scores.score_rows import close
from culturekit.verify.scores.student import t_quantile
from culturekit.verify.scores.vendi import LEVELS, spelled

__all__ = ["check_distributions"]

CHECK = "distributions"
FEWEST_BATCHES = 20
CONFIDENCE = 0.95


def check_distributions(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Compare a table of distributions with the counts of nearest matches."""
    sources = [tree.source(stage, role) for role in stage.manifest.inputs]
    if None in sources:
        ledger.note(CHECK, stage.name, "its matches are not here")
        return
    nearest = [row for path in sources if path for row in pl.read_parquet(path).filter(pl.col("rank") == 1).to_dicts()]
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
