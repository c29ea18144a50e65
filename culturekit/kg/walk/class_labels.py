"""The names of the classes that candidates belong to, looked up in the graph they came from."""

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from culturekit.kg.graph_tables import GraphTables

__all__ = ["class_labels"]


def class_labels(graph: Path, candidates: Iterable[pl.DataFrame]) -> dict[str, str]:
    """Name the classes of candidates (their `p31` and `p279`) by QID; a class without a label is left out."""
    qids: set[str] = set()
    for frame in candidates:
        for column in ("p31", "p279"):
            qids.update(frame[column].explode(empty_as_null=False).unique())
    return GraphTables(graph).names(qids)
