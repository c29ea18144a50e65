"""From exports to tables: annotations, what they are about, checks, audits, and what was set aside."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import orjson
import polars as pl

from culturekit.annotate.answer_rows import annotation_rows
from culturekit.annotate.audit_answers import AUDIT, audits_of
from culturekit.annotate.care import check_rows, flags_of
from culturekit.annotate.export import PROJECT_FILE
from culturekit.annotate.exported_answers import ImportedAnswers, read_exports
from culturekit.annotate.exported_json import TaskRecord, read_export
from culturekit.annotate.scheme import Scheme
from culturekit.errors import IntegrityError
from culturekit.metrics.scoring.careful_answers import FLAGS
from culturekit.records.schemas import (
    ANNOTATION_CHECKS,
    ANNOTATION_KEY,
    ANNOTATIONS,
    AUDITS,
    QUARANTINE,
    RATED_ITEMS,
)
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, write_table

__all__ = ["import_answers"]


def import_answers(work: Work, project: Path, exports: Sequence[Path], *, pool: str | None) -> Outcome:
    """Import the exports of a project.

    Args:
        work: where to write.
        project: the folder that the export of the tasks wrote.
        exports: JSON files of Label Studio or of the form.
        pool: the name of the pool that audits come from; the region of each annotator, without it.
    """
    name, scheme, key = read_project(project)
    taken = read_exports(records_of(exports), key, name, scheme)
    checks = check_rows(taken.good, scheme)
    flags = flags_of(taken.good, checks, scheme)
    items = [(pair, flagged) for pair, flagged in zip(taken.good, flags, strict=True) if pair[1]["kind"] == "item"]
    rows = [row for (answered, about), flagged in items for row in annotation_rows(answered, about, scheme, flagged)]
    tables = [
        (ANNOTATIONS, pl.DataFrame(rows, schema=ANNOTATIONS.schema)),
        (ANNOTATION_CHECKS, pl.DataFrame(checks, schema=ANNOTATION_CHECKS.schema)),
        (RATED_ITEMS, rated_items(key)),
        (QUARANTINE, taken.quarantine_table),
    ]
    drops = Counter(taken.skipped)
    notes: dict[str, object] = {"slots": slots(key, taken), "flagged": dict(sorted(flag_counts(items).items()))}
    if scheme.name == AUDIT:
        asked = [each for each in zip(taken.good, flags, strict=True) if each[0][1]["kind"] in {"item", "gold"}]
        kept = [pair for pair, flagged in asked if not set(flagged) & set(FLAGS)]
        drops["flagged, and not in the audits"] = len(asked) - len(kept)
        said = audits_of(kept, scheme, pool)
        drawing = orjson.loads((project / PROJECT_FILE).read_bytes()).get("drawing")
        tables.append((AUDITS, said.with_columns(drawing=pl.lit(drawing)) if drawing else said))
        notes["audits_without_country"] = said.filter(~pl.col("none_of_these"), pl.col("country").is_null()).height
    notes["answers"] = {one.name: list(one.fixed_values) for one in scheme.criteria if one.fixed_values}
    for table, frame in tables:
        write_table(work.out, table, frame)
    counts = {table.name: frame.height for table, frame in tables}
    if taken.quarantine:
        notes["findings"] = [f"{taken.set_aside:,} annotations in {QUARANTINE.name}.parquet ({reasons(taken)})"]
        drops |= Counter({"in quarantine": taken.set_aside})
    return Outcome(counts, +drops, notes)


def read_project(project: Path) -> tuple[str, Scheme, pl.DataFrame]:
    """Read the name, the scheme and the key of a project."""
    path = project / PROJECT_FILE
    try:
        record = orjson.loads(path.read_bytes())
        name, scheme = str(record["project"]), Scheme.model_validate(record["scheme"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(
            "not the project of an annotation", where=str(path), expected="the folder that `annotate export` wrote",
            found=str(error)[:300],
        ) from error  # fmt: skip
    return name, scheme, read_table(project / f"{ANNOTATION_KEY.name}.parquet", ANNOTATION_KEY)


def records_of(exports: Sequence[Path]) -> list[TaskRecord]:
    """Read all exports; files of one name are told apart by their number."""
    names = Counter(path.name for path in exports)
    records = []
    for number, path in enumerate(exports, start=1):
        for record in read_export(path):
            name = record.file if names[path.name] == 1 else f"{number}:{record.file}"
            records.append(TaskRecord(name, record.number, record.value))
    return records


def rated_items(key: pl.DataFrame) -> pl.DataFrame:
    """Say what the items of a project are."""
    return key.filter(kind="item").select(list(RATED_ITEMS.schema)).unique("item_id", keep="first", maintain_order=True)


def slots(key: pl.DataFrame, taken: ImportedAnswers) -> dict[str, int]:
    """Count the slots of the items, and how many of them were filled."""
    wanted = {row["task"]: row["slots"] for row in key.filter(kind="item").iter_rows(named=True)}
    found = Counter(row["task"] for _, row in taken.good if row["kind"] == "item")
    return {
        "wanted": sum(wanted.values()),
        "filled": sum(min(found[task], count) for task, count in wanted.items()),
        "beyond": sum(max(found[task] - count, 0) for task, count in wanted.items()),
    }


def flag_counts(items: Sequence[tuple[object, Sequence[str]]]) -> Counter[str]:
    """Count the annotations that have each flag."""
    return Counter(flag for _, flagged in items for flag in flagged if flag in FLAGS)


def reasons(taken: ImportedAnswers) -> str:
    """Say why, the most frequent reason first."""
    counts = Counter(row["reason"] for row in taken.quarantine)
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items(), key=lambda x: (-x[1], x[0])))
