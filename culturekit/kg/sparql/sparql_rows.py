"""Result rows of an endpoint to the rows that a dump would give: statements, labels, media.

RDF keeps neither the order of an item's statements nor that of its aliases: here they come by value.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

import polars as pl

from culturekit.kg.sparql.sparql_client import Row, Term
from culturekit.records.schemas import STATEMENTS

__all__ = [
    "StatedValue",
    "best_value",
    "image_of",
    "number_of",
    "place_of",
    "stated_values",
    "statement_table",
    "terms_of",
]

ITEM = re.compile(r"^http://www\.wikidata\.org/entity/Q([1-9][0-9]*)$")
PROPERTY = re.compile(r"/(P[1-9][0-9]*)$")
POINT = re.compile(r"^(?:<[^>]*>\s*)?Point\(\s*(\S+)\s+(\S+)\s*\)$", re.IGNORECASE)
GENID = "/.well-known/genid/"
"""How Wikidata's own server names a value that is there and not known."""

RANKS = {"PreferredRank": "preferred", "NormalRank": "normal", "DeprecatedRank": "deprecated"}
RANK_ORDER = ("preferred", "normal")


@dataclass(slots=True)
class StatedValue:
    """A statement as an endpoint gives it, bit by bit: `value` stays None where there is none that has a name."""

    number: int
    property: str
    statement: str
    rank: str = ""
    value: str | None = None
    snak: str = "novalue"
    qualifiers: set[str] = field(default_factory=set)
    without_value: set[str] = field(default_factory=set)

    def take(self, predicate: str, value: Term) -> None:
        """Take in one triple about the statement."""
        if predicate.endswith("#rank"):
            self.rank = RANKS.get(value.value.rpartition("#")[2], "")
        elif "/qualifier/" in predicate:
            self.qualifiers.add(property_of(predicate))
        elif "/novalue/" in value.value:
            self.without_value.add(property_of(value.value))
        elif value.type == "bnode" or GENID in value.value:
            self.snak = "somevalue"
        else:
            self.snak, self.value = "value", value.value

    def all_qualifiers(self) -> set[str]:
        """List its qualifiers; that its own value is none is not one of them."""
        own = {self.property} if self.snak == "novalue" else set()
        return self.qualifiers | (self.without_value - own)


def number_of(term: Term | None) -> int | None:
    """Read an item's IRI as its number; None for anything else."""
    found = ITEM.match(term.value) if term is not None and term.type == "uri" else None
    number = int(found[1]) if found else 0
    return number if 0 < number < 2**32 else None


def property_of(iri: str) -> str:
    """Read the property at the end of an IRI."""
    found = PROPERTY.search(iri)
    return found[1] if found else ""


def stated_values(rows: Iterable[Row]) -> list[StatedValue]:
    """Read statements; a statement without a rank, or about no item, is none."""
    read: dict[str, StatedValue] = {}
    for row in rows:
        number, iri = number_of(row.get("item")), row["statement"].value
        if number is not None:
            each = read.setdefault(iri, StatedValue(number, property_of(row["claim"].value), iri))
            each.take(row["predicate"].value, row["object"])
    return [each for each in read.values() if each.rank]


def statement_table(values: Sequence[StatedValue]) -> pl.DataFrame:
    """Give the statements as the store keeps them, those of an item and property in the order of their values."""
    columns: dict[str, list[object]] = {name: [] for name in STATEMENTS.columns}
    position, before = 0, (0, "")
    for each in sorted(values, key=place_in_table):
        position = position + 1 if (each.number, each.property) == before else 0
        before = (each.number, each.property)
        names = each.all_qualifiers()
        cells = (
            each.number, each.property, position, item_in(each.value), each.snak, each.rank,
            bool(names), "P582" in names,
        )  # fmt: skip
        for name, cell in zip(columns, cells, strict=True):
            columns[name].append(cell)
    return pl.DataFrame(columns, schema=STATEMENTS.schema)


def place_in_table(each: StatedValue) -> tuple[int, str, int, str]:
    """Order statements so that equal facts give equal tables."""
    return each.number, each.property, item_in(each.value) or 2**32, each.statement


def item_in(value: str | None) -> int | None:
    """Read the item that a value names."""
    return None if value is None else number_of(Term("uri", value))


def best_value(values: Iterable[StatedValue]) -> str | None:
    """Take a preferred value, else a normal one; of several the first by value."""
    usable = sorted(
        (RANK_ORDER.index(each.rank), each.value)
        for each in values
        if each.value is not None and each.rank in RANK_ORDER
    )
    return usable[0][1] if usable else None


def image_of(value: str | None) -> str | None:
    """Read the file name at the end of the IRI of a picture on Commons."""
    return None if value is None else unquote(value.rpartition("/Special:FilePath/")[2])


def place_of(value: str | None) -> tuple[float, float] | None:
    """Read latitude and longitude of a point, which has them the other way round."""
    found = POINT.match(value) if value is not None else None
    try:
        return (float(found[2]), float(found[1])) if found else None
    except ValueError:
        return None


def terms_of(rows: Iterable[Row], languages: Sequence[str]) -> Mapping[int, dict[str, object]]:
    """Choose label, description and aliases of each item as the dump's reader does: by language, then by text."""
    texts: dict[int, dict[str, dict[str, list[str]]]] = {}
    for row in rows:
        number, text = number_of(row.get("item")), row["text"]
        if number is not None:
            kinds = texts.setdefault(number, {})
            kind = re.split(r"[/#]", row["kind"].value)[-1]
            kinds.setdefault(kind, {}).setdefault(text.language.lower(), []).append(text.value)
    return {number: chosen(kinds, [code.lower() for code in languages], languages) for number, kinds in texts.items()}


def chosen(
    kinds: Mapping[str, Mapping[str, list[str]]], order: Sequence[str], said: Sequence[str]
) -> dict[str, object]:
    """Choose the terms of one item."""
    label = first_text(kinds.get("label", {}), order)
    description = first_text(kinds.get("description", {}), order)
    aliases = [text for code in order for text in sorted(kinds.get("altLabel", {}).get(code, []))]
    return {
        "label": label[1] if label else None,
        "label_language": said[order.index(label[0])] if label else None,
        "description": description[1] if description else None,
        "aliases": list(dict.fromkeys(aliases)),
    }


def first_text(texts: Mapping[str, list[str]], order: Sequence[str]) -> tuple[str, str] | None:
    """Take the text in the first language that has a usable one."""
    return next(((code, min(texts[code])) for code in order if any(text.strip() for text in texts.get(code, ()))), None)
