"""Decode all lines of a truthy dump about one entity to one typed item: what Wikidata writes as N-Triples.

Such a dump has labels, and of each property the statements of best rank; it has no ranks, qualifiers, sitelinks or
titles. Languages are BCP 47 codes there. `rdf:type` says that a property has no value, a blank node that it is unknown.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from urllib.parse import unquote

from culturekit.kg.concepts import ENTITY_STATEMENTS
from culturekit.kg.dump.entities import (
    LONGEST_TEXT,
    Decode,
    Item,
    Malformed,
    Statement,
    item_number,
    labels_of,
    languages_in_order,
    number_of_target,
)

LACKS = ("ranks", "qualifiers", "sitelinks", "titles")  # what a truthy dump does not say

_ENTITY = rb"<http://www\.wikidata\.org/entity/"
_LABEL, _DESCRIPTION, _ALIAS = _TERMS = (
    b"http://www.w3.org/2000/01/rdf-schema#label",
    b"http://schema.org/description",
    b"http://www.w3.org/2004/02/skos/core#altLabel",
)
_TYPE, _SAME = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#type", b"http://www.w3.org/2002/07/owl#sameAs"
_DIRECT = b"http://www.wikidata.org/prop/direct/"
_NO_VALUE = re.compile(rb"<http://www\.wikidata\.org/prop/novalue/(P[0-9]+)>")
_UNKNOWN = re.compile(rb"_:[^\s<>\"]+|<http://www\.wikidata\.org/\.well-known/genid/[^\s<>\"]+>")
_FILE = re.compile(rb"<https?://commons\.wikimedia\.org/wiki/Special:FilePath/([^\s<>\"]+)>")
_LITERAL = re.compile(rb'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<[^\s<>"]+>)?')
_IRI = re.compile(rb"<[^\s<>\"]+>")
_ITEM = re.compile(_ENTITY + rb"(Q[0-9]+)>")
_SUBJECT = re.compile(rb"\s*" + _ENTITY + rb"([A-Z][0-9]+)>")
_POINT = re.compile(r"(?:<[^>]*> )?Point\((\S+) (\S+)\)", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([tbnrf\"'\\])|)")
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_KINDS = {"P": "property", "L": "lexeme"}


def looks_like_triples(content: bytes) -> bool:
    """Tell N-Triples from JSON by the first bytes of a dump."""
    return content.lstrip()[:1] in {b"<", b"_", b"#"}


@cache
def kept_lines(languages: tuple[str, ...]) -> re.Pattern[bytes]:
    """Make the pattern of the lines that are kept, each from the line end before it to before its own.

    Its groups: the entity; a term's predicate and literal, or a fact's predicate and object. All other lines fail in
    their first bytes.
    """
    codes = b"|".join(re.escape(code.encode()) for code in languages_in_order(languages))
    terms = b"|".join(map(re.escape, _TERMS))
    properties = "|".join((*ENTITY_STATEMENTS, "P18", "P625", "P297", "P1549")).encode()
    facts = rb"%s(?:%s)|%s|%s" % (re.escape(_DIRECT), properties, re.escape(_TYPE), re.escape(_SAME))
    return re.compile(
        rb'\n%s([A-Z][0-9]+)> <(?:(%s)> ("[^\n]*"@(?i:%s))|(%s)> ([^\n]+)) \.(?=\n)' % (_ENTITY, terms, codes, facts)
    )


def subject_of(line: bytes) -> bytes | None:
    """Name the entity that a line is about, if any."""
    match = _SUBJECT.match(line)
    return match[1] if match else None


@cache
def triples_decoder(languages: tuple[str, ...]) -> Decode:
    """Make the decoder for a list of languages: it takes the lines of one entity, of which some may not be kept."""
    order, kept = languages_in_order(languages), kept_lines(languages)

    def decoded(content: bytes | memoryview) -> Item | str:
        lines: list[tuple[bytes, ...]] = kept.findall(b"\n" + bytes(content).strip() + b"\n")
        if not lines:
            raise _malformed("<subject> <predicate> object .", bytes(content[:80]))
        name = lines[0][0].decode()
        if name[0] != "Q":
            return _KINDS.get(name[0], name[0])
        if {fact for _, _, _, fact, _ in lines} == {_SAME}:
            return "redirect"
        terms: dict[bytes, dict[str, list[str]]] = {kind: {} for kind in _TERMS}
        for _, term, literal, _, _ in lines:
            if term:
                text, language = _literal(literal)
                terms[term].setdefault(language, []).append(text)
        return _item_of(name, terms, [(fact, value) for _, _, _, fact, value in lines if fact], order)

    return decoded


def _malformed(expected: str, found: object) -> Malformed:
    return Malformed("not-a-triple", f"expected {expected}, found {found!r}")


def _item_of(
    name: str,
    terms: Mapping[bytes, Mapping[str, Sequence[str]]],
    facts: Sequence[tuple[bytes, bytes]],
    order: Sequence[str],
) -> Item:
    """Keep of an entity what an item has."""
    label, language = _first_term(terms[_LABEL], order)
    aliases = [text for code in order for text in terms[_ALIAS].get(code.lower(), ())]
    known = [(fact.removeprefix(_DIRECT).decode(), value) for fact, value in facts if not _UNKNOWN.fullmatch(value)]
    latitude, longitude = next((_point(value) for name, value in known if name == "P625"), (None, None))
    demonyms = [_literal(value) for name, value in known if name == "P1549"]
    return Item(
        item_number(name), label, language, _first_term(terms[_DESCRIPTION], order)[0], list(dict.fromkeys(aliases)),
        _statements_of(facts), 0, None, next((_file(value) for name, value in known if name == "P18"), None), latitude,
        longitude, next((_literal(value)[0] for name, value in known if name == "P297"), None),
        next((text for code in order for text, language in demonyms if language == code.lower()), None),
        labels_of({code: next(iter(terms[_LABEL].get(code.lower(), ())), None) for code in order}),
    )  # fmt: skip


def _first_term(terms: Mapping[str, Sequence[str]], order: Sequence[str]) -> tuple[str | None, str | None]:
    """Take the first usable term, and name its language."""
    usable = ((text, code) for code in order for text in terms.get(code.lower(), ()) if text and not text.isspace())
    return next(usable, (None, None))


def _statements_of(facts: Sequence[tuple[bytes, bytes]]) -> list[Statement]:
    """Number the statements of each property in their order, by property; ranks are not known, and called normal."""
    found: dict[str, list[Statement]] = {name: [] for name in ENTITY_STATEMENTS}
    for fact, value in facts:
        none = _NO_VALUE.fullmatch(value) if fact == _TYPE else None
        name = none[1].decode() if none else fact.removeprefix(_DIRECT).decode()
        if (statements := found.get(name)) is not None:
            kind, number = ("novalue", 0) if none else _value(value)
            statements.append(Statement(name, len(statements), number, kind, "normal", False, False))
    return [statement for statements in found.values() for statement in statements]


def _value(value: bytes) -> tuple[str, int]:
    """Read what a statement points to: an item, or something that is none."""
    if item := _ITEM.fullmatch(value):
        return "value", number_of_target(item[1].decode())
    if _UNKNOWN.fullmatch(value):
        return "somevalue", 0
    if _IRI.fullmatch(value):
        return "value", 0
    raise _malformed("an item", value[:80])


def _literal(value: bytes) -> tuple[str, str]:
    """Read a text and its language, in lower case."""
    literal = _LITERAL.fullmatch(value)
    if literal is None:
        raise _malformed("a text", value[:80])
    text = _unescaped(literal[1])
    if len(text) > LONGEST_TEXT:
        raise Malformed("not-a-triple", f"expected at most {LONGEST_TEXT:,} characters, found {len(text):,}")
    return text, (literal[2] or b"").decode().lower()


def _unescaped(raw: bytes) -> str:
    """Read the characters of a text or an address."""
    try:
        text = _ESCAPE.sub(_character, raw.decode("utf-8"))
        text.encode("utf-8")
    except (ValueError, OverflowError) as error:
        raise Malformed("not-a-triple", f"{error} in {raw[:80]!r}") from error
    return text


def _character(escape: re.Match[str]) -> str:
    short, long, other = escape.groups()
    if other is not None:
        return _ESCAPED[other]
    if short is None and long is None:
        raise ValueError(f"an unknown escape, {escape[0]!r},")
    return chr(int(short or long, 16))


def _file(value: bytes) -> str:
    """Read the name of a file from its address."""
    file = _FILE.fullmatch(value)
    if file is None:
        raise _malformed("a file of Commons", value[:80])
    return unquote(_unescaped(file[1]))


def _point(value: bytes) -> tuple[float, float]:
    """Read latitude and longitude from a point, which names longitude first, and before it any globe but Earth."""
    text = _literal(value)[0]
    point = _POINT.fullmatch(text)
    with suppress(ValueError):
        if point is not None:
            return float(point[2]), float(point[1])
    raise _malformed("Point(longitude latitude)", text[:80])
