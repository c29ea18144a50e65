"""From the values behind scores to how well metrics follow people, and each other."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import polars as pl

from culturekit.defaults import CONFIDENCE
from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error, check_choice
from culturekit.metrics.scoring.rating_pools import PoolsBy, pooled_ratings
from culturekit.metrics.scoring.scored import Row, Scored
from culturekit.metrics.scoring.value_sets import (
    in_tables,
    known_values,
    own_generator,
    parsed,
    statistic_row,
    with_reason,
)
from culturekit.metrics.statistics.clustering import check_count
from culturekit.metrics.statistics.correlations import CORRELATIONS, FEWEST_CLUSTERS, Correlation, correlate

__all__ = ["ALL", "MetaOptions", "score_meta"]

ALL = "all"
"""What stands in the column model where the items of all models are taken together."""

FEW = f"fewer than {FEWEST_CLUSTERS} prompts, or no scatter"

SERIES = ("metric", "params")

Level: TypeAlias = Literal["item", "prompt"]
LEVELS: tuple[Level, ...] = ("item", "prompt")


@dataclass(frozen=True, slots=True)
class MetaOptions:
    """How metrics are held against people and each other.

    Attributes:
        methods: which correlations.
        by: what makes a pool of annotators.
        scheme: the name of a grouping of countries; empty for none.
        groups: country -> group; each group then has rows beside those of all countries.
        confidence: of the intervals.
        resamples: of each bootstrap.
        seed: of the bootstrap.
        choices: of questions answered in words, the choices whose share among an item's annotators is a rating.
        people_only: leave out how metrics follow each other.
        level: `item` correlates single items; `prompt` the means of each model's items of a prompt.
    """

    methods: tuple[Correlation, ...] = CORRELATIONS
    by: PoolsBy = "region"
    scheme: str = ""
    groups: Mapping[str, str] = field(default_factory=dict)
    confidence: float = CONFIDENCE
    resamples: int = 2000
    seed: int = 0
    choices: tuple[str, ...] = ()
    people_only: bool = False
    level: Level = "item"


@dataclass(frozen=True, slots=True)
class Series:
    """One score of many items.

    Attributes:
        about: what it is, for params.
        items: item, value, and for a metric also model, unit_id and country.
    """

    about: dict[str, object]
    items: pl.DataFrame


def score_meta(
    values: pl.DataFrame,
    *,
    annotations: pl.DataFrame | None = None,
    human: pl.DataFrame | None = None,
    options: MetaOptions,
) -> Scored:
    """Correlate metrics with ratings by people, and metrics with each other, over the items that both have.

    Each model has rows of its own, and all models together where there are several.

    Args:
        values: conforms to VALUES: the metrics.
        annotations: conforms to ANNOTATIONS: people's answers; each pool is held against on its own.
        human: conforms to VALUES: ratings by people that are already one number per item.
        options: which correlations, and how.

    Returns:
        Rows of the metrics `human_correlation` and `metric_correlation`.

    Raises:
        UsageError: a table does not conform, an option breaks its rule, or no item has two scores.
    """
    if not options.methods:
        raise argument_error("methods", "at least one correlation", options.methods)
    for method in options.methods:
        check_choice("methods", method, CORRELATIONS)
    check_choice("level", options.level, LEVELS)
    check_count("resamples", options.resamples)
    known, unknown = known_values(values)
    metrics = metric_series(known)
    people = [*rated(annotations, options), *([] if human is None else metric_series(known_values(human)[0]))]
    rows = [row for a, b in itertools.product(metrics, people) for row in rows_of("human_correlation", a, b, options)]
    for a, b in () if options.people_only else itertools.combinations(metrics, 2):
        rows += rows_of("metric_correlation", a, b, options)
    if not rows:
        raise UsageError(
            "no item has two scores to correlate",
            expected="items of the values among those of the ratings, or two metrics of the same items",
            found=f"{len(metrics)} metrics and {len(people)} kinds of ratings",
        )
    return in_tables(rows, [], {"unknown_value": unknown})


def metric_series(known: pl.DataFrame) -> list[Series]:
    """Give each metric, with its parameters, as a series; an item that stands under several scores counts once."""
    once = known.sort("country", "concept", nulls_last=True).unique(
        [*SERIES, "benchmark", "model", "item"], keep="first", maintain_order=True
    )
    series = []
    for part in once.sort(*SERIES, "benchmark", "model", "item").partition_by(
        *SERIES, "benchmark", maintain_order=True
    ):
        row = part.row(0, named=True)
        about = {"metric": row["metric"], "params": parsed(row["params"]), "benchmark": row["benchmark"]}
        series.append(Series(about, part.select("model", "item", "unit_id", "country", "value")))
    return series


def rated(annotations: pl.DataFrame | None, options: MetaOptions) -> Iterator[Series]:
    """Give the item means of each pool as a series; of choices in words, the shares of those asked for."""
    if annotations is None:
        return
    for pool in pooled_ratings(annotations, by=options.by)[0]:
        about: dict[str, object] = {
            "scheme": pool.scheme,
            "criterion": pool.criterion,
            "pool": pool.pool,
            "pools_by": options.by,
        }
        for choice in [None] if pool.numeric else options.choices:
            means = pool.item_means(choice)
            of_choice = {} if choice is None else {"choice": choice}
            yield Series({**about, **of_choice}, pl.DataFrame({"item": list(means), "value": list(means.values())}))


def rows_of(metric: str, a: Series, b: Series, options: MetaOptions) -> Iterator[Row]:
    """Correlate two series: for all models, for each, and within each group of countries."""
    on = ["item", "model"] if "model" in b.items.columns and metric == "metric_correlation" else ["item"]
    other = b.items.select(*on, other="value")
    both = a.items.join(other, on=on).sort("model", "item")
    if options.level == "prompt":
        both = of_prompts(both)
    models = sorted(both["model"].unique())
    for model in [ALL, *models] if len(models) > 1 else models:
        of_model = both if model == ALL else both.filter(pl.col("model") == model)
        yield from correlations(metric, a, b, of_model, options, model=model, group=None)
        if options.scheme:
            side = pl.col("country").replace_strict(dict(options.groups), default=None, return_dtype=pl.String)
            for part in (
                of_model.with_columns(side=side)
                .drop_nulls("side")
                .sort("side")
                .partition_by("side", maintain_order=True)
            ):
                yield from correlations(metric, a, b, part, options, model=model, group=part["side"][0])


def of_prompts(both: pl.DataFrame) -> pl.DataFrame:
    """Average both scores over the items of each model's prompts."""
    means = [pl.col(name).sort().mean() for name in ("value", "other")]
    return both.group_by("model", "unit_id").agg(*means, pl.col("country").first()).sort("model", "unit_id")


def correlations(
    metric: str, a: Series, b: Series, both: pl.DataFrame, options: MetaOptions, *, model: str, group: str | None
) -> Iterator[Row]:
    """Make one row per kind of correlation."""
    for method in options.methods:
        answer = correlate(
            both["value"].to_numpy(),
            both["other"].to_numpy(),
            method=method,
            clusters=both["unit_id"].to_numpy().astype(str),
            confidence=options.confidence,
            resamples=options.resamples,
            rng=own_generator(options.seed, metric, a.about, b.about, model, group, method),
        )
        params: dict[str, object] = {
            **a.about,
            "with": b.about,
            "method": method,
            "prompts": both["unit_id"].n_unique(),
            **({} if options.level == "item" else {"level": options.level}),
            **({"scheme": options.scheme} if group else {}),
        }
        params = with_reason(params, answer, FEW)
        yield statistic_row(
            metric, model=model, benchmark=str(a.about["benchmark"]), answer=answer, params=params, group=group
        )
