"""Captions from files of any usual kind, and how many, how long and how full of objects they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.index.embedding.embed_table import opened
from culturekit.records.schemas import CAPTION_STATS, DROPS, OBJECTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, write_table

__all__ = ["EMPTY", "NO_OBJECT", "CaptionsToCount", "CaptionsToRead", "count_captions", "drops_of", "read_captions"]

IDS, TEXTS = ("id", "caption_id", "item", "image_id"), ("text", "caption")
EMPTY, NO_OBJECT = "empty caption", "no object"
EVERY = "all"


class CocoCaption(msgspec.Struct, frozen=True):
    """A caption of a COCO file."""

    id: int
    caption: str


class CocoFile(msgspec.Struct, frozen=True):
    """As much of a COCO file of captions as is read."""

    annotations: list[CocoCaption]


CaptionsToRead = Annotated[
    Path,
    Field(
        description="Captions: a table with id and text or caption, and category where there is one (Parquet, CSV, "
        "JSON lines), COCO's JSON, or a text file with one a line."
    ),
]


@dataclass(frozen=True, slots=True)
class CaptionsToCount:
    """Captions, and the objects that they name."""

    captions: CaptionsToRead
    objects: Annotated[
        Path | None, Field(description="Table that `captions objects` wrote about these captions. [none are counted]")
    ] = None


def read_captions(path: Path) -> pl.DataFrame:
    """Read captions as id, text and category, in their order; those that are empty have none."""
    if path.suffix.lower() == ".txt" and path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines()
        found = pl.DataFrame({"id": [str(number) for number in range(1, len(lines) + 1)], "text": lines})
    elif path.suffix.lower() == ".json" and path.is_file():
        found = coco_captions(path)
    else:
        found = opened(path)
    key, text = column(path, found, IDS), column(path, found, TEXTS)
    category = pl.col("category") if "category" in found.columns else pl.lit(None)
    texts = pl.col(text).cast(pl.String).str.strip_chars()
    captions = found.select(
        pl.col(key).cast(pl.String).alias("id"),
        pl.when(texts != "").then(texts).alias("text"),
        category.cast(pl.String).alias("category"),
    )
    if captions.is_empty():
        raise UsageError("there is no caption", where=str(path))
    wrong = captions.filter(pl.col("id").is_duplicated() | pl.col("id").is_null())["id"]
    if len(wrong):
        raise UsageError(
            "captions have one id each",
            where=f"{path}, column {key}",
            found=f"{wrong[0]!r} and {len(wrong) - 1:,} more",
        )
    return captions


def coco_captions(path: Path) -> pl.DataFrame:
    """Read a COCO file."""
    try:
        read = msgspec.json.decode(path.read_bytes(), type=CocoFile)
    except msgspec.DecodeError as error:
        raise UsageError(
            "this is no file of captions",
            where=str(path),
            found=str(error),
            expected="annotations, each id and caption",
        ) from error
    return pl.DataFrame({"id": [one.id for one in read.annotations], "text": [one.caption for one in read.annotations]})


def column(path: Path, found: pl.DataFrame, names: Sequence[str]) -> str:
    """Find the first of some columns that a table has."""
    there = next((name for name in names if name in found.columns), None)
    if there is None:
        raise UsageError(
            "the captions lack a column", where=str(path), expected=" or ".join(names), found=", ".join(found.columns)
        )
    return there


def drops_of(rows: Sequence[tuple[str, str, str | None]], stage: str) -> pl.DataFrame:
    """Write down key, reason and detail of what was left out."""
    dropped: list[dict[str, Any]] = [
        {"key": key, "concept": None, "stage": stage, "reason": reason, "detail": detail}
        for key, reason, detail in rows
    ]
    return pl.DataFrame(dropped, schema=DROPS.schema)


def count_captions(work: Work, given: CaptionsToCount) -> Outcome:
    """Count captions, their words and their objects, by category of error and in all."""
    every = read_captions(given.captions)
    empty = every.filter(pl.col("text").is_null())
    captions = every.drop_nulls("text").with_columns(
        words=pl.col("text").str.count_matches(r"\S*[\p{L}\p{N}]\S*").cast(pl.UInt32)
    )
    known = (
        pl.DataFrame(schema={"id": pl.String, "objects": pl.UInt32})
        if given.objects is None
        else counted(given.objects)
    )
    captions = captions.join(known, on="id", how="left")
    if given.objects is not None and captions["objects"].null_count() == captions.height:
        raise UsageError("the objects are of no caption that is counted", where=str(given.objects))
    of_all = captions.with_columns(category=pl.lit(EVERY))
    table = (
        pl.concat([of_all, captions.drop_nulls("category")])
        .group_by("category")
        .agg(
            captions=pl.len().cast(pl.UInt32),
            words=pl.col("words").mean(),
            fewest=pl.col("words").min(),
            most=pl.col("words").max(),
            counted=pl.col("objects").count().cast(pl.UInt32),
            objects=pl.col("objects").mean(),
        )
    )
    write_table(work.out, CAPTION_STATS, table)
    write_table(work.out, DROPS, drops_of([(key, EMPTY, None) for key in empty["id"]], "captions.stats"))
    counts = {
        "captions": captions.height,
        "words": int(captions["words"].sum()),
        "objects": int(captions["objects"].sum()),
    }
    return Outcome(counts, {EMPTY: empty.height} if empty.height else {})


def counted(path: Path | None) -> pl.DataFrame:
    """Count the objects of each caption; those in which none was found are among the drops beside the table."""
    if path is None:
        return pl.DataFrame(schema={"id": pl.String, "objects": pl.UInt32})
    found = read_table(path, OBJECTS).group_by("item").agg(objects=pl.len().cast(pl.UInt32)).rename({"item": "id"})
    drops = path.parent / f"{DROPS.name}.parquet"
    none = read_table(drops, DROPS).filter(reason=NO_OBJECT) if drops.is_file() else pl.DataFrame(schema=DROPS.schema)
    return pl.concat([found, none.select(pl.col("key").alias("id"), objects=pl.lit(0, pl.UInt32))])
