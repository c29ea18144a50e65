"""Stages run into folders, and tables stored, for tests of recipes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.core.digests import canonical_json
from culturekit.core.stage import Stage
from culturekit.core.table import Table
from culturekit.core.tables import write_table
from tests.conftest import stage_here

__all__ = ["built", "score", "scores_row", "stored", "texts"]


def built(stage: Stage, folder: Path) -> Path:
    """Run a stage into a folder."""
    return stage_here(stage, folder).folder


def stored(folder: Path, table: Table, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as a table in a folder of its own."""
    folder.mkdir(parents=True)
    return write_table(folder, table, pl.DataFrame(list(rows), schema=table.schema))


def scores_row(metric: str, **about: Any) -> dict[str, Any]:
    """Give a row of scores."""
    return {"metric": metric, "model": "m", "benchmark": "cultivate", "params": "{}", "value": 0.5, "n": 9,
            "unit": "share", **about}  # fmt: skip


def score(metric: str, value: float, group: str | None = None, model: str = "m", /, **params: Any) -> dict[str, Any]:
    """Give a row of scores with parameters."""
    return scores_row(metric, value=value, group=group, model=model, params=canonical_json(params).decode())


def texts(grid: Any) -> list[list[str]]:
    """Give what the cells of a table say."""
    return [[cell.text for cell in row] for row in grid.rows]
