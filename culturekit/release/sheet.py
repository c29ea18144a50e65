"""The layouts that can be audited, and the rows of a file, read by the part that each column plays."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from culturekit.builders.space.public_cube import CONCEPTS
from culturekit.kg.countries import Country

Part: TypeAlias = Literal["id", "name", "country", "concept", "prompt", "negative", "subconcept"]


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout: its columns by the part they play, those that hold statements, and how it writes countries.

    `key` is how rows are told apart and ordered in our tables; with `fixed_concepts` only CUBE's may stand.
    """

    name: Literal["public", "cspace", "prompts"]
    parts: Mapping[Part, str]
    needs: tuple[str, ...]
    countries: Literal["name", "iso"]
    statements: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    fixed_concepts: bool = False


PUBLIC = Layout(
    "public", {"id": "id", "name": "name", "country": "country", "concept": "domain", "prompt": "prompt"},
    ("id", "name", "country", "domain", "prompt"), "name", statements=("P31", "P279", "P495", "P17", "P2012", "P361"),
    fixed_concepts=True,
)  # fmt: skip
CSPACE = Layout(
    "cspace",
    {"id": "artifact_id", "name": "name", "country": "country", "concept": "concept", "subconcept": "subconcept"},
    ("artifact_id", "qid", "name", "concept", "country", "country_name", "source"), "iso",
    key=("concept", "country", "artifact_id"),
)  # fmt: skip
PROMPTS = Layout(
    "prompts",
    {
        "id": "artifact_id", "country": "country", "concept": "concept", "prompt": "text", "negative": "negative_text",
    },
    ("prompt_id", "text", "kind", "concept", "country", "artifact_id", "template_id"), "iso", key=("prompt_id",),
)  # fmt: skip
LAYOUTS = (PUBLIC, CSPACE, PROMPTS)


def layout_of(columns: Collection[str]) -> Layout | None:
    """Find the layout that columns belong to."""
    return next((layout for layout in LAYOUTS if set(layout.needs) <= set(columns)), None)


Form: TypeAlias = Literal["json", "parquet", "csv"]


@dataclass(frozen=True, slots=True)
class Row:
    """A row; `number` is its place in the file, from 0, also after others were set aside."""

    number: int
    cells: Mapping[str, Any]

    def text(self, column: str) -> str:
        """Write what stands in a column; nothing there is an empty text."""
        return str(self.cells.get(column) or "")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A file that is audited; `places` are the countries by what the layout calls them."""

    layout: Layout
    form: Form
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    places: Mapping[str, Country]

    def has(self, part: Part) -> bool:
        """Tell whether the layout has a column for a part."""
        return self.layout.parts.get(part) in self.columns

    def column(self, part: Part) -> str:
        """Name the column of a part; the part itself where the layout has none."""
        return self.layout.parts.get(part, part)

    def text(self, row: Row, part: Part) -> str:
        """Read a part of a row as it stands; nothing there is an empty text."""
        value = row.cells.get(self.column(part))
        return value if isinstance(value, str) else ""

    def country(self, row: Row) -> Country | None:
        """Find the country of a row, white space aside."""
        return self.places.get(self.text(row, "country").strip())

    def concept(self, row: Row) -> str | None:
        """Find the concept of a row under its own name: `landscapes` are landmarks."""
        stated = self.text(row, "concept").strip()
        if self.layout.fixed_concepts:
            return CONCEPTS.get(stated)
        return CONCEPTS.get(stated, stated) or None

    def texts(self) -> Iterator[tuple[int, str, str]]:
        """Give the texts that a reader reads, in the order of the file, each with its row and column."""
        spoken = set(self.layout.parts.values())
        read = [column for column in self.columns if column in spoken]
        for row in self.rows:
            for column in read:
                if isinstance(text := row.cells.get(column), str):
                    yield row.number, column, text

    def with_rows(self, rows: Sequence[Row]) -> "Sheet":
        """Give the same file with other rows."""
        return replace(self, rows=tuple(rows))


# Which item a row is about, and names brought to one form, to tell whether two of them are the same.

EMPTY = "nan"
LIST = re.compile(r"\[(.*)\]", re.DOTALL)
QID = re.compile(r"Q[1-9][0-9]{0,9}")  # an item; its number has no more digits than a graph can hold


@lru_cache(maxsize=65_536)
def parts_of(cell: str) -> tuple[str, ...] | None:
    """Take a cell apart; None where it says nothing."""
    text = cell.strip()
    if text in {"", EMPTY}:
        return None
    match = LIST.fullmatch(text)
    inner = match[1] if match else text
    return tuple(part.strip().strip("'\"").strip() for part in inner.split(",") if part.strip())


@lru_cache(maxsize=65_536)
def items_of(cell: str) -> tuple[str, ...]:
    """List the QIDs of a cell, each once."""
    return tuple(dict.fromkeys(part for part in parts_of(cell) or () if QID.fullmatch(part)))


def written(items: Sequence[str]) -> str:
    """Write items as the layout has them."""
    quoted = ", ".join(f"'{item}'" for item in items)
    return f"[{quoted}]"


def item_of(sheet: Sheet, row: Row) -> str | None:
    """Give the QID of a row; None where it has none."""
    stated = sheet.text(row, "id").strip()
    return stated if QID.fullmatch(stated) else None


def same_artifact(sheet: Sheet, one: Row, other: Row) -> bool:
    """Tell whether two rows of one name can be one artifact: two QIDs that differ are two."""
    items = item_of(sheet, one), item_of(sheet, other)
    return None in items or items[0] == items[1]


def tidy(text: str) -> str:
    """Put one space between words and none around them."""
    return " ".join(text.split())


def squeeze(text: str) -> str:
    """Leave out white space altogether."""
    return "".join(text.split())


@lru_cache(maxsize=1_000_000)
def fold(text: str) -> str:
    """Fold case, width and white space; accents stay, for they can tell two dishes apart."""
    return tidy(unicodedata.normalize("NFKC", text).casefold())
