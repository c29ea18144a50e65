"""The numbers of a report's tables, read as a browser would, against the scores they are said to be."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.score_rows import SCORES_FILE, read_rows

__all__ = ["Cell", "PageTable", "check_report", "tables_of"]

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
    """Gathers tables while the page goes by."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__(convert_charrefs=True)
        self.found: list[PageTable] = []
        self.open: list[tuple[str, dict[str, str]]] = []
        self.table: PageTable | None = None
        self.cell: Cell | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open what begins."""
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
        """Close what ends."""
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
    """Read the tables of a page."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    yield from reader.found


CHECK = "report"
PAGE = "report.html"
ROW, COUNT = re.compile(r"row (\d+) of (?:([\w-]+)/)?scores"), re.compile(r"n = ([\d,]+)")
NUMBER = re.compile(r"[-\N{MINUS SIGN}]?\d+(?:\.\d+)?")
LIMITS = re.compile(r"\s*([-\N{MINUS SIGN}]?[\d.]+)(?:[–-]| to )([-\N{MINUS SIGN}]?[\d.]+)\s*")
FEW, ALIKE = "too few batches", "all alike"
LABELS = {"true": "truth", "true diversity": "truth", "mapped diversity": "mapped", "corrected diversity": "corrected"}
KINDS = ("mapped", "corrected", "truth", "tagged")

Row = Mapping[str, Any]


def check_report(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Compare a report with the scores it was made from."""
    if tree.source(stage, "scores") is None:
        ledger.note(CHECK, stage.name, "the scores that it shows are not here")
        return
    tables = {}
    for role in stage.manifest.inputs:
        folder = tree.source(stage, role)
        if folder is not None and (Path(folder) / SCORES_FILE).is_file():
            tables[role] = read_rows(Path(folder) / SCORES_FILE)
    check_page(stage, tables, ledger)


def check_page(stage: FinishedStage, scores: Mapping[str, Sequence[Row]], ledger: Ledger) -> None:
    """Compare all cells of a page that name a row of scores, which are those of `scores` unless a folder is named."""
    where = f"{stage.name}/{PAGE}"
    page = (stage.folder / PAGE).read_text(encoding="utf-8")
    cells = 0
    for table in tables_of(page):
        columns = columns_of(table)
        for model, row in table.rows:
            for place, cell in placed(row):
                named = ROW.search(cell.title)
                if named is None:
                    continue
                cells += 1
                stands: dict[str, str | None] = {"model": model, "kernel": table.kernel, "concept": table.concept}
                if cell.concept is not None:
                    stands["concept"] = cell.concept or None
                of = {**stands, **columns.get(place, {})}
                check_cell(where, cell, int(named[1]), scores.get(named[2] or "scores", ()), of, ledger)
    ledger.count("cells of reports compared", cells)
    if not cells:
        ledger.broken(CHECK, where, "no cell names a row of the scores", expected="tables of scores", found="none")


def columns_of(table: PageTable) -> dict[int, dict[str, str]]:
    """Say which kind of labels the columns of a table are of, and of which kernel, from the rows above its numbers."""
    heads = [row for _, row in table.rows if row and all(cell.header for cell in row)]
    columns: dict[int, dict[str, str]] = {}
    if not heads:
        return columns
    beside = 1 if len(heads) == 2 else 0  # the name of the model stands beside both rows of a head
    over = [cell for cell in heads[0][beside:] for _ in range(cell.span)] if beside else []
    for place, cell in placed(heads[-1]):
        kind = LABELS.get(cell.text.strip(), cell.text.strip())
        if kind not in KINDS:
            continue
        columns[place + beside] = {"labels": kind}
        if place < len(over) and over[place].concept is None:
            columns[place + beside]["kernel"] = over[place].text.strip()
    return columns


def placed(row: Sequence[Cell]) -> list[tuple[int, Cell]]:
    """Number the columns of a row."""
    places, column = [], 0
    for cell in row:
        places.append((column, cell))
        column += cell.span
    return places


def check_cell(
    where: str, cell: Cell, number: int, scores: Sequence[Row], about: Mapping[str, str | None], ledger: Ledger
) -> None:
    """Compare one cell with the row it names: whose score it is, the value, the interval, the number of images."""
    if number >= len(scores):
        ledger.broken(CHECK, where, f"names row {number}, which the scores do not have", found=cell.text.strip())
        return
    row = scores[number]
    here = f"{where}, cell of row {number} ({about.get('model')}, {about.get('concept')}, {about.get('labels')})"
    stands = {"model": row["model"], "concept": row["concept"], **row["about"]}
    for name in ("model", "concept", "kernel", "labels"):
        if about.get(name) is not None and stands.get(name) is not None and stands[name] != about[name]:
            ledger.broken(CHECK, here, f"the row is of another {name}", expected=about[name], found=stands[name])
    shown = [NUMBER.search(cell.text)]
    under = LIMITS.fullmatch(cell.under.partition("\n")[0])
    pairs = [("value", row["value"], shown[0][0] if shown[0] else None)]
    if not said_in_words(cell, row) and (under is not None or row["ci_low"] is not None):
        pairs += [("lower limit", row["ci_low"], under[1] if under else None)]
        pairs += [("upper limit", row["ci_high"], under[2] if under else None)]
    for name, expected, text in pairs:
        if not shows(text, expected):
            ledger.broken(CHECK, here, f"the {name} shown is not that of the scores", expected=expected, found=text)
    count = COUNT.search(cell.title)
    if count is not None and int(count[1].replace(",", "")) != row["n"]:
        ledger.broken(CHECK, here, "n is not that of the scores", expected=row["n"], found=count[1])


def said_in_words(cell: Cell, row: Row) -> bool:
    """Tell whether limits that tell nothing, further apart than half of the scale or of no width, are said to be so."""
    low, high = row["ci_low"], row["ci_high"]
    words = None if None in (low, high) else FEW if high - low > 0.5 else ALIKE if high == low else None
    return words is not None and cell.under.partition("\n")[0].strip() == words


def shows(text: str | None, number: float | None) -> bool:
    """Tell whether a number was written in so many digits; a dash stands for none."""
    if text is None or number is None:
        return text is None and (number is None or number != number)
    digits = len(text.partition(".")[2])
    return abs(float(text.replace("\N{MINUS SIGN}", "-")) - number) <= 0.5000001 * 10.0**-digits
