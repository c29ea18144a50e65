"""The pages of a card: what stands where, in words of people and blocks of facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import yaml

from culturekit.cards.blocks import BLOCKS
from culturekit.cards.card_tables import CardTable, ColumnFacts
from culturekit.cards.facts import Facts
from culturekit.cards.hand import MARKER, Fields, Hand
from culturekit.cards.markdown import block

__all__ = ["DATASHEET", "DATA_CARD", "PAGES", "README", "rendered"]

README, DATASHEET, DATA_CARD = "README.md", "DATASHEET.md", "DATA_CARD.md"

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


@dataclass(frozen=True, slots=True)
class Head:
    """A heading of the second level."""

    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """A section of `card.md`."""

    section: str


@dataclass(frozen=True, slots=True)
class Known:
    """A generated block."""

    name: str


@dataclass(frozen=True, slots=True)
class Filled:
    """A list of fields of `card.yaml`, such as `contact`."""

    names: tuple[str, ...]


Part: TypeAlias = Head | Section | Known | Filled

DUMP, DUMP_DATE = Known("dump"), Filled(("dump_date",))
PUBLISHER = Filled(("creators", "contact", "homepage", "version", "published", "licence", "citation"))

PAGES: Mapping[str, Sequence[Part]] = MappingProxyType(
    {
        README: (
            Known("at-a-glance"), Known("loading"),
            Head("Motivation"), Section("Motivation"),
            Head("Intended uses"), Section("Intended uses"), Head("Unsuitable uses"), Section("Unsuitable uses"),
            Head("What it holds"), Known("countries"), Known("values"), Known("hops"), Known("schema"),
            Head("How it was made"), DUMP, DUMP_DATE, Known("models"), Known("drops"), Known("review"), Known("stages"),
            Known("notes"),
            Head("Popularity"), Known("popularity"),
            Head("Annotators and agreement"), Section("Annotators and pay"),
            Filled(("annotators",)), Known("agreement"),
            Head("Biases and limits"), Section("Known biases"), Section("Limitations"), Section("Sensitive content"),
            Section("Social impact"),
            Head("Licence decisions"), Section("Licence decisions"),
            Head("Maintenance"), Section("Maintenance"), PUBLISHER, Filled(("changelog",)),
            Head("Files"), Known("files"),
        ),
        DATASHEET: (
            Head("Motivation"), Section("Motivation"), PUBLISHER,
            Head("Composition"), Known("at-a-glance"), Known("countries"), Known("values"), Known("schema"),
            Section("Limitations"), Section("Sensitive content"),
            Head("Collection"), DUMP, DUMP_DATE, Known("stages"), Known("notes"), Known("hops"),
            Section("Annotators and pay"), Filled(("annotators",)),
            Head("Cleaning and labelling"), Known("models"), Known("drops"), Known("review"), Known("popularity"),
            Known("agreement"),
            Head("Uses"), Section("Intended uses"), Section("Unsuitable uses"),
            Section("Known biases"), Section("Social impact"),
            Head("Distribution"), Section("Licence decisions"), Known("files"),
            Head("Maintenance"), Section("Maintenance"), Filled(("changelog",)),
        ),
        DATA_CARD: (
            Head("Summary"), Known("at-a-glance"), PUBLISHER,
            Head("Motivation"), Section("Motivation"), Head("Intended uses"), Section("Intended uses"),
            Head("Unsuitable uses"), Section("Unsuitable uses"),
            Head("Provenance"), DUMP, DUMP_DATE, Known("stages"), Known("notes"),
            Head("Transformations"), Known("models"), Known("drops"), Known("review"),
            Head("People and labels"), Section("Annotators and pay"), Filled(("annotators",)), Known("agreement"),
            Head("Distribution of rows"), Known("countries"), Known("hops"), Known("popularity"),
            Head("Risks"), Section("Known biases"), Section("Sensitive content"), Section("Social impact"),
            Section("Limitations"),
            Head("Access and upkeep"), Section("Licence decisions"), Section("Maintenance"), Filled(("changelog",)),
        ),
    }
)  # fmt: skip
"""The README of a dataset host, a datasheet in the order of that genre, and a data card in the order of its own."""

TITLES = {README: "", DATASHEET: "Datasheet: ", DATA_CARD: "Data card: "}
INTRODUCTIONS = {
    README: "",
    DATASHEET: "Questions that a reader of data asks, answered in the order of datasheets for datasets.",
    DATA_CARD: "The same release in the order of a data card: who, what for, from where, with which risks.",
}


def rendered(page: str, hand: Hand, facts: Facts) -> str:
    """Write a page; the same hand-written card and facts give the same bytes."""
    fields = hand.fields
    parts = [hub_header(fields, facts)] if page == README else []
    parts += [
        f"# {TITLES[page]}{in_one_line(fields.title or fields.name)}",
        INTRODUCTIONS[page],
        in_one_line(fields.summary),
    ]
    shown = PAGES[page]
    for before, part in zip((None, *shown), shown, strict=False):
        if isinstance(part, Section) and not (isinstance(before, Head) and before.text == part.section):
            parts.append(f"### {part.section}")
        parts.append(written(part, hand, facts))
    return "\n\n".join(part for part in parts if part) + "\n"


def written(part: Part, hand: Hand, facts: Facts) -> str:
    """Write one part of a page."""
    match part:
        case Head(text):
            return f"## {text}"
        case Section(section):
            return hand.sections.get(section) or f"{MARKER}: {section}"
        case Known(name):
            return block(name, BLOCKS[name](facts))
        case Filled(names):
            return "\n".join(line for name in names for line in LINES[name](hand.fields))


def in_one_line(text: str | None) -> str:
    """Write words of people, who may use Markdown, without line breaks and markup of HTML."""
    return " ".join((text or MARKER).split()).replace("<", "&lt;")


def line(label: str, text: str | None) -> list[str]:
    """Write one field as an item of a list."""
    return [f"- {label}: {in_one_line(text)}"]


def changes(fields: Fields) -> list[str]:
    """Write the changelog."""
    return [
        f"- {in_one_line(change.version)} ({in_one_line(change.date)}): {' '.join(map(in_one_line, change.changes))}"
        for change in fields.changelog
    ] or [f"- Changes: {MARKER}"]


LINES = {
    "creators": lambda f: line("Made by", ", ".join(f.creators)),
    "contact": lambda f: line("Contact", f.contact),
    "homepage": lambda f: line("Home", f.homepage) if f.homepage else [],
    "version": lambda f: line("Version", f.version),
    "published": lambda f: line("Published", f.published),
    "licence": lambda f: line("Licence", " ".join(filter(None, (f.licence.id, f.licence.url)))),
    "citation": lambda f: line("Cite as", f.citation) if f.citation else [],
    "dump_date": lambda f: line("Date of the dump", f.dump_date) if f.dump_date else [],
    "annotators": lambda f: [*line("Annotators", f.annotators.who), *line("Pay", f.annotators.pay)],
    "changelog": changes,
}
"""How each field is written."""


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
