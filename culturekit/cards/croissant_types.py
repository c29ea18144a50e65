"""Columns of tables as fields of Croissant, and what each type is called there."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from culturekit.cards.card_tables import CardTable, ColumnFacts

__all__ = ["data_type", "field_of", "file_set_id", "is_list", "meaning_of"]

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "artifact_id": "the Wikidata item, or LLM: or list: and a slug of the name where none is known",
        "qid": "the Wikidata item",
        "name": "what the artifact is called",
        "concept": "cuisine, landmarks, art, or another concept of the release",
        "subconcept": "a finer kind within the concept",
        "country": "ISO 3166-1 alpha-2 code of the country",
        "country_name": "English name of the country",
        "continent": "continent of the country",
        "source": "wikidata where a walk found it, llm where a model proposed it, list where a person's file names it",
        "popularity": "rank within country and concept, 1 for the best known",
        "popularity_source": "what the rank was made of",
        "path": "items from the root class to the artifact, as a walk found them",
        "country_order": "0 for the country that the item states first",
        "aliases": "other names",
        "verdict": "keep, or review where nobody kept it and it waits for a person to look at",
        "prompt_id": "stable id of the prompt",
        "text": "what a model is asked for",
        "negative_text": "what a model is asked to leave out",
        "benchmark": "the benchmark that the prompt belongs to",
        "kind": "whether the prompt names an artifact, a country, or neither",
        "group": "the group of people or places that the prompt is about",
        "language": "language of the text",
        "template_id": "the template that the prompt was made with",
        "key": "what was left out",
        "stage": "the stage that left it out",
        "reason": "why",
        "detail": "what the reason is about",
    }
)


def meaning_of(column: str) -> str:
    """Say what a column means; nothing where it is not one of ours."""
    return MEANINGS.get(column, "")


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
