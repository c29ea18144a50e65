"""From annotations of single images to in-region rates, consistency and agreement."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.core.declared import kept
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.errors import UsageError
from culturekit.core.inputs import roles_of
from culturekit.core.schemas import TASK2
from culturekit.core.stage import Stage
from culturekit.core.stage_command import Typed
from culturekit.core.tables import read_table, write_drops
from culturekit.core.work import Work
from culturekit.metrics.inclusion.region_rates import item_agreement, kappa_of, representation_answers, task2_answers
from culturekit.metrics.inclusion.task2_files import LEAST_ACCURACY, read_task2_file
from culturekit.metrics.statistics.intervals import Interval
from culturekit.scores.family import Confidence, Family, described, family_stage
from culturekit.scores.image_collections import checked
from culturekit.scores.inputs import name_and_value
from culturekit.scores.score_rows import Row, Scored, scored, statistic_row
from culturekit.scores.task1 import Least, agreement_rows, reliable_answers, share_rows

CELLS = ((), ("region",), ("object",), ("region", "object"))
"""By what images are parted, besides who made them; first all together."""


@dataclass(frozen=True, slots=True)
class Task2Reads:
    """What people saw in single images."""

    task2: Annotated[
        Path, Field(description="What people saw in single images: CSV in the public layout, or our table.")
    ]


@dataclass(frozen=True, slots=True)
class Task2Options:
    """What to score, and how."""

    sources: Annotated[
        tuple[tuple[str, str], ...],
        Field(description="MODEL=PATTERN of img_path, such as ldm=ldm21/*; what fits none is real. Repeatable."),
        Typed("source", partial(name_and_value, option="--source")),
    ] = ()
    least: Least = LEAST_ACCURACY
    confidence: Confidence = CONFIDENCE
    benchmark: str = "inclusion"


def task2(given: Task2Reads, options: Task2Options, *, name: str = "scores") -> Stage:
    """Score how often people see a region in its images.

    People in and out of it; consistency, and agreement.
    """
    known = {**kept(options), "sources": dict(options.sources)}
    run = partial(score, path=given.task2, options=options)
    return family_stage("task2", roles_of(given), known, run, version=2, name=name)


TASK_2 = Family(
    task2,
    metrics=described("in_region_rate location_agreement location_kappa location_unanimity object_seen"),
    example="--task2 task2_geode.csv --out scores",
)


def score(work: Work, path: Path, options: Task2Options) -> Scored:
    """Read, score, and list the rows that could not be read beside the scores."""
    if path.suffix == ".parquet":
        if options.sources:
            raise UsageError("a table of Task 2 says itself who made an image", where=str(path))
        return score_task2(read_table(path, TASK2), options=options)
    file = read_task2_file(path, sources=dict(options.sources))
    reasons = write_drops(work.out, file.drops) if file.drops.height else {}
    if file.drops.height and file.annotations.is_empty():
        first = file.drops.row(0, named=True)
        raise UsageError(
            "no row can be read", where=f"{path}, {first['key']}", expected="annotations in the public layout",
            found=f"{first['reason']}: {first['detail']}",
        )  # fmt: skip
    answer = score_task2(file.annotations, options=options)
    return Scored(answer.scores, answer.values, {**reasons, **answer.left_out})


def score_task2(annotations: pl.DataFrame, *, options: Task2Options) -> Scored:
    """Score in-region rates, object consistency and agreement, by who made the images, region and object.

    Regions stand in the column group, objects in the column concept, and who made the images (`real` for photographs)
    in the column model.

    Raises:
        UsageError: the table does not conform, or nothing is left of it.
    """
    reliable, left_out = reliable_answers(checked(annotations, TASK2), least=options.least)
    table = reliable.annotations
    left_out["annotators left out of an object and region"] = reliable.cells.filter(~pl.col("kept")).height
    left_out["annotations for rates without a region of their own"] = table["region"].null_count()
    rows: list[Row] = []
    values: list[pl.DataFrame] = []
    for cell in CELLS:
        for row, below in [*rate_rows(table, cell, options), *consistency_rows(table, cell, options)]:
            rows.append(row)
            values.append(below)
    rows += agreement_of_regions(table, options)
    return scored(rows, values, left_out=left_out)


def rate_rows(table: pl.DataFrame, cell: tuple[str, ...], options: Task2Options) -> Iterator[tuple[Row, pl.DataFrame]]:
    """Make the in-region rates of each cell."""
    answers = representation_answers(table, by=("source", *cell)).with_columns(yes="names")
    yield from share_rows("in_region_rate", answers, cell, ("side", "target"), options, image="img_path")


def consistency_rows(
    table: pl.DataFrame, cell: tuple[str, ...], options: Task2Options
) -> Iterator[tuple[Row, pl.DataFrame]]:
    """Make the object consistency of each cell, pool by pool."""
    answers = table.with_columns(yes="shown", pool="annotator_loc")
    yield from share_rows("object_seen", answers, cell, ("pool",), options, image="img_path")


def agreement_of_regions(table: pl.DataFrame, options: Task2Options) -> Iterator[Row]:
    """Make the agreement of annotators by source and region: all with each other, and pool by pool."""
    extra = {"least": options.least}
    for by in (("source", "region"), ("source", "region", "annotator_loc")):
        answers = task2_answers(table, by=by)
        items = item_agreement(answers, by=by, item="img_path", question="question").rename({"question": "criterion"})
        yield from agreement_rows(items, by, options.benchmark, options.confidence, extra)
        yield from kappa_rows(answers, items, by, options)


def kappa_rows(answers: pl.DataFrame, items: pl.DataFrame, by: tuple[str, ...], options: Task2Options) -> Iterator[Row]:
    """Make Fleiss' kappa where everybody, or one pool, is compared within itself."""
    keys = [*by, "criterion", "pairs"]
    inside = items.filter(pl.col("pairs") != "across")
    for cell in inside.group_by(keys).agg(n=pl.len()).sort(keys, nulls_last=True).iter_rows(named=True):
        kappa = kappa_of(answers, {**cell, "question": cell["criterion"]}, by)
        if kappa is None:
            continue
        params = {name: cell[name] for name in ("criterion", "pairs")}
        pool = {"pool": cell["annotator_loc"]} if "annotator_loc" in by else {}
        yield statistic_row(
            "location_kappa",
            model=cell["source"],
            benchmark=options.benchmark,
            answer=Interval(kappa, float("nan"), float("nan"), cell["n"], "these"),
            params={**params, **pool, "least": options.least, "no_interval": "kappa of a cell is given as it is"},
            group=cell["region"],
        )
