"""Charts and maps as SVG text, drawn once when the report is written; colours come from the page's style sheet.

The world is drawn once, and each map uses its countries in other tints.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import polars as pl

from culturekit.core import roles
from culturekit.report.countries import HEIGHT as MAP_HEIGHT
from culturekit.report.countries import WIDTH as MAP_WIDTH
from culturekit.report.countries import CountryShares, Share, country_paths
from culturekit.report.run_folders import Figure, RunFolders, figure_in, inert
from culturekit.report.run_folders import figure as score_figure
from culturekit.scores.family import parsed

# The headline of each model: what its images score over all prompts, and what people saw on some of them.


@dataclass(frozen=True, slots=True)
class Seen:
    """What people saw on some images of a model."""

    images: int  # how many they looked at
    nothing: Figure  # the share on which they saw no artifact of any culture
    accuracy: Mapping[str, Figure]  # by level, the share that is mapped to what they saw


@dataclass(frozen=True, slots=True)
class Rank:
    """The place of a model by corrected diversity, and the places it may have, of so many."""

    position: Figure
    models: int


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model in the headline: its mapped diversity, the corrected one after an audit, the true one where known."""

    model: str
    backend: str
    images: int
    mapped: Figure
    corrected: Figure | None
    truth: Figure | None
    quality: Figure | None
    culture_free: int | None
    similarity: Mapping[str, float]
    seen: Seen | None = None
    rank: Rank | None = None

    @property
    def reality(self) -> Figure | None:
        """The diversity of what its images really show: known, or found out by an audit."""
        return self.truth or self.corrected

    @property
    def recognised(self) -> Figure | None:
        """The share of its images that are mapped to the country people saw, where they looked."""
        return None if self.seen is None else self.seen.accuracy.get("country")

    @property
    def shows_nothing(self) -> bool | None:
        """Tell whether most of its images show no culture; None where neither truth nor people tell surely."""
        if self.culture_free is not None:
            return self.culture_free > self.images / 2
        if self.seen is None or self.seen.nothing.low is None or self.seen.nothing.high is None:
            return None
        if self.seen.nothing.low <= 0.5 <= self.seen.nothing.high:
            return None
        return self.seen.nothing.low > 0.5


def in_order(lines: Iterable[ModelLine]) -> tuple[ModelLine, ...]:
    """Put the most diverse first."""
    return tuple(sorted(lines, key=place_of))


def place_of(line: ModelLine) -> tuple[bool, bool, float]:
    """Order by corrected diversity; those without it come after them by the mapped one, and the unscored last."""
    value = (line.corrected or line.mapped).value
    return math.isnan(value), line.corrected is None, -value


def model_lines(run: RunFolders, scores: pl.DataFrame) -> Iterator[ModelLine]:
    """Give the headline of each model, over all its prompts."""
    seen, ranks, kernel = seen_by_people(run), ranks_of(run), run.kernel
    for model in run.models:
        about = scores.filter(pl.col("model") == model)
        overall = overall_of(about)
        vs = overall.filter(pl.col("metric") == "vs", pl.col("kernel") == kernel)
        mapped = score_figure(vs, labels="mapped")
        if mapped is None:
            continue
        truth = run.manifest(roles.TRUTH, model).counts if model in run.truthful else {}
        yield ModelLine(
            model=model, backend=str(run.manifest(roles.IMAGES, model).options["backend"]),
            images=run.manifest(roles.IMAGES, model).counts["ok"], mapped=mapped,
            corrected=score_figure(vs, labels="corrected"),
            truth=score_figure(vs, labels="truth") if model in run.truthful else None,
            quality=score_figure(overall.filter(pl.col("metric") == "quality"), labels="mapped"),
            culture_free=truth.get("culture_free"), similarity=run.manifest(roles.MATCHES, model).notes["similarity"],
            seen=seen.get(model), rank=ranks.get(model),
        )  # fmt: skip


def overall_of(about: pl.DataFrame) -> pl.DataFrame:
    """Keep what one model scores over all concepts, or on the only one it has."""
    concept = None if about["concept"].null_count() or about.is_empty() else about["concept"][0]
    return about.filter(pl.col("concept").eq_missing(pl.lit(concept, pl.String)))


def seen_by_people(run: RunFolders) -> dict[str, Seen]:
    """Read what people saw on images of each model, where there was an audit."""
    table = run.numbered(roles.AUDITED)
    found = {}
    for part in () if table is None else table.partition_by("model", maintain_order=True):
        about = overall_of(part).with_columns(level=pl.col("params").str.json_path_match("$.level"))
        nothing = score_figure(about.filter(metric="share_without_culture"))
        rates = about.filter(metric="mapping_accuracy").to_dicts()
        if nothing is not None:
            looked_at = int(parsed(about.filter(metric="share_without_culture")["params"][0])["audited"])
            found[part["model"][0]] = Seen(looked_at, nothing, {row["level"]: figure_in(row) for row in rates})
    return found


def ranks_of(run: RunFolders) -> dict[str, Rank]:
    """Read the place of each model by corrected diversity, where that was compared."""
    table = run.ranks("model_rank")
    if table is None:
        return {}
    ranks = table.filter(of_metric="vs", of_kernel=run.kernel)
    found = {}
    for part in ranks.partition_by("model"):
        for row in overall_of(part).to_dicts():
            found[row["model"]] = Rank(figure_in(row), row["models"])
    return found


BELOW, ABOVE = 11, 11
"""Where people corrected, the mapped value stands a little below, so that intervals can be told apart; and where a long
name stands."""

WIDTH, RIGHT, TOP, ROW, FOOT = 680, 24, 8, 38, 34

LETTER = 7.6  # how wide a letter of a name is, about

NARROWEST, WIDEST = 120, 270  # room for the names, beside the axis; longer ones stand above what is drawn of them

TINTS = ("none", "up to 2 %", "2–5 %", "5–10 %", "10–20 %", "20–40 %", "more than 40 %")
"""What each tint says, lightest first."""

BOUNDS = (0.0, 0.02, 0.05, 0.10, 0.20, 0.40)

WIDEST_LETTERS, LETTERS = int((WIDEST - 12) / LETTER), 22
"""Letters of a name that have room beside the axis, and of the title of the axis."""
TICKS = 4


def diversity_chart(models: Sequence[ModelLine], *, named: Sequence[str] = ()) -> str:
    """Draw corrected, mapped and true diversity of each model on one scale, with their intervals."""
    height = TOP + ROW * len(models) + FOOT
    beside = [len(line.model) for line in models if len(line.model) <= WIDEST_LETTERS]
    left = max(12 + LETTER * max(beside, default=0), NARROWEST)
    marks = [*axis(height, "diversity, VS / 8", left=left)]
    for number, line in enumerate(models):
        marks += model_row(line, TOP + ROW * number + ROW / 2, is_named=line.model in named, left=left)
    title = "Diversity of each model; the table below has the numbers"
    return drawing("chart-title", title, (WIDTH, height), marks)


def drawing(name: str, title: str, size: tuple[int, int], marks: Iterable[str], *, kind: str = "chart") -> str:
    """Put marks into a picture whose title, escaped before, is read out by its name."""
    head = f'<svg class="{kind}" viewBox="0 0 {size[0]} {size[1]}" role="img" aria-labelledby="{name}">'
    return "\n".join([head, f'<title id="{name}">{title}</title>', *marks, "</svg>"])


def axis(height: int, title: str, *, left: float, top: float = 1.0) -> Iterator[str]:
    """Draw the axis from 0."""
    bottom = height - FOOT
    for tick in range(TICKS + 1):
        value = top * tick / TICKS
        at = f"{x(value, left, top):.1f}"
        yield f'<line class="grid" x1="{at}" x2="{at}" y1="{TOP}" y2="{bottom}"/>'
        yield f'<text class="tick" x="{at}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>'
    middle = x(top / 2, left, top)
    yield f'<text class="tick" x="{middle:.1f}" y="{height - 4}" text-anchor="middle">{fitting(title, LETTERS)}</text>'


def model_row(line: ModelLine, y: float, *, is_named: bool, left: float) -> Iterator[str]:
    """Draw one model: a bar of the gap, a ring for the truth, a diamond for corrected, a dot for mapped."""
    beside = len(line.model) <= WIDEST_LETTERS
    at = f'x="{left - 12:g}" y="{y + 5:.1f}" text-anchor="end"' if beside else f'x="0" y="{y - ABOVE:.1f}"'
    yield f'<text class="{"name liar" if is_named else "name"}" {at}>{fitting(line.model, WIDTH // 8)}</text>'
    if line.reality is not None and not math.isnan(line.mapped.value):
        start, end = sorted((x(line.reality.value, left), x(line.mapped.value, left)))
        kind = "gap liar" if is_named else "gap"
        yield f'<line class="{kind}" x1="{start:.1f}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
    if line.truth is not None:
        yield whisker(line.truth, y, kind="truth", left=left)
        yield f'<circle class="truth" cx="{x(line.truth.value, left):.1f}" cy="{y:.1f}" r="8"/>'
    if line.corrected is not None:
        yield whisker(line.corrected, y, kind="corrected", left=left)
        yield diamond(x(line.corrected.value, left), y)
        y += BELOW
    yield whisker(line.mapped, y, kind="mapped", left=left)
    yield f'<circle class="mapped" cx="{x(line.mapped.value, left):.1f}" cy="{y:.1f}" r="4.5"/>'


def diamond(centre: float, y: float) -> str:
    """Draw the mark of a corrected value."""
    points = " ".join(f"{centre + dx:.1f},{y + dy:.1f}" for dx, dy in ((0, -5), (5, 0), (0, 5), (-5, 0)))
    return f'<polygon class="corrected" points="{points}"/>'


def whisker(figure: Figure, y: float, *, kind: str, left: float, top: float = 1.0) -> str:
    """Draw an interval; nothing where there is none."""
    if figure.low is None or figure.high is None:
        return ""
    ends = x(figure.low, left, top), x(figure.high, left, top)
    return f'<line class="{kind}" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'


def fitting(name: str, room: int) -> str:
    """Write a text of strangers into a drawing: inert, escaped, and no longer than so many letters."""
    shown = inert(name)
    return escape(shown if len(shown) <= room else f"{shown[: room - 1]}…")


def x(value: float, left: float, top: float = 1.0) -> float:
    """Place a value on the axis; what lies outside stands at its end."""
    return left + (WIDTH - left - RIGHT) * min(max(value / top, 0.0), 1.0)


def tint(share: Share) -> str:
    """Name the class that tints a share."""
    return f"w{sum(share.value > bound for bound in BOUNDS)}"


def world() -> str:
    """Draw all countries, to be used by the maps."""
    paths = "".join(f'<path id="land-{code or "other"}" d="{path}"/>' for code, path in country_paths().items())
    return f'<svg class="store" aria-hidden="true" width="0" height="0"><defs>{paths}</defs></svg>'


def map_of(shares: CountryShares, model: str) -> str:
    """Draw the world with the countries that images can be mapped to in the tint of their share."""
    name = escape(model)
    head = f'<svg class="world" viewBox="0 0 {MAP_WIDTH} {MAP_HEIGHT}" role="img" aria-label="World map of {name}; '
    return f'{head}the table below has the numbers">{"".join(countries_on(shares, model))}</svg>'


def countries_on(shares: CountryShares, model: str) -> Iterator[str]:
    """Place every country; those that could be shown have a tint, and say their share."""
    leading = shares.leading(model)
    for code in country_paths():
        use = f'<use href="#land-{code or "other"}"'
        if code in leading:
            label = f"{escape(shares.names[code])}: {leading[code].value:.1%} of {shares.images.get(model, 0):,} images"
            yield f'{use} class="{tint(leading[code])}"><title>{label}</title></use>'
        else:
            yield f"{use}/>"
