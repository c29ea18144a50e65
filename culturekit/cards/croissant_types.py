"""Columns of tables as fields of Croissant, and what each type is called there."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from culturekit.cards.card_tables import CardTable, ColumnFacts
from culturekit.cards.columns import meaning_of

__all__ = ["data_type", "field_of", "file_set_id", "is_list"]

TYPES: Mapping[str, str] = MappingProxyType(
    {
        "String": "sc:Text", "Boolean": "sc:Boolean", "Date": "sc:Date",
        "Float32": "cr:Float32", "Float64": "cr:Float64",
        "UInt8": "cr:UInt8", "UInt16": "cr:UInt16", "UInt32": "cr:UInt32", "UInt64": "cr:UInt64",
        "Int8": "cr:Int8", "Int16": "cr:Int16", "Int32": "cr:Int32", "Int64": "cr:Int64",
    }
)  # fmt: skip


def is_list(column: ColumnFacts) -> bool:
    """Tell whether the cells of a column are lists."""
    return column.type.startswith("List(")


def data_type(column: ColumnFacts) -> str:
    """Name the type of a cell, or of the elements of a list cell."""
    inner = column.type.removeprefix("List(").removesuffix(")") if is_list(column) else column.type
    return "sc:DateTime" if inner.startswith("Datetime") else TYPES.get(inner, "sc:Text")


def file_set_id(table: CardTable) -> str:
    """Name the files of a table."""
    return f"{table.name}-files"


def field_of(table: CardTable, column: ColumnFacts) -> dict[str, Any]:
    """Describe one column, and where it is found."""
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{table.name}/{column.name}",
        "name": column.name,
        "description": meaning_of(column.name) or f"Column {column.name} of {table.name}.",
        "dataType": data_type(column),
        "source": {"fileSet": {"@id": file_set_id(table)}, "extract": {"column": column.name}},
    }
    if is_list(column):
        field |= {"isArray": True, "arrayShape": "-1"}
    return field
