"""Decoded items to part tables: a batch becomes columns in one go."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from culturekit.kg.entities import Item
from culturekit.records.schemas import ITEMS, STATEMENTS
from culturekit.storage.tables import save_part

__all__ = ["ITEMS_PER_PART", "ItemBatch", "part_schema"]

ITEMS_PER_PART = 32_768


class ItemBatch:
    """Items on their way to the part tables of one folder."""

    def __init__(self, folder: Path, file: int) -> None:
        """Name the folder and the number of the dump file; both tables begin with part 0."""
        self.folder = folder
        self.file = file
        self.parts = 0
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
            save_part(frame, self.folder / f"{name}-{self.parts:05d}.parquet")
        self.parts += 1
        self.items, self.places = [], []

    def item_frame(self) -> pl.DataFrame:
        """Turn the items into columns."""
        items = self.items
        members, lines, offsets = zip(*self.places, strict=True)
        columns: dict[str, object] = {
            "number": [item.number for item in items],
            "label": [item.label for item in items],
            "label_language": [item.label_language for item in items],
            "description": [item.description for item in items],
            "sitelinks": [item.sitelinks for item in items],
            "title": [item.title for item in items],
            "image": [item.image for item in items],
            "lat": [item.latitude for item in items],
            "lon": [item.longitude for item in items],
            "iso": [item.iso for item in items],
            "demonym": [item.demonym for item in items],
            "member": members,
            "line": lines,
            "offset": offsets,
        }
        schema = part_schema("items")
        frame = pl.DataFrame(columns, schema={name: schema[name] for name in columns})
        aliases = lists_of([item.aliases for item in items])
        made = {"qid": pl.format("Q{}", "number"), "file": pl.lit(self.file, schema["file"])}
        return frame.with_columns(aliases=aliases, **made).select(list(schema))

    def statement_frame(self) -> pl.DataFrame:
        """Turn the statements into columns."""
        counts = [len(item.statements) for item in self.items]
        said = [statement for item in self.items for statement in item.statements]
        fields = ("property", "position", "value", "snak", "rank", "qualified", "ended")
        schema = part_schema("statements")
        columns = {name: [getattr(statement, name) for statement in said] for name in fields}
        frame = pl.DataFrame(columns, schema={name: schema[name] for name in fields})
        numbers = np.repeat(np.array([item.number for item in self.items], np.uint32), counts)
        lines = np.repeat(np.array([line for _, line, _ in self.places], np.uint64), counts)
        made = {"value": pl.col("value").replace(0, None), "file": pl.lit(self.file, schema["file"])}
        return frame.with_columns(number=numbers, line=lines, **made).select(list(schema))


def lists_of(texts: Sequence[Sequence[str]]) -> pl.Series:
    """Make a column of lists from one long column: a column for each list would cost more than all the rest."""
    counts = np.fromiter(map(len, texts), np.int64, len(texts))
    flat = pl.DataFrame(
        {"row": np.repeat(np.arange(len(texts)), counts), "texts": [text for some in texts for text in some]},
        schema={"row": pl.Int64, "texts": pl.String},
    )
    lists = flat.group_by("row", maintain_order=True).agg("texts")
    rows = pl.DataFrame({"row": np.arange(len(texts))}, schema={"row": pl.Int64})
    return rows.join(lists, on="row", how="left", maintain_order="left")["texts"].fill_null([])


def part_schema(table: str) -> dict[str, pl.DataType]:
    """Give the columns of a part: those of the table, and for statements also the line they come from."""
    if table == "items":
        return {**ITEMS.schema, **{name: column.dtype for name, column in ITEMS.optional.items()}}
    return {**STATEMENTS.schema, "file": pl.UInt16(), "line": pl.UInt64()}
