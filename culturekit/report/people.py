"""What people say of the images: ratings in the shape of the CUBE paper's Table 3, agreement, what was set aside."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from culturekit.core import roles
from culturekit.core.schemas import CHOICE_TABLE, RATERS, RATING_TABLE, SCORES
from culturekit.core.tables import read_table
from culturekit.report.plots import Chart, plot
from culturekit.report.run_folders import RunFolders
from culturekit.scores.meta import ALL
from culturekit.scores.raters import STATUS, status_line

# How well metrics follow people: correlations looked up, and drawn as dots with their intervals.

NAMES = {
    "similarity": "similarity to the nearest artifact",
    "margin": "margin of the nearest artifact",
    "country_margin": "margin of the nearest country",
    "mapped_as_asked": "mapped to the country asked for",
}


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
    pools = list(dict.fromkeys(line.pool for line in own))
    found = {(line.metric, line.pool): line for line in own}
    rows = []
    for metric in dict.fromkeys(line.metric for line in own):
        known = (found.get((metric, pool)) for pool in pools)
        rows.append((metric, [None if line is None or line.spearman is None else (line.spearman, line.low, line.high)
                              for line in known]))  # fmt: skip
    title = f"How metrics follow people on {rating}, Spearman"
    return plot(Chart("dots", "Spearman's correlation"), f"follows-{number}", title, pools, rows)


HOME = "people of each country"
PAIRS_SHOWN = 20

ALL_CONCEPTS = "all concepts"


@dataclass(frozen=True, slots=True)
class RatingCell:
    """A mean over items with its deviation, or the shares of choices; and how much stands behind it."""

    mean: float | None  # over items; None where the cell has shares
    sd: float | None  # over items
    within: float | None  # how far an item's own annotators lie apart
    shares: Mapping[str, float]  # of each choice
    items: int  # how many items
    people: int | None  # how many annotators; None where the table does not say
    answers: int  # how many answers
    mark: str  # `below 2`, `below 3` or nothing


@dataclass(frozen=True, slots=True)
class RatingGrid:
    """One question as one pool answered it: models by concept down, countries across."""

    criterion: str
    who: str
    countries: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[RatingCell | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class AgreementLine:
    """How far the people of a pool agree on a question; None where nothing can be said."""

    pool: str
    criterion: str
    people: int
    answers: int
    items: int
    alpha: tuple[float, float | None, float | None] | None
    kappa: tuple[float, float | None, float | None] | None
    pairwise: float | None


@dataclass(frozen=True, slots=True)
class DivergenceLine:
    """How far two pools lie apart on the items that both judged."""

    criterion: str
    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p: float | None
    items: int


@dataclass(frozen=True, slots=True)
class ThinnedLine:
    """How the first question thins out those that follow: answers by choice, and ratings that were left."""

    model: str
    choices: Mapping[str, int]
    rated: Mapping[str, int]


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
    agreement: tuple[AgreementLine, ...]
    divergence: tuple[DivergenceLine, ...]
    pairs: int
    thinned: tuple[ThinnedLine, ...]
    aside: Mapping[str, int]
    checks: Mapping[str, Mapping[str, int]]
    metrics: tuple[MetricLine, ...]
    raters: tuple[tuple[str, ...], ...] = ()
    status: tuple[str, ...] = STATUS

    @property
    def first(self) -> int:
        """Count the tables that stand open: those of people at home, or, where nobody is, those of one pool."""
        return sum(grid.who == HOME for grid in self.grids) or min(len(self.grids), 3)

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices of questions in words."""
        return tuple(dict.fromkeys(choice for line in self.thinned for choice in line.choices))

    @property
    def rated(self) -> tuple[str, ...]:
        """The questions with a scale."""
        return tuple(dict.fromkeys(name for line in self.thinned for name in line.rated))


def people_in(run: RunFolders) -> People | None:
    """Collect what people said; None for a run in which nobody was asked."""
    ratings, choices = run.read(roles.RATINGS, RATING_TABLE), run.read(roles.RATINGS, CHOICE_TABLE)
    scores = run.read(roles.RATINGS, SCORES)
    if ratings is None or choices is None or scores is None:
        return None
    manifest = run.manifest(roles.RATINGS)
    lines = list(divergence_lines(scores))
    said = pl.read_parquet(run.table(roles.RATINGS), columns=["item_id"])
    table = run.table(roles.RATINGS, file=f"{RATERS.name}.parquet")
    raters = read_table(table, RATERS) if table.is_file() else pl.DataFrame(schema=RATERS.schema)
    return People(
        caveat=str(manifest.notes.get("caveat", "")),
        pools_by=str(manifest.options["by"]),
        encoder=str(run.manifest(roles.INDEX).options.get("encoder", "")),
        answers=said.height,
        items=said["item_id"].n_unique(),
        grids=tuple(sorted(grids(ratings, choices), key=lambda grid: grid.who != HOME)),
        agreement=tuple(agreement_lines(scores)),
        divergence=tuple(lines[:PAIRS_SHOWN]),
        pairs=len(lines),
        thinned=tuple(thinned_lines(ratings, choices)),
        aside=dict(manifest.drops),
        checks={name: dict(manifest.notes[name]) for name in ("checks", "repeats") if name in manifest.notes},
        metrics=tuple(metric_lines(run)),
        raters=tuple(status_line(row) for row in raters.iter_rows(named=True)),
    )


def grids(ratings: pl.DataFrame, choices: pl.DataFrame) -> Iterator[RatingGrid]:
    """Lay out every question: first whether it belongs, then the scales; each pool apart."""
    for table, cells in (
        (choices, share_cells),
        (ratings.filter(~pl.col("criterion").str.contains("/", literal=True)), mean_cells),
    ):
        for part in table.partition_by("criterion", maintain_order=True):
            for one, who in by_people(part):
                yield grid(str(part["criterion"][0]), who, cells(one))


def by_people(part: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, str]]:
    """Part a table so that each of its cells is of one pool: people at home, and then each pool apart."""
    home = pl.col("country").eq_missing(pl.col("pool"))
    own = part.filter(home)
    if own.height:
        yield own, HOME
    for pool in part.filter(~home).sort("pool").partition_by("pool", maintain_order=True):
        yield pool, f"the pool {pool['pool'][0]}" + (", of other countries" if own.height else "")


Cells = dict[tuple[str | None, str, str | None], RatingCell]


def grid(criterion: str, who: str, cells: Cells) -> RatingGrid:
    """Lay out one table: all concepts together first."""
    countries = sorted({country for _, _, country in cells}, key=lambda country: country or "")
    heads = sorted({(concept, model) for concept, model, _ in cells}, key=lambda head: (head[0] or "", head[1]))
    rows = tuple(
        (concept or ALL_CONCEPTS, model, tuple(cells.get((concept, model, country)) for country in countries))
        for concept, model in heads
    )
    return RatingGrid(criterion, who, tuple(country or "no country" for country in countries), rows)


def mean_cells(part: pl.DataFrame) -> Cells:
    """Read means."""
    return {
        place_of(row): RatingCell(
            row["mean"],
            row["sd"],
            row["within"],
            {},
            row["items"],
            row["annotators"],
            row["answers"],
            row["mark"] or "",
        )
        for row in part.iter_rows(named=True)
    }


def share_cells(part: pl.DataFrame) -> Cells:
    """Read the shares of choices."""
    found: dict[tuple[str | None, str, str | None], list[dict[str, Any]]] = {}
    every = ordered([{"choice": choice, "rate": 0.0} for choice in part["choice"].unique()])
    for row in part.iter_rows(named=True):
        found.setdefault(place_of(row), []).append(row)
    return {
        place: RatingCell(
            None, None, None, {row["choice"]: row["rate"] for row in [*every, *rows]}, rows[0]["items"], None,
            sum(row["answers"] for row in rows), "",
        )
        for place, rows in found.items()
    }  # fmt: skip


def ordered(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put yes before maybe before no, and other choices after them."""
    places = {"yes": 0, "maybe": 1, "no": 2}
    return sorted(rows, key=lambda row: (places.get(row["choice"], 3), row["choice"]))


def place_of(row: Mapping[str, Any]) -> tuple[str | None, str, str | None]:
    """Name the cell of a row."""
    return row["concept"], row["model"], row["country"]


def agreement_lines(scores: pl.DataFrame) -> Iterator[AgreementLine]:
    """Read the agreement of every pool on every question."""
    params = pl.Struct({"criterion": pl.String, "pool": pl.String, "annotators": pl.Int64, "answers": pl.Int64})
    named = scores.filter(pl.col("metric").is_in(["krippendorff_alpha", "fleiss_kappa", "pairwise_agreement"]))
    named = named.with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")
    for part in named.sort("criterion", "pool").partition_by("criterion", "pool", maintain_order=True):
        by_metric = {row["metric"]: row for row in part.iter_rows(named=True)}
        first = part.row(0, named=True)
        yield AgreementLine(
            first["pool"], first["criterion"], first["annotators"], first["answers"], first["n"],
            known(by_metric.get("krippendorff_alpha")), known(by_metric.get("fleiss_kappa")),
            (known(by_metric.get("pairwise_agreement")) or (None,))[0],
        )  # fmt: skip


def known(row: Mapping[str, Any] | None) -> tuple[float, float | None, float | None] | None:
    """Read a score and its limits; nothing where it is not defined."""
    if row is None or row["value"] is None or row["value"] != row["value"]:
        return None
    return row["value"], row["ci_low"], row["ci_high"]


def divergence_lines(scores: pl.DataFrame) -> Iterator[DivergenceLine]:
    """Read how far pools lie apart, the most first."""
    params = pl.Struct(
        {"criterion": pl.String, "choice": pl.String, "a": pl.String, "b": pl.String, "p_corrected": pl.Float64}
    )
    named = scores.filter(metric="pool_difference").with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")
    for row in named.sort(-pl.col("value").abs(), "params").iter_rows(named=True):
        asked = row["criterion"] if row["choice"] is None else f"{row['criterion']}: {row['choice']}"
        p = row["p_corrected"]
        yield DivergenceLine(asked, row["a"], row["b"], row["value"], row["ci_low"], row["ci_high"], p, row["n"])


def thinned_lines(ratings: pl.DataFrame, choices: pl.DataFrame) -> Iterator[ThinnedLine]:
    """Count answers of each model, all pools and countries together; the counts are not averaged."""
    over_all = pl.col("concept").is_null()
    for model in sorted({*ratings["model"], *choices["model"]}):
        own = choices.filter(over_all, model=model).group_by("choice").agg(pl.col("answers").sum())
        scales = ratings.filter(over_all, model=model).group_by("criterion").agg(pl.col("answers").sum())
        yield ThinnedLine(
            model,
            {row["choice"]: row["answers"] for row in ordered(own.to_dicts())},
            dict(scales.sort("criterion").iter_rows()),
        )
