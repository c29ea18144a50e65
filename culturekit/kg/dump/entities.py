"""Decode one line of a dump to one typed item; only what culturekit keeps is decoded.

The dump is less regular than its documentation: an empty map is written `[]`, an item value may carry
only its `numeric-id`, `datatype` may be absent, `somevalue` and `novalue` have no value at all.
"""

from collections.abc import Callable, Mapping, Sequence
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
from culturekit.kg.concepts import ENTITY_STATEMENTS
from culturekit.kg.countries import wikipedia_of

ALWAYS = ("en", "mul")  # languages of labels that need not be asked for
LONGEST_TEXT = 100_000  # characters; no text of Wikidata has more than a few thousand
_LONGEST_NUMBER = 4_000  # digits; Python refuses to read longer ones

_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
_EmptyMap: TypeAlias = Annotated[list[int], msgspec.Meta(max_length=0)]
_Value = TypeVar("_Value")


class Malformed(ValueError):
    """A line that is not an entity; `reason` is a word to count by."""

    def __init__(self, reason: str, detail: str) -> None:
        """Keep the word apart from the story."""
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


class _Term(msgspec.Struct, gc=False):
    """A label, a description or an alias."""

    value: _Text


class _ItemId(msgspec.Struct, gc=False):
    """The value of an item-valued snak."""

    id: str = ""
    numeric_id: int = msgspec.field(name="numeric-id", default=0)
    entity_type: str = msgspec.field(name="entity-type", default="item")


class _Coordinate(msgspec.Struct, gc=False):
    """The value of a coordinate snak."""

    latitude: float
    longitude: float


class _Monolingual(msgspec.Struct, gc=False):
    """The value of a snak of text in a language."""

    text: _Text
    language: str


class _DataValue(msgspec.Struct, Generic[_Value], gc=False):
    """What a snak with a value holds."""

    value: _Value


class _Snak(msgspec.Struct, Generic[_Value], gc=False):
    """The main snak of a statement."""

    snaktype: str = "value"
    datavalue: _DataValue[_Value] | None = None


class _RawStatement(msgspec.Struct, Generic[_Value], gc=False):
    """A statement about an item."""

    mainsnak: _Snak[_Value]
    rank: str = "normal"
    qualifiers: dict[str, msgspec.Raw] | _EmptyMap | None = None


class _Claims(msgspec.Struct, gc=False):
    """The statements that are kept, by property; all others are skipped unread."""

    P31: list[_RawStatement[_ItemId]] | None = None
    P279: list[_RawStatement[_ItemId]] | None = None
    P495: list[_RawStatement[_ItemId]] | None = None
    P17: list[_RawStatement[_ItemId]] | None = None
    P2012: list[_RawStatement[_ItemId]] | None = None
    P361: list[_RawStatement[_ItemId]] | None = None
    P18: list[_RawStatement[_Text]] | None = None
    P625: list[_RawStatement[_Coordinate]] | None = None
    P297: list[_RawStatement[_Text]] | None = None
    P1549: list[_RawStatement[_Monolingual]] | None = None


class _Sitelink(msgspec.Struct, gc=False):
    """A page about the item."""

    title: _Text


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
    """What is kept of an item; `iso` and `demonym` stand on countries, `labels` are `LANGUAGE:LABEL`."""

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
    labels: list[str]


Decode: TypeAlias = Callable[[bytes | memoryview], Item | str]


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
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Malformed("not-an-entity", str(error)) from error
        return _item_of(entity, order, terms_of, wiki) if entity.type == "item" else str(entity.type)

    return decoded


def languages_in_order(languages: Sequence[str]) -> tuple[str, ...]:
    """Put English and `mul` first, each language once."""
    return tuple(dict.fromkeys((*ALWAYS, *languages)))


def entity_type(order: Sequence[str], names: Sequence[str]) -> type[Any]:
    """Define an entity whose terms are read in some languages only."""
    codes = dict(zip(names, order, strict=True))
    terms = msgspec.defstruct("Terms", [(name, _Term | None, None) for name in names], rename=codes, gc=False)
    lists = msgspec.defstruct("TermLists", [(name, list[_Term] | None, None) for name in names], rename=codes, gc=False)
    fields: list[Any] = [
        ("id", str),
        ("type", str),
        ("labels", terms | _EmptyMap | None, None),
        ("descriptions", terms | _EmptyMap | None, None),
        ("aliases", lists | _EmptyMap | None, None),
        ("claims", _Claims | _EmptyMap | None, None),
        ("sitelinks", dict[str, _Sitelink] | _EmptyMap | None, None),
    ]
    return msgspec.defstruct("Entity", fields, gc=False)


_NO_CLAIMS = _Claims()
_KEPT_STATEMENTS: Callable[[_Claims], tuple[list[_RawStatement[_ItemId]] | None, ...]] = attrgetter(*ENTITY_STATEMENTS)


def _item_of(entity: Any, order: Sequence[str], terms_of: Callable[[Any], tuple[Any, ...]], wiki: str) -> Item:  # noqa: ANN401
    """Keep the parts of an entity that items have."""
    terms = terms_of(entity.labels) if entity.labels else ()
    label, language = _first_term(terms, order) if terms else (None, None)
    description, _ = _first_term(terms_of(entity.descriptions), order) if entity.descriptions else (None, None)
    lists = [each for each in terms_of(entity.aliases) if each] if entity.aliases else ()
    claims = entity.claims or _NO_CLAIMS
    pages = entity.sitelinks
    page = pages.get(wiki) if pages else None
    point = _best(claims.P625) if claims.P625 else None
    return Item(
        item_number(entity.id), label, language, description,
        list(dict.fromkeys(term.value for terms in lists for term in terms)) if lists else [], _statements_of(claims),
        len(pages) if pages else 0, page.title if page else None, _best(claims.P18) if claims.P18 else None,
        point.latitude if point else None, point.longitude if point else None,
        _best(claims.P297) if claims.P297 else None, _demonym_of(claims.P1549, order) if claims.P1549 else None,
        labels_of(dict(zip(order, (term and term.value for term in terms), strict=False))),
    )  # fmt: skip


def item_number(qid: str) -> int:
    """Read `Q42` as 42."""
    digits = qid[1:]
    if digits.isdecimal() and digits.isascii() and qid[0] == "Q" and len(digits) < _LONGEST_NUMBER:
        number = int(digits)
        if 0 < number < 2**32:
            return number
    raise Malformed("not-a-qid", f"expected Q and a number below 2^32, found {qid[:40]!r}")


number_of_target = lru_cache(maxsize=65_536)(item_number)  # statements point to the same items again and again


def _first_term(terms: Sequence[_Term | None], order: Sequence[str]) -> tuple[str | None, str | None]:
    """Take the first usable term, and name its language."""
    for term, language in zip(terms, order, strict=True):
        if term is not None and term.value and not term.value.isspace():
            return term.value, language
    return None, None


def labels_of(labels: Mapping[str, str | None]) -> list[str]:
    """Keep the labels in the languages that are asked for besides English, each behind its language."""
    others = ((code, label) for code, label in labels.items() if code not in ALWAYS)
    return [f"{code}:{label}" for code, label in others if label and not label.isspace()]


def _statements_of(claims: _Claims) -> list[Statement]:
    """Flatten the statements of all properties; what is no item, such as a property, has no value here."""
    found = []
    for name, statements in zip(ENTITY_STATEMENTS, _KEPT_STATEMENTS(claims), strict=True):
        if statements:
            for position, statement in enumerate(statements):
                snak, qualifiers = statement.mainsnak, statement.qualifiers
                kind, held = snak.snaktype, snak.datavalue
                value = 0 if held is None or kind != "value" else _number_of(held.value)
                ended = bool(qualifiers) and "P582" in qualifiers  # type: ignore[operator]
                found.append(Statement(name, position, value, kind, statement.rank, bool(qualifiers), ended))
    return found


def _number_of(value: _ItemId) -> int:
    """Read the item that is pointed to; 0 where it is something else."""
    if qid := value.id:
        return number_of_target(qid) if qid[0] == "Q" else 0
    return value.numeric_id if value.entity_type == "item" and 0 < value.numeric_id < 2**32 else 0


def _best(statements: Sequence[_RawStatement[_Value]]) -> _Value | None:
    """Take the value of the first preferred statement that has one, else of the first normal one."""
    usable = [(s.rank, s.mainsnak.datavalue.value) for s in statements if s.mainsnak.datavalue is not None]
    for wanted in ("preferred", "normal"):
        for rank, value in usable:
            if rank == wanted:
                return value
    return None


def _demonym_of(statements: Sequence[_RawStatement[_Monolingual]], order: Sequence[str]) -> str | None:
    """Take the demonym in the first language that has one."""
    usable = [s.mainsnak.datavalue.value for s in statements if s.mainsnak.datavalue and s.rank != "deprecated"]
    return next((value.text for code in order for value in usable if value.language == code), None)


# Decoded items to part tables: a batch becomes columns in one go.

_ITEMS_PER_PART = 32_768
# The store numbers the statements of a property, and counts sitelinks, in two bytes: a hundred times what any item of
# Wikidata has. What lies beyond is left out and counted.
LARGEST = 2**16 - 1
_SEPARATOR = "\x1f"  # the unit separator of ASCII; Wikidata refuses control characters


class ItemBatch:
    """Items on their way to the part tables of one folder."""

    def __init__(self, folder: Path, file: int, left_out: dict[str, int]) -> None:
        """Name the folder and the number of the dump file; `left_out` counts what the store has no number for."""
        self.folder, self.file, self.left_out = folder, file, left_out
        self.parts = 0
        self.items: list[Item] = []
        self.places: list[tuple[int, int, int]] = []

    def add(self, item: Item, member: int, line: int, offset: int) -> None:
        """Take an item; a full batch is written."""
        self.items.append(item)
        self.places.append((member, line, offset))
        if len(self.items) == _ITEMS_PER_PART:
            self.write()

    def write(self) -> None:
        """Write what is waiting as a part of each table."""
        if not self.items:
            return
        for name, frame in (("items", self._item_frame()), ("statements", self._statement_frame())):
            save_part(frame, self.folder / f"{name}-{self.parts:05d}.arrows")
        self.parts += 1
        self.items, self.places = [], []

    def _item_frame(self) -> pl.DataFrame:
        """Turn the items into columns."""
        columns = _columns_of(self.items, Item)
        columns["lat"], columns["lon"] = columns.pop("latitude"), columns.pop("longitude")
        columns["member"], columns["line"], columns["offset"] = zip(*self.places, strict=True)
        columns["file"] = np.full(len(self.items), self.file, np.uint16)
        columns["aliases"], columns["labels"] = lists_of(columns["aliases"]), lists_of(columns["labels"])
        sitelinks = pl.Series(columns["sitelinks"], dtype=pl.UInt32)
        columns["sitelinks"] = sitelinks.clip(0, LARGEST).cast(pl.UInt16)
        more = int(sitelinks.sum()) - int(columns["sitelinks"].cast(pl.UInt32).sum())
        self._leave_out(f"sitelink beyond the first {LARGEST:,} of its item", more)
        return pl.DataFrame([_column(name, columns[name], dtype) for name, dtype in part_schema("items").items()])

    def _statement_frame(self) -> pl.DataFrame:
        """Turn the statements into columns."""
        counts = [len(item.statements) for item in self.items]
        columns = _columns_of([statement for item in self.items for statement in item.statements], Statement)
        columns["value"] = [value or None for value in columns["value"]]
        columns["number"] = np.repeat(np.array([item.number for item in self.items], np.uint32), counts)
        columns["line"] = np.repeat(np.array([line for _, line, _ in self.places], np.uint64), counts)
        columns["file"] = np.full(sum(counts), self.file, np.uint16)
        schema = {**part_schema("statements"), "position": pl.UInt32()}
        frame = pl.DataFrame([_column(name, columns[name], dtype) for name, dtype in schema.items()])
        kept = frame.filter(pl.col("position") <= LARGEST) if (frame["position"] > LARGEST).any() else frame
        self._leave_out(f"statement beyond the first {LARGEST + 1:,} of its property", frame.height - kept.height)
        return kept.cast({"position": pl.UInt16})

    def _leave_out(self, what: str, count: int) -> None:
        """Count what the store has no number for."""
        if count:
            self.left_out[what] = self.left_out.get(what, 0) + count


def _columns_of(records: Sequence[msgspec.Struct], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Turn records of one kind into a column for each field."""
    names = kind.__struct_fields__
    columns = zip(*map(astuple, records), strict=True) if records else ((),) * len(names)
    return dict(zip(names, columns, strict=True))


def _column(name: str, values: Any, dtype: pl.DataType) -> pl.Series:  # noqa: ANN401
    """Make a column; one of nothing but nulls, as rare facts often are, is made without looking at each."""
    if isinstance(values, tuple) and values and values[0] is None and values.count(None) == len(values):
        return pl.Series(name, [None], dtype).new_from_index(0, len(values))
    return pl.Series(name, values, dtype)


def lists_of(texts: Sequence[Sequence[str]]) -> pl.Series:
    """Make a column of lists; a column for each list would cost more than all the rest.

    The texts are joined and split again by a character that no text of Wikidata has; if one has it, by rows.
    """
    joined = [_SEPARATOR.join(some) if some else None for some in texts]
    if sum(map(len, texts)) == sum(text.count(_SEPARATOR) + 1 for text in joined if text is not None):
        return pl.Series(joined, dtype=pl.String).str.split(_SEPARATOR).fill_null([])
    return pl.Series([list(some) for some in texts], dtype=pl.List(pl.String))


def part_schema(table: str) -> dict[str, pl.DataType]:
    """Give the columns of a part: those of the table but for the QID, which is made when all stand in order.

    For statements there is also the line they come from.
    """
    if table == "items":
        schema = {**ITEMS.schema, **{name: column.dtype for name, column in ITEMS.optional.items()}}
        return {name: dtype for name, dtype in schema.items() if name != "qid"}
    return {**STATEMENTS.schema, "file": pl.UInt16(), "line": pl.UInt64()}
