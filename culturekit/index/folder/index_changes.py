"""Artifacts out of an index, and an index of many parts made one again."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.index.folder.index_append import indexed_rows
from culturekit.index.folder.index_folder import OpenIndex, open_index, write_index
from culturekit.index.folder.index_parts import ids_name, part_names, read_graves, take_over
from culturekit.records.schemas import ARTIFACTS, DROPS, TOMBSTONES, VECTOR_IDS
from culturekit.records.work import Outcome, Work
from culturekit.storage.spreadsheet_cells import read_csv_texts
from culturekit.storage.system_errors import raise_system_error
from culturekit.storage.tables import read_table, write_drops, write_table

__all__ = ["Removed", "compact_index", "listed_artifacts", "remove_artifacts"]

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Removed:
    """What is removed: the artifacts of a file, and those that are named."""

    artifacts: Annotated[
        Path | None, Field(description="File of artifacts to remove: a table with artifact_id, or one id a line.")
    ] = None
    artifact: Annotated[tuple[str, ...], Field(description="Artifact to remove; may be given several times.")] = ()

    @property
    def ids(self) -> list[str]:
        """The ids of all, each once."""
        return sorted({*self.artifact, *(listed_artifacts(self.artifacts) if self.artifacts else ())})


def listed_artifacts(path: Path) -> list[str]:
    """Read the ids of artifacts: the column artifact_id of a Parquet or CSV table, or a text file with one a line."""
    if path.suffix in {".parquet", ".csv"}:
        try:
            table = pl.read_parquet(path) if path.suffix == ".parquet" else read_csv_texts(path)
            return sorted(set(table["artifact_id"].cast(pl.String).drop_nulls()))
        except (pl.exceptions.PolarsError, OSError) as error:
            raise_system_error(error, path)
            raise UsageError(
                "the artifacts cannot be read", where=str(path), expected="a column artifact_id", found=str(error)
            ) from error
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise_system_error(error, path)
        raise UsageError("the artifacts cannot be read", where=str(path), found=str(error)) from error
    return sorted({line.strip() for line in lines} - {""})


def remove_artifacts(work: Work, folder: Path, artifact_ids: Iterable[str]) -> Outcome:
    """Write an index that holds another, but for some artifacts; their vectors stay on disk and count no more."""
    index = open_index(folder)
    going = sorted(set(artifact_ids))
    before = set(index.notes.get("removed", []))
    check_known(index, going, before)
    removed = sorted(before | set(going))
    take_over(folder, work.out)
    write_table(work.out, TOMBSTONES, graves_of(index, removed))
    write_table(work.out, ARTIFACTS, index.artifacts)
    take_over_drops(index, work.out, removed)
    left = indexed_rows(index).filter(~pl.col("artifact_id").is_in(removed))
    if left.is_empty():
        raise UsageError("nothing would be left in the index", where=str(folder), found=f"{len(going)} artifacts to go")
    counts = {
        "ids": left.height,
        "artifacts": index.artifacts.height - len(removed),
        "indexed": left["artifact_id"].n_unique(),
        "removed": len(removed),
    }
    return Outcome(counts, {}, {**index.notes, "removed": removed})


def check_known(index: OpenIndex, going: list[str], before: set[str]) -> None:
    """Make sure that artifacts can be removed: some are named, and all are there."""
    unknown = sorted(set(going) - (set(index.artifacts["artifact_id"]) - before))
    if not going:
        raise UsageError("no artifact to remove is named", expected="--artifact ID or --artifacts FILE")
    if unknown:
        more = f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
        raise UsageError(
            "artifacts to remove are not in the index",
            where=str(index.folder),
            expected="ids of artifacts.parquet that were not removed before",
            found=", ".join(unknown[:SHOWN]) + more,
        )


def graves_of(index: OpenIndex, removed: list[str]) -> pl.DataFrame:
    """Give TOMBSTONES of every row that belongs to artifacts that are gone, in all parts."""
    graves = [read_graves(index.folder)]
    for number, name in enumerate(part_names(index.notes)):
        ids = read_table(index.folder / ids_name(name), VECTOR_IDS)
        own = ids.filter(pl.col("id").is_in(removed)).select(pl.lit(number, pl.UInt32).alias("part"), "row")
        graves.append(own)
    return pl.concat(graves).unique().sort("part", "row")


def take_over_drops(index: OpenIndex, out: Path, removed: list[str]) -> None:
    """Take over what has no place in an index, but for what is said of artifacts that are gone."""
    path = index.folder / "drops.parquet"
    if path.exists():
        write_drops(out, read_table(path, DROPS).filter(~pl.col("key").is_in(removed)))


def compact_index(work: Work, folder: Path) -> Outcome:
    """Write an index of one part, rows in order: what building it at once would have given."""
    index = open_index(folder)
    removed = index.notes.get("removed", [])
    rows = indexed_rows(index)
    artifacts = index.artifacts.filter(~pl.col("artifact_id").is_in(removed))
    channels = [channel.vectors for channel in index.channels.values()]
    vectors = channels[0] if len(channels) == 1 else np.concatenate(channels)
    write_index(work.out, rows, vectors, artifacts)
    take_over_drops(index, work.out, removed)
    notes = {name: note for name, note in index.notes.items() if name not in {"shards", "removed"}}
    counts = {"ids": rows.height, "artifacts": artifacts.height, "indexed": rows["artifact_id"].n_unique()}
    return Outcome(counts, {}, notes)
