"""What people say of the images: ratings in the shape of the CUBE paper's Table 3, agreement, what was set aside."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeAlias

import polars as pl

from culturekit.core import roles
from culturekit.core.schemas import CHOICE_TABLE, RATERS, RATING_TABLE, SCORES
from culturekit.core.tables import read_table
from culturekit.report.plots import Chart, plot
from culturekit.report.run_folders import Rows, RunFolders, rows_of, with_params
from culturekit.scores.answers import STATUS, status_line
from culturekit.scores.meta import ALL

# How well metrics follow people: correlations looked up, and drawn as dots with their intervals.

NAMES = {
    "similarity": "similarity to the nearest artifact",
    "margin": "margin of the nearest artifact",
    "country_margin": "margin of the nearest country",
    "mapped_as_asked": "mapped to the country asked for",
}


def metric_rows(run: RunFolders) -> Rows:
    """Read how metrics follow each pool, over all models together or of the one model there is.

    Each has rating, metric, pool, Spearman with its interval, Kendall and Pearson, images and prompts.
    """
    scores = run.read(roles.META, SCORES)
    if scores is None:
        return ()
    found = scores.filter(pl.col("group").is_null(), metric="human_correlation")
    if found["model"].n_unique() > 1:
        found = found.filter(model=ALL)
    named = with_params(
        found, "metric", "method", "prompts", scorer="params.scorer",
        criterion="with.criterion", choice="with.choice", pool="with.pool",
    ).with_columns(
        pl.col("value").fill_nan(None), pl.col("pool").fill_null(""), pl.col("prompts").cast(pl.Int64),
        rating=pl.concat_str("criterion", pl.format(": share of {}", "choice").fill_null("")),
    )  # fmt: skip
    keys = ["rating", "metric", "scorer", "pool"]
    values = {method: pl.col("value").filter(method=method).first() for method in ("spearman", "kendall", "pearson")}
    limits = {end: pl.col(f"ci_{end}").filter(method="spearman").first() for end in ("low", "high")}
    rows = named.sort(*keys, "method", nulls_last=True).group_by(keys, maintain_order=True).agg(
        pl.col("prompts").first(), images=pl.col("n").first(), **values, **limits
    )  # fmt: skip
    known = pl.col("metric").replace_strict(NAMES, default=pl.col("metric").str.replace_all("_", " "))
    return rows_of(rows.with_columns(metric=pl.coalesce(pl.format("{}, {}", "metric", "scorer"), known)))


def correlation_chart(lines: Rows, *, rating: str, number: int) -> str:
    """Draw Spearman's correlation of each metric with what people said, a dot and an interval a pool."""
    part = [line for line in lines if line.rating == rating]
    pools = list(dict.fromkeys(line.pool for line in part))
    found = {(line.metric, line.pool): line for line in part}
    rows = []
    for metric in dict.fromkeys(line.metric for line in part):
        known = (found.get((metric, pool)) for pool in pools)
        rows.append((metric, [None if line is None or line.spearman is None else (line.spearman, line.low, line.high)
                              for line in known]))  # fmt: skip
    title = f"How metrics follow people on {rating}, Spearman"
    return plot(Chart("dots", "Spearman's correlation"), f"follows-{number}", title, pools, rows)


HOME = "people of each country"
PAIRS_SHOWN = 20

ALL_CONCEPTS = "all concepts"


Cell: TypeAlias = SimpleNamespace  # a row of the ratings; or, where there is no `mean`, the `shares` of choices


@dataclass(frozen=True, slots=True)
class RatingGrid:
    """One question as one pool answered it: models by concept down, countries across."""

    criterion: str
    who: str
    countries: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[Cell | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class People:
    """Everything that the section shows.

    Attributes:
        caveat: whose answers these are, where they are not people's.
        pools_by: what makes a pool.
        encoder: what the similarity of the metrics comes from.
        answers: how many answers counted.
        items: how many items they are about.
        raters: how each person did, in the columns of `status`.
    """

    caveat: str
    pools_by: str
    encoder: str
    answers: int
    items: int
    grids: tuple[RatingGrid, ...]
    agreement: Rows  # of each pool on each question: alpha, kappa, pairwise, images, people, answers
    divergence: Rows  # how far two pools are apart on what both judged, the most first: asked, a, b, value, p, n
    pairs: int
    thinned: tuple[tuple[str, Mapping[str, int], Mapping[str, int]], ...]  # model, answers by choice, ratings
    aside: Mapping[str, int]
    checks: Mapping[str, Mapping[str, int]]
    metrics: Rows
    raters: tuple[tuple[str, ...], ...] = ()
    status: tuple[str, ...] = STATUS

    @property
    def first(self) -> int:
        """Count the tables that stand open: those of people at home, or, where nobody is, those of one pool."""
        return sum(grid.who == HOME for grid in self.grids) or min(len(self.grids), 3)

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices of questions in words."""
        return tuple(dict.fromkeys(choice for _, choices, _ in self.thinned for choice in choices))

    @property
    def rated(self) -> tuple[str, ...]:
        """The questions with a scale."""
        return tuple(dict.fromkeys(name for *_, rated in self.thinned for name in rated))


def people_in(run: RunFolders) -> People | None:
    """Collect what people said; None for a run in which nobody was asked."""
    ratings, choices = run.read(roles.RATINGS, RATING_TABLE), run.read(roles.RATINGS, CHOICE_TABLE)
    scores = run.read(roles.RATINGS, SCORES)
    if ratings is None or choices is None or scores is None:
        return None
    manifest = run.manifest(roles.RATINGS)
    apart = divergence(scores)
    rated = pl.read_parquet(run.table(roles.RATINGS), columns=["item_id"])
    table = run.table(roles.RATINGS, file=f"{RATERS.name}.parquet")
    raters = read_table(table, RATERS) if table.is_file() else pl.DataFrame(schema=RATERS.schema)
    return People(
        caveat=str(manifest.notes.get("caveat", "")), pools_by=str(manifest.options["by"]),
        encoder=str(run.manifest(roles.INDEX).options.get("encoder", "")), answers=rated.height,
        items=rated["item_id"].n_unique(),
        grids=tuple(sorted(grids(ratings, choices), key=lambda grid: grid.who != HOME)), agreement=agreement(scores),
        divergence=apart[:PAIRS_SHOWN], pairs=len(apart), thinned=tuple(thinned(ratings, choices)),
        aside=dict(manifest.drops),
        checks={name: dict(manifest.notes[name]) for name in ("checks", "repeats") if name in manifest.notes},
        metrics=metric_rows(run), raters=tuple(status_line(row) for row in raters.iter_rows(named=True)),
    )  # fmt: skip


def grids(ratings: pl.DataFrame, choices: pl.DataFrame) -> Iterator[RatingGrid]:
    """Lay out every question: first whether it belongs, then the scales; each pool apart."""
    scales = ratings.filter(~pl.col("criterion").str.contains("/", literal=True))
    for table in (choices, scales):
        for part in table.partition_by("criterion", maintain_order=True):
            for one, who in by_people(part):
                means = {place_of(row): SimpleNamespace(**row) for row in one.iter_rows(named=True)}
                yield grid(str(part["criterion"][0]), who, share_cells(one) if table is choices else means)


def by_people(part: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, str]]:
    """Part a table so that each of its cells is of one pool: people at home, and then each pool apart."""
    home = pl.col("country").eq_missing(pl.col("pool"))
    subset = part.filter(home)
    if subset.height:
        yield subset, HOME
    for pool in part.filter(~home).sort("pool").partition_by("pool", maintain_order=True):
        yield pool, f"the pool {pool['pool'][0]}" + (", of other countries" if subset.height else "")


Cells: TypeAlias = Mapping[tuple[str | None, str, str | None], Cell]


def grid(criterion: str, who: str, cells: Cells) -> RatingGrid:
    """Lay out one table: all concepts together first."""
    countries = sorted({country for _, _, country in cells}, key=lambda country: country or "")
    heads = sorted({(concept, model) for concept, model, _ in cells}, key=lambda head: (head[0] or "", head[1]))
    rows = tuple(
        (concept or ALL_CONCEPTS, model, tuple(cells.get((concept, model, country)) for country in countries))
        for concept, model in heads
    )
    return RatingGrid(criterion, who, tuple(country or "no country" for country in countries), rows)


def share_cells(part: pl.DataFrame) -> Cells:
    """Read the shares of choices."""
    found: dict[tuple[str | None, str, str | None], list[dict[str, Any]]] = {}
    for row in part.iter_rows(named=True):
        found.setdefault(place_of(row), []).append(row)
    none = {row["choice"]: 0.0 for row in ordered(part.unique("choice").to_dicts())}
    return {
        scope: SimpleNamespace(
            mean=None, shares=none | {row["choice"]: row["rate"] for row in rows}, items=rows[0]["items"],
            answers=sum(row["answers"] for row in rows),
        )
        for scope, rows in found.items()
    }  # fmt: skip


def ordered(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put yes before maybe before no, and other choices after them."""
    places = {"yes": 0, "maybe": 1, "no": 2}
    return sorted(rows, key=lambda row: (places.get(row["choice"], 3), row["choice"]))


def place_of(row: Mapping[str, Any]) -> tuple[str | None, str, str | None]:
    """Name the cell of a row."""
    return row["concept"], row["model"], row["country"]


def agreement(scores: pl.DataFrame) -> Rows:
    """Read the agreement of every pool on every question; nothing stands where it is not defined."""
    found = scores.filter(pl.col("metric").is_in(["krippendorff_alpha", "fleiss_kappa", "pairwise_agreement"]))
    named = with_params(found, "criterion", "pool", "annotators", "answers")

    def of(metric: str) -> pl.Expr:
        return pl.struct(pl.col("value").fill_nan(None), "ci_low", "ci_high").filter(metric=metric).first()

    rows = named.sort("criterion", "pool").group_by("criterion", "pool", maintain_order=True).agg(
        pl.col("answers").cast(pl.Int64).first(), people=pl.col("annotators").cast(pl.Int64).first(),
        images=pl.col("n").first(), alpha=of("krippendorff_alpha"), kappa=of("fleiss_kappa"),
        pairwise=of("pairwise_agreement").struct.field("value"),
    )  # fmt: skip
    return rows_of(rows)


def divergence(scores: pl.DataFrame) -> Rows:
    """Read how far pools lie apart, the most first."""
    named = with_params(scores.filter(metric="pool_difference"), "criterion", "choice", "a", "b", p="p_corrected")
    asked = pl.concat_str("criterion", "choice", separator=": ", ignore_nulls=True)
    named = named.with_columns(pl.col("p").cast(pl.Float64), asked=asked)
    return rows_of(named.sort(-pl.col("value").abs(), "params"))


def thinned(ratings: pl.DataFrame, choices: pl.DataFrame) -> Iterator[tuple[str, dict[str, int], dict[str, int]]]:
    """Count answers of each model, all pools and countries together; the counts are not averaged."""
    over_all = pl.col("concept").is_null()
    for model in sorted({*ratings["model"], *choices["model"]}):
        part = choices.filter(over_all, model=model).group_by("choice").agg(pl.col("answers").sum())
        scales = ratings.filter(over_all, model=model).group_by("criterion").agg(pl.col("answers").sum())
        by_choice = {row["choice"]: row["answers"] for row in ordered(part.to_dicts())}
        yield model, by_choice, dict(scales.sort("criterion").iter_rows())
