"""The pages of a card: what stands where, in words of people and blocks of facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from culturekit.cards.blocks import BLOCKS
from culturekit.cards.facts import Facts
from culturekit.cards.hand import Fields, Hand
from culturekit.cards.hand_sections import MARKER
from culturekit.cards.hub_header import hub_header
from culturekit.cards.markdown import block

__all__ = ["DATASHEET", "DATA_CARD", "PAGES", "README", "rendered"]

README, DATASHEET, DATA_CARD = "README.md", "DATASHEET.md", "DATA_CARD.md"


@dataclass(frozen=True, slots=True)
class Head:
    """A heading of the second level."""

    text: str


@dataclass(frozen=True, slots=True)
class Said:
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


Part: TypeAlias = Head | Said | Known | Filled

DUMP, DUMP_DATE = Known("dump"), Filled(("dump_date",))
PUBLISHER = Filled(("creators", "contact", "homepage", "version", "published", "licence", "citation"))

PAGES: Mapping[str, Sequence[Part]] = MappingProxyType(
    {
        README: (
            Known("at-a-glance"), Known("loading"),
            Head("Motivation"), Said("Motivation"),
            Head("Intended uses"), Said("Intended uses"), Head("Unsuitable uses"), Said("Unsuitable uses"),
            Head("What it holds"), Known("countries"), Known("values"), Known("hops"), Known("schema"),
            Head("How it was made"), DUMP, DUMP_DATE, Known("models"), Known("drops"), Known("review"), Known("stages"),
            Known("notes"),
            Head("Popularity"), Known("popularity"),
            Head("Annotators and agreement"), Said("Annotators and pay"), Filled(("annotators",)), Known("agreement"),
            Head("Biases and limits"), Said("Known biases"), Said("Limitations"), Said("Sensitive content"),
            Said("Social impact"),
            Head("Licence decisions"), Said("Licence decisions"),
            Head("Maintenance"), Said("Maintenance"), PUBLISHER, Filled(("changelog",)),
            Head("Files"), Known("files"),
        ),
        DATASHEET: (
            Head("Motivation"), Said("Motivation"), PUBLISHER,
            Head("Composition"), Known("at-a-glance"), Known("countries"), Known("values"), Known("schema"),
            Said("Limitations"), Said("Sensitive content"),
            Head("Collection"), DUMP, DUMP_DATE, Known("stages"), Known("notes"), Known("hops"),
            Said("Annotators and pay"), Filled(("annotators",)),
            Head("Cleaning and labelling"), Known("models"), Known("drops"), Known("review"), Known("popularity"),
            Known("agreement"),
            Head("Uses"), Said("Intended uses"), Said("Unsuitable uses"), Said("Known biases"), Said("Social impact"),
            Head("Distribution"), Said("Licence decisions"), Known("files"),
            Head("Maintenance"), Said("Maintenance"), Filled(("changelog",)),
        ),
        DATA_CARD: (
            Head("Summary"), Known("at-a-glance"), PUBLISHER,
            Head("Motivation"), Said("Motivation"), Head("Intended uses"), Said("Intended uses"),
            Head("Unsuitable uses"), Said("Unsuitable uses"),
            Head("Provenance"), DUMP, DUMP_DATE, Known("stages"), Known("notes"),
            Head("Transformations"), Known("models"), Known("drops"), Known("review"),
            Head("People and labels"), Said("Annotators and pay"), Filled(("annotators",)), Known("agreement"),
            Head("Distribution of rows"), Known("countries"), Known("hops"), Known("popularity"),
            Head("Risks"), Said("Known biases"), Said("Sensitive content"), Said("Social impact"), Said("Limitations"),
            Head("Access and upkeep"), Said("Licence decisions"), Said("Maintenance"), Filled(("changelog",)),
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
        if isinstance(part, Said) and not (isinstance(before, Head) and before.text == part.section):
            parts.append(f"### {part.section}")
        parts.append(written(part, hand, facts))
    return "\n\n".join(part for part in parts if part) + "\n"


def written(part: Part, hand: Hand, facts: Facts) -> str:
    """Write one part of a page."""
    match part:
        case Head(text):
            return f"## {text}"
        case Said(section):
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
