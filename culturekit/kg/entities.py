"""One line of a dump to one typed item; only what culturekit keeps is decoded.

The dump is less regular than its documentation: an empty map is written `[]`, an item value may carry
only its `numeric-id`, `datatype` may be absent, `somevalue` and `novalue` have no value at all.
"""

from collections.abc import Sequence
from typing import Annotated, Generic, TypeAlias, TypeVar

import msgspec

__all__ = ["ENTITY_STATEMENTS", "Item", "Malformed", "Statement", "decode"]

Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=100_000)]
EmptyMap: TypeAlias = Annotated[list[int], msgspec.Meta(max_length=0)]

ENTITY_STATEMENTS = ("P31", "P279", "P495", "P17", "P2012", "P361")
"""The properties whose values are items, and which the graph keeps."""


class Malformed(ValueError):
    """A line that is not an entity; `reason` is a word to count by."""

    def __init__(self, reason: str, detail: str) -> None:
        """Keep the word apart from the story."""
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Term(msgspec.Struct):
    """A label, a description or an alias."""

    value: Text
    language: str


class ItemId(msgspec.Struct):
    """The value of an item-valued snak."""

    id: str = ""
    numeric_id: int = msgspec.field(name="numeric-id", default=0)
    entity_type: str = msgspec.field(name="entity-type", default="item")


class Coordinate(msgspec.Struct):
    """The value of a coordinate snak: a place on a globe."""

    latitude: float
    longitude: float


Value = TypeVar("Value")


class DataValue(msgspec.Struct, Generic[Value]):
    """What a snak with a value holds."""

    value: Value


class Snak(msgspec.Struct, Generic[Value]):
    """The main snak of a statement."""

    snaktype: str = "value"
    datavalue: DataValue[Value] | None = None


class RawStatement(msgspec.Struct, Generic[Value]):
    """A statement about an item."""

    mainsnak: Snak[Value]
    rank: str = "normal"
    qualifiers: dict[str, msgspec.Raw] | EmptyMap = []


class Claims(msgspec.Struct):
    """The statements that are kept, by property; all others are skipped unread."""

    P31: list[RawStatement[ItemId]] = []
    P279: list[RawStatement[ItemId]] = []
    P495: list[RawStatement[ItemId]] = []
    P17: list[RawStatement[ItemId]] = []
    P2012: list[RawStatement[ItemId]] = []
    P361: list[RawStatement[ItemId]] = []
    P18: list[RawStatement[Text]] = []
    P625: list[RawStatement[Coordinate]] = []


class Sitelink(msgspec.Struct):
    """A page about the item."""

    title: Text


class RawEntity(msgspec.Struct):
    """An entity document of any type."""

    id: str
    type: str
    labels: dict[str, Term] | EmptyMap = []
    descriptions: dict[str, Term] | EmptyMap = []
    aliases: dict[str, list[Term]] | EmptyMap = []
    claims: Claims | EmptyMap = []
    sitelinks: dict[str, Sitelink] | EmptyMap = []


class Statement(msgspec.Struct, frozen=True):
    """An item-valued statement as kept: `value` is 0 for somevalue and novalue."""

    property: str
    position: int
    value: int
    snak: str
    rank: str
    qualified: bool
    ended: bool


class Item(msgspec.Struct, frozen=True):
    """What is kept of an item."""

    number: int
    label: str | None
    label_language: str | None
    description: str | None
    aliases: list[str]
    statements: list[Statement]
    sitelinks: int
    title: str | None
    image: str | None
    latitude: float | None
    longitude: float | None


DECODER = msgspec.json.Decoder(RawEntity)


def decode(line: bytes, *, languages: tuple[str, ...]) -> Item | str:
    """Decode a line; for anything but an item, say what it is instead (`property`, `lexeme`).

    Labels and descriptions come in English, else in `mul`, else in the first of `languages` that has
    one. Raises Malformed where the line is not an entity.
    """
    try:
        raw = DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed("not-an-entity", str(error)) from error
    if raw.type != "item":
        return raw.type
    claims = raw.claims if isinstance(raw.claims, Claims) else Claims()
    order = tuple(dict.fromkeys(("en", "mul", *languages)))
    label = first_term(raw.labels, order)
    description = first_term(raw.descriptions, order)
    place = best(claims.P625)
    return Item(
        number=item_number(raw.id),
        label=label.value if label else None,
        label_language=label.language if label else None,
        description=description.value if description else None,
        aliases=all_aliases(raw.aliases, order),
        statements=[s for name in ENTITY_STATEMENTS for s in statements_of(name, getattr(claims, name))],
        sitelinks=len(raw.sitelinks),
        title=title_of(raw.sitelinks, languages),
        image=best(claims.P18),
        latitude=place.latitude if place else None,
        longitude=place.longitude if place else None,
    )


def item_number(qid: str) -> int:
    """Read `Q42` as 42."""
    digits = qid[1:]
    if not (qid.startswith("Q") and digits.isascii() and digits.isdecimal() and 0 < int(digits) < 2**32):
        raise Malformed("not-a-qid", f"expected Q and a number below 2^32, found {qid[:40]!r}")
    return int(digits)


def first_term(terms: dict[str, Term] | EmptyMap, order: tuple[str, ...]) -> Term | None:
    """Take the term in the first language that has a usable one."""
    if not isinstance(terms, dict):
        return None
    return next((terms[code] for code in order if code in terms and terms[code].value.strip()), None)


def all_aliases(aliases: dict[str, list[Term]] | EmptyMap, order: tuple[str, ...]) -> list[str]:
    """Collect the aliases in all wanted languages, each once."""
    if not isinstance(aliases, dict):
        return []
    return list(dict.fromkeys(term.value for code in order for term in aliases.get(code, ())))


def title_of(sitelinks: dict[str, Sitelink] | EmptyMap, languages: tuple[str, ...]) -> str | None:
    """Take the title on the Wikipedia of the first language."""
    if not isinstance(sitelinks, dict):
        return None
    page = sitelinks.get(f"{languages[0]}wiki")
    return page.title if page else None


def statements_of(name: str, statements: list[RawStatement[ItemId]]) -> list[Statement]:
    """Flatten the statements of a property; what is no item, such as a property, has no value here."""
    return [
        Statement(
            property=name,
            position=position,
            value=value_of(statement.mainsnak),
            snak=statement.mainsnak.snaktype,
            rank=statement.rank,
            qualified=bool(statement.qualifiers),
            ended="P582" in statement.qualifiers,
        )
        for position, statement in enumerate(statements)
    ]


def value_of(snak: Snak[ItemId]) -> int:
    """Read the item a snak points to; 0 where it points to none."""
    if snak.snaktype != "value" or snak.datavalue is None:
        return 0
    value = snak.datavalue.value
    if value.id:
        return item_number(value.id) if value.id.startswith("Q") else 0
    return value.numeric_id if value.entity_type == "item" and 0 < value.numeric_id < 2**32 else 0


def best(statements: Sequence[RawStatement[Value]]) -> Value | None:
    """Take the value of the first preferred statement that has one, else of the first not deprecated."""
    usable = [(s.rank, s.mainsnak.datavalue.value) for s in statements if s.mainsnak.datavalue is not None]
    for wanted in ("preferred", "normal"):
        for rank, value in usable:
            if rank == wanted:
                return value
    return None
