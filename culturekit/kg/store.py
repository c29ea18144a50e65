"""The graph on disk: tables of items and statements, and memory-mapped arrays to walk on.

A node is any item that the dump describes or points to; nodes are numbered by ascending QID.

| file | holds |
|---|---|
| `items.parquet`, `statements.parquet` | what the dump says, with the line it says it in |
| `nodes.npy` | uint32 (n_nodes,), the QID numbers, ascending |
| `children_offsets.npy` | int64 (n_nodes + 1,): the children of node i are `children[offsets[i]:offsets[i + 1]]` |
| `children.npy` | int32 (n_edges,): nodes with a P31 or P279 statement about the parent, ascending |
| `edge_flags.npy` | uint16 (n_edges,): properties, ranks and ends of the statements, see `statement_flags` |
| `country_flags.npy` | uint16 (n_nodes,): the same of the statements of a country |
"""

import io
import itertools
import mmap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.arrays import load_array
from culturekit.core.atomic import decoding
from culturekit.core.choices import Ended, Ranks
from culturekit.core.digests import read_manifest
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.schemas import ITEMS, STATEMENTS
from culturekit.core.stage import check_content
from culturekit.core.table import Table
from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES, flags_of, is_truthy, mask_of
from culturekit.kg.countries import QID, by_qid

# The children of many nodes, block by block, from arrays that stay on disk.

_EDGES_AT_ONCE = 1 << 19
# How far apart what is read of a file may lie before its pages are handed back: some 64 MB.
_EDGES_KEPT = 1 << 24
_NODES_KEPT = 1 << 23


def edge_blocks(
    offsets: NDArray[np.int64], nodes: NDArray[np.uint32], *arrays: NDArray[Any]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Give the edges below nodes as pairs of arrays: places in `nodes`, and places in the arrays of edges.

    No block has more than _EDGES_AT_ONCE edges, whatever the degrees. `arrays` are what the caller reads the edges
    from. The system counts much more of a file as the process's memory than was read of it, so pages are handed back
    as the sweep goes on; where nodes ascend, none is read twice.
    """
    starts, lengths = _spans(offsets, nodes)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    last_kept = 0
    for begin in range(0, total, _EDGES_AT_ONCE):
        stop = min(begin + _EDGES_AT_ONCE, total)
        first, last = np.searchsorted(ends, begin, "right"), np.searchsorted(ends, stop, "left") + 1
        befores = ends[first:last] - lengths[first:last]
        counts = np.minimum(ends[first:last], stop) - np.maximum(befores, begin)
        owners = np.repeat(np.arange(first, last), counts)
        edges = np.arange(begin, stop) + np.repeat(starts[first:last] - befores, counts)
        for part in _near_each_other(edges, _EDGES_KEPT):
            yield owners[part], edges[part]
            if abs(int(edges[part][-1]) - last_kept) > _EDGES_KEPT:
                let_go(*arrays)
                last_kept = int(edges[part][-1])


def _spans(offsets: NDArray[np.int64], nodes: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the first edge of each node, and how many it has."""
    starts, lengths = np.empty(len(nodes), np.int64), np.empty(len(nodes), np.int64)
    for part in _near_each_other(nodes, _NODES_KEPT):
        places = nodes[part].astype(np.int64)
        starts[part] = offsets[places]
        lengths[part] = offsets[places + 1] - starts[part]
        if len(places) < len(nodes):
            let_go(offsets)
    return starts, lengths


def _near_each_other(places: NDArray[Any], distance: int) -> list[slice]:
    """Cut places in a file, which ascend as a rule, into runs that lie within a distance of each other."""
    if len(places) == 0 or int(places[-1]) - int(places[0]) < distance:
        return [slice(0, len(places))]
    window = places // distance
    cuts = [0, *(np.flatnonzero(window[1:] != window[:-1]) + 1).tolist(), len(places)]
    return [slice(begin, end) for begin, end in itertools.pairwise(cuts)]


def let_go(*arrays: NDArray[Any]) -> None:
    """Hand the pages of memory-mapped arrays back to the system, which reads them again when they are needed."""
    for array in arrays:
        mapped: object = array.base
        while isinstance(mapped, np.ndarray):
            mapped = mapped.base
        if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)


# What a graph's tables say about some items: a few out of hundreds of millions.
#
# Rows stand in the order of their numbers and every row group knows its smallest and largest, so a look-up reads only
# the groups it needs.

_NUMBERS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class DumpPosition:
    """Where a dump describes an item: the file, the gzip member, the byte in it, and the line of the file from 1.

    `role` is that of the file in the manifest of the graph.
    """

    file: str
    member: int
    offset: int
    line: int
    role: str = ""

    def __str__(self) -> str:
        """Write it as a reader would look it up; what no dump says has no line."""
        return f"{self.file}, line {self.line} (member {self.member}, byte {self.offset})" if self.line else self.file


@dataclass(frozen=True, slots=True)
class ItemFacts:
    """What a graph knows of an item that a dump describes."""

    label: str | None
    label_language: str | None
    description: str | None
    place: DumpPosition


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """A statement; `value` is None for somevalue and novalue, `counts` says whether a walk follows it."""

    number: int
    property: str
    value: int | None
    snak: str
    rank: str
    qualified: bool
    ended: bool
    counts: bool


class GraphTables:
    """The tables of a graph folder; no rows are read before they are asked for."""

    def __init__(self, folder: Path) -> None:
        """Find the tables, and make sure that they are what they should be."""
        self._paths = {table.name: folder / f"{table.name}.parquet" for table in (ITEMS, STATEMENTS)}
        for table in (ITEMS, STATEMENTS):
            path = self._paths[table.name]
            if not path.is_file():
                raise UsageError(
                    "not a graph store", where=str(folder), expected=f"a folder with {path.name}",
                    hint="Make it with: culturekit kg ingest",
                )  # fmt: skip
            _check(path, table)
        manifest = read_manifest(folder)
        if manifest:
            check_content(folder, manifest)
        self._files = {role: record.name for role, record in manifest.inputs.items()} if manifest else {}

    @property
    def items(self) -> pl.LazyFrame:
        """All items."""
        return pl.scan_parquet(self._paths["items"])

    @property
    def statements(self) -> pl.LazyFrame:
        """All statements."""
        return pl.scan_parquet(self._paths["statements"])

    def items_of(self, numbers: NDArray[np.uint32]) -> pl.DataFrame:
        """Read the rows of items; numbers ascend."""
        return self._matching("items", numbers, pl.lit(True))

    def statements_of(
        self, numbers: NDArray[np.uint32], properties: Sequence[str], *, ranks: Ranks, ended: Ended
    ) -> pl.DataFrame:
        """Read the statements of items that count, also those without a value, in the order the items have them."""
        stated = self._matching("statements", numbers, pl.col("property").is_in(list(properties)))
        if ranks == "truthy":
            stated = stated.filter(is_truthy())
        elif ranks == "not-deprecated":
            stated = stated.filter(pl.col("rank") != "deprecated")
        if ended == "drop":
            stated = stated.filter(~pl.col("ended"))
        return stated.sort("number", "property", "position")

    def _matching(self, table: str, numbers: NDArray[np.uint32], condition: pl.Expr) -> pl.DataFrame:
        """Read the rows of some items; numbers ascend.

        The file is sorted by number too. It is read in stretches, of which no more is decoded at once than the groups
        of rows they lie in; where no item is asked for, nothing is.
        """
        path = self._paths[table]
        with decoding(path, "not a readable Parquet file", error=IntegrityError):
            scan = pl.scan_parquet(path).filter(condition)
            return pl.concat([_stretch(scan, numbers[part]) for part in _near_each_other(numbers, _NUMBERS_AT_ONCE)])

    def facts(self, numbers: Iterable[int]) -> dict[int, ItemFacts]:
        """Look up items; one that the dump only mentions is left out."""
        columns = ("number", "label", "label_language", "description", "file", "member", "offset", "line")
        rows = among(self.items, numbers).select(columns).collect().iter_rows()
        return {
            number: ItemFacts(
                label, language, description, DumpPosition(self._file(file), member, offset, line, f"dump-{file}")
            )
            for number, label, language, description, file, member, offset, line in rows
        }

    def labels(self, numbers: Iterable[int]) -> dict[int, str | None]:
        """Name items: by label, a country without one by its name, others not at all."""
        wanted = sorted(set(numbers))
        found = dict(among(self.items, wanted).select("number", "label").collect().iter_rows())
        known = by_qid()
        names = {number: known[f"Q{number}"].name for number in wanted if f"Q{number}" in known}
        return {number: found.get(number) or names.get(number) for number in wanted}

    def names(self, qids: Iterable[str]) -> dict[str, str]:
        """Name items by QID; those without a label are left out, and so is what is no QID."""
        numbers = {int(qid[1:]): qid for qid in qids if QID.match(qid) and int(qid[1:]) < 2**32}
        labels = self.labels(numbers) if numbers else {}
        return {numbers[number]: label for number, label in labels.items() if label}

    def class_names(self, candidates: Iterable[pl.DataFrame]) -> dict[str, str]:
        """Name the classes of candidates (their `p31` and `p279`) by QID; a class without a label is left out."""
        qids: set[str] = set()
        for frame in candidates:
            for column in ("p31", "p279"):
                qids.update(frame[column].explode(empty_as_null=False).unique())
        return self.names(qids)

    def stated(self, numbers: Iterable[int], properties: Sequence[str], mask: int) -> list[StatementFacts]:
        """List what items state with properties of one family; `mask` chooses the statements that count."""
        family = COUNTRY_PROPERTIES if properties[0] in COUNTRY_PROPERTIES else EDGE_PROPERTIES
        rows = among(self.statements, numbers).filter(pl.col("property").is_in(list(properties)))
        counted = _with_counts(rows.collect().sort("number", "property", "position"), family, mask)
        columns = ("number", "property", "value", "snak", "rank", "qualified", "ended", "counts")
        return [StatementFacts(*row) for row in counted.select(columns).iter_rows()]

    def _file(self, file: int) -> str:
        """Name a dump file; by its number among the dump files where the folder has no manifest."""
        return self._files.get(f"dump-{file}", f"dump file {file}")


def _check(path: Path, table: Table) -> None:
    """Hold the columns of a file against the declaration, without reading rows."""
    with decoding(path, "not a readable Parquet file", expected=f"the table {table.name}", error=IntegrityError):
        schema = pl.scan_parquet(path).collect_schema()
    known = {name: kind for name, kind in schema.items() if name in table.schema}
    if problems := table.problems(pl.DataFrame(schema=known)):
        raise IntegrityError(f"not a {table.name} table: {'; '.join(problems)}", where=str(path))


def _stretch(scan: pl.LazyFrame, numbers: NDArray[np.uint32]) -> pl.DataFrame:
    """Read the rows of items whose numbers lie near each other."""
    low, high = (int(numbers[0]), int(numbers[-1])) if len(numbers) else (1, 0)
    wanted = pl.LazyFrame({"number": numbers}, schema={"number": pl.UInt32})
    near = scan.filter(pl.col("number").is_between(low, high))
    frame = near.join(wanted, on="number", how="semi").collect(engine="streaming")
    # A copy no longer holds on to the text of all the rows that these were chosen from.
    copy = io.BytesIO()
    frame.write_ipc(copy)
    copy.seek(0)
    return pl.read_ipc(copy)


def among(rows: pl.LazyFrame, numbers: Iterable[int]) -> pl.LazyFrame:
    """Keep the rows of some items."""
    return rows.filter(pl.col("number").is_in(pl.Series(sorted(set(numbers)), dtype=pl.UInt32).implode()))


def _with_counts(statements: pl.DataFrame, family: Sequence[str], mask: int) -> pl.DataFrame:
    """Add to the statements of a family whether each one counts; without a value it never does."""
    rows = statements.filter(pl.col("property").is_in(list(family))).with_row_index("row")
    valued = rows.filter(pl.col("value").is_not_null()).select(
        "row", counts=(flags_of(rows, family)["flags"] & mask) != 0
    )
    joined = rows.join(valued, on="row", how="left", maintain_order="left")
    return joined.with_columns(pl.col("counts").fill_null(value=False)).drop("row")


def counted_values(statements: pl.DataFrame, family: Sequence[str], mask: int) -> pl.DataFrame:
    """Give number, property and value of the statements of a family that count.

    Nearly all items have only statements of normal rank without an end; these need no ranking among themselves,
    which is most of the work for millions of items.
    """
    special = statements.filter((pl.col("rank") != "normal") | pl.col("ended")).select("number").unique()
    followed = [name for name in family if mask & mask_of((name,), family, ranks="truthy", ended="drop")]
    plain = statements.join(special, on="number", how="anti").filter(
        pl.col("property").is_in(followed), pl.col("value").is_not_null()
    )
    ranked = _with_counts(statements.join(special, on="number", how="semi"), family, mask)
    columns = ("number", "property", "value")
    return pl.concat([plain.select(columns), ranked.filter(pl.col("counts")).select(columns)])


def qid_of(number: str | pl.Expr) -> pl.Expr:
    """Write a column of numbers as QIDs."""
    return pl.format("Q{}", number)


def titled(qid: str | None, label: str | None) -> str:
    """Write an item as `Q42 (label)`, without a label as `Q42`."""
    return f"{qid} ({label})" if label else f"{qid}"


_ARRAYS = ("nodes", "children_offsets", "children", "edge_flags", "country_flags")


@dataclass(frozen=True, slots=True)
class Graph:
    """The arrays of a store."""

    nodes: NDArray[np.uint32]
    children_offsets: NDArray[np.int64]
    children: NDArray[np.int32]
    edge_flags: NDArray[np.uint16]
    country_flags: NDArray[np.uint16]

    def find(self, number: int) -> int | None:
        """Find the node of a QID number; None when the dump never mentions it."""
        index = int(np.searchsorted(self.nodes, np.uint32(number)))
        return index if index < len(self.nodes) and int(self.nodes[index]) == number else None

    def find_all(self, numbers: Iterable[int]) -> list[int]:
        """Find the nodes of QID numbers, ascending; what the dump never mentions is left out."""
        return sorted({node for number in numbers if (node := self.find(number)) is not None})

    def marked(self, numbers: Iterable[int]) -> NDArray[np.bool_]:
        """Mark the nodes of QID numbers, bool (n_nodes,)."""
        marks = np.zeros(len(self.nodes), np.bool_)
        marks[self.find_all(numbers)] = True
        return marks

    def edges_below(self, nodes: NDArray[np.signedinteger]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give the edges below nodes, all at once: places in `nodes`, and places in the arrays of edges."""
        starts = self.children_offsets[nodes]
        lengths = self.children_offsets[nodes + 1] - starts
        owners = np.repeat(np.arange(len(nodes)), lengths)
        return owners, np.arange(len(owners)) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)


def load_graph(folder: Path) -> Graph:
    """Open the arrays of a finished graph folder without reading them."""
    hint = "Make it with: culturekit kg ingest"
    return Graph(**{name: load_array(folder / f"{name}.npy", "not a graph store", hint=hint) for name in _ARRAYS})
