"""Countries and concepts that are not known or written in a way of their own, and how evenly rows spread over them."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from statistics import median

import pycountry

from culturekit.builders.country_names import country_code
from culturekit.builders.space.public_cube import CONCEPTS
from culturekit.core.errors import counted
from culturekit.kg.countries import countries
from culturekit.release.findings import Change, Code, Finding, Knowledge, Turn, check, quoted
from culturekit.release.sheet import Row, Sheet, fold

COUNTRY_UNKNOWN = Code(
    "country-unknown", "error", "a country that countries.yaml does not know, or none at all", "the row is set aside"
)
COUNTRY_AMBIGUOUS = Code("country-ambiguous", "error", "words that can mean several countries", "the row is set aside")
COUNTRY_SPELLING = Code(
    "country-spelling", "warning",
    "a country under another name, its adjective or a code, or a country_name that does not go with the code",
    "the name, or the code, that countries.yaml has",
)  # fmt: skip
SEVERAL = re.compile(r"\s*(?:[,;/&|]|\band\b|\bor\b)\s*")


@check(Turn.CELL, COUNTRY_UNKNOWN, COUNTRY_AMBIGUOUS, COUNTRY_SPELLING)
def countries_named(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at the country of every row; a prompt of a kind that names none may leave it open."""
    column, of_space, of_prompts = (
        sheet.column("country"),
        sheet.layout.name == "cspace",
        sheet.layout.name == "prompts",
    )
    for row in sheet.rows:
        country = sheet.country(row)
        if country is None:
            is_blank = not sheet.text(row, "country").strip()
            if not (of_prompts and is_blank and row.cells.get("kind") != "cube"):
                yield name_it(sheet, row, column)
            continue
        for named, wanted in (("country_name", country.name), ("continent", country.continent)) if of_space else ():
            stated = row.cells.get(named)
            if named in sheet.columns and stated != wanted:
                message = f"{country.iso} is {wanted}, not {quoted(str(stated))}"
                yield COUNTRY_SPELLING.rewrite(message, row, named, str(stated), wanted=wanted)


def name_it(sheet: Sheet, row: Row, column: str) -> Finding:
    """Say what is wrong with a country, and which one is meant where only one can be."""
    stated = sheet.text(row, "country")
    meant = meanings(stated)
    if len(meant) == 1 and meant[0] in countries():
        country = countries()[meant[0]]
        wanted = country.iso if sheet.layout.countries == "iso" else country.name
        return COUNTRY_SPELLING.rewrite(f"{quoted(stated)} is {country.name}", row, column, stated, wanted=wanted)
    code, message = COUNTRY_UNKNOWN, f"{quoted(stated)} is no country that countries.yaml knows"
    if len(meant) > 1:
        code, message = COUNTRY_AMBIGUOUS, f"{quoted(stated)} can mean {', '.join(meant[:6])}"
    suggestion = "name one country; --countries-file adds countries, `world` all"
    return code.set_aside(message, row, column, stated, suggestion=suggestion)


@cache
def meanings(stated: str) -> tuple[str, ...]:
    """List the countries that words can mean: ISO codes of known ones, names of others."""
    words = fold(stated)[:200]
    code = country_code(stated)
    if code in countries():
        return (str(code),)
    parts = [part for part in SEVERAL.split(words) if part]
    if len(parts) > 1:
        return tuple(sorted({meaning for part in parts for meaning in meanings(part)}))
    return tuple(sorted(elsewhere(words)))


def elsewhere(words: str) -> set[str]:
    """Look for words in the names of all countries and of their parts: Korea is two; what one is called is that one."""
    if not words:
        return set()
    kinds = ("name", "common_name", "official_name")
    called = {one.name for one in pycountry.countries if words in (fold(getattr(one, kind, "")) for kind in kinds)}
    if called:
        return called
    among = re.compile(rf"\b{re.escape(words)}\b")
    found = {entry.name for entry in pycountry.countries if among.search(fold(entry.name))}
    parts = {f"{part.name} ({part.country.name})" for part in pycountry.subdivisions if fold(part.name) == words}
    return found | parts


CONCEPT_UNKNOWN = Code(
    "concept-unknown", "error", "a concept that is none of CUBE's, or none at all", "the row is set aside"
)
CONCEPT_SPELLING = Code("concept-spelling", "warning", "a concept in other letters than its own", "its own letters")
CONCEPT_MIXED = Code(
    "concept-mixed", "warning", "one concept under several names in one file (landscapes, landmarks)", "its own name"
)


@check(Turn.CELL, CONCEPT_UNKNOWN, CONCEPT_SPELLING, CONCEPT_MIXED)
def concepts_named(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at the concept of every row, then at the names that each concept goes by."""
    names, column = {fold(name): name for name in CONCEPTS}, sheet.column("concept")
    names |= {fold(known): known for row in sheet.rows if (known := sheet.concept(row)) and known == fold(known)}
    for row in sheet.rows:
        text = sheet.text(row, "concept")
        stated = text.strip()
        spelled = names.get(fold(stated))
        if spelled is not None and stated != spelled:
            yield CONCEPT_SPELLING.rewrite(f"{quoted(stated)} is {spelled}", row, column, text, wanted=spelled)
        elif sheet.concept(row) is None:
            suggestion = f"one of {', '.join(sorted(set(CONCEPTS.values())))}"
            message = f"{quoted(stated)} is no concept"
            yield CONCEPT_UNKNOWN.set_aside(message, row, column, text, suggestion=suggestion)
    yield from mixed(sheet)


def mixed(sheet: Sheet) -> Iterator[Finding]:
    """Say where a concept goes by several names."""
    column = sheet.column("concept")
    counts = Counter(sheet.text(row, "concept").strip() for row in sheet.rows)
    for concept in sorted(set(CONCEPTS.values())):
        names = sorted(name for name, concept_name in CONCEPTS.items() if concept_name == concept and counts[name])
        if len(names) > 1:
            listed = ", ".join(f"{name} ({counted(counts[name], 'rows')})" for name in names)
            others = [row for row in sheet.rows if sheet.text(row, "concept").strip() in set(names) - {concept}]
            yield CONCEPT_MIXED.finding(
                f"{concept} go by several names: {listed}", None, column, ", ".join(names),
                suggestion=f"write {quoted(concept)} everywhere",
                changes=tuple(Change(row.number, {column: concept}) for row in others),
            )  # fmt: skip


IMBALANCE = Code(
    "imbalance", "note",
    "a country has less than half of what countries have of a concept in the middle, more than twice, or nothing",
    "nothing: rows must be found, or left out, by a person",
)  # fmt: skip
MANY = 2


@check(Turn.FILE, IMBALANCE)
def imbalance(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Hold the count of every country and concept against the median of the concept."""
    counts = Counter(
        (concept, country.name)
        for row in sheet.rows
        if (country := sheet.country(row)) is not None and (concept := sheet.concept(row)) is not None
    )
    names = sorted({name for _, name in counts})
    if len(names) < MANY:
        return
    for concept in sorted({concept for concept, _ in counts}):
        middle = median(counts[concept, name] for name in names)
        for name in names:
            count = counts[concept, name]
            if count == 0 or not middle / MANY <= count <= middle * MANY:
                yield IMBALANCE.finding(
                    f"{name} × {concept}: {counted(count, 'rows')}, where countries have {middle:,g} in the middle",
                    None, sheet.column("country"), f"{name} × {concept}",
                    suggestion="look for more rows, or say in the card why there are so many",
                )  # fmt: skip
