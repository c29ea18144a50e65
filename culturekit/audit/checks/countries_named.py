"""Countries that are not known, can mean several, or are written in a way of their own."""

import re
from collections.abc import Iterator
from functools import cache

import pycountry

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.folding import fold
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Row, Sheet
from culturekit.kg.countries import Country, countries

__all__ = ["CHECK"]

UNKNOWN = Code(
    "country-unknown", "error", "a country that countries.yaml does not know, or none at all", "the row is set aside"
)
AMBIGUOUS = Code("country-ambiguous", "error", "words that can mean several countries", "the row is set aside")
SPELLING = Code(
    "country-spelling",
    "warning",
    "a country under another name, its adjective or a code, or a country_name that does not go with the code",
    "the name, or the code, that countries.yaml has",
)
SEVERAL = re.compile(r"\s*(?:[,;/&|]|\band\b|\bor\b)\s*")


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at the country of every row; a prompt of no country may leave it open."""
    column = sheet.column("country")
    for row in sheet.rows:
        country = sheet.country(row)
        if country is not None:
            yield from named_otherwise(sheet, row, country)
        elif not may_be_open(sheet, row):
            yield name_it(sheet, row, column)


def may_be_open(sheet: Sheet, row: Row) -> bool:
    """Tell whether a prompt is of a kind that names no country."""
    stated = sheet.text(row, "country").strip()
    return sheet.layout.name == "prompts" and not stated and row.cells.get("kind") != "cube"


def name_it(sheet: Sheet, row: Row, column: str) -> Finding:
    """Say what is wrong with a country, and which one is meant where only one can be."""
    stated = sheet.text(row, "country")
    meant = meanings(stated)
    if len(meant) == 1 and meant[0] in countries():
        country = countries()[meant[0]]
        wanted = country.iso if sheet.layout.countries == "iso" else country.name
        return SPELLING.finding(
            f"{quoted(stated)} is {country.name}",
            row=row.number,
            field=column,
            value=stated,
            suggestion=f"write {quoted(wanted)}",
            changes=(Change(row.number, {column: wanted}),),
        )
    code, message = UNKNOWN, f"{quoted(stated)} is no country that countries.yaml knows"
    if len(meant) > 1:
        code, message = AMBIGUOUS, f"{quoted(stated)} can mean {', '.join(meant[:6])}"
    suggestion = "name one country; --countries-file adds countries"
    return code.finding(
        message,
        row=row.number,
        field=column,
        value=stated,
        suggestion=suggestion,
        changes=(Change(row.number),),
    )


@cache
def meanings(stated: str) -> tuple[str, ...]:
    """List the countries that words can mean: ISO codes of known ones, names of others."""
    words = fold(stated)[:200]
    known = {country.iso for country in countries().values() if words in map(fold, words_of(country))}
    if known:
        return tuple(sorted(known))
    parts = [part for part in SEVERAL.split(words) if part]
    if len(parts) > 1:
        return tuple(sorted({meaning for part in parts for meaning in meanings(part)}))
    return tuple(sorted(elsewhere(words)))


def words_of(country: Country) -> list[str]:
    """List the words that a country goes by here."""
    entry = pycountry.countries.get(alpha_2=country.iso)
    further = [getattr(entry, name, "") for name in ("name", "official_name", "common_name")] if entry else []
    return [
        word for word in (country.name, country.adjective, country.demonym, country.iso, country.iso3, *further) if word
    ]


def elsewhere(words: str) -> set[str]:
    """Look for words in the names of all countries and of their parts: Korea is two, Georgia a state as well."""
    if not words:
        return set()
    among = re.compile(rf"\b{re.escape(words)}\b")
    found = {entry.name for entry in pycountry.countries if among.search(fold(entry.name))}
    parts = {f"{part.name} ({part.country.name})" for part in pycountry.subdivisions if fold(part.name) == words}
    return found | parts


def named_otherwise(sheet: Sheet, row: Row, country: Country) -> Iterator[Finding]:
    """Say where a table's name of a country does not go with its code."""
    for column, wanted in (("country_name", country.name), ("continent", country.continent)):
        stated = row.cells.get(column)
        if column in sheet.columns and sheet.layout.name == "cspace" and stated != wanted:
            yield SPELLING.finding(
                f"{country.iso} is {wanted}, not {quoted(str(stated))}",
                row=row.number,
                field=column,
                value=str(stated),
                suggestion=f"write {quoted(wanted)}",
                changes=(Change(row.number, {column: wanted}),),
            )


CHECK = Check(Turn.CELL, (UNKNOWN, AMBIGUOUS, SPELLING), find)
