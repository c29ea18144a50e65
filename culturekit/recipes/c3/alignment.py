"""The three terms of every caption from vectors: item by item in blocks, and folders in shards that outlive a kill."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.arrays import load_array
from culturekit.core.errors import UsageError
from culturekit.core.stage import seal
from culturekit.core.tables import save_parquet, save_part
from culturekit.index.embedding.embedding import load_vectors
from culturekit.metrics.captions import grouped_maxima, unit_vectors
from culturekit.scores.inputs import LabelledVectors, folder_of, labelled, vectors_in

SPACES = (("source", "target", "objects"), ("image", "image_target"))
"""The roles whose vectors are compared with each other."""

ROLES = tuple(role for space in SPACES for role in space)
CAPTIONED = ("target", "image_target")  # The roles that make an item: without a caption there is nothing to score

SIDES = {"text": ("source", "target"), "image": ("image", "image_target"), "object": ("objects", "target")}
"""What each term compares."""

ROWS_PER_SHARD = 2**18
NUMBERS_AT_ONCE = 2**21  # Of vectors that are compared together: 16 MB in float64, whatever a shard has


def _with_items(ids: pl.DataFrame) -> pl.DataFrame:
    """Say which item each id is of: ids are ITEM, or ITEM#k for token or object k of it."""
    item = pl.col("id").str.replace(r"(?s)^(.+)#[0-9]+$", "$1")
    several = ids["id"].str.contains("#", literal=True).any()
    return ids.with_columns(item=item if several else pl.col("id"))


@dataclass(frozen=True, slots=True)
class Side:
    """Vectors, and id, item and row of those that are meant, in order of items."""

    vectors: NDArray[np.floating]
    ids: pl.DataFrame


def side_of(labelled: LabelledVectors) -> Side:
    """Put the vectors of a role in order of their items; ids are ITEM, or ITEM#k."""
    ids = pl.DataFrame({"id": list(labelled.ids)}, {"id": pl.String}).with_row_index("row")
    return Side(np.asarray(labelled.vectors), _with_items(ids).sort("item", "id"))


def terms_of(sides: Mapping[str, Side]) -> pl.DataFrame:
    """Give each item its terms: item, text, image, object (null is missing), and whether it is captioned.

    Args:
        sides: by role. An item that lacks one side of a term lacks the term.
    """
    for role, side in sides.items():
        if side.ids["id"].n_unique() < side.ids.height:
            twice = side.ids.filter(pl.col("id").is_duplicated())["id"][0]
            raise UsageError(f"an id stands twice among the vectors of {role}", found=repr(twice))
    items, starts = _numbered({role: side.ids["item"] for role, side in sides.items()})
    rows = {role: side.ids["row"].to_numpy() for role, side in sides.items()}
    found = {term: np.full(len(items), np.nan) for term in SIDES}
    for first, last in _blocks(sides, starts):
        at = {role: each[first : last + 1] for role, each in starts.items()}
        units = {}
        for role, side in sides.items():
            block = rows[role][at[role][0] : at[role][-1]]
            units[role] = _unit(role, side.vectors[block], items[first:last], at[role] - at[role][0])
        for term, (one, other) in SIDES.items():
            if one in units and other in units:
                ours, theirs = at[one] - at[one][0], at[other] - at[other][0]
                found[term][first:last] = grouped_maxima(units[one], ours, units[other], theirs)
    captioned = np.zeros(len(items), bool)
    for role in set(CAPTIONED) & set(sides):
        captioned |= np.diff(starts[role]) > 0
    table = pl.DataFrame({"item": items, **found, "captioned": captioned})
    return table.with_columns(pl.col(*SIDES).fill_nan(None))


def _numbered(roles: Mapping[str, pl.Series]) -> tuple[pl.Series, dict[str, NDArray[np.int64]]]:
    """List the items of all roles in order, and say where the rows of each begin, (items + 1,), role by role."""
    begins = {role: np.flatnonzero(np.diff(part.rle_id().to_numpy(), prepend=-1)) for role, part in roles.items()}
    named = {role: part.gather(begins[role]) for role, part in roles.items()}
    first = next(iter(named.values()))
    alike = all(part.equals(first) for part in named.values())
    items = first if alike else pl.concat(list(named.values())).unique().sort()
    starts = {}
    for role, part in roles.items():
        at = np.arange(len(items)) if alike else items.search_sorted(named[role]).to_numpy()
        counts = np.zeros(len(items) + 1, np.int64)
        counts[at + 1] = np.diff(begins[role], append=len(part))
        starts[role] = np.cumsum(counts)
    return items, starts


def _blocks(sides: Mapping[str, Side], starts: Mapping[str, NDArray[np.int64]]) -> Iterator[tuple[int, int]]:
    """Cut items into runs whose vectors fit in memory together; an item is never cut."""
    numbers = sum((starts[role] * side.vectors.shape[1] for role, side in sides.items()), np.zeros(1, np.int64))
    cuts = np.searchsorted(numbers, np.arange(0, numbers[-1], NUMBERS_AT_ONCE))
    yield from pairwise(np.unique([*cuts, len(numbers) - 1]).tolist())


def _unit(role: str, vectors: NDArray[np.floating], items: pl.Series, starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Bring vectors to length one; an error names the item."""
    try:
        found = unit_vectors(role, vectors)
    except UsageError:
        for item, (first, last) in zip(items, pairwise(starts.tolist()), strict=True):
            try:
                unit_vectors(role, vectors[first:last])
            except UsageError as error:
                error.where = f"item {item!r}"
                raise
        raise
    return np.empty((0, vectors.shape[1])) if found is None else found


# Folders of vectors of any size: ids are read some at a time, vectors are mapped, and each shard holds whole items.


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Vectors on disk, with a table of id and row in order of items."""

    vectors: Path
    ids: Path
    count: int

    def parts(self) -> Iterator[pl.DataFrame]:
        """Read ids in their order, with the item of each."""
        for start in range(0, self.count, ROWS_PER_SHARD):
            yield self.rows(start, start + ROWS_PER_SHARD)

    def rows(self, start: int, stop: int) -> pl.DataFrame:
        """Read some ids, with the item of each."""
        scan = pl.scan_parquet(self.ids).select("id", "row")
        return _with_items(scan.slice(start, stop - start).collect())

    def first(self) -> str:
        """Name the first item."""
        return str(self.rows(0, 1)["item"][0])


def stored_vectors(folder: Path, *, role: str, scratch: Path) -> StoredVectors:
    """Open a folder of vectors in order of items, as `embed` writes them; ids in another order are sorted in memory."""
    path, ids = vectors_in(folder, role), folder_of(folder) / "ids.parquet"
    if not (path.is_file() and ids.is_file()):
        load_vectors(folder_of(folder))  # says what is missing
    shape, dtype = (opened := load_array(path)).shape, opened.dtype
    found, last, start = StoredVectors(path, ids, int(pl.scan_parquet(ids).select(pl.len()).collect().item())), "", 0
    in_order = len(shape) == 2 and dtype == np.float32 and shape[0] == found.count
    for part in found.parts() if in_order else ():
        rows = pl.int_range(start, start + part.height, dtype=pl.UInt32, eager=True)
        in_order = bool((part["row"] == rows).all()) and part["item"].is_sorted() and part["item"][0] >= last
        if not in_order:
            break
        last, start = part["item"][-1], start + part.height
    ordered = scratch / f"{role}-ids.parquet"
    if not in_order and not ordered.is_file():
        save_parquet(side_of(labelled(folder)).ids.select("id", "row"), ordered)
    return found if in_order else replace(found, ids=ordered)


@dataclass(frozen=True, slots=True)
class AlignedShard:
    """The items of a range: which rows of each role's ids these are, and where their terms go."""

    roles: Mapping[str, StoredVectors]
    ranges: Mapping[str, tuple[int, int]]
    part: Path

    @property
    def size(self) -> int:
        """Count the rows of the role with most."""
        return max(stop - start for start, stop in self.ranges.values())


def align_shard(shard: AlignedShard) -> int:
    """Write the terms of a range of items."""
    sides = {
        role: Side(load_array(stored.vectors), ids)
        for role, stored in shard.roles.items()
        if (ids := stored.rows(*shard.ranges[role])).height
    }
    save_part(terms_of(sides), shard.part)
    seal(shard.part)
    return shard.size


def aligned_shards(roles: Mapping[str, StoredVectors], folder: Path) -> list[AlignedShard]:
    """Cut items into ranges, each with as many rows of the role with most as a shard takes."""
    longest = max(roles.values(), key=lambda stored: stored.count)
    begins = pl.concat([part["item"].head(1) for part in longest.parts()]).unique().sort()[1:]
    cuts = {role: np.zeros(len(begins), np.int64) for role in roles}
    for role, stored in roles.items():
        for part in stored.parts() if len(begins) else ():
            cuts[role] += part["item"].search_sorted(begins, side="left").to_numpy()
    bounds = {role: list(pairwise([0, *cuts[role].tolist(), stored.count])) for role, stored in roles.items()}
    return [
        AlignedShard(roles, {role: each[number] for role, each in bounds.items()}, folder / f"terms-{number:06d}.arrow")
        for number in range(len(begins) + 1)
    ]
