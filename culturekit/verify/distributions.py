"""Distributions of labels, counted again from the matches."""

from collections import Counter
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.score_rows import close
from culturekit.verify.vendi import LEVELS, spelled

__all__ = ["check_distributions"]

CHECK = "distributions"


def check_distributions(tree: RunTree, ledger: Ledger) -> None:
    """Count every table of distributions again."""
    for stage in tree.of_kind("distribution"):
        with ledger.guarded(CHECK, stage.name):
            check_stage(tree, stage, ledger)


def check_stage(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Compare one table with the counts of nearest matches."""
    sources = [tree.source(stage, role) for role in stage.manifest.inputs]
    if None in sources:
        ledger.note(CHECK, stage.name, "its matches are not here")
        return
    nearest = [row for path in sources if path for row in pl.read_parquet(path).filter(pl.col("rank") == 1).to_dicts()]
    images: Counter[tuple[Any, ...]] = Counter()
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in nearest:
        for concept in {row["concept"], None}:
            images[row["model"], concept] += 1
            for level in LEVELS:
                counts[row["model"], concept, level, folded(row[level])] += 1
    table = pl.read_parquet(stage.folder / "distributions.parquet").to_dicts()
    for row in table:
        key = (row["model"], row["concept"], row["level"], folded(row["label"]))
        share = counts[key] / images[key[:2]] if images[key[:2]] else 0.0
        if counts[key] != row["images"] or not close(row["share"], share):
            ledger.broken(
                CHECK, f"{stage.name}/distributions.parquet", f"the count of {row['label']} of {row['model']} is wrong",
                expected=f"{counts[key]} images, {share}", found=f"{row['images']} images, {row['share']}",
            )  # fmt: skip
    ledger.count("shares of labels counted", len(table))


def folded(label: str | None) -> str | None:
    """Take differences of spelling out of a label."""
    return None if label is None else spelled(label)
