"""The stage that takes in a table which was made elsewhere."""

from pathlib import Path

from culturekit.records.tables import Table
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table, write_table

__all__ = ["table_stage"]


def table_stage(path: Path, table: Table, *, name: str = "") -> Stage:
    """Take in a table of ours, and make sure that it is one."""

    def run(work: Work) -> Outcome:
        rows = read_table(path, table)
        write_table(work.out, table, rows)
        return Outcome({table.name: rows.height})

    return Stage(name or table.name, "take-table", 1, run, {"published": path}, {"table": table.name})
