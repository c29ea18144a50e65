"""One line of a dump to one typed item; only what culturekit keeps is decoded.

The dump is less regular than its documentation: an empty map is written `[]`, an item value may carry
only its `numeric-id`, `datatype` may be absent, `somevalue` and `novalue` have no value at all.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec
import numpy as np
import polars as pl
from msgspec.structs import astuple

from culturekit.core.schemas import ITEMS, STATEMENTS
from culturekit.core.tables import save_part

LONGEST_TEXT = 100_000
"""Characters; no text of Wikidata has more than a few thousand."""

Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
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


class Term(msgspec.Struct, gc=False):
    """A label, a description or an alias."""

    value: Text


class ItemId(msgspec.Struct, gc=False):
    """The value of an item-valued snak."""

    id: str = ""
    numeric_id: int = msgspec.field(name="numeric-id", default=0)
    entity_type: str = msgspec.field(name="entity-type", default="item")


class Coordinate(msgspec.Struct, gc=False):
    """The value of a coordinate snak: a place on a globe."""

    latitude: float
    longitude: float


class Monolingual(msgspec.Struct, gc=False):
    """The value of a snak of text in a language."""

    text: Text
    language: str


Value = TypeVar("Value")


class DataValue(msgspec.Struct, Generic[Value], gc=False):
    """What a snak with a value holds."""

    value: Value


class Snak(msgspec.Struct, Generic[Value], gc=False):
    """The main snak of a statement."""

    snaktype: str = "value"
    datavalue: DataValue[Value] | None = None


class RawStatement(msgspec.Struct, Generic[Value], gc=False):
    """A statement about an item."""

    mainsnak: Snak[Value]
    rank: str = "normal"
    qualifiers: dict[str, msgspec.Raw] | EmptyMap | None = None


class Claims(msgspec.Struct, gc=False):
    """The statements that are kept, by property; all others are skipped unread."""

    P31: list[RawStatement[ItemId]] | None = None
    P279: list[RawStatement[ItemId]] | None = None
    P495: list[RawStatement[ItemId]] | None = None
    P17: list[RawStatement[ItemId]] | None = None
    P2012: list[RawStatement[ItemId]] | None = None
    P361: list[RawStatement[ItemId]] | None = None
    P18: list[RawStatement[Text]] | None = None
    P625: list[RawStatement[Coordinate]] | None = None
    P297: list[RawStatement[Text]] | None = None
    P1549: list[RawStatement[Monolingual]] | None = None


class Sitelink(msgspec.Struct, gc=False):
    """A page about the item."""

    title: Text


class Statement(msgspec.Struct, frozen=True, gc=False):
    """An item-valued statement as kept: `value` is 0 for somevalue and novalue."""

    property: str
    position: int
    value: int
    snak: str
    rank: str
    qualified: bool
    ended: bool


class Item(msgspec.Struct, frozen=True, gc=False):
    """What is kept of an item; `iso` and `demonym` stand on countries."""

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
    iso: str | None
    demonym: str | None


Decode: TypeAlias = Callable[[bytes | memoryview], "Item | str"]


def decode(line: bytes, *, languages: tuple[str, ...]) -> Item | str:
    """Decode a line; for anything but an item, say what it is instead (`property`, `lexeme`).

    Labels and descriptions come in English, else in `mul`, else in the first of `languages` that has
    one. Raises Malformed where the line is not an entity.
    """
    return decoder_for(languages)(line)


@cache
def decoder_for(languages: tuple[str, ...]) -> Decode:
    """Make the decoder for a list of languages: terms in others are skipped unread."""
    order = languages_in_order(languages)
    names = [f"language_{number}" for number in range(len(order))]
    raw = msgspec.json.Decoder(entity_type(order, names)).decode
    terms_of: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
    wiki = f"{wikipedia_of(languages[0]).replace('-', '_')}wiki"

    def decoded(line: bytes | memoryview) -> Item | str:
        try:
            entity = raw(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Malformed("not-an-entity", str(error)) from error
        return item_of(entity, order, terms_of, wiki) if entity.type == "item" else str(entity.type)

    return decoded


def wikipedia_of(language: str) -> str:
    """Name the Wikipedia of a language of labels: there is one for all that Portuguese is spoken."""
    return "pt" if language.startswith("pt-") else language


def languages_in_order(languages: Sequence[str]) -> tuple[str, ...]:
    """Put English and `mul` first, each language once."""
    return tuple(dict.fromkeys(("en", "mul", *languages)))


def entity_type(order: Sequence[str], names: Sequence[str]) -> type[Any]:
    """Define an entity whose terms are read in some languages only."""
    codes = dict(zip(names, order, strict=True))
    terms = msgspec.defstruct("Terms", [(name, Term | None, None) for name in names], rename=codes, gc=False)
    lists = msgspec.defstruct("TermLists", [(name, list[Term] | None, None) for name in names], rename=codes, gc=False)
    fields: list[Any] = [
        ("id", str),
        ("type", str),
        ("labels", terms | EmptyMap | None, None),
        ("descriptions", terms | EmptyMap | None, None),
        ("aliases", lists | EmptyMap | None, None),
        ("claims", Claims | EmptyMap | None, None),
        ("sitelinks", dict[str, Sitelink] | EmptyMap | None, None),
    ]
    return msgspec.defstruct("Entity", fields, gc=False)


def item_of(entity: Any, order: Sequence[str], terms_of: Callable[[Any], tuple[Any, ...]], wiki: str) -> Item:  # noqa: ANN401
    """Keep of an entity what an item has."""
    label, language = first_term(terms_of(entity.labels), order) if entity.labels else (None, None)
    description, _ = first_term(terms_of(entity.descriptions), order) if entity.descriptions else (None, None)
    claims = entity.claims or NO_CLAIMS
    pages = entity.sitelinks
    page = pages.get(wiki) if pages else None
    place = best(claims.P625) if claims.P625 else None
    return Item(
        item_number(entity.id),
        label,
        language,
        description,
        all_aliases(terms_of(entity.aliases)) if entity.aliases else [],
        statements_of(claims),
        len(pages) if pages else 0,
        page.title if page else None,
        best(claims.P18) if claims.P18 else None,
        place.latitude if place else None,
        place.longitude if place else None,
        best(claims.P297) if claims.P297 else None,
        demonym_of(claims.P1549, order) if claims.P1549 else None,
    )


NO_CLAIMS = Claims()


def item_number(qid: str) -> int:
    """Read `Q42` as 42."""
    digits = qid[1:]
    if digits.isdecimal() and digits.isascii() and qid[0] == "Q" and len(digits) < LONGEST_NUMBER:
        number = int(digits)
        if 0 < number < 2**32:
            return number
    raise Malformed("not-a-qid", f"expected Q and a number below 2^32, found {qid[:40]!r}")


LONGEST_NUMBER = 4_000
"""Python refuses to read longer ones."""

number_of_target = lru_cache(maxsize=65_536)(item_number)
"""Statements point to the same items again and again."""


def first_term(terms: Sequence[Term | None], order: Sequence[str]) -> tuple[str | None, str | None]:
    """Take the first usable one of some terms, and name its language."""
    for place, term in enumerate(terms):
        if term is not None:
            value = term.value
            if value and not value.isspace():
                return value, order[place]
    return None, None


def all_aliases(lists: Sequence[list[Term] | None]) -> list[str]:
    """Collect the aliases in all wanted languages, each once."""
    found = [term.value for terms in lists if terms for term in terms]
    return list(dict.fromkeys(found)) if len(found) > 1 else found


KEPT_STATEMENTS: Callable[[Claims], tuple[list[RawStatement[ItemId]] | None, ...]] = attrgetter(*ENTITY_STATEMENTS)


def statements_of(claims: Claims) -> list[Statement]:
    """Flatten the statements of all properties; what is no item, such as a property, has no value here."""
    found = []
    for name, statements in zip(ENTITY_STATEMENTS, KEPT_STATEMENTS(claims), strict=True):
        if statements:
            for position, statement in enumerate(statements):
                snak, qualifiers = statement.mainsnak, statement.qualifiers
                kind, held = snak.snaktype, snak.datavalue
                value = 0 if held is None or kind != "value" else value_of(held.value)
                ended = bool(qualifiers) and "P582" in qualifiers  # type: ignore[operator]
                found.append(Statement(name, position, value, kind, statement.rank, bool(qualifiers), ended))
    return found


def value_of(value: ItemId) -> int:
    """Read the item that is pointed to; 0 where it is something else."""
    qid = value.id
    if qid:
        return number_of_target(qid) if qid[0] == "Q" else 0
    return value.numeric_id if value.entity_type == "item" and 0 < value.numeric_id < 2**32 else 0


def best(statements: Sequence[RawStatement[Value]]) -> Value | None:
    """Take the value of the first preferred statement that has one, else of the first not deprecated."""
    usable = [(s.rank, s.mainsnak.datavalue.value) for s in statements if s.mainsnak.datavalue is not None]
    for wanted in ("preferred", "normal"):
        for rank, value in usable:
            if rank == wanted:
                return value
    return None


def demonym_of(statements: Sequence[RawStatement[Monolingual]], order: Sequence[str]) -> str | None:
    """Take the demonym in the first language that has one."""
    said = [s.mainsnak.datavalue.value for s in statements if s.mainsnak.datavalue and s.rank != "deprecated"]
    return next((value.text for code in order for value in said if value.language == code), None)


# Decoded items to part tables: a batch becomes columns in one go.

ITEMS_PER_PART = 32_768
LARGEST = 2**16 - 1
"""The store numbers the statements of a property, and counts sitelinks, in two bytes: a hundred times what any item of
Wikidata has. What lies beyond is left out and counted."""

SEPARATOR = "\x1f"
"""The unit separator of ASCII; Wikidata refuses control characters."""


class ItemBatch:
    """Items on their way to the part tables of one folder."""

    def __init__(self, folder: Path, file: int) -> None:
        """Name the folder and the number of the dump file; both tables begin with part 0."""
        self.folder = folder
        self.file = file
        self.parts = 0
        self.left_out: dict[str, int] = {}
        self.items: list[Item] = []
        self.places: list[tuple[int, int, int]] = []

    def add(self, item: Item, member: int, line: int, offset: int) -> None:
        """Take an item; a full batch is written."""
        self.items.append(item)
        self.places.append((member, line, offset))
        if len(self.items) == ITEMS_PER_PART:
            self.write()

    def write(self) -> None:
        """Write what is waiting as a part of each table."""
        if not self.items:
            return
        for name, frame in (("items", self.item_frame()), ("statements", self.statement_frame())):
            save_part(frame, self.folder / f"{name}-{self.parts:05d}.arrows")
        self.parts += 1
        self.items, self.places = [], []

    def item_frame(self) -> pl.DataFrame:
        """Turn the items into columns."""
        columns = columns_of(self.items)
        columns["lat"], columns["lon"] = columns.pop("latitude"), columns.pop("longitude")
        columns["member"], columns["line"], columns["offset"] = zip(*self.places, strict=True)
        columns["file"] = np.full(len(self.items), self.file, np.uint16)
        columns["aliases"] = lists_of(columns["aliases"])
        columns["sitelinks"] = self.counted(columns["sitelinks"])
        return pl.DataFrame([column(name, columns[name], dtype) for name, dtype in part_schema("items").items()])

    def statement_frame(self) -> pl.DataFrame:
        """Turn the statements into columns."""
        counts = [len(item.statements) for item in self.items]
        columns = columns_of([statement for item in self.items for statement in item.statements])
        columns["value"] = [value or None for value in columns["value"]]
        columns["number"] = np.repeat(np.array([item.number for item in self.items], np.uint32), counts)
        columns["line"] = np.repeat(np.array([line for _, line, _ in self.places], np.uint64), counts)
        columns["file"] = np.full(sum(counts), self.file, np.uint16)
        schema = {**part_schema("statements"), "position": pl.UInt32()}
        frame = pl.DataFrame([column(name, columns[name], dtype) for name, dtype in schema.items()])
        kept = frame.filter(pl.col("position") <= LARGEST) if (frame["position"] > LARGEST).any() else frame
        self.leave_out(f"statement beyond the first {LARGEST + 1:,} of its property", frame.height - kept.height)
        return kept.cast({"position": pl.UInt16})

    def counted(self, sitelinks: Sequence[int]) -> pl.Series:
        """Count no more sitelinks than the store has numbers for."""
        numbers = pl.Series(sitelinks, dtype=pl.UInt32)
        kept = numbers.clip(0, LARGEST)
        self.leave_out(f"sitelink beyond the first {LARGEST:,} of its item", int(numbers.sum()) - int(kept.sum()))
        return kept.cast(pl.UInt16)

    def leave_out(self, what: str, count: int) -> None:
        """Count what the store has no number for."""
        if count:
            self.left_out[what] = self.left_out.get(what, 0) + count


def columns_of(records: Sequence[Item] | Sequence[Statement]) -> dict[str, Any]:
    """Turn records into a column for each field."""
    names = (type(records[0]) if records else Statement).__struct_fields__
    columns = zip(*map(astuple, records), strict=True) if records else ((),) * len(names)
    return dict(zip(names, columns, strict=True))


def column(name: str, values: Any, dtype: pl.DataType) -> pl.Series:  # noqa: ANN401
    """Make a column; one of nothing but nulls, as rare facts often are, is made without looking at each."""
    if isinstance(values, tuple) and values and values[0] is None and values.count(None) == len(values):
        return pl.Series(name, [None], dtype).new_from_index(0, len(values))
    return pl.Series(name, values, dtype)


def lists_of(texts: Sequence[Sequence[str]]) -> pl.Series:
    """Make a column of lists; a column for each list would cost more than all the rest.

    The texts are joined and split again by a character that no text of Wikidata has; if one has it, by rows.
    """
    joined = [SEPARATOR.join(some) if some else None for some in texts]
    if sum(map(len, texts)) == sum(text.count(SEPARATOR) + 1 for text in joined if text is not None):
        return pl.Series(joined, dtype=pl.String).str.split(SEPARATOR).fill_null([])
    rows = pl.DataFrame({"row": range(len(texts))})
    flat = pl.DataFrame(
        [(row, text) for row, some in enumerate(texts) for text in some], ["row", "texts"], orient="row"
    )
    lists = flat.group_by("row", maintain_order=True).agg("texts")
    return rows.join(lists, on="row", how="left", maintain_order="left")["texts"].fill_null([])


def part_schema(table: str) -> dict[str, pl.DataType]:
    """Give the columns of a part: those of the table but for the QID, which is made when all stand in order.

    For statements there is also the line they come from.
    """
    if table == "items":
        schema = {**ITEMS.schema, **{name: column.dtype for name, column in ITEMS.optional.items()}}
        return {name: dtype for name, dtype in schema.items() if name != "qid"}
    return {**STATEMENTS.schema, "file": pl.UInt16(), "line": pl.UInt64()}
