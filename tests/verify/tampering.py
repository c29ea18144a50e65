"""Tampering with one table of a finished run, and putting it back as it was."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree, open_tree
from culturekit.verify.verify_run import Verification, verify_run
from tests.verify.forging import change_table, reseal

__all__ = ["Change", "broken", "broken_by", "check_found", "first", "tampered", "without_first"]

Change = Callable[[pl.DataFrame], pl.DataFrame]


def broken(answer: Verification) -> list[str]:
    """Give what cannot be as it stands."""
    return [str(finding) for finding in answer.findings if finding.severity == "broken"]


def broken_by(run: Path, checks: Mapping[str, Callable[[RunTree, FinishedStage, Ledger], object]]) -> list[str]:
    """Check the stages of some kinds, their inputs where they were made, and give what cannot be as it stands."""
    ledger = Ledger()
    tree = open_tree(run, ledger)
    tree.sources = {(name, role): place for name, stage in tree.stages.items() for role, place in stage.places.items()}
    for kind, check in checks.items():
        for stage in tree.of_kind(kind):
            check(tree, stage, ledger)
    return [str(finding) for finding in ledger.findings if finding.severity == "broken"]


def first(column: str, value: object, **where: str) -> Change:
    """Put another value into the first row, or the first where columns hold some words."""

    def change(table: pl.DataFrame) -> pl.DataFrame:
        numbered = table.with_row_index("nth")
        rows = numbered.filter(*(pl.col(name).cast(pl.String).str.contains(word) for name, word in where.items()))
        chosen = pl.col("nth") == rows["nth"][0]
        put = pl.lit(value, table.schema[column])
        return numbered.with_columns(pl.when(chosen).then(put).otherwise(pl.col(column)).alias(column)).drop("nth")

    return change


def without_first(table: pl.DataFrame) -> pl.DataFrame:
    """Leave the first row out."""
    return table.slice(1)


@contextmanager
def tampered(table: Path, change: Change) -> Iterator[Path]:
    """Change a table as somebody would who makes the hashes of its folder fit again; after the block it is restored."""
    with tempfile.TemporaryDirectory() as kept:
        whole = Path(kept) / "whole"
        shutil.copytree(table.parent, whole)
        try:
            change_table(table, change)
            reseal(table.parent)
            yield table.parent
        finally:
            shutil.rmtree(table.parent)
            shutil.copytree(whole, table.parent)


def check_found(run: Path, place: str, change: Change, problem: str) -> None:
    """Change a table and make the hashes fit again: its stage is found broken, for that problem."""
    with tampered(run / f"{place}.parquet", change) as folder:
        answer = verify_run(folder)
    assert any(problem in finding for finding in broken(answer)), broken(answer)
