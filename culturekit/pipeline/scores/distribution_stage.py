"""The stage that counts what images show."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from culturekit.metrics.scoring.label_distributions import label_distributions
from culturekit.records.schemas import DISTRIBUTIONS, MATCHES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table, write_table

__all__ = ["distribution_stage"]


def distribution_stage(matches: Sequence[Path], *, name: str = "distributions") -> Stage:
    """Count the labels of the nearest matches, level by level."""
    inputs = {"matches" if len(matches) == 1 else f"matches-{number}": path for number, path in enumerate(matches)}
    return Stage(name, "distribution", 1, lambda work: count(work, matches), inputs, packages=("numpy", "polars"))


def count(work: Work, matches: Sequence[Path]) -> Outcome:
    """Read, count and write."""
    table = label_distributions(pl.concat([read_table(path, MATCHES) for path in matches]))
    write_table(work.out, DISTRIBUTIONS, table)
    return Outcome({"distributions": table.height})
