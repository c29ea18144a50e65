"""The stage that makes tables of what people said, and the files it reads."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.annotate.aggregate import AggregateOptions, aggregate_answers, careful, values_of_quality
from culturekit.annotate.inclusion_tables import (
    TASK1_SCHEME,
    TASK2_SCHEME,
    public_task2,
    task1_table,
    task2_table,
)
from culturekit.annotate.items import read_rows
from culturekit.annotate.set_aside import set_aside
from culturekit.errors import UsageError
from culturekit.families.handles.form_answers import read_answers
from culturekit.families.handles.public_files import roles
from culturekit.metrics.scoring.image_collections import quality_by_scorer
from culturekit.records.schemas import (
    ANNOTATION_CHECKS,
    ANNOTATIONS,
    QUALITY,
    QUARANTINE,
    RATED_ITEMS,
    TASK1,
    TASK2,
    VALUES,
)
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import StageCommand
from culturekit.storage.atomic import write_atomically
from culturekit.storage.tables import read_table, read_together, write_table

__all__ = ["AGGREGATE", "AggregateFiles", "AggregateReads", "aggregate_stage", "tasks_stage"]


@dataclass(frozen=True, slots=True)
class AggregateReads:
    """Answers that were imported, and what is held against them."""

    annotations: Annotated[Path, Field(description="What `annotate import` took in.")]
    items: Annotated[
        Path | None, Field(description="What the items are. [rated_items.parquet beside the annotations]")
    ] = None
    values: Annotated[Sequence[Path], Field(description="Values of metrics to hold against people; repeatable.")] = ()
    quality: Annotated[
        Sequence[Path], Field(description="Scores of single images to hold against people; repeatable.")
    ] = ()
    made_from: Annotated[
        Path | None,
        Field(description="The table that `annotate export --items` was given; writes task1.parquet or task2.parquet."),
    ] = None


@dataclass(frozen=True, slots=True)
class AggregateFiles(AggregateReads):
    """All files that tables of ratings are made of.

    Attributes:
        more: further tables of answers; what they are about lies beside each.
        quarantine: what importing set aside.
        checks: answers to attention checks and to items asked again.
    """

    more: Sequence[Path] = ()
    quarantine: Sequence[Path] = ()
    checks: Sequence[Path] = ()

    @classmethod
    def beside(cls, given: AggregateReads, *, more: Sequence[Path] = ()) -> "AggregateFiles":
        """Name the files of answers that were imported before, with what lies beside them now."""
        folders = [path.parent for path in (given.annotations, *more)]
        aside, checks = (
            [folder / f"{table.name}.parquet" for folder in folders if (folder / f"{table.name}.parquet").is_file()]
            for table in (QUARANTINE, ANNOTATION_CHECKS)
        )
        return cls(given.annotations, given.items, given.values, given.quality, given.made_from, more, aside, checks)

    @property
    def about(self) -> Path:
        """Where the items are told."""
        return self.items or items_beside(self.annotations)

    @property
    def inputs(self) -> dict[str, Path]:
        """Every file by its role."""
        given = {"annotations": self.annotations, "items": self.about}
        if self.made_from is not None:
            given["made-from"] = self.made_from
        others = {
            "more": self.more,
            "more-items": [items_beside(path) for path in self.more],
            "quarantine": self.quarantine,
            "checks": self.checks,
            "values": self.values,
            "quality": self.quality,
        }
        return given | {role: path for kind, paths in others.items() for role, path in roles(kind, paths).items()}


def items_beside(annotations: Path) -> Path:
    """Name the table that says what answers are about."""
    return annotations.parent / f"{RATED_ITEMS.name}.parquet"


def aggregate_stage(files: AggregateFiles, options: AggregateOptions) -> Stage:
    """Make the tables of what people said."""

    def run(work: Work) -> Outcome:
        items = all_items([files.about, *(items_beside(path) for path in files.more)])
        metrics = [read_together(files.values, VALUES)] if files.values else []
        if files.quality:
            quality = read_together(files.quality, QUALITY)
            quality_by_scorer(quality)  # refuses what is no quality
            metrics.append(values_of_quality(quality, items))
        values = pl.concat(metrics).sort(VALUES.key) if metrics else None
        answers = read_together([files.annotations, *files.more], ANNOTATIONS, read=read_answers).sort(ANNOTATIONS.key)
        aside = set_aside(
            [read_table(path, QUARANTINE) for path in files.quarantine],
            [read_table(path, ANNOTATION_CHECKS) for path in files.checks],
            answers,
        )
        done = aggregate_answers(work, answers, items, values, options, aside)
        return done if files.made_from is None else with_inclusion(work, done, items, read_rows(files.made_from))

    settings = asdict(options)
    seed = settings.pop("seed")
    if not settings["only"]:
        del settings["only"]
    packages = ("numpy", "polars", "scipy")
    return Stage(
        "people", "annotate-aggregate", 3, run, files.inputs, settings, {"resampling": seed}, packages=packages
    )


def aggregate_imported(given: AggregateReads, options: AggregateOptions) -> Stage:
    """Put answers together by model, concept and country.

    Ratings, shares, agreement, metrics against people.
    """
    return aggregate_stage(AggregateFiles.beside(given), options)


AGGREGATE = StageCommand(
    aggregate_imported, "--annotations rated/annotations.parquet --quality q/quality.parquet --out people"
)


def with_inclusion(work: Work, done: Outcome, items: pl.DataFrame, rows: pl.DataFrame) -> Outcome:
    """Write the answers that counted as tables of Task 1 and Task 2, where they are of those schemes."""
    tasks = write_tasks(work, read_table(work.out / f"{ANNOTATIONS.name}.parquet", ANNOTATIONS), items, rows)
    drops = {reason: count for reason, count in sorted({**done.drops, **tasks.drops}.items()) if count}
    return Outcome({**done.counts, **tasks.counts}, drops, done.notes)


def write_tasks(work: Work, kept: pl.DataFrame, items: pl.DataFrame, rows: pl.DataFrame) -> Outcome:
    """Write answers as tables of Task 1 and Task 2; `rows` is what the tasks were made of."""
    of_scheme = {scheme: kept.filter(scheme=scheme) for scheme in (TASK1_SCHEME, TASK2_SCHEME)}
    if all(part.is_empty() for part in of_scheme.values()):
        raise UsageError(
            "no answers are about geographic inclusion", expected=f"{TASK1_SCHEME} or {TASK2_SCHEME}",
            found=", ".join(kept["scheme"].unique().sort()), hint="Leave --made-from out.",
        )  # fmt: skip
    counts, drops = dict[str, int](), dict[str, int]()
    if of_scheme[TASK1_SCHEME].height:
        table, left_out = task1_table(of_scheme[TASK1_SCHEME], rows)
        write_table(work.out, TASK1, table)
        counts[TASK1.name], drops = table.height, {**drops, **left_out}
    if of_scheme[TASK2_SCHEME].height:
        table, left_out = task2_table(of_scheme[TASK2_SCHEME], items, rows)
        write_table(work.out, TASK2, table)
        write_atomically(work.out / "task2.csv", public_task2(table))
        counts[TASK2.name], drops = table.height, {**drops, **left_out}
    return Outcome(counts, drops)


def tasks_stage(annotations: Path, made_from: Path) -> Stage:
    """Make the tables of Task 1 and Task 2 of what careful people answered, and nothing else."""
    about = items_beside(annotations)

    def run(work: Work) -> Outcome:
        kept, flagged = careful(read_table(annotations, ANNOTATIONS), ())
        made = write_tasks(work, kept, read_table(about, RATED_ITEMS), read_rows(made_from))
        return Outcome(made.counts, {why: n for why, n in sorted({**flagged, **made.drops}.items()) if n})

    inputs = {"annotations": annotations, "items": about, "made-from": made_from}
    return Stage("tasks", "inclusion-tasks", 1, run, inputs, packages=("polars",))


def all_items(paths: Sequence[Path]) -> pl.DataFrame:
    """Read what items are; two tables may know the same item, if they say the same of it."""
    table = pl.concat([read_table(path, RATED_ITEMS) for path in paths]).unique().sort(RATED_ITEMS.key)
    repeated = table.filter(table["item_id"].is_duplicated())
    if repeated.height:
        raise UsageError("two tables say different things of one item", found=repr(repeated["item_id"][0]))
    return table
