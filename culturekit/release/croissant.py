"""The Croissant 1.1 description of a card, with the vocabulary for responsible use (RAI)."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import orjson

from culturekit.release.card_facts import MEANINGS, CardTable, ColumnFacts, Facts, FileFacts
from culturekit.release.card_hand import MARKER, Hand
from culturekit.release.card_pages import under_review_sentence

_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "String": "sc:Text", "Boolean": "sc:Boolean", "Date": "sc:Date",
        "Float32": "cr:Float32", "Float64": "cr:Float64",
        "UInt8": "cr:UInt8", "UInt16": "cr:UInt16", "UInt32": "cr:UInt32", "UInt64": "cr:UInt64",
        "Int8": "cr:Int8", "Int16": "cr:Int16", "Int32": "cr:Int32", "Int64": "cr:Int64",
    }
)  # fmt: skip


def _is_list(column: ColumnFacts) -> bool:
    """Tell whether the cells of a column are lists."""
    return column.type.startswith("List(")


def _data_type(column: ColumnFacts) -> str:
    """Name the type of a cell, or of the elements of a list cell."""
    inner = column.type.removeprefix("List(").removesuffix(")") if _is_list(column) else column.type
    return "sc:DateTime" if inner.startswith("Datetime") else _TYPES.get(inner, "sc:Text")


def _file_set_id(table: CardTable) -> str:
    """Name the files of a table."""
    return f"{table.name}-files"


def _field_of(table: CardTable, column: ColumnFacts) -> dict[str, Any]:
    """Describe one column, and where it is found."""
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{table.name}/{column.name}",
        "name": column.name,
        "description": MEANINGS.get(column.name) or f"Column {column.name} of {table.name}.",
        "dataType": _data_type(column),
        "source": {"fileSet": {"@id": _file_set_id(table)}, "extract": {"column": column.name}},
    }
    if _is_list(column):
        field |= {"isArray": True, "arrayShape": "-1"}
    return field


CROISSANT = "croissant.json"

_CONFORMS = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")

_CONTEXT: Mapping[str, Any] = MappingProxyType(
    {
        "@language": "en", "@vocab": "https://schema.org/", "arrayShape": "cr:arrayShape", "citeAs": "cr:citeAs",
        "column": "cr:column", "conformsTo": "dct:conformsTo", "containedIn": "cr:containedIn",
        "cr": "http://mlcommons.org/croissant/", "data": {"@id": "cr:data", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"}, "dct": "http://purl.org/dc/terms/",
        "description": {"@container": "@language"}, "equivalentProperty": "cr:equivalentProperty",
        "examples": {"@id": "cr:examples", "@type": "@json"}, "extract": "cr:extract", "field": "cr:field",
        "fileObject": "cr:fileObject", "fileProperty": "cr:fileProperty", "fileSet": "cr:fileSet",
        "format": "cr:format", "includes": "cr:includes", "isArray": "cr:isArray", "isLiveDataset": "cr:isLiveDataset",
        "jsonPath": "cr:jsonPath", "key": "cr:key", "md5": "cr:md5", "name": {"@container": "@language"},
        "parentField": "cr:parentField", "path": "cr:path", "rai": "http://mlcommons.org/croissant/RAI/",
        "recordSet": "cr:recordSet", "references": "cr:references", "regex": "cr:regex", "repeated": "cr:repeated",
        "replace": "cr:replace", "samplingRate": "cr:samplingRate", "sc": "https://schema.org/",
        "separator": "cr:separator", "source": "cr:source", "subField": "cr:subField", "transform": "cr:transform",
    }
)  # fmt: skip

_FORMATS = {
    ".parquet": "application/x-parquet", ".csv": "text/csv", ".jsonl": "application/jsonlines",
    ".json": "application/json", ".tsv": "text/tab-separated-values", ".md": "text/markdown",
    ".yaml": "application/yaml", ".nt": "application/n-triples", ".ttl": "text/turtle",
    ".jsonld": "application/ld+json",
}  # fmt: skip

_KEYS = {"cspace": ("concept", "country", "artifact_id"), "prompts": ("prompt_id",)}


def croissant_bytes(hand: Hand, facts: Facts) -> bytes:
    """Write the description, the same bytes for the same card."""
    return orjson.dumps(croissant_of(hand, facts), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def croissant_of(hand: Hand, facts: Facts) -> dict[str, Any]:
    """Describe a release: its files with their hashes, its tables as record sets, and how to use it responsibly."""
    fields = hand.fields
    objects = [_file_object(file) for table in facts.tables for file in table.files]
    described: dict[str, Any] = {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": list(_CONFORMS),
        "name": fields.name,
        "description": fields.summary or MARKER,
        "version": fields.version or "0.0.0",
        "license": fields.licence.url or fields.licence.id or MARKER,
        "creator": [{"@type": "sc:Organization", "name": name} for name in fields.creators],
        "publisher": [{"@type": "sc:Organization", "name": name} for name in fields.creators],
        "keywords": list(fields.tags),
        "inLanguage": list(fields.languages),
        **_optional(hand),
        **_responsible(hand, facts),
        "distribution": [
            *objects, *(_file_set(table) for table in facts.tables), *(_file_object(file) for file in facts.others),
        ],
        "recordSet": [_record_set(table) for table in facts.tables if table.columns],
    }  # fmt: skip
    return {key: value for key, value in described.items() if value not in ([], "", None)}


def _optional(hand: Hand) -> dict[str, Any]:
    """Give what a card may leave out, or has not been given yet."""
    fields = hand.fields
    published = fields.published if fields.published and MARKER not in fields.published else None
    named = (", ".join(fields.creators), fields.title or fields.name, fields.version, fields.published)
    cited = fields.citation or ". ".join(filter(None, named))
    return {"url": fields.homepage, "datePublished": published, "citeAs": cited}


def _responsible(hand: Hand, facts: Facts) -> dict[str, Any]:
    """Say in the words of the RAI vocabulary what the hand-written sections say."""
    sections = {name: text for name, text in hand.sections.items() if text}
    dropped = [f"{drop.stage}: {drop.reason} ({drop.count:,})" for drop in facts.drops]
    tools = sorted({f"{stage}, {setting.name}: {setting.value}" for stage, setting in facts.settings})
    dumps = ", ".join(f"{dump.name} (SHA-256 {dump.sha256})" for dump in facts.dumps)
    waiting = under_review_sentence(facts) if facts.under_review else ""
    dates = [dump.date for dump in facts.dumps if dump.date] or [hand.fields.dump_date or ""]
    return {
        "rai:dataCollection": f"Walked from root classes in {dumps}." if dumps else "",
        "rai:dataCollectionType": ["Secondary Data Analysis", "Software Collection"],
        "rai:dataCollectionTimeFrame": [date for date in dates if date and MARKER not in date],
        "rai:dataPreprocessingProtocol": dropped,
        "rai:machineAnnotationTools": tools,
        "rai:annotatorDemographics": _demographics(hand),
        "rai:dataAnnotationAnalysis": [
            *(orjson.dumps(row).decode() for row in facts.agreement),
            *(f"{measure}, {where}: {found}; {of} judged" for measure, where, found, of in facts.checked),
        ],
        "rai:dataUseCases": [text for text in (sections.get("Intended uses"), sections.get("Unsuitable uses")) if text],
        "rai:dataBiases": [text for text in (sections.get("Known biases"),) if text],
        "rai:dataLimitations": [text for text in (sections.get("Limitations"), waiting) if text],
        "rai:dataSocialImpact": sections.get("Social impact", ""),
        "rai:personalSensitiveInformation": [text for text in (sections.get("Sensitive content"),) if text],
        "rai:dataReleaseMaintenancePlan": sections.get("Maintenance", ""),
    }


def _demographics(hand: Hand) -> list[str]:
    """Say who judged, and for what pay."""
    people = hand.fields.annotators
    parts = (hand.sections.get("Annotators and pay"), people.who, f"Pay: {people.pay}" if people.pay else None)
    return [text for text in parts if text]


def _file_object(file: FileFacts) -> dict[str, Any]:
    """Describe one file."""
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path,
        "description": "A file of the release." if file.rows is None else f"{file.rows:,} rows.",
        "contentUrl": file.path,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": _FORMATS.get(PurePosixPath(file.path).suffix, "text/plain"),
        "sha256": file.sha256,
    }


def _file_set(table: CardTable) -> dict[str, Any]:
    """Describe the files of a table together."""
    return {
        "@type": "cr:FileSet",
        "@id": _file_set_id(table),
        "name": _file_set_id(table),
        "description": f"All splits of {table.name}.",
        "encodingFormat": _FORMATS[".parquet"],
        "includes": f"data/{table.name}/*.parquet",
    }


def _record_set(table: CardTable) -> dict[str, Any]:
    """Describe a table: its columns, and which of them tell rows apart."""
    names = {column.name for column in table.columns}
    key = [{"@id": f"{table.name}/{name}"} for name in _KEYS.get(table.name, ()) if name in names]
    described: dict[str, Any] = {
        "@type": "cr:RecordSet", "@id": table.name, "name": table.name, "description": f"{table.rows:,} rows.",
        "field": [_field_of(table, column) for column in table.columns],
    }  # fmt: skip
    return {**described, "key": key} if key else described
