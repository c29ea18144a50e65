"""How well metrics follow people: correlations looked up, and drawn as dots with their intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import polars as pl

from culturekit.families.meta import ALL
from culturekit.records.schemas import SCORES
from culturekit.report.charts import drawing
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["MetricLine", "correlation_chart", "metric_lines"]

NAMES = {
    "similarity": "similarity to the nearest artifact",
    "margin": "margin of the nearest artifact",
    "country_margin": "margin of the nearest country",
    "mapped_as_asked": "mapped to the country asked for",
}

WIDTH, LEFT, RIGHT, HEAD, ROW, GAP, FOOT = 680, 250, 24, 20, 16, 10, 34


@dataclass(frozen=True, slots=True)
class MetricLine:
    """How a metric follows what one pool said: Spearman with its interval, Kendall and Pearson beside it."""

    rating: str
    metric: str
    pool: str
    spearman: float | None
    low: float | None
    high: float | None
    kendall: float | None
    pearson: float | None
    images: int
    prompts: int


def metric_lines(run: RunFolders) -> Iterator[MetricLine]:
    """Read the correlations over all models together, or of the one model there is."""
    scores = run.read(roles.META, SCORES)
    if scores is None:
        return
    person = pl.Struct({"criterion": pl.String, "choice": pl.String, "pool": pl.String})
    of = pl.Struct({"scorer": pl.String})
    params = pl.Struct(
        [
            pl.Field("metric", pl.String),
            pl.Field("params", of),
            pl.Field("with", person),
            pl.Field("method", pl.String),
            pl.Field("prompts", pl.Int64),
        ]
    )
    found = scores.filter(metric="human_correlation").rename({"metric": "kind", "params": "text"})
    if found["model"].n_unique() > 1:
        found = found.filter(model=ALL)
    found = found.filter(pl.col("group").is_null())
    named = found.with_columns(p=pl.col("text").str.json_decode(params)).unnest("p").with_columns(
        rating=pl.concat_str(
            pl.col("with").struct.field("criterion"),
            pl.when(pl.col("with").struct.field("choice").is_not_null())
            .then(pl.concat_str(pl.lit(": share of "), pl.col("with").struct.field("choice")))
            .otherwise(pl.lit("")),
        ),
        pool=pl.col("with").struct.field("pool"),
        scorer=pl.col("params").struct.field("scorer"),
    )  # fmt: skip
    keys = ["rating", "metric", "scorer", "pool"]
    for part in named.sort(*keys, "method", nulls_last=True).partition_by(keys, maintain_order=True):
        rows = {row["method"]: row for row in part.iter_rows(named=True)}
        first = next(iter(rows.values()))
        values = {name: finite(row["value"]) for name, row in rows.items()}
        ranks = rows.get("spearman", {})
        yield MetricLine(
            first["rating"], name_of(first["metric"], first["scorer"]), first["pool"] or "", values.get("spearman"),
            ranks.get("ci_low"), ranks.get("ci_high"), values.get("kendall"), values.get("pearson"), first["n"],
            first["prompts"],
        )  # fmt: skip


def finite(value: float) -> float | None:
    """Read a correlation; nothing where one side does not vary."""
    return None if value != value else value


def name_of(metric: str, scorer: str | None) -> str:
    """Say what a metric is; of a quality, whose."""
    return f"{metric}, {scorer}" if scorer else NAMES.get(metric, metric.replace("_", " "))


def correlation_chart(lines: Sequence[MetricLine], *, rating: str, number: int) -> str:
    """Draw Spearman's correlation of each metric with what people said, a dot and an interval a pool."""
    own = [line for line in lines if line.rating == rating]
    metrics = list(dict.fromkeys(line.metric for line in own))
    height = HEAD + sum(GAP + ROW * sum(line.metric == metric for line in own) for metric in metrics) + FOOT
    title = f"How metrics follow people on {escape(rating)}, Spearman; the table below has the numbers"
    marks = [*axis(height)]
    y = float(HEAD)
    for metric in metrics:
        marks.append(f'<text class="name" x="4" y="{y + ROW - 4:.1f}">{escape(metric)}</text>')
        for line in (each for each in own if each.metric == metric):
            marks += dot(line, y + ROW / 2)
            y += ROW
        y += GAP
    return drawing(f"follows-{number}", title, (WIDTH, height), marks)


def axis(height: int) -> Iterator[str]:
    """Draw the scale from -1 to 1."""
    for tick in (-1.0, -0.5, 0.0, 0.5, 1.0):
        label = f"{tick:g}".replace("-", "\N{MINUS SIGN}")
        yield f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{HEAD - 8}" y2="{height - FOOT}"/>'
        yield f'<text class="tick" x="{x(tick):.1f}" y="{height - FOOT + 14}" text-anchor="middle">{label}</text>'
    yield f'<text class="tick" x="{x(0):.1f}" y="{height - 4}" text-anchor="middle">Spearman&#8217;s correlation</text>'


def dot(line: MetricLine, y: float) -> Iterator[str]:
    """Draw one pool: its name, its interval, its dot; a ring where there is no interval."""
    yield f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(line.pool)}</text>'
    if line.spearman is None:
        yield f'<text class="tick" x="{x(0):.1f}" y="{y + 4:.1f}" text-anchor="middle">no scatter</text>'
        return
    if line.low is not None and line.high is not None:
        yield f'<line class="mapped" x1="{x(line.low):.1f}" x2="{x(line.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
    kind = "mapped" if line.low is not None else "bare"
    yield f'<circle class="{kind}" cx="{x(line.spearman):.1f}" cy="{y:.1f}" r="4"/>'


def x(value: float) -> float:
    """Place a correlation on the axis."""
    return LEFT + (WIDTH - LEFT - RIGHT) * (min(max(value, -1.0), 1.0) + 1) / 2
