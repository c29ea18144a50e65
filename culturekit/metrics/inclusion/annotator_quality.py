"""Annotators who do not see the object in photographs of it: they misread the task, cell by cell."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.metrics.arguments import argument_error
from culturekit.metrics.inclusion.region_rates import check_columns
from culturekit.metrics.inclusion.task2_files import REAL

__all__ = ["CELL", "LEAST_ACCURACY", "Reliable", "drop_unreliable", "real_sightings"]

LEAST_ACCURACY = 0.9
"""The share of photographs in which an annotator must see the object."""

CELL = ("object", "region")
"""Annotators are judged, and left out, within each of these."""


@dataclass(frozen=True, slots=True)
class Reliable:
    """What is left of annotations.

    Attributes:
        annotations: those kept, in their order.
        cells: annotator_id, object, region, accuracy, photographs, kept: one row per annotator and cell judged.
        unchecked: annotations kept although their annotator saw no photograph in the cell.
    """

    annotations: pl.DataFrame
    cells: pl.DataFrame
    unchecked: int


def drop_unreliable(task: pl.DataFrame, *, least: float = LEAST_ACCURACY, cell: Sequence[str] = CELL) -> Reliable:
    """Leave out, cell by cell, all annotations of those who see the object in too few photographs of it.

    Args:
        task: conforms to TASK1 or TASK2.
        least: the accuracy to reach; whoever reaches it exactly stays.
        cell: the columns within which annotators are judged.

    Raises:
        UsageError: a column is missing, or `least` is not a share.
    """
    if not 0 <= least <= 1:
        raise argument_error("least", "from 0 to 1", least)
    check_columns("task", task, ("annotator_id", *cell))
    check_sources(task)
    keys = ["annotator_id", *cell]
    cells = (
        real_sightings(task)
        .group_by(keys)
        .agg(accuracy=pl.col("seen").cast(pl.Float64).mean(), photographs=pl.len().cast(pl.UInt64))
        .with_columns(kept=pl.col("accuracy") >= least)
        .sort(keys, nulls_last=True)
    )
    judged = task.join(cells.select(*keys, "kept"), on=keys, how="left", nulls_equal=True, maintain_order="left")
    unchecked = judged["kept"].null_count()
    return Reliable(judged.filter(pl.col("kept").fill_null(value=True)).drop("kept"), cells, unchecked)


def check_sources(task: pl.DataFrame) -> None:
    """Refuse photographs under another spelling: they would be a model's, and check nobody."""
    for column in (name for name in ("source", "reference_source") if name in task.columns):
        strange = [name for name in task[column].unique().sort() if name.strip().casefold() == REAL != name]
        if strange:
            raise argument_error(column, f"{REAL!r} for photographs", strange[0])


def real_sightings(task: pl.DataFrame) -> pl.DataFrame:
    """Write one row per photograph that an annotator was asked about, and whether they `seen` the object in it."""
    if "shown" in task.columns and task.schema["shown"] == pl.Boolean:
        check_columns("task", task, ("source",))
        return task.filter(pl.col("source") == REAL).with_columns(seen=pl.col("shown"))
    check_columns("task", task, ("shown", "reference_source", "source", "reference_id", "first_id", "second_id"))
    asked = task.filter(pl.col("shown").is_not_null())
    places = {"reference_id": "reference_source", "first_id": "source", "second_id": "source"}
    return pl.concat(
        asked.filter(pl.col(source) == REAL).with_columns(seen=pl.col("shown").list.contains(pl.col(place)))
        for place, source in places.items()
    )
