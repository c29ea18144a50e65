"""Parts to the finished store: items and statements in the order of QIDs, and the arrays to walk on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.arrays import save_array
from culturekit.core.atomic import clear_folder
from culturekit.core.schemas import ITEMS, STATEMENTS
from culturekit.core.tables import read_part, save_part, write_frames, write_table
from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES, flags_of
from culturekit.kg.dump.entities import part_schema
from culturekit.kg.dump.read_dump import Parts

ROWS_PER_RANGE = 2_000_000
WAITING_BYTES = 300_000_000
"""How much may wait in memory before it is written out."""

_BIN_BITS = 16
"""Numbers are counted by their upper half, which decides where ranges begin."""


def _more_than_one_range(rows: int) -> bool:
    """Tell whether so many rows are put in order range by range, for which their numbers must be counted."""
    return rows > ROWS_PER_RANGE


def _edges_of(counts: NDArray[np.int64] | None) -> list[int]:
    """Choose where ranges of numbers begin, so that each holds about as many rows; `counts` are by bins of numbers.

    Without counts there is one range.
    """
    if counts is None:
        return [0, 1 << 32]
    before = np.cumsum(counts)
    wanted = np.arange(ROWS_PER_RANGE, before[-1], ROWS_PER_RANGE)
    bins = np.unique(np.searchsorted(before, wanted) + 1)
    return [0, *(int(place) << _BIN_BITS for place in bins), 1 << 32]


class Shuffle:
    """Takes frames with a column `number` in any order, and gives them back range by range."""

    def __init__(self, folder: Path, edges: Sequence[int]) -> None:
        """Begin with nothing; what does not fit into memory goes to `folder`."""
        clear_folder(folder)
        self.folder = folder
        self.ranges = list(pairwise(edges))
        self.waiting: list[list[pl.DataFrame]] = [[] for _ in self.ranges]
        self.size = 0
        self.flushes = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Deal the rows of a frame."""
        if len(self.ranges) == 1:
            self.waiting[0].append(frame)
            self.size += int(frame.estimated_size())
        else:
            for place, (low, high) in enumerate(self.ranges):
                own = frame.filter(pl.col("number").is_between(low, high, closed="left"))
                if own.height:
                    self.waiting[place].append(own)
                    self.size += int(own.estimated_size())
        if self.size > WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write out what waits."""
        for place, frames in enumerate(self.waiting):
            if frames:
                save_part(pl.concat(frames), self.folder / f"{place:05d}-{self.flushes:05d}.arrows")
                frames.clear()
        self.size = 0
        self.flushes += 1

    def frames(self) -> Iterator[pl.DataFrame]:
        """Give the rows of each range, in the order in which they were added; each only once."""
        for place, waiting in enumerate(self.waiting):
            written = [read_part(path) for path in sorted(self.folder.glob(f"{place:05d}-*.arrows"))]
            if written or waiting:
                yield pl.concat([*written, *waiting])
            waiting.clear()


NO_DUMP = {"aliases": [], "sitelinks": 0, "file": 0, "member": 0, "line": 0, "offset": 0}
"""What stands of an item in a store that was made of no dump, unless something is known."""

_ORDER = {"items": ("number", "file", "line"), "statements": ("number", "file", "line", "property", "position")}


@dataclass(frozen=True, slots=True)
class Built:
    """What a store holds.

    Attributes:
        counts: its sizes.
        duplicates: lines that repeated an item.
        redirected: statements whose target was redirected, and now is where that led.
        dangling: items that statements point to and the dump does not describe.
    """

    counts: dict[str, int]
    duplicates: int
    redirected: int
    dangling: int


def build_store(
    out: Path, parts: Sequence[Parts], scratch: Path, redirects: pl.DataFrame | None = None, *, items: int
) -> Built:
    """Write the tables and arrays of a graph from so many items; `redirects` has a value and its target per row."""
    edges = _edges_of(_number_counts(parts) if _more_than_one_range(items) else None)
    dealt_items, dealt_statements = (Shuffle(scratch / f"shuffled-{table}", edges) for table in _ORDER)
    for table, shuffle in zip(_ORDER, (dealt_items, dealt_statements), strict=True):
        for frame in _gathered(parts, table):
            shuffle.add(frame)
    builder = ArrayBuilder(out)
    first_lines: list[pl.DataFrame] = []
    seen, moved = [0], [0]

    def unique_items() -> Iterator[pl.DataFrame]:
        for frame in dealt_items.frames():
            seen[0] += frame.height
            ordered = frame.sort(_ORDER["items"])
            unique = ordered.filter(pl.col("number").ne_missing(pl.col("number").shift()))
            first_lines.append(unique.select("number", "file", "line"))
            builder.add_items(unique["number"].to_numpy())
            yield unique.select(pl.format("Q{}", "number").alias("qid"), pl.all())

    def their_statements() -> Iterator[pl.DataFrame]:
        first = pl.concat(first_lines) if first_lines else pl.DataFrame(schema=_first_schema())
        for frame in dealt_statements.frames():
            low, high = frame["number"].min(), frame["number"].max()
            own = first.filter(pl.col("number").is_between(low, high))
            kept = frame.join(own, on=["number", "file", "line"], how="semi").sort(_ORDER["statements"])
            if redirects is not None:
                kept = kept.join(redirects, on="value", how="left", maintain_order="left")
                moved[0] += kept.height - kept["target"].null_count()
                kept = kept.with_columns(value=pl.coalesce("target", "value")).drop("target")
            builder.add_statements(kept)
            yield kept.drop("file", "line").sort(STATEMENTS.key, maintain_order=True)

    write_frames(out, ITEMS, unique_items())
    write_frames(out, STATEMENTS, their_statements())
    counts = builder.finish()
    return Built(counts, seen[0] - counts["items"], moved[0], counts["nodes"] - counts["items"])


def store_rows(out: Path, items: pl.DataFrame, statements: pl.DataFrame) -> dict[str, int]:
    """Write a graph from tables that conform to ITEMS and STATEMENTS and fit into memory; give its sizes."""
    write_table(out, ITEMS, items)
    write_table(out, STATEMENTS, statements)
    builder = ArrayBuilder(out)
    builder.add_items(items["number"].sort().to_numpy())
    builder.add_statements(statements)
    return builder.finish()


def _first_schema() -> dict[str, pl.DataType]:
    """Give the columns that say which line of an item stands."""
    schema = part_schema("items")
    return {name: schema[name] for name in ("number", "file", "line")}


def _number_counts(parts: Sequence[Parts]) -> np.ndarray:
    """Count the items by bins of their numbers."""
    counts = np.zeros(1 << (32 - _BIN_BITS), np.int64)
    for path in _part_files(parts, "items"):
        numbers = read_part(path)["number"].to_numpy()
        counts += np.bincount(numbers >> _BIN_BITS, minlength=len(counts))
    return counts


def _part_files(parts: Sequence[Parts], table: str) -> Iterator[Path]:
    """Name the part files of a table."""
    return (part.folder / f"{table}-{number:05d}.arrows" for part in parts for number in range(part.count))


def _gathered(parts: Sequence[Parts], table: str) -> Iterator[pl.DataFrame]:
    """Read the parts of all runs, their places made those of the files."""
    for part in parts:
        for path in _part_files([part], table):
            yield _in_place(read_part(path), part)


def _in_place(frame: pl.DataFrame, part: Parts) -> pl.DataFrame:
    """Number lines and members in the file, and count offsets from the beginning of the member."""
    frame = frame.with_columns(line=pl.col("line") + part.lines)
    if "member" not in frame.columns:
        return frame
    first = pl.when(pl.col("member") == 0).then(part.offset).otherwise(0).cast(pl.UInt64)
    return frame.with_columns(offset=pl.col("offset") + first, member=pl.col("member") + part.members)


class ArrayBuilder:
    """Collects what the arrays need, and writes them.

    Edges are kept as numbers of items, 10 bytes each, until all nodes are known.
    """

    def __init__(self, out: Path) -> None:
        """Begin with nothing."""
        self.out = out
        self.items: list[NDArray[np.uint32]] = []
        self.values: list[NDArray[np.uint32]] = []
        self.edges: list[tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint16]]] = []
        self.countries: list[tuple[NDArray[np.uint32], NDArray[np.uint16]]] = []
        self.statements = 0

    def add_items(self, numbers: NDArray[np.uint32]) -> None:
        """Take the numbers of items that the dump describes, ascending."""
        self.items.append(numbers.copy())

    def add_statements(self, statements: pl.DataFrame) -> None:
        """Take the statements of some items."""
        self.statements += statements.height
        self.values.append(statements["value"].drop_nulls().unique().sort().to_numpy())
        edges = flags_of(statements, EDGE_PROPERTIES)
        self.edges.append(_united(*(edges[name].to_numpy() for name in ("value", "number", "flags"))))
        countries = flags_of(statements, COUNTRY_PROPERTIES).group_by("number").agg(pl.col("flags").bitwise_or())
        self.countries.append((countries["number"].to_numpy(), countries["flags"].to_numpy()))

    def finish(self) -> dict[str, int]:
        """Write the arrays; give the sizes of all."""
        described = _joined(self.items, np.uint32)
        nodes = _joined([*self.items, *self.values], np.uint32)
        nodes.sort()
        nodes = nodes[starts(nodes)]
        save_array(self.out / "nodes.npy", nodes)
        self.write_countries(nodes)
        edges = self.write_edges(nodes)
        return {"items": len(described), "statements": self.statements, "nodes": len(nodes), "edges": edges}

    def write_countries(self, nodes: NDArray[np.uint32]) -> None:
        """Mark the nodes that state a country."""
        flags = np.zeros(len(nodes), np.uint16)
        for numbers, bits in self.countries:
            flags[np.searchsorted(nodes, numbers)] |= bits
        save_array(self.out / "country_flags.npy", flags)

    def write_edges(self, nodes: NDArray[np.uint32]) -> int:
        """Write the inverse class edges once each, by parent and child, in two passes: count, then fill."""
        counts = np.zeros(len(nodes), np.int64)
        for parents, _, _ in self.edges:
            first = starts(parents)
            counts[np.searchsorted(nodes, parents[first])] += np.diff(first, append=len(parents))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        save_array(self.out / "children_offsets.npy", offsets)
        children, flags = np.zeros(offsets[-1], np.int32), np.zeros(offsets[-1], np.uint16)
        filled = offsets[:-1].copy()
        for parents, numbers, bits in self.edges:
            first = starts(parents)
            number = np.diff(first, append=len(parents))
            nodes_of_own = np.searchsorted(nodes, parents[first])
            within = np.arange(len(parents)) - np.repeat(first, number)
            places = np.repeat(filled[nodes_of_own], number) + within
            children[places] = np.searchsorted(nodes, numbers)
            flags[places] = bits
            filled[nodes_of_own] += number
        save_array(self.out / "children.npy", children)
        save_array(self.out / "edge_flags.npy", flags)
        return len(children)


def _joined(arrays: list[NDArray[np.uint32]], dtype: type[np.uint32]) -> NDArray[np.uint32]:
    """Join arrays; none give an empty one."""
    return np.concatenate(arrays) if arrays else np.empty(0, dtype)


def starts(ordered: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Give the places at which a new value begins."""
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(new)


def _united(
    parents: NDArray[np.uint32], children: NDArray[np.uint32], flags: NDArray[np.uint16]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint16]]:
    """Order edges by parent and child; those that are alike become one with the flags of all."""
    edges = parents.astype(np.uint64) << 32 | children
    order = np.argsort(edges)
    edges, flags = edges[order], flags[order]
    first = starts(edges)
    both = edges[first]
    together = np.bitwise_or.reduceat(flags, first) if len(first) else flags
    return (both >> 32).astype(np.uint32), both.astype(np.uint32), together
