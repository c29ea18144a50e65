"""All lines of a truthy dump about one entity to one typed item: what Wikidata writes as N-Triples.

Such a dump has labels, and of each property the statements of best rank; it has no ranks, qualifiers, sitelinks or
titles. Languages are BCP 47 codes there. `rdf:type` says that a property has no value, a blank node that it is unknown.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from urllib.parse import unquote

from culturekit.kg.dump.entities import (
    ENTITY_STATEMENTS,
    LONGEST_TEXT,
    Decode,
    Item,
    Malformed,
    Statement,
    item_number,
    languages_in_order,
    number_of_target,
)

LACKS = ("ranks", "qualifiers", "sitelinks", "titles")
"""What a truthy dump does not say."""

ENTITY = rb"<http://www\.wikidata\.org/entity/"
LABEL, DESCRIPTION, ALIAS = (
    b"http://www.w3.org/2000/01/rdf-schema#label",
    b"http://schema.org/description",
    b"http://www.w3.org/2004/02/skos/core#altLabel",
)
TYPE, SAME = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#type", b"http://www.w3.org/2002/07/owl#sameAs"
DIRECT = b"http://www.wikidata.org/prop/direct/"
NO_VALUE = re.compile(rb"<http://www\.wikidata\.org/prop/novalue/(P[0-9]+)>")
UNKNOWN = re.compile(rb"_:[^\s<>\"]+|<http://www\.wikidata\.org/\.well-known/genid/[^\s<>\"]+>")
FILE = re.compile(rb"<https?://commons\.wikimedia\.org/wiki/Special:FilePath/([^\s<>\"]+)>")
LITERAL = re.compile(rb'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<[^\s<>"]+>)?')
IRI = re.compile(rb"<[^\s<>\"]+>")
ITEM = re.compile(ENTITY + rb"(Q[0-9]+)>")
SUBJECT = re.compile(rb"\s*" + ENTITY + rb"([A-Z][0-9]+)>")
POINT = re.compile(r"(?:<[^>]*> )?Point\((\S+) (\S+)\)", re.IGNORECASE)
ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([tbnrf\"'\\])|)")
ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
KINDS = {"P": "property", "L": "lexeme"}


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
    terms = b"|".join(map(re.escape, (LABEL, DESCRIPTION, ALIAS)))
    properties = "|".join((*ENTITY_STATEMENTS, "P18", "P625", "P297", "P1549")).encode()
    facts = rb"%s(?:%s)|%s|%s" % (re.escape(DIRECT), properties, re.escape(TYPE), re.escape(SAME))
    return re.compile(
        rb'\n%s([A-Z][0-9]+)> <(?:(%s)> ("[^\n]*"@(?i:%s))|(%s)> ([^\n]+)) \.(?=\n)' % (ENTITY, terms, codes, facts)
    )


def subject_of(line: bytes) -> bytes | None:
    """Name the entity that a line is about, if any."""
    match = SUBJECT.match(line)
    return match[1] if match else None


@cache
def triples_decoder(languages: tuple[str, ...]) -> Decode:
    """Make the decoder for a list of languages: it takes the lines of one entity, of which some may not be kept."""
    order, kept = languages_in_order(languages), kept_lines(languages)

    def decoded(content: bytes | memoryview) -> Item | str:
        lines: list[tuple[bytes, ...]] = kept.findall(b"\n" + bytes(content).strip() + b"\n")
        if not lines:
            raise Malformed("not-a-triple", f"expected <subject> <predicate> object ., found {bytes(content[:80])!r}")
        name = lines[0][0].decode()
        if name[0] != "Q":
            return KINDS.get(name[0], name[0])
        if {fact for _, _, _, fact, _ in lines} == {SAME}:
            return "redirect"
        terms: dict[bytes, dict[str, list[str]]] = {LABEL: {}, DESCRIPTION: {}, ALIAS: {}}
        for _, term, literal, _, _ in lines:
            if term:
                text, language = literal_of(literal)
                terms[term].setdefault(language, []).append(text)
        return item_of(name, terms, [(fact, value) for _, _, _, fact, value in lines if fact], order)

    return decoded


def item_of(
    name: str,
    terms: Mapping[bytes, Mapping[str, Sequence[str]]],
    facts: Sequence[tuple[bytes, bytes]],
    order: Sequence[str],
) -> Item:
    """Keep of an entity what an item has."""
    label, language = first_term(terms[LABEL], order)
    aliases = [text for code in order for text in terms[ALIAS].get(code.lower(), ())]
    known = [(fact.removeprefix(DIRECT).decode(), value) for fact, value in facts if not UNKNOWN.fullmatch(value)]
    latitude, longitude = next((place_of(value) for name, value in known if name == "P625"), (None, None))
    demonyms = [literal_of(value) for name, value in known if name == "P1549"]
    return Item(
        item_number(name),
        label,
        language,
        first_term(terms[DESCRIPTION], order)[0],
        list(dict.fromkeys(aliases)),
        statements_of(facts),
        0,
        None,
        next((file_of(value) for name, value in known if name == "P18"), None),
        latitude,
        longitude,
        next((literal_of(value)[0] for name, value in known if name == "P297"), None),
        next((text for code in order for text, said in demonyms if said == code.lower()), None),
    )


def first_term(terms: Mapping[str, Sequence[str]], order: Sequence[str]) -> tuple[str | None, str | None]:
    """Take the first usable one of some terms, and name its language."""
    usable = ((text, code) for code in order for text in terms.get(code.lower(), ()) if text and not text.isspace())
    return next(usable, (None, None))


def statements_of(facts: Sequence[tuple[bytes, bytes]]) -> list[Statement]:
    """Number the statements of each property in their order, by property; ranks are not known, and called normal."""
    found: dict[str, list[Statement]] = {name: [] for name in ENTITY_STATEMENTS}
    for fact, value in facts:
        none = NO_VALUE.fullmatch(value) if fact == TYPE else None
        name = none[1].decode() if none else fact.removeprefix(DIRECT).decode()
        own = found.get(name)
        if own is not None:
            kind, number = ("novalue", 0) if none else value_of(value)
            own.append(Statement(name, len(own), number, kind, "normal", False, False))
    return [statement for own in found.values() for statement in own]


def value_of(value: bytes) -> tuple[str, int]:
    """Read what a statement points to: an item, or something that is none."""
    if item := ITEM.fullmatch(value):
        return "value", number_of_target(item[1].decode())
    if UNKNOWN.fullmatch(value):
        return "somevalue", 0
    if IRI.fullmatch(value):
        return "value", 0
    raise Malformed("not-a-triple", f"expected an item, found {value[:80]!r}")


def literal_of(value: bytes) -> tuple[str, str]:
    """Read a text and its language, in lower case."""
    literal = LITERAL.fullmatch(value)
    if literal is None:
        raise Malformed("not-a-triple", f"expected a text, found {value[:80]!r}")
    text = unescaped(literal[1])
    if len(text) > LONGEST_TEXT:
        raise Malformed("not-a-triple", f"expected at most {LONGEST_TEXT:,} characters, found {len(text):,}")
    return text, (literal[2] or b"").decode().lower()


def unescaped(raw: bytes) -> str:
    """Read the characters of a text or an address."""
    try:
        text = ESCAPE.sub(character, raw.decode("utf-8"))
        text.encode("utf-8")
    except (ValueError, OverflowError) as error:
        raise Malformed("not-a-triple", f"{error} in {raw[:80]!r}") from error
    return text


def character(escape: re.Match[str]) -> str:
    """Read an escaped character."""
    short, long, other = escape.groups()
    if other is not None:
        return ESCAPED[other]
    if short is None and long is None:
        raise ValueError(f"an unknown escape, {escape[0]!r},")
    return chr(int(short or long, 16))


def file_of(value: bytes) -> str:
    """Read the name of a file from its address."""
    file = FILE.fullmatch(value)
    if file is None:
        raise Malformed("not-a-triple", f"expected a file of Commons, found {value[:80]!r}")
    return unquote(unescaped(file[1]))


def place_of(value: bytes) -> tuple[float, float]:
    """Read latitude and longitude from a point, which names longitude first, and before it any globe but Earth."""
    text = literal_of(value)[0]
    point = POINT.fullmatch(text)
    try:
        if point is not None:
            return float(point[2]), float(point[1])
    except ValueError:
        pass
    raise Malformed("not-a-triple", f"expected Point(longitude latitude), found {text[:80]!r}")
