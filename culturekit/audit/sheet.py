"""The layouts that can be audited, and the rows of a file, read by the part that each column plays."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from culturekit.builders.space.public_cube import CONCEPTS
from culturekit.kg.countries import Country

__all__ = ["LAYOUTS", "Form", "Layout", "Part", "Row", "Sheet", "layout_of"]

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
    "public",
    {"id": "id", "name": "name", "country": "country", "concept": "domain", "prompt": "prompt"},
    ("id", "name", "country", "domain", "prompt"),
    "name",
    statements=("P31", "P279", "P495", "P17", "P2012", "P361"),
    fixed_concepts=True,
)
CSPACE = Layout(
    "cspace",
    {"id": "artifact_id", "name": "name", "country": "country", "concept": "concept", "subconcept": "subconcept"},
    ("artifact_id", "qid", "name", "concept", "country", "country_name", "source"),
    "iso",
    key=("concept", "country", "artifact_id"),
)
PROMPTS = Layout(
    "prompts",
    {
        "id": "artifact_id",
        "country": "country",
        "concept": "concept",
        "prompt": "text",
        "negative": "negative_text",
    },
    ("prompt_id", "text", "kind", "concept", "country", "artifact_id", "template_id"),
    "iso",
    key=("prompt_id",),
)
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
