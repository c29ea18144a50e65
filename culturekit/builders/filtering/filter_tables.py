"""The filter's tables: what was kept, and what was dropped with its reason; written without holding the candidates."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from culturekit.builders.filtering.candidate_verdicts import CandidateVerdicts
from culturekit.records.schemas import DROPS, KEPT
from culturekit.storage.table_slices import ROWS_PER_SLICE, TableSlices
from culturekit.storage.tables import write_frames, write_table

__all__ = ["write_judged"]

NO_DROPS = pl.DataFrame(schema=DROPS.schema)


def write_judged(
    folder: Path, source: TableSlices, verdicts: CandidateVerdicts
) -> tuple[dict[str, int], dict[str, int]]:
    """Part the candidates by verdict, each table in the order of its key; count rows, and drops by reason."""
    counts = {"kept": 0, "review": 0}
    dropped: list[pl.DataFrame] = []

    def kept() -> Iterator[pl.DataFrame]:
        start = 0
        for frame in source.slices():
            judged = frame.with_columns(verdicts.columns(start, start + frame.height))
            start += frame.height
            removed = pl.col("verdict") == "remove"
            dropped.append(as_drops(judged.filter(removed)))
            stays = judged.filter(~removed).select(*source.table.columns, "verdict", "reason", *source.table.optional)
            counts["kept"] += stays.height
            counts["review"] += stays.filter(pl.col("verdict") == "review").height
            yield stays

    table = replace(KEPT, optional=source.table.optional)
    write_frames(folder, table, kept(), rows_per_group=ROWS_PER_SLICE)
    drops = pl.concat([NO_DROPS, *dropped])
    write_table(folder, DROPS, drops)
    return {**counts, "drops": drops.height}, dict(sorted(Counter(drops["reason"]).items()))


def as_drops(removed: pl.DataFrame) -> pl.DataFrame:
    """Write removed candidates as drops."""
    rows = removed.select("concept", "reason", "detail", key="qid", stage=pl.lit("filter"))
    return rows.select(list(DROPS.columns))
