"""Comparing two graphs, or two extractions, whatever is given."""

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.kg.looking.candidates_diff import diff_candidates
from culturekit.kg.looking.diff_rows import diff_totals
from culturekit.kg.looking.graph_diff import diff_graphs
from culturekit.records.schemas import DIFF
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import write_table

__all__ = ["compare", "write_comparison"]

KINDS: Mapping[str, Callable[[Path, Path], pl.DataFrame]] = {"a graph": diff_graphs, "candidates": diff_candidates}


def compare(a: Path, b: Path) -> pl.DataFrame:
    """List the differences from `a` to `b`: two graph folders, or two folders or files of candidates."""
    (kind_a, path_a), (kind_b, path_b) = kind_of(a), kind_of(b)
    if kind_a != kind_b:
        raise UsageError(
            "two things of different kinds cannot be compared", expected=kind_a, found=f"{kind_b} in {b}", where=str(a)
        )
    return KINDS[kind_a](path_a, path_b).sort(DIFF.key, nulls_last=False)


def write_comparison(work: Work, a: Path, b: Path) -> Outcome:
    """Write the differences as a stage; their totals are its counts."""
    rows = compare(a, b)
    write_table(work.out, DIFF, rows)
    return Outcome({"differences": rows.height, **diff_totals(rows)})


def kind_of(path: Path) -> tuple[str, Path]:
    """Say what a path holds, and name what to read."""
    if (path / "statements.parquet").is_file():
        return "a graph", path
    if path.is_file():
        return "candidates", path
    if (path / "candidates.parquet").is_file():
        return "candidates", path / "candidates.parquet"
    what = "a folder that is neither" if path.is_dir() else "nothing"
    raise UsageError("cannot be compared", where=str(path), expected="a graph store or candidates", found=what)
