"""Characters that are not seen, accents in pieces, letters that pose as others, and white space."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

from culturekit.builders.filtering.cspace_filter import name_problem
from culturekit.llm.untrusted import reveal, without_hidden_characters
from culturekit.release.findings import Code, Finding, Knowledge, Turn, check, quoted
from culturekit.release.sheet import Row, Sheet, fold, item_of, same_artifact, tidy

HIDDEN = Code(
    "hidden-character", "error",
    "a character that is not seen: zero-width, bidirectional, control, tag, or half a character", "it is taken out",
)  # fmt: skip
NOT_NFC = Code(
    "not-nfc", "warning", "a letter and its accent stand apart, so that equal names differ in bytes", "normal form NFC"
)
LOOK_ALIKE = Code(
    "look-alike", "error", "a letter of another script, or of a decorative kind, that poses as a Latin one",
    "the Latin letter that it looks like",
)  # fmt: skip
MIXED = Code("mixed-script", "note", "a word mixes scripts, and no Latin twin of its letters is known", "nothing")
HALF = re.compile("[\ud800-\udfff\ufffd]")

TWINS = str.maketrans(
    "АВЕЅІЈКМНОРСТХҮаеѕіјорсухһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧο",
    "ABESIJKMHOPCTXYaesijopcyxhdqwABEZHIKMNOPTYXo",
)
"""Cyrillic and Greek letters that cannot be told from Latin ones by eye."""

WORD = re.compile(r"[^\W\d_]+")
SCRIPTS = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"}


# Texts of these alone have no slip: each is seen, is one letter, and the long s is not among them.
PLAIN = re.compile("[\x20-\x7e\u00c0-\u017e\u0180-\u024f]*")


@check(Turn.CELL, HIDDEN, NOT_NFC, LOOK_ALIKE, MIXED)
def unicode_slips(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at every text that is more than plain Latin."""
    for number, column, text in sheet.texts():
        if not PLAIN.fullmatch(text):
            yield from look(number, column, text)


def look(number: int, column: str, text: str) -> Iterator[Finding]:
    """Give the findings of one text, the gravest mend first."""

    def slip(code: Code, message: str, wanted: str) -> Finding:
        return code.rewrite(message, number, column, text, wanted=wanted)

    seen = without_hidden_characters(text)
    kinds = [*reveal(text), *(["replacement character"] if "\ufffd" in text else [])]
    if kinds:
        yield slip(HIDDEN, f"hidden in {quoted(text)}: {', '.join(kinds)}", HALF.sub("", seen))
    if unicodedata.normalize("NFC", text) != text:
        yield slip(NOT_NFC, f"accents stand apart in {quoted(text)}", unicodedata.normalize("NFC", text))
    twin = WORD.sub(lambda match: twin_of(match[0]), text)
    if twin != text:
        yield slip(LOOK_ALIKE, f"look-alike letters in {quoted(text)}: {foreign(text, twin)}", twin)
    if words := mixed_words(twin):
        yield MIXED.finding(f"scripts mixed in {', '.join(map(quoted, words))}", number, column, text)


def foreign(text: str, twin: str) -> str:
    """Name the letters that a twin replaces."""
    odd = [character for character in dict.fromkeys(text) if character not in twin]
    return ", ".join(f"U+{ord(character):04X} {unicodedata.name(character, '?').lower()}" for character in odd[:5])


@lru_cache(maxsize=65_536)
def twin_of(word: str) -> str:
    """Give the Latin word that a word poses as; the word itself where it is none, or not wholly one."""
    if word.isascii():
        return word
    plain = "".join(map(decorative_twin, word))
    if "LATIN" not in (scripts := scripts_of(plain)) or len(scripts) == 1:
        return plain
    twin = plain.translate(TWINS)
    return twin if scripts_of(twin) == {"LATIN"} else plain


def decorative_twin(character: str) -> str:
    """Give the plain letter of a decorative one, such as a mathematical or a wide A."""
    plain = unicodedata.normalize("NFKC", character)
    return plain if not character.isascii() and plain.isascii() and plain.isalpha() and len(plain) == 1 else character


def mixed_words(text: str) -> list[str]:
    """List the words whose letters are of several of the scripts that look alike."""
    if text.isascii():
        return []
    return [match[0] for match in WORD.finditer(text) if len(scripts_of(match[0])) > 1]


def scripts_of(word: str) -> set[str]:
    """Name the scripts of a word, as far as they are among those that look alike."""
    return {script for character in word if (script := script_of(character)) in SCRIPTS}


@cache
def script_of(character: str) -> str:
    """Name the script of a letter by its Unicode name."""
    return unicodedata.name(character, "").partition(" ")[0]


WHITE_SPACE = Code(
    "white-space", "warning",
    "white space around a text, twice between words, or none of the ordinary kind (such as a no-break space)",
    "one ordinary space between words, none around them",
)  # fmt: skip


@check(Turn.CELL, WHITE_SPACE)
def white_space(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at every text that is not blank altogether; a blank one is missing, which other checks say."""
    for number, column, text in sheet.texts():
        if text.strip() and (wanted := tidy(text)) != text:
            odd = sorted({f"U+{ord(character):04X}" for character in text if character.isspace() and character != " "})
            kind = "several spaces in a row" if text == text.strip() else "a space at the beginning or the end"
            kind = f"white space other than a plain space ({', '.join(odd)})" if odd else kind
            yield WHITE_SPACE.rewrite(f"{kind} in {quoted(text)}", number, column, text, wanted=wanted)


# Names that no artifact can have, that belong to another concept, or that stand under two.


UNUSABLE = Code(
    "name-unusable", "error",
    "no name, only a QID, no letters, far too long, or the title of a list, category or disambiguation",
    "the row is set aside",
)  # fmt: skip
ANY_SCRIPT = ("und",)  # A language that is written in no particular script: names of all scripts are names


@check(Turn.ROW, UNUSABLE)
def unusable_names(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Hold every name against the rules that candidates are held against."""
    if not sheet.has("name"):
        return
    for row in sheet.rows:
        name = sheet.text(row, "name")
        problem = name_problem(without_hidden_characters(name), languages=ANY_SCRIPT)
        if problem is not None:
            yield UNUSABLE.set_aside(
                f"{quoted(name)}: {problem[0]}", row, sheet.column("name"), name,
                suggestion="name the artifact, or leave the row out",
            )  # fmt: skip


OTHER_CONCEPT = Code(
    "name-concept", "error",
    "the artifact, by its QID or else its name, is known under other concepts only (needs --graph or --cspace)",
    "the row is set aside: the file does not say what belongs there",
)  # fmt: skip


@check(Turn.ROW, OTHER_CONCEPT)
def other_concepts(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Hold the concept of every row against what is known; an item that a source knows is asked before a name."""
    for row in sheet.rows:
        concept, item = sheet.concept(row), item_of(sheet, row)
        for source in knowledge.sources if concept is not None else ():
            known = source.concepts_of_item.get(item or "")
            if known is None and not item:
                known = source.concepts_of_name.get(fold(sheet.text(row, "name")))
            if known and concept not in known:
                name, listed = sheet.text(row, "name") or sheet.text(row, "id"), ", ".join(sorted(known))
                yield OTHER_CONCEPT.set_aside(
                    f"{quoted(name)} is given as {concept}; {source.name} knows it as {listed}", row,
                    sheet.column("name" if sheet.has("name") else "id"), name,
                    suggestion=f"move it to {listed}, or name another artifact",
                )  # fmt: skip
                break


UNDER_TWO = Code(
    "two-concepts", "warning", "one name in one country stands under two concepts, and not with a QID for each",
    "the later row is set aside, or the one without a QID",
)  # fmt: skip


@check(Turn.FILE, UNDER_TWO)
def two_concepts(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Say where rows of one name and country differ in concept; items that differ make them two artifacts."""
    seen: dict[tuple[str, str], Row] = {}
    later: dict[tuple[str, str], list[Row]] = {}
    for row in sheet.rows:
        name, country = fold(sheet.text(row, "name")), sheet.country(row)
        if name and country is not None and sheet.concept(row) is not None:
            key = (name, country.iso)
            if seen.setdefault(key, row) is not row:
                later.setdefault(key, []).append(row)
    for key in (key for key in seen if key in later):
        for first, row in ((seen[key], row) for row in later[key]):
            if sheet.concept(row) != sheet.concept(first) and same_artifact(sheet, first, row):
                aside = first if item_of(sheet, first) is None and item_of(sheet, row) is not None else row
                other = row if aside is first else first
                yield UNDER_TWO.set_aside(
                    f"{quoted(sheet.text(row, 'name'))} stands under {sheet.concept(first)} (row {first.number}) and "
                    f"{sheet.concept(row)} (row {row.number})", aside, sheet.column("name"), sheet.text(aside, "name"),
                    suggestion=f"keep row {other.number}, or give each its QID",
                )  # fmt: skip
