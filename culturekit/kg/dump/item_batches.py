"""Decoded items to part tables: a batch becomes columns in one go."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import astuple

from culturekit.kg.dump.entities import Item, Statement
from culturekit.records.schemas import ITEMS, STATEMENTS
from culturekit.storage.tables import save_part

__all__ = ["ITEMS_PER_PART", "LARGEST", "ItemBatch", "part_schema"]

ITEMS_PER_PART = 32_768
LARGEST = 2**16 - 1
"""The store numbers the statements of a property, and counts sitelinks, in two bytes: a hundred times what any item of
Wikidata has. What lies beyond is left out and counted."""

SEPARATOR = "\x1f"
"""The unit separator of ASCII; Wikidata refuses control characters."""


class ItemBatch:
    """Items on their way to the part tables of one folder."""

    def __init__(self, folder: Path, file: int) -> None:
        """Name the folder and the number of the dump file; both tables begin with part 0."""
        self.folder = folder
        self.file = file
        self.parts = 0
        self.left_out: dict[str, int] = {}
        self.items: list[Item] = []
        self.places: list[tuple[int, int, int]] = []

    def add(self, item: Item, member: int, line: int, offset: int) -> None:
        """Take an item; a full batch is written."""
        self.items.append(item)
        self.places.append((member, line, offset))
        if len(self.items) == ITEMS_PER_PART:
            self.write()

    def write(self) -> None:
        """Write what is waiting as a part of each table."""
        if not self.items:
            return
        for name, frame in (("items", self.item_frame()), ("statements", self.statement_frame())):
            save_part(frame, self.folder / f"{name}-{self.parts:05d}.arrows")
        self.parts += 1
        self.items, self.places = [], []

    def item_frame(self) -> pl.DataFrame:
        """Turn the items into columns."""
        columns = columns_of(self.items)
        columns["lat"], columns["lon"] = columns.pop("latitude"), columns.pop("longitude")
        columns["member"], columns["line"], columns["offset"] = zip(*self.places, strict=True)
        columns["file"] = np.full(len(self.items), self.file, np.uint16)
        columns["aliases"] = lists_of(columns["aliases"])
        columns["sitelinks"] = self.counted(columns["sitelinks"])
        return pl.DataFrame([column(name, columns[name], dtype) for name, dtype in part_schema("items").items()])

    def statement_frame(self) -> pl.DataFrame:
        """Turn the statements into columns."""
        counts = [len(item.statements) for item in self.items]
        columns = columns_of([statement for item in self.items for statement in item.statements])
        columns["value"] = [value or None for value in columns["value"]]
        columns["number"] = np.repeat(np.array([item.number for item in self.items], np.uint32), counts)
        columns["line"] = np.repeat(np.array([line for _, line, _ in self.places], np.uint64), counts)
        columns["file"] = np.full(sum(counts), self.file, np.uint16)
        schema = {**part_schema("statements"), "position": pl.UInt32()}
        frame = pl.DataFrame([column(name, columns[name], dtype) for name, dtype in schema.items()])
        kept = frame.filter(pl.col("position") <= LARGEST) if (frame["position"] > LARGEST).any() else frame
        self.leave_out(f"statement beyond the first {LARGEST + 1:,} of its property", frame.height - kept.height)
        return kept.cast({"position": pl.UInt16})

    def counted(self, sitelinks: Sequence[int]) -> pl.Series:
        """Count no more sitelinks than the store has numbers for."""
        numbers = pl.Series(sitelinks, dtype=pl.UInt32)
        kept = numbers.clip(0, LARGEST)
        self.leave_out(f"sitelink beyond the first {LARGEST:,} of its item", int(numbers.sum()) - int(kept.sum()))
        return kept.cast(pl.UInt16)

    def leave_out(self, what: str, count: int) -> None:
        """Count what the store has no number for."""
        if count:
            self.left_out[what] = self.left_out.get(what, 0) + count


def columns_of(records: Sequence[Item] | Sequence[Statement]) -> dict[str, Any]:
    """Turn records into a column for each field."""
    names = (type(records[0]) if records else Statement).__struct_fields__
    columns = zip(*map(astuple, records), strict=True) if records else ((),) * len(names)
    return dict(zip(names, columns, strict=True))


def column(name: str, values: Any, dtype: pl.DataType) -> pl.Series:  # noqa: ANN401
    """Make a column; one of nothing but nulls, as rare facts often are, is made without looking at each."""
    if isinstance(values, tuple) and values and values[0] is None and values.count(None) == len(values):
        return pl.Series(name, [None], dtype).new_from_index(0, len(values))
    return pl.Series(name, values, dtype)


def lists_of(texts: Sequence[Sequence[str]]) -> pl.Series:
    """Make a column of lists; a column for each list would cost more than all the rest.

    The texts are joined and split again by a character that no text of Wikidata has; if one has it, by rows.
    """
    joined = [SEPARATOR.join(some) if some else None for some in texts]
    if sum(map(len, texts)) == sum(text.count(SEPARATOR) + 1 for text in joined if text is not None):
        return pl.Series(joined, dtype=pl.String).str.split(SEPARATOR).fill_null([])
    rows = pl.DataFrame({"row": range(len(texts))})
    flat = pl.DataFrame(
        [(row, text) for row, some in enumerate(texts) for text in some], ["row", "texts"], orient="row"
    )
    lists = flat.group_by("row", maintain_order=True).agg("texts")
    return rows.join(lists, on="row", how="left", maintain_order="left")["texts"].fill_null([])


def part_schema(table: str) -> dict[str, pl.DataType]:
    """Give the columns of a part: those of the table but for the QID, which is made when all stand in order.

    For statements there is also the line they come from.
    """
    if table == "items":
        schema = {**ITEMS.schema, **{name: column.dtype for name, column in ITEMS.optional.items()}}
        return {name: dtype for name, dtype in schema.items() if name != "qid"}
    return {**STATEMENTS.schema, "file": pl.UInt16(), "line": pl.UInt64()}
