"""Captions from files of any usual kind, and how many, how long and how full of objects they are."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import AskedRows
from culturekit.errors import UsageError
from culturekit.index.embedding.embed_table import USUAL, TextColumns, chosen, opened, texts_of
from culturekit.records.schemas import CAPTION_STATS, DROPS, OBJECTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, write_drops, write_table

__all__ = [
    "NO_OBJECT",
    "USUAL_CAPTION",
    "CaptionsToCount",
    "CaptionsToRead",
    "Dropped",
    "count_captions",
    "finished",
    "read_captions",
]

NO_OBJECT = "no object"
USUAL_CAPTION = (
    "Three neighbours in quilted jackets share sweet rice balls at a lantern fair beside the old stone bridge at dusk"
)
"""As long as captions usually are, for the price of one before there are any."""

EVERY = "all"

Dropped: TypeAlias = tuple[str, str, str | None]
"""Key, reason and detail of what is left out."""

CaptionsToRead: TypeAlias = Annotated[
    Path,
    Field(
        description="Captions by id: a table (Parquet, CSV, JSON lines), COCO's JSON, or a text file with one a line."
    ),
]


@dataclass(frozen=True, slots=True)
class CaptionsToCount:
    """Captions, and the objects that they name."""

    captions: CaptionsToRead
    objects: Annotated[
        Path | None, Field(description="Table that `captions objects` wrote about these captions. [none are counted]")
    ] = None
    columns: TextColumns = USUAL


def read_captions(path: Path, columns: TextColumns) -> tuple[pl.DataFrame, list[Dropped]]:
    """Read captions as id, text and category, null where a file has none; and those that are left out."""
    found = texts_of((path,), columns)
    captions = pl.DataFrame({"id": list(found.texts), "text": list(found.texts.values())})
    table = opened(path)
    if "category" not in table.columns:
        return captions.with_columns(category=pl.lit(None, pl.String)), found.left_out
    key, _ = chosen(path, table.columns, columns)
    categories = table.select(pl.col(key).cast(pl.String).alias("id"), pl.col("category").cast(pl.String))
    return captions.join(
        categories.unique("id", keep="first"), on="id", how="left", maintain_order="left"
    ), found.left_out


def count_captions(work: Work, given: CaptionsToCount) -> Outcome:
    """Count captions, their words and their objects, by category of error and in all."""
    captions, left_out = read_captions(given.captions, given.columns)
    captions = captions.join(counted(given.objects), on="id", how="left").with_columns(
        words=pl.col("text").str.count_matches(r"\S*[\p{L}\p{N}]\S*").cast(pl.UInt32)
    )
    if given.objects is not None and captions["objects"].null_count() == captions.height:
        raise UsageError("the objects are of no caption that is counted", where=str(given.objects))
    groups = pl.concat([captions.with_columns(category=pl.lit(EVERY)), captions.drop_nulls("category")])
    table = groups.group_by("category").agg(
        captions=pl.len().cast(pl.UInt32),
        words=pl.col("words").mean(),
        fewest=pl.col("words").min(),
        most=pl.col("words").max(),
        counted=pl.col("objects").count().cast(pl.UInt32),
        objects=pl.col("objects").mean(),
    )
    write_table(work.out, CAPTION_STATS, table)
    counts = {"captions": captions.height} | {name: int(captions[name].sum()) for name in ("words", "objects")}
    return finished(work, counts, left_out, "captions.stats")


def counted(path: Path | None) -> pl.DataFrame:
    """Count the objects of each caption; those in which none was found are among the drops beside the table."""
    if path is None:
        return pl.DataFrame(schema={"id": pl.String, "objects": pl.UInt32})
    found = read_table(path, OBJECTS).group_by("item").agg(objects=pl.len().cast(pl.UInt32)).rename({"item": "id"})
    drops = path.parent / f"{DROPS.name}.parquet"
    none = read_table(drops, DROPS).filter(reason=NO_OBJECT) if drops.is_file() else pl.DataFrame(schema=DROPS.schema)
    return pl.concat([found, none.select(pl.col("key").alias("id"), objects=pl.lit(0, pl.UInt32))])


def finished(
    work: Work,
    counts: dict[str, int],
    left_out: Sequence[Dropped],
    stage: str,
    asked: AskedRows[Any] | None = None,
    **notes: object,
) -> Outcome:
    """Write what was left out, and say how it went; where a model was asked, with how its answers ended."""
    drops = [
        {"key": key, "concept": None, "stage": stage, "reason": reason, "detail": detail}
        for key, reason, detail in left_out
    ]
    if asked is not None:
        asked.drops += drops
        return asked.outcome(work, counts, **notes)
    write_drops(work.out, drops, once=True)
    return Outcome(counts, Counter(reason for _, reason, _ in left_out), notes)
