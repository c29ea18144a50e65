"""Gaps between groups of countries, such as the Global North and South, read from their scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import polars as pl

from culturekit.metrics.scoring.value_sets import parsed
from culturekit.records.schemas import SCORES
from culturekit.report.charts import drawing
from culturekit.report.countries import over_all_concepts
from culturekit.report.figures import Figure, figure_in
from culturekit.report.inert import inert
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["GapLine", "gap_chart", "gap_lines", "gaps_in"]

METRICS = {"vs": "diversity within countries, VS", "qvs": "quality times diversity, qVS", "quality": "quality"}

PARAMS = pl.Struct(
    [
        *(pl.Field(name, pl.String) for name in ("a", "b", "metric", "scheme", "target")),
        pl.Field("of", pl.Struct({"labels": pl.String, "kernel": pl.String})),
        pl.Field("prompts", pl.Int64),
        pl.Field("p_corrected", pl.Float64),
    ]
)

FULL = {"GN": "Global North", "GS": "Global South"}

WIDTH, LEFT, RIGHT, ROW, FOOT = 680, 230, 30, 40, 40

NAME = 30
"""Letters of a model's name that the chart has room for; the table has all."""


@dataclass(frozen=True, slots=True)
class GapLine:
    """How much more the countries of one group score than those of another, for one model.

    Attributes:
        gap: first less second.
        p: corrected for the number of gaps; None where nothing says how much values scatter.
        prompts: of both groups.
        countries: of the first group, and of the second.
        target: whether it speaks about other prompts (`population`) or about `these`.
    """

    model: str
    metric: str
    concept: str | None
    labels: str
    first: str
    second: str
    scheme: str
    gap: Figure
    p: float | None
    prompts: int
    countries: tuple[tuple[str, ...], tuple[str, ...]]
    target: str

    @property
    def beyond_chance(self) -> bool:
        """Tell whether the gap is more than chance."""
        return self.p is not None and self.p < 0.05


def gaps_in(run: RunFolders) -> tuple[GapLine, ...] | None:
    """Read the gaps of a run; None for one that was not asked for them."""
    found = run.read(roles.GAPS, SCORES)
    return None if found is None else tuple(gap_lines(run, found))


def gap_lines(run: RunFolders, scores: pl.DataFrame) -> Iterator[GapLine]:
    """Give the gaps of each model, over all concepts where there are several."""
    found = scores.with_row_index("row").filter(pl.col("metric") == "group_gap", pl.col("model").is_in(run.models))
    about = found.drop("metric").with_columns(p=pl.col("params").str.json_decode(PARAMS)).unnest("p")
    about = about.with_columns(labels=pl.col("of").struct.field("labels"), kernel=pl.col("of").struct.field("kernel"))
    about = about.filter(pl.col("metric").is_in(list(METRICS)), pl.col("labels") != "truth")
    shown = over_all_concepts(about, "model", "metric", "labels", "group")
    places = {metric: place for place, metric in enumerate(METRICS)}
    order = pl.col("metric").replace_strict(places), "scheme", "group", "labels", "concept", "model", "row"
    for row in shown.sort(*order, nulls_last=True).to_dicts():
        said = parsed(row["params"])
        a, b = said["a"], said["b"]
        yield GapLine(
            model=row["model"],
            metric=METRICS[row["metric"]],
            concept=row["concept"],
            labels=row["labels"],
            first=FULL.get(a, a),
            second=FULL.get(b, b),
            scheme=row["scheme"],
            gap=figure_in(row),
            p=row["p_corrected"],
            prompts=row["prompts"],
            countries=(tuple(said["countries"][a]), tuple(said["countries"][b])),
            target=row["target"],
        )


def gap_chart(lines: Sequence[GapLine]) -> str:
    """Draw each gap as a dot with its interval on a scale around 0."""
    ends = [abs(end) for line in lines for end in (line.gap.value, line.gap.low, line.gap.high) if end is not None]
    widest = max([end for end in ends if end == end], default=0.0) * 1.1 or 1.0
    height = ROW * len(lines) + FOOT
    rows = (mark for number, line in enumerate(lines) for mark in row_of(line, ROW * number + ROW / 2, widest))
    title, marks = "Gaps between groups of countries; the table below has the numbers", [*axis(widest, height - FOOT)]
    marks += rows
    return drawing("gap-chart-title", title, (WIDTH, height), marks, kind="chart gaps")


def axis(widest: float, bottom: float) -> Iterator[str]:
    """Draw the scale, with 0 in its middle."""
    for tick in (-widest, -widest / 2, 0.0, widest / 2, widest):
        kind = "zero" if tick == 0 else "grid"
        yield f'<line class="{kind}" x1="{x(tick, widest):.1f}" x2="{x(tick, widest):.1f}" y1="0" y2="{bottom}"/>'
        shown = f"{tick:+.2f}".replace("-", "\N{MINUS SIGN}") if tick else "0"
        yield f'<text class="tick" x="{x(tick, widest):.1f}" y="{bottom + 16}" text-anchor="middle">{shown}</text>'


def row_of(line: GapLine, y: float, widest: float) -> Iterator[str]:
    """Draw one gap."""
    name = line.model if len(line.model) <= NAME else f"{line.model[: NAME - 1]}…"
    yield f'<text x="{LEFT - 12}" y="{y - 2:.1f}" text-anchor="end">{escape(inert(name))}</text>'
    what = escape(inert(line.metric.partition(",")[0]))
    yield f'<text class="tick" x="{LEFT - 12}" y="{y + 12:.1f}" text-anchor="end">{what}</text>'
    if line.gap.value != line.gap.value:
        return
    kind = "mapped" if line.beyond_chance else "open"
    if line.gap.low is not None and line.gap.high is not None:
        ends = x(line.gap.low, widest), x(line.gap.high, widest)
        yield f'<line class="mapped" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
    yield f'<circle class="{kind}" cx="{x(line.gap.value, widest):.1f}" cy="{y:.1f}" r="5"/>'


def x(value: float, widest: float) -> float:
    """Place a gap on the scale."""
    return LEFT + (WIDTH - LEFT - RIGHT) * (value / widest + 1) / 2
