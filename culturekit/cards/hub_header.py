"""The YAML header of a Hugging Face dataset card, which `datasets.load_dataset` reads as well."""

from typing import Any

import yaml

from culturekit.cards.card_tables import CardTable, ColumnFacts
from culturekit.cards.facts import Facts
from culturekit.cards.hand import Fields

__all__ = ["hub_header"]

SIZES = (
    (1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"), (1_000_000_000, "100M<n<1B"),
)  # fmt: skip

TYPES = {
    "String": "string", "Boolean": "bool", "Float32": "float32", "Float64": "float64", "Date": "date32",
    "UInt8": "uint8", "UInt16": "uint16", "UInt32": "uint32", "UInt64": "uint64",
    "Int8": "int8", "Int16": "int16", "Int32": "int32", "Int64": "int64",
}  # fmt: skip
"""Types of columns by their name in polars, as the host writes them."""


def hub_header(fields: Fields, facts: Facts) -> str:
    """Write the header; the safe dumper quotes whatever YAML would take for something else."""
    licence = (fields.licence.id or "unknown").lower()
    header: dict[str, Any] = {"pretty_name": fields.title or fields.name, "license": licence}
    if fields.languages:
        header["language"] = list(fields.languages)
    if fields.tags:
        header["tags"] = list(fields.tags)
    shown = [table for table in facts.tables if table.columns and table.rows]
    header["size_categories"] = [size_of(facts.main.rows)]
    header["configs"] = [config_of(table, default=table is facts.main) for table in shown]
    header["dataset_info"] = [info_of(table) for table in shown]
    text = yaml.safe_dump(header, sort_keys=False, allow_unicode=False, width=1_000)
    return f"---\n{text}---"


def size_of(rows: int) -> str:
    """Name the size category of the host."""
    return next((name for limit, name in SIZES if rows < limit), "n>1T" if rows >= 10**12 else "1B<n<10B")


def config_of(table: CardTable, *, default: bool) -> dict[str, Any]:
    """Describe where the splits of a table lie."""
    config: dict[str, Any] = {"config_name": table.name}
    if default:
        config["default"] = True
    config["data_files"] = [{"split": file.split, "path": file.path} for file in table.files]
    return config


def info_of(table: CardTable) -> dict[str, Any]:
    """Describe the columns of a table."""
    return {
        "config_name": table.name,
        "features": [feature_of(column) for column in table.columns],
        "splits": [{"name": f.split, "num_bytes": f.bytes, "num_examples": f.rows} for f in table.files],
        "download_size": sum(file.bytes for file in table.files),
        "dataset_size": sum(file.bytes for file in table.files),
    }


def feature_of(column: ColumnFacts) -> dict[str, Any]:
    """Name a column and its type."""
    inner = column.type.removeprefix("List(").removesuffix(")")
    if column.type.startswith("List("):
        return {"name": column.name, "list": TYPES.get(inner, "string")}
    if column.type.startswith("Datetime"):
        return {"name": column.name, "dtype": "timestamp[us, tz=UTC]" if "UTC" in column.type else "timestamp[us]"}
    return {"name": column.name, "dtype": TYPES.get(column.type, "string")}
