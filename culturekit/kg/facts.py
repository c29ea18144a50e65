"""What a graph's tables say about some items, read from disk for these items only."""

import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import IntegrityError, UsageError
from culturekit.kg.concepts import Concept
from culturekit.kg.edge_sweep import near_each_other
from culturekit.kg.statement_flags import is_truthy
from culturekit.records.choices import Ended, Ranks
from culturekit.records.schemas import ITEMS, STATEMENTS
from culturekit.records.tables import Table
from culturekit.storage.manifest import read_manifest
from culturekit.storage.system_errors import raise_system_error

__all__ = ["Facts", "check_known", "qid_of"]

logger = logging.getLogger(__name__)

NUMBERS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Facts:
    """The tables of a graph; nothing is read before it is asked for."""

    items_path: Path
    statements_path: Path

    @classmethod
    def of_graph(cls, graph_folder: Path) -> "Facts":
        """Find the tables of a graph, and make sure that they are what they should be."""
        facts = cls(graph_folder / "items.parquet", graph_folder / "statements.parquet")
        check(facts.items_path, ITEMS)
        check(facts.statements_path, STATEMENTS)
        return facts

    def items(self, numbers: NDArray[np.uint32]) -> pl.DataFrame:
        """Read the rows of items; numbers ascend."""
        return matching(self.items_path, numbers, pl.lit(True))

    def statements(
        self, numbers: NDArray[np.uint32], properties: tuple[str, ...], *, ranks: Ranks, ended: Ended
    ) -> pl.DataFrame:
        """Read the statements of items that count, also those without a value, in the order the items have them."""
        stated = matching(self.statements_path, numbers, pl.col("property").is_in(properties))
        if ranks == "truthy":
            stated = stated.filter(is_truthy())
        elif ranks == "not-deprecated":
            stated = stated.filter(pl.col("rank") != "deprecated")
        if ended == "drop":
            stated = stated.filter(~pl.col("ended"))
        return stated.sort("number", "property", "position")


def matching(path: Path, numbers: NDArray[np.uint32], condition: pl.Expr) -> pl.DataFrame:
    """Read the rows of some items; numbers ascend.

    The file is sorted by number too. It is read in stretches, of which no more is decoded at once than the groups of
    rows they lie in; where no item is asked for, nothing is.
    """
    try:
        scan = pl.scan_parquet(path).filter(condition)
        return pl.concat([stretch(scan, numbers[part]) for part in near_each_other(numbers, NUMBERS_AT_ONCE)])
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        raise IntegrityError("not a readable Parquet file", where=str(path), found=str(error)) from error


def stretch(scan: pl.LazyFrame, numbers: NDArray[np.uint32]) -> pl.DataFrame:
    """Read the rows of items whose numbers lie near each other."""
    low, high = (int(numbers[0]), int(numbers[-1])) if len(numbers) else (1, 0)
    wanted = pl.LazyFrame({"number": numbers}, schema={"number": pl.UInt32})
    near = scan.filter(pl.col("number").is_between(low, high))
    return compact(near.join(wanted, on="number", how="semi").collect(engine="streaming"))


def compact(frame: pl.DataFrame) -> pl.DataFrame:
    """Copy rows, so that they no longer hold on to the text of all the rows that they were chosen from."""
    copy = io.BytesIO()
    frame.write_ipc(copy)
    copy.seek(0)
    return pl.read_ipc(copy)


def check(path: Path, table: Table) -> None:
    """Hold the columns of a file against the declaration, without reading rows."""
    try:
        schema = pl.scan_parquet(path).collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        raise IntegrityError(
            "not a readable Parquet file", where=str(path), expected=f"the table {table.name}", found=str(error)
        ) from error
    problems = table.problems(
        pl.DataFrame(schema={name: kind for name, kind in schema.items() if name in table.schema})
    )
    if problems:
        raise IntegrityError(f"not a {table.name} table: {'; '.join(problems)}", where=str(path))


def qid_of(number: str | pl.Expr) -> pl.Expr:
    """Write a column of numbers as QIDs."""
    return pl.format("Q{}", number)


def check_known(graph_folder: Path, concepts: Sequence[Concept]) -> None:
    """Hold the rules of concepts against what the dump of a graph does not say: what cannot be asked is refused."""
    manifest = read_manifest(graph_folder)
    lacks = manifest.notes.get("lacks", ()) if manifest else ()
    ending = [concept.concept for concept in concepts if concept.ended == "drop"]
    if "qualifiers" in lacks and ending:
        raise UsageError(
            "a graph of triples does not say which statements have ended",
            where=str(graph_folder),
            found=f"ended: drop of {', '.join(ending)}",
            expected="ended: keep, or a graph of the JSON dump",
        )
    other = sorted({concept.ranks for concept in concepts} - {"truthy"})
    if "ranks" in lacks and other:
        logger.warning("the graph knows statements of best rank alone: ranks: %s is as truthy", ", ".join(other))
