"""Pages of sections: cells, tables and sections as data, and scores looked up for them."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType
from typing import Any, TypeAlias

import polars as pl
from markupsafe import Markup

from culturekit.core import roles
from culturekit.core.errors import IntegrityError
from culturekit.core.roles import Role
from culturekit.kg.countries import countries
from culturekit.report.charts import drawing, fitting
from culturekit.report.gallery import Strip
from culturekit.report.headline import waiting_forms
from culturekit.report.plots import Chart, ChartKind, Point, minus, plot
from culturekit.report.provenance import StageLine, every_caveat, people_counted, stage_line
from culturekit.report.run_folders import RunFolders
from culturekit.report.write import page_of
from culturekit.version import VERSION

SIDE, TOP_EDGE, LETTER, MOST = 54, 10, 7.2, 80


def matrix_picture(names: Sequence[str], found: Mapping[tuple[str, str], float]) -> str:
    """Draw correlations: filled where they rise together, ringed where one falls as the other rises."""
    size, letters = SIDE * len(names), min(max(map(len, names), default=0), MOST)
    left, foot = 24 + round(LETTER * letters), 40 + round(0.65 * LETTER * letters)
    marks: list[str] = []
    for row, a in enumerate(names):
        middle = TOP_EDGE + SIDE * row + SIDE / 2
        marks.append(f'<text x="{left - 10}" y="{middle + 5:.0f}" text-anchor="end">{fitting(a, MOST)}</text>')
        x, y = left + SIDE * row + SIDE / 2, TOP_EDGE + size + 14
        marks.append(
            f'<text x="{x:.0f}" y="{y}" text-anchor="end" transform="rotate(-40 {x:.0f} {y})">{fitting(a, MOST)}</text>'
        )
        for column, b in enumerate(names):
            marks += cell(left + SIDE * column, TOP_EDGE + SIDE * row, 1.0 if a == b else found.get((a, b)))
    title = "How the metrics follow each other; the table below has the numbers"
    return drawing("matrix-title", title, (left + size + 10, TOP_EDGE + size + foot), marks, kind="chart matrix")


def cell(x: float, y: float, value: float | None) -> list[str]:
    """Draw one correlation: a circle as large as it is strong, and its number."""
    frame = f'<rect class="frame" x="{x}" y="{y}" width="{SIDE}" height="{SIDE}"/>'
    if value is None or value != value:
        return [frame]
    radius = (SIDE / 2 - 3) * min(abs(value), 1.0)
    kind = "mapped" if value >= 0 else "open"
    text = f"{value:.2f}".replace("-", "\N{MINUS SIGN}")
    return [
        frame,
        f'<circle class="{kind} tinted" cx="{x + SIDE / 2}" cy="{y + SIDE / 2}" r="{radius:.1f}"/>',
        f'<text x="{x + SIDE / 2}" y="{y + SIDE / 2 + 5}" text-anchor="middle">{text}</text>',
    ]


DASH, NO_INTERVAL = "–", "no interval"

MOST_COLUMNS = 9  # So many columns of scores fit beside the heads of rows


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what it says, what stands below in small, its shade from 0 to 1, and the score that charts draw.

    `trace` is the folder and the row of the score, such as `judged#3`.
    """

    text: str
    sub: str = ""
    shade: float | None = None
    point: Point | None = None
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """One table; the first cell of each row is its head. `parts` are captions over some columns each.

    With a `chart` the scores of the table are drawn above it, and the table folds away; `corrected` ones fold, too.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    parts: tuple[tuple[str, int], ...] = ()
    chart: Chart | None = None
    corrected: bool = False

    @property
    def shaded(self) -> bool:
        """Tell whether its cells are shaded by what they say."""
        return any(cell.shade is not None for row in self.rows for cell in row)

    @property
    def words(self) -> set[int]:
        """The columns that are mostly words, which begin at the left; numbers end at the right."""
        return {
            at for at, column in enumerate(zip(*self.rows, strict=False))
            if sum((text := cell.text.lstrip("<>≤≥+−- "))[:1].isalpha() - text[:1].isdigit() for cell in column) > 0
        }  # fmt: skip

    @property
    def folds(self) -> bool:
        """Tell whether a chart above says what the table does."""
        return self.chart is not None and self.chart.kind != "heat"

    @property
    def points(self) -> Iterator[Point]:
        """The scores that it shows."""
        return (cell.point for row in self.rows for cell in row if cell.point)

    @property
    def scored(self) -> list[int]:
        """The columns with scores; what stands before them names the row."""
        return [at for at in range(1, len(self.columns)) if any(row[at].point for row in self.rows)]

    @property
    def drawings(self) -> Iterator["Grid"]:
        """What is drawn by itself: the rows of each first head, where rows have two; else all of them."""
        if min(self.scored, default=1) == 1:
            yield self
            return
        for name in dict.fromkeys(row[0].text for row in self.rows):
            rows = tuple(row[1:] for row in self.rows if row[0].text == name)
            yield replace(self, caption=f"{name}: {self.caption}", columns=self.columns[1:], rows=rows)

    def picture(self, name: str, among: Iterable[Point], place_of: Callable[[str], str]) -> str:
        """Draw the scores, each column with scores as a series; numbers lead to where they are walked back."""
        if self.chart is None or not self.folds:
            return ""
        places = self.scored
        named = [row[: min(places, default=1)] for row in self.rows]
        heads = [", ".join(cell.text for cell in cells if cell.text != DASH) for cells in named]
        lines = [(head, [row[at].point for at in places]) for head, row in zip(heads, self.rows, strict=True)]
        links = [[place_of(row[at].trace) if row[at].trace else "" for at in places] for row in self.rows]
        return plot(
            self.chart, name, self.caption, [self.columns[at] for at in places], lines, among=among, links=links
        )


def drawn(shown: Grid, kind: ChartKind, axis: str = "", *, swatches: tuple[str, ...] = ()) -> Grid:
    """Let a table be drawn, too: as dots with intervals, curves with bands, histograms, or as a heat map."""
    chart = Chart(kind, axis, swatches=swatches)
    if kind != "heat":
        return replace(shown, chart=chart)
    known = [point[0] for point in shown.points if math.isfinite(point[0])]
    low, high = min(known, default=0.0), max(known, default=1.0)
    rows = tuple(tuple(_shaded(cell, low, high) for cell in row) for row in shown.rows)
    caption = f"{shown.caption}; shaded from {minus(f'{low:.2f}')} to {minus(f'{high:.2f}')}"
    return replace(shown, caption=caption if known else shown.caption, chart=chart, rows=rows)


def _shaded(cell: Cell, low: float, high: float) -> Cell:
    """Shade a score by where it lies between the least and the greatest of its table."""
    if cell.point is None or not math.isfinite(cell.point[0]):
        return cell
    return replace(cell, shade=(cell.point[0] - low) / ((high - low) or 1.0))


@dataclass(frozen=True, slots=True)
class Section:
    """A section: its anchor, heading and first sentence, its tables with their charts, and pictures of the run."""

    anchor: str
    title: str
    lead: str
    grids: tuple[Grid, ...]
    picture: str = ""
    strips: tuple[Strip, ...] = ()

    def charts(self, place_of: Callable[[str], str] = lambda _: "") -> tuple[tuple[str, Markup], ...]:
        """The charts of the tables, each with its caption; those of one kind and axis share their scale."""
        every = [part for grid in self.grids if grid.folds for part in grid.drawings]
        found = []
        for number, grid in enumerate(every, 1):
            among = [point for each in every if each.chart == grid.chart for point in each.points]
            found.append((grid.caption, Markup(grid.picture(f"{self.anchor}-{number}", among, place_of))))
        return tuple(found)

    @property
    def tables(self) -> tuple[Grid, ...]:
        """The tables as they are shown."""
        return tuple(map(explained, side_by_side(self.grids)))


Where: TypeAlias = Mapping[str, str | None]

Sources: TypeAlias = list[tuple[str, Where, pl.DataFrame]]  # Who says something, where that stands, and the scores
ScoreRows: TypeAlias = Sequence[tuple[str | tuple[str, ...], Where, pl.DataFrame | None]]  # The same, of several heads


def name_of(code: str) -> str:
    """Name a country."""
    return countries()[code].name if code in countries() else code


def number(value: float | None, low: float | None = None, high: float | None = None, *, shaded: bool = False) -> Cell:
    """Write a score with its interval."""
    if value is None or math.isnan(value):
        return Cell(DASH, "" if value is None else "not defined")
    sub = "" if low is None or high is None or math.isnan(low) else f"{low:.2f} to {high:.2f}"
    shade = min(max(value, 0.0), 1.0) if shaded else None
    return Cell(minus(f"{value:.3f}"), minus(sub), shade, (value, low, high) if sub else (value, None, None))


def looked_up(table: pl.DataFrame | None, *, shaded: bool = False, **where: str | None) -> Cell:
    """Look one score up; a dash where there is none. A value that has no interval says so."""
    row = row_of(table, **where)
    if row is None:
        return Cell(DASH)
    found = number(row["value"], row["ci_low"], row["ci_high"], shaded=shaded)
    return replace(found, sub=found.sub or NO_INTERVAL, trace=row.get("trace", ""))


def row_of(table: pl.DataFrame | None, **where: str | None) -> dict[str, Any] | None:
    """Look up the one row that meets all conditions."""
    if table is None:
        return None
    for column, value in where.items():
        table = table.filter(pl.col(column).eq_missing(pl.lit(value, pl.String)))
    if table.height > 1:
        raise IntegrityError(
            f"{table.height} scores stand where the page shows one", where=str(where), expected="one of each kind",
            found="; ".join(table["params"].head(2)),
        )  # fmt: skip
    return table.row(0, named=True) if table.height else None


def _heads(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def grid(caption: str, heads: Iterable[str], rows: Iterable[tuple[str | tuple[str, ...], Iterable[Cell]]]) -> Grid:
    """Make a table of rows with their heads."""
    return Grid(caption, tuple(heads), tuple((*map(Cell, _heads(head)), *cells) for head, cells in rows))


def score_grid(
    caption: str, first: str | tuple[str, ...], columns: Iterable[tuple[str, Where]], rows: ScoreRows,
    kind: ChartKind | None = None, axis: str = "", *, shaded: bool = False,
) -> Grid:  # fmt: skip
    """Make a table of scores, each looked up where its row and its column say; of a `kind` it is drawn, too."""
    wanted = list(columns)
    shown = grid(caption, (*_heads(first), *(head for head, _ in wanted)), (
        (head, [looked_up(table, shaded=shaded, **row, **column) for _, column in wanted]) for head, row, table in rows
    ))  # fmt: skip
    return shown if kind is None else drawn(shown, kind, axis)


def side_by_side(grids: Iterable[Grid]) -> Iterator[Grid]:
    """Put neighbours with the same columns and heads of rows into one table, evenly, as many as fit."""

    def alike_in(each: Grid) -> tuple[object, ...]:
        return each.columns, [row[0] for row in each.rows], each.chart, each.corrected

    for (columns, *_), group in groupby(grids, alike_in):
        alike, columns_each = list(group), len(columns) - 1  # type: ignore[arg-type]
        room = range(1, max(MOST_COLUMNS // max(columns_each, 1), 1) + 1)
        size = max(number for number in room if len(alike) % number == 0)
        for start in range(0, len(alike), size):
            yield beside(alike[start : start + size])


def beside(alike: Sequence[Grid]) -> Grid:
    """Make one table of some; one stays as it is."""
    first, *others = alike
    if not others:
        return first
    parts = tuple((each.caption, len(first.columns) - 1) for each in alike)
    columns = (first.columns[0], *first.columns[1:] * len(alike))
    rows = zip(*(each.rows for each in alike), strict=True)
    cells = tuple((row[0][0], *(cell for part in row for cell in part[1:])) for row in rows)
    return Grid("", columns, cells, parts, first.chart, first.corrected)


def explained(shown: Grid) -> Grid:
    """Say in the caption what a dash is, and where no value has an interval; where only some lack it, these say so."""
    cells = [cell for row in shown.rows for cell in row[1:]]
    scores = [cell for cell in cells if cell.text != DASH]
    if scores and all(cell.sub == NO_INTERVAL for cell in scores):
        rows = tuple((row[0], *(replace(cell, sub="") for cell in row[1:])) for row in shown.rows)
        shown = replace(shown, caption=f"{shown.caption}, without intervals".removeprefix(", "), rows=rows)
    if len(scores) == len(cells):
        return shown
    return replace(shown, caption=f"{shown.caption}; a dash: nothing to score".removeprefix("; "))


@dataclass(frozen=True, slots=True)
class SectionPage:
    """Everything the page shows; `about` are countries, or a culture, and `stated` the folders with its scores."""

    title: str
    models: tuple[str, ...]
    images: int
    about: tuple[str, ...]
    verdict: tuple[str, ...]
    caveats: tuple[str, ...]
    sections: tuple[Section, ...]
    stages: tuple[StageLine, ...]
    stated: tuple[str, ...]
    versions: Mapping[str, str]

    @property
    def traces(self) -> set[str]:
        """The folders and rows of all scores that it shows."""
        cells = (cell for section in self.sections for grid in section.grids for row in grid.rows for cell in row)
        return {cell.trace for cell in cells if cell.trace}

    @property
    def thumbnails(self) -> dict[str, str]:
        """The names of the small copies that it shows, each with the path of its picture in the run."""
        shown = (picture for section in self.sections for strip in section.strips for picture in strip.pictures)
        return dict(sorted((picture.thumbnail, picture.source) for picture in shown))


def section_page(
    run: RunFolders, title: str, about: Iterable[str], verdict: Iterable[str], caveats: Iterable[str],
    sections: Iterable[Section | None], stated: tuple[str, ...], *, pictures: Sequence[Role] = (roles.IMAGES,),
) -> SectionPage:  # fmt: skip
    """Put together what a kind of run says, its own `caveats` after those of the stages, and what is said of each."""
    images = sum(run.manifest(role, model).counts.get("images", 0) for role in pictures for model in run.models)
    there, stages = tuple(filter(None, sections)), tuple(stage_line(run, name) for name in run.stages)
    sentences = (*verdict, *waiting_forms(run), *people_counted(run))
    return SectionPage(
        title, tuple(run.models), images, tuple(about), sentences, (*every_caveat(run), *caveats), there, stages,
        stated, {"culturekit": VERSION},
    )  # fmt: skip


def render_sections(
    data: SectionPage, links: Mapping[str, str] = MappingProxyType({}), *, thumbnails: str = "thumbnails",
    place_of: Callable[[str], str] = lambda _: "",
) -> str:  # fmt: skip
    """Render the page: it has no script at all.

    Args:
        data: what it shows.
        links: the pages that models have in a site.
        thumbnails: where the small copies of pictures lie.
        place_of: says where a number is walked back; empty where that is no page.
    """
    pictures = {section.anchor: Markup(section.picture) for section in data.sections}
    return page_of("sections.html", data=data, links=links, pictures=pictures, thumbnails=thumbnails, place_of=place_of)
