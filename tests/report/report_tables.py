"""The tables of a report, read as a browser would."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

LABELS = {"true": "truth", "true diversity": "truth", "mapped diversity": "mapped", "corrected diversity": "corrected"}
KINDS = ("mapped", "corrected", "truth", "tagged")

VOID = {"br", "img", "link", "meta", "input", "hr", "col", "source", "wbr"}


@dataclass(slots=True)
class Cell:
    """A cell: its text, the lines of smaller text under it, its title and concept if any, and its columns."""

    header: bool
    span: int = 1
    concept: str | None = None
    text: str = ""
    under: str = ""
    title: str = ""


@dataclass(slots=True)
class PageTable:
    """A table: its caption, the concept and the kernel it stands under, and its rows with the model each names."""

    concept: str | None
    kernel: str | None = None
    caption: str = ""
    rows: list[tuple[str | None, list[Cell]]] = field(default_factory=list)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[PageTable] = []
        self.open: list[tuple[str, dict[str, str]]] = []
        self.table: PageTable | None = None
        self.cell: Cell | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self.open.append((tag, given))
        if tag == "table":
            self.table = PageTable(self.nearest("data-concept"), self.nearest("data-kernel"))
            self.found.append(self.table)
        elif self.table is not None and tag == "tr":
            self.table.rows.append((given.get("data-model"), []))
        elif self.table is not None and tag in {"td", "th"} and self.table.rows:
            self.cell = Cell(tag == "th", int(given.get("colspan", "1")), given.get("data-concept"))
            self.table.rows[-1][1].append(self.cell)
        if self.cell is not None and self.cell.under and "sub" in given.get("class", ""):
            self.cell.under += "\n"
        if self.cell is not None and given.get("title"):
            self.cell.title = given["title"]

    def nearest(self, attribute: str) -> str | None:
        """Give an attribute of the innermost open element that has it."""
        return next((given[attribute] for _, given in reversed(self.open) if attribute in given), None)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass
        if tag in {"td", "th"}:
            self.cell = None
        if tag == "table":
            self.table = None

    def handle_data(self, data: str) -> None:
        """Take text into the cell or caption it stands in."""
        tags = [tag for tag, _ in self.open]
        if self.cell is not None:
            under = any(tag == "span" and "sub" in given.get("class", "") for tag, given in self.open)
            if under:
                self.cell.under += data
            else:
                self.cell.text += data
        elif self.table is not None and "caption" in tags:
            self.table.caption += data


def tables_of(page: str) -> Iterator[PageTable]:
    reader = Reader()
    reader.feed(page)
    reader.close()
    yield from reader.found


def columns_of(table: PageTable) -> dict[int, dict[str, str]]:
    """Say which kind of labels the columns of a table are of, and of which kernel, from the rows above its numbers."""
    heads = [row for _, row in table.rows if row and all(cell.header for cell in row)]
    columns: dict[int, dict[str, str]] = {}
    if not heads:
        return columns
    beside = 1 if len(heads) == 2 else 0  # the name of the model stands beside both rows of a head
    over = [cell for cell in heads[0][beside:] for _ in range(cell.span)] if beside else []
    for position, cell in placed(heads[-1]):
        kind = LABELS.get(cell.text.strip(), cell.text.strip())
        if kind not in KINDS:
            continue
        columns[position + beside] = {"labels": kind}
        if position < len(over) and over[position].concept is None:
            columns[position + beside]["kernel"] = over[position].text.strip()
    return columns


def placed(row: Sequence[Cell]) -> list[tuple[int, Cell]]:
    places, column = [], 0
    for cell in row:
        places.append((column, cell))
        column += cell.span
    return places
