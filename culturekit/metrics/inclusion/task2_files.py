"""The public file of Task 2: what people of several regions saw in single images."""

import ast
import fnmatch
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.core.errors import UsageError, argument_error
from culturekit.core.schemas import DROPS, TASK2
from culturekit.core.spreadsheet_cells import read_sheet
from culturekit.metrics.inclusion.region_rates import NO_REGION, NOWHERE, REGION_CODES, check_columns, region_code

logger = logging.getLogger(__name__)

REAL = "real"  # The source of images that are photographs

COLUMNS = ("img_path", "object", "region", "annotator_id", "annotator_loc", "annotation_result")

MATCHES = {"ym": True, "nm": False}
LONGEST_RESULT = 5_000  # Characters of an answer; one that ticks all of forty regions twice has fewer than 2,000


@dataclass(frozen=True, slots=True)
class Task2File:
    """A file of Task 2.

    Attributes:
        annotations: conforms to TASK2.
        drops: conforms to DROPS: the rows that could not be read, each with its line and the reason.
    """

    annotations: pl.DataFrame
    drops: pl.DataFrame


def read_task2(path: Path | str) -> pl.DataFrame:
    """Read the annotations of Task 2 in the public layout; see `read_task2_file` for the rows left out.

    The layout is CSV: `img_path, object, region, annotator_id, annotator_loc, annotation_result`, the last a Python
    dictionary with `match` (`ym` the object is shown, `nm` it is not), `obj` and `geo`: lists of `af`, `eu`, `sea` (or
    `na`) that name the regions the object, and the background, could be from, other regions by their letters, such as
    `americas`. With `nm` there is no `obj`. A column
    `source` may say which model made an image; without it all images are real.

    Returns:
        Conforms to TASK2, in the order of the file. An image whose prompt named no region has none.

    Raises:
        UsageError: there is no such file, or it lacks columns.
    """
    file = read_task2_file(path)
    if file.drops.height:
        first = file.drops.row(0, named=True)
        logger.warning(
            "%s: %d rows are left out; the first is %s: %s", path, file.drops.height, first["key"], first["reason"]
        )
    return file.annotations


def read_task2_file(path: Path | str, *, sources: Mapping[str, str] | None = None) -> Task2File:
    """Read the same with the rows that could not be read.

    Args:
        path: of the file.
        sources: source -> a pattern of `img_path`, such as `{"ldm": "ldm21/*"}`; the first that fits counts, and what
            fits none is real. Not together with a column `source`. A pattern that fits no image is refused.
    """
    rows: list[dict[str, Any]] = []
    drops: list[dict[str, Any]] = []
    seen: set[tuple[str, ...]] = set()
    parsed = [(line, fields, *parse_row(fields)) for line, fields in numbered_rows(Path(path), sources or {})]
    places = {row[name] for _, _, row, _ in parsed if row for name in ("region", "annotator_loc") if row[name]}
    known = {NOWHERE, *REGION_CODES.values(), *map(region_code, places)}
    for line, fields, row, reason in parsed:
        if row is not None and not known.issuperset(row["object_regions"] + row["background_regions"]):
            row, reason = None, "malformed: obj or geo ticks a region that no image and nobody is of"
        if row is not None:
            key = tuple(str(row[name]) for name in TASK2.key)
            reason = "repeats an annotation" if key in seen else ""
            seen.add(key)
        if row is None or reason:
            detail = str(fields.get("annotation_result"))[:80]
            drops.append({"key": f"line {line}", "stage": "task2", "reason": reason, "detail": detail})
        else:
            rows.append(row)
    idle = sorted(set(sources or {}) - {row["source"] for row in rows})
    if idle and rows:
        raise UsageError(
            "a source has no image", where=str(path), found=f"{idle[0]} as {(sources or {})[idle[0]]!r}",
            expected=f"patterns that fit paths such as {rows[0]['img_path']!r}",
            hint="What fits no pattern would count as photographs.",
        )  # fmt: skip
    return Task2File(pl.DataFrame(rows, schema=TASK2.schema), pl.DataFrame(drops, schema=DROPS.schema))


def check_layout(name: str) -> str:
    """Accept a file that has the columns of the public layout, and a row that can be read."""
    reasons = [parse_row(fields)[1] for _, fields in numbered_rows(Path(name), {})]
    if not reasons or all(reasons):
        raise UsageError("no row can be read", where=name, found=reasons[0] if reasons else "no rows")
    return name


def numbered_rows(path: Path, sources: Mapping[str, str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of the file with the line each begins on, and their source."""
    for row in read_sheet(path, COLUMNS):
        if sources and "source" in row.cells:
            raise argument_error("sources", "left out where the file has a column source", dict(sources))
        yield row.line, {**row.cells, "source": row.cells.get("source") or source_of(row.cells["img_path"], sources)}


def source_of(path: str, sources: Mapping[str, str]) -> str:
    """Tell who made an image by its path."""
    return next((source for source, pattern in sources.items() if fnmatch.fnmatchcase(path, pattern)), REAL)


def parse_row(fields: Mapping[str, str | None]) -> tuple[dict[str, Any] | None, str]:
    """Read one row, or say why it cannot be read."""
    absent = [name for name in COLUMNS if name != "region" and not (fields[name] or "").strip()]
    if absent:
        return None, f"malformed: {absent[0]} is empty"
    answer = parse_result(fields["annotation_result"] or "")
    if isinstance(answer, str):
        return None, answer
    region = (fields["region"] or "").strip()
    for name, region_name in (("region", region), ("annotator_loc", fields["annotator_loc"] or "")):
        if region_code(region_name) is None and not (name == "region" and region.casefold() in NO_REGION):
            return None, f"malformed: {name} is no name of a region"
    shown, of_object, of_background = answer
    texts = {name: (fields[name] or "").strip() for name in ("img_path", "object", "annotator_id", "annotator_loc")}
    return {
        **texts,
        "region": None if region.casefold() in NO_REGION else region,
        "shown": shown,
        "object_regions": list(of_object),
        "background_regions": list(of_background),
        "source": fields["source"],
    }, ""


@lru_cache(maxsize=4096)
def parse_result(text: str) -> tuple[bool, tuple[str, ...], tuple[str, ...]] | str:
    """Read an answer: whether the object is shown, the object's regions and the background's; or why it is none.

    Only a literal is read: names, calls and operators are refused, and so is whatever is too long to be an answer.
    """
    if len(text) > LONGEST_RESULT:
        return "malformed: the answer is too long"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return "malformed: the answer is not a dictionary of texts and lists"
    if not isinstance(answer, dict) or not {"match"} <= answer.keys() <= {"match", "obj", "geo"}:
        return "malformed: the answer is not a dictionary with match, obj and geo"
    match = answer["match"]
    match = match[0] if isinstance(match, list) and len(match) == 1 else match
    if not isinstance(match, str) or match not in MATCHES:
        return "malformed: match is neither ym nor nm"
    places = [ticked(answer.get(name)) for name in ("obj", "geo")]
    if places[0] is None or places[1] is None:
        return "malformed: obj or geo is not a list of codes such as af, eu, sea, na"
    if MATCHES[match] and not ({"obj", "geo"} <= answer.keys()):
        return "malformed: the object is shown, and obj or geo is missing"
    return MATCHES[match], places[0], places[1]


def ticked(value: object) -> tuple[str, ...] | None:
    """Read the regions that were ticked, each once; None where it is no list of them."""
    items = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return None
    if any(item != NOWHERE and region_code(item) != item for item in items):
        return None
    return tuple(dict.fromkeys(items))


# Annotators who do not see the object in photographs of it: they misread the task, cell by cell.

LEAST_ACCURACY = 0.9  # The share of photographs in which an annotator must see the object

CELL = ("object", "region")  # Annotators are judged, and left out, within each of these


@dataclass(frozen=True, slots=True)
class Reliable:
    """What is left of annotations."""

    annotations: pl.DataFrame  # those kept, in their order
    # annotator_id, object, region, accuracy, photographs, kept: one row per annotator and cell judged
    cells: pl.DataFrame
    unchecked: int  # annotations kept although their annotator saw no photograph in the cell


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


def real_sightings(task: pl.DataFrame) -> pl.DataFrame:
    """Write one row per photograph that an annotator was asked about, and whether they `seen` the object in it.

    Of a triplet those that are compared count, as in the paper, and not what they are compared with.
    """
    if "shown" in task.columns and task.schema["shown"] == pl.Boolean:
        check_columns("task", task, ("source",))
        return task.filter(pl.col("source") == REAL).with_columns(seen=pl.col("shown"))
    check_columns("task", task, ("shown", "source", "first_id", "second_id"))
    asked = task.filter(pl.col("source") == REAL, pl.col("shown").is_not_null())
    return pl.concat(
        asked.with_columns(seen=pl.col("shown").list.contains(pl.col(column))) for column in ("first_id", "second_id")
    )
