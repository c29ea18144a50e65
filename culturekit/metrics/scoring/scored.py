"""What the scoring of a family of metrics gives: scores, and the values they are means of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from culturekit.records.schemas import SCORES, VALUES

__all__ = ["Row", "Scored", "scored"]

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores with intervals, and what they are made of.

    Attributes:
        scores: conforms to SCORES, in the order of its key.
        values: conforms to VALUES, in the order of its key; empty where no single items were scored.
        left_out: what did not enter a score, counted by reason.
    """

    scores: pl.DataFrame
    values: pl.DataFrame
    left_out: Mapping[str, int]


def scored(
    scores: Iterable[Row], values: Iterable[Row] | pl.DataFrame = (), *, left_out: Mapping[str, int] | None = None
) -> Scored:
    """Put rows into tables, in the order of their keys; a column that a row lacks is null."""
    score_table = pl.DataFrame(list(scores), schema=SCORES.schema, orient="row")
    value_table = values if isinstance(values, pl.DataFrame) else pl.DataFrame(list(values), schema=VALUES.schema)
    return Scored(
        score_table.sort(SCORES.key, maintain_order=True),
        value_table.select(list(VALUES.schema)).sort(VALUES.key, maintain_order=True),
        left_out or {},
    )
