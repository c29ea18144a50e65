"""Writing the public CUBE layout: a JSON array of rows with text in every field, lists as Python writes them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.builders.space.public_cube import (
    CONCEPTS,
    NOTHING,
    Key,
    is_public_cube,
    key_of,
    keyed_rows,
    read_rows,
    slug,
)
from culturekit.records.schemas import KEPT
from culturekit.storage.atomic import whole_file
from culturekit.storage.tables import read_table

__all__ = ["STATEMENTS", "Statements", "public_rows", "statements_of", "statements_of_file", "write_public"]

STATEMENTS = ("P31", "P279", "P495", "P17", "P2012", "P361")

Statements = Mapping[str, Mapping[str, str]]
"""The statement cells of artifacts, by their id."""


def write_public(path: Path, rows: Iterable[Mapping[str, str]]) -> int:
    """Write rows as they come, whole or not at all, and count them."""
    count = 0
    with whole_file(path) as file:
        for row in rows:
            text = json.dumps(row, ensure_ascii=False, indent=1).replace("\n", "\n ")
            file.write(f"{',' if count else '['}\n {text}".encode())
            count += 1
        file.write(b"\n]\n" if count else b"[]\n")
    return count


def public_rows(
    artifacts: Iterable[Mapping[str, Any]], prompts: Mapping[Key, str], statements: Statements
) -> list[dict[str, str]]:
    """Give a row per artifact and country of CUBE's concepts; other concepts have no place in this layout."""
    return [
        {
            **dict.fromkeys(STATEMENTS, NOTHING),
            **statements.get(row["artifact_id"], {}),
            "id": public_id(row),
            "name": row["name"],
            "country": row["country_name"],
            "domain": row["concept"],
            "prompt": prompts.get(key_of(row), NOTHING),
        }
        for row in artifacts
        if row["concept"] in CONCEPTS
    ]


def public_id(row: Mapping[str, Any]) -> str:
    """Write an id as released: the item, or LLM; a slug that the name does not give is written out."""
    if row["qid"]:
        return str(row["qid"])
    plain = row["artifact_id"] == f"LLM:{slug(row['name'])}"
    return "LLM" if plain else str(row["artifact_id"])


def statements_of(kept: pl.DataFrame) -> dict[str, dict[str, str]]:
    """Write the statements of kept candidates as cells; what no graph knows has none."""
    columns = [name.lower() for name in STATEMENTS]
    known = kept.filter(pl.col("qid").str.starts_with("Q")).select("qid", *columns)
    return {
        qid: {name: str(cell) for name, cell in zip(STATEMENTS, cells, strict=True)} for qid, *cells in known.rows()
    }


def statements_of_file(path: Path) -> dict[str, dict[str, str]]:
    """Read the statement cells of a kept table, or of a file in the public layout as they stand there."""
    if not is_public_cube(path):
        return statements_of(read_table(path, KEPT))
    cells: dict[str, dict[str, str]] = {}
    for key, row in keyed_rows(read_rows(path)):
        if key is not None:
            cells.setdefault(key[2], {name: row.get(name) or NOTHING for name in STATEMENTS})
    return cells
