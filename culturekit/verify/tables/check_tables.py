"""Every table in its declared form: columns, types, nulls and keys."""

import polars as pl

from culturekit.records.schemas import TABLES
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import RunTree

__all__ = ["check_tables"]

CHECK = "tables"


def check_tables(tree: RunTree, ledger: Ledger) -> None:
    """Compare the tables of all stages with their declarations; a table of another name is not looked at."""
    for stage in tree.stages.values():
        for name in sorted(stage.manifest.outputs):
            stem = name.removesuffix(".parquet")
            path = stage.folder / name
            if stem == name or stem not in TABLES or not path.is_file():
                continue
            with ledger.guarded(CHECK, f"{stage.name}/{name}"):
                frame = pl.read_parquet(path)
                for problem in TABLES[stem].problems(frame):
                    ledger.broken(CHECK, f"{stage.name}/{name}", f"not a {stem} table: {problem}")
                ledger.count("tables in their declared form")
