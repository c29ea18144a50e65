"""From the values behind scores to how well metrics follow people, and each other."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from pydantic import Field

from culturekit.core.choices import CONFIDENCE, RESAMPLES
from culturekit.core.declared import Seed, Typed, check_choices
from culturekit.core.errors import NothingScored, UsageError, argument_error
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import IMAGES, PROMPTS, QUALITY, VALUES
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table
from culturekit.metrics.arguments import check_count
from culturekit.metrics.statistics.correlations import (
    CORRELATIONS,
    FEWEST_CLUSTERS,
    Correlation,
    as_correlation,
    correlate,
)
from culturekit.scores.answers import (
    ANSWERS_READ,
    NEVER_MERGED,
    PoolsBy,
    automatic_values,
    pooled_ratings,
    read_answers,
)
from culturekit.scores.catalog import VALUES_READ, describe
from culturekit.scores.diversity import Distinct
from culturekit.scores.family import (
    Confidence,
    Row,
    Scored,
    known_values,
    own_generator,
    parsed,
    scored,
    scores,
    statistic_row,
    with_reason,
)
from culturekit.scores.image_levels import GroupsGiven, country_groups
from culturekit.scores.inputs import ValueTables, tables_of_matches

# The values of one score, item by item: what is correlated with another.

SERIES = ("metric", "params")


@dataclass(frozen=True, slots=True)
class Series:
    """One score of many items: what it is, and item, value, and for a metric also model, unit_id and country."""

    about: dict[str, object]
    items: pl.DataFrame


def metric_series(known: pl.DataFrame) -> list[Series]:
    """Give each metric, with its parameters, as a series; an item that stands under several scores counts once."""
    once = known.sort("country", "concept", nulls_last=True).unique(
        [*SERIES, "benchmark", "model", "item"], keep="first", maintain_order=True
    )
    series = []
    ordered = once.sort(*SERIES, "benchmark", "model", "item")
    for part in ordered.partition_by(*SERIES, "benchmark", maintain_order=True):
        row = part.row(0, named=True)
        about = {"metric": row["metric"], "params": parsed(row["params"]), "benchmark": row["benchmark"]}
        series.append(Series(about, part.select("model", "item", "unit_id", "country", "value")))
    return series


def items_of(series: Sequence[Series]) -> set[str]:
    """Gather the items of all."""
    return {item for one in series for item in one.items["item"]}


ALL = "all"  # What stands in the column model where the items of all models are taken together

FEW = f"fewer than {FEWEST_CLUSTERS} prompts, or no scatter"

UNRATED = "rated items of which no metric has a value"

# Options that came later: a stage that does without them is the stage it was
LATER = ("choices", "people_only", "level")


HUMAN_CORRELATION = describe(
    "human_correlation",
    "Correlation of a metric with people",
    "Spearman's rho, Kendall's tau-b or Pearson's r (params.method) of a metric and the mean rating, over items; BCa "
    "limits, prompts resampled whole",
    paper="Spearman 1904; Kendall 1945; Efron 1987",
    inputs=(VALUES_READ, ANSWERS_READ),
    pitfalls=(
        *NEVER_MERGED,
        "It cannot exceed what the people agree on among themselves: read it beside krippendorff_alpha.",
        "Over all models together, models that differ in everything lift it. Read the row of each model too.",
        "A metric for which lower is better follows people when the coefficient is negative.",
        "With fewer than ten prompts there is no interval, and params.no_interval says so.",
    ),
    low=-1.0,
    unit="coefficient",
)

METRIC_CORRELATION = describe(
    "metric_correlation",
    "Correlation of two metrics",
    "as human_correlation, of two metrics on the same items",
    paper=HUMAN_CORRELATION.paper,
    inputs=(VALUES_READ,),
    pitfalls=("Two metrics from one encoder share its errors, and agree about them.", *HUMAN_CORRELATION.pitfalls[2:]),
    low=-1.0,
    unit="coefficient",
)


@dataclass(frozen=True, slots=True)
class MetaOptions:
    """How metrics are held against people and each other; the seed is that of the bootstrap."""

    choices: Annotated[
        tuple[str, ...],
        Field(description="A choice in words, such as yes, whose share is a rating too; repeatable."),
        Typed("choice"),
    ] = ()
    level: Annotated[
        Literal["item", "prompt"],
        Field(description="Correlate single items, or the means of each model's items of a prompt."),
    ] = "item"
    people_only: Annotated[
        bool, Field(description="Leave out how metrics follow each other."), Typed("people-only")
    ] = False
    methods: Annotated[
        tuple[Correlation, ...],
        Field(description="spearman, kendall or pearson; repeatable. [all three]"),
        Typed("method", as_correlation),
    ] = CORRELATIONS
    by: Annotated[PoolsBy, Field(description="What makes a pool of annotators."), Typed("pools")] = "region"
    scheme: Annotated[str, Field(description="Rows for each group of countries too: a scheme as in `score gaps`.")] = ""
    groups: GroupsGiven = None
    confidence: Confidence = CONFIDENCE
    resamples: Annotated[int, Field(ge=99, description="Resamples of each bootstrap.")] = RESAMPLES
    seed: Seed = 0

    @property
    def sides(self) -> Mapping[str, str]:
        """The group of each country; none without a scheme."""
        return country_groups(self.scheme, self.groups) if self.scheme or self.groups else {}


def _settled(
    values: ValueTables, annotations: Path | None, quality: Numbered, matches: Numbered, images: Numbered,
    prompts: Path | None, options: MetaOptions, **_: object,
) -> dict[str, object]:  # fmt: skip
    """Refuse files of which nothing can be correlated, and write alike options that mean the same."""
    automatic = bool(quality or matches)
    if not values and not automatic:
        raise UsageError("there is nothing to hold against people", expected="--values, or --matches and --quality")
    if automatic and annotations is None:
        raise UsageError("quality and matches are held against annotations", expected="--annotations")
    if automatic and not matches and not images:
        raise UsageError("the model of an image stands in its match, or among the images",
                         expected="--matches or --images, one table per model")  # fmt: skip
    methods, choices = tuple(dict.fromkeys(options.methods)), tuple(sorted(set(options.choices)))
    known = replace(options, methods=methods, choices=choices, groups=options.sides)
    return {"options": known, "prompts": prompts if automatic else None}


def _without_later(stage: Stage, _: object) -> Stage:
    """Leave out options that came later and say nothing: a stage that does without them is the stage it was."""
    usual = asdict(MetaOptions())
    decisive = {name: value for name, value in stage.options.items() if name not in LATER or value != usual[name]}
    return replace(stage, options=decisive)


@scores(
    "meta", HUMAN_CORRELATION, METRIC_CORRELATION, version=4, seeds={"bootstrap": "seed"}, settle=_settled,
    amend=_without_later,
    example="--values scores/values.parquet --annotations annotations/annotations.parquet --out meta",
)  # fmt: skip
def meta(
    values: Annotated[
        ValueTables, Field(description="Table of values of metrics; repeat it for more than one.")
    ] = ValueTables(),
    annotations: Annotated[Path | None, Field(description="What people answered about the same items.")] = None,
    human: Annotated[
        ValueTables, Field(description="Table of values that are ratings by people; repeatable.")
    ] = ValueTables(),
    quality: Annotated[
        Numbered, Field(description="Scores of single images to hold against people; repeatable.")
    ] = Numbered(),
    matches: Annotated[
        Numbered,
        Field(description="What images were mapped to: similarity, margins, the country asked for; repeatable."),
    ] = Numbered(),
    prompts: Annotated[
        Path | None,
        Field(description="What images were asked for; with --matches or --images."),
        Typed(needs="matches images"),
    ] = None,
    images: Annotated[
        Numbered,
        Field(description="Images of --quality, where nothing was mapped; repeatable."),
        Typed(needs="quality"),
    ] = Numbered(),
    *,
    distinct: Distinct = False,
    options: MetaOptions = MetaOptions(),
) -> Scored:
    """Correlate metrics with ratings by people.

    Pool by pool, and metrics with each other.
    """
    people = None if annotations is None else read_answers(annotations, distinct=distinct)
    parts, measured = [values.table()] if values else [], None
    asked = None if prompts is None else read_table(prompts, PROMPTS)
    if quality and not matches:
        measured = quality_values(quality.together(QUALITY), images.together(IMAGES), asked)
        parts.append(measured)
    elif matches:  # what tables of single images say becomes values, written beside the scores
        measured = automatic_values(
            [read_table(path, QUALITY) for path in quality.places],
            tables_of_matches(matches.places),
            asked,
            items=[] if people is None else people["item_id"].unique().to_list(),
        )
        parts.append(measured)
    answer = score_meta(
        pl.concat(parts).unique(VALUES.key, keep="first", maintain_order=True).sort(VALUES.key),
        annotations=people,
        human=human.table() if human else None,
        options=options,
    )
    return answer if measured is None else Scored(answer.scores, measured, answer.left_out)


def quality_values(quality: pl.DataFrame, images: pl.DataFrame, prompts: pl.DataFrame | None) -> pl.DataFrame:
    """Write the quality of images that nothing was mapped of as values, with the country that a prompt names."""
    known = images.filter(status="ok").select("model", "prompt_id", "repeat", item="image_id")
    if prompts is not None:
        known = known.join(prompts.select("prompt_id", "country"), on="prompt_id", how="left")
    nothing = [pl.lit(None, pl.String).alias(name) for name in ("concept", "country", "group") if name not in known]
    rows = known.with_columns(nothing).join(quality.rename({"image_id": "item"}), on="item").with_columns(
        metric=pl.lit("quality"), benchmark=pl.lit("images"), params=pl.struct("scorer").struct.json_encode()
    )  # fmt: skip
    return rows.select(list(VALUES.schema)).sort(VALUES.key)


def score_meta(
    values: pl.DataFrame,
    *,
    annotations: pl.DataFrame | None = None,
    human: pl.DataFrame | None = None,
    options: MetaOptions,
) -> Scored:
    """Correlate metrics with ratings by people, and with each other, by model and over all, where items have both.

    Each pool of people is held against on its own; `human` are ratings that are already one number per item.

    Returns:
        Rows of the metrics `human_correlation` and `metric_correlation`.
    """
    if not options.methods:
        raise argument_error("methods", "at least one correlation", options.methods)
    check_choices(options)
    check_count("resamples", options.resamples)
    left_out: Counter[str] = Counter()
    known, left_out["unknown_value"] = known_values(values)
    metrics = metric_series(known)
    people = [*rated(annotations, options, left_out), *([] if human is None else metric_series(known_values(human)[0]))]
    rows = [row for a, b in itertools.product(metrics, people) for row in rows_of("human_correlation", a, b, options)]
    check_held(rows, metrics, people, asked=annotations is not None or human is not None)
    left_out[UNRATED] += len(items_of(people) - items_of(metrics))
    for a, b in () if options.people_only else itertools.combinations(metrics, 2):
        rows += rows_of("metric_correlation", a, b, options)
    if not rows:
        raise NothingScored(
            "no item has two scores to correlate",
            expected="items of the values among those of the ratings, or two metrics of the same items",
            found=f"{len(metrics)} metrics and {len(people)} kinds of ratings",
        ).counting(left_out)
    return scored(rows, left_out=left_out)


def check_held(rows: Sequence[Row], metrics: Sequence[Series], people: Sequence[Series], *, asked: bool) -> None:
    """Refuse ratings of which none can be held against a metric, where people were asked."""
    if asked and not rows:
        rated, valued = (min(items_of(series), default="none") for series in (people, metrics))
        raise NothingScored(
            "no metric can be held against people", expected="ratings and values of the same items",
            found=f"{len(people)} kinds of ratings, of items such as {rated!r}, and values of items such as {valued!r}",
            hint="Of choices in words, --choice says whose share is a rating." if not people else "",
        )  # fmt: skip


def rated(annotations: pl.DataFrame | None, options: MetaOptions, left_out: Counter[str]) -> Iterator[Series]:
    """Give the item means of each pool as a series; of choices in words, the shares of those asked for."""
    if annotations is None:
        return
    for pool in pooled_ratings(annotations, by=options.by, left_out=left_out)[0]:
        about = {"scheme": pool.scheme, "criterion": pool.criterion, "pool": pool.pool, "pools_by": options.by}
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
        means = [pl.col(name).sort().mean() for name in ("value", "other")]
        both = both.group_by("model", "unit_id").agg(*means, pl.col("country").first()).sort("model", "unit_id")
    models = sorted(both["model"].unique())
    for model in [ALL, *models] if len(models) > 1 else models:
        of_model = both if model == ALL else both.filter(pl.col("model") == model)
        yield from correlations(metric, a, b, of_model, options, model=model, group=None)
        if options.scheme:
            side = pl.col("country").replace_strict(dict(options.sides), default=None, return_dtype=pl.String)
            sided = of_model.with_columns(side=side).drop_nulls("side").sort("side")
            for part in sided.partition_by("side", maintain_order=True):
                yield from correlations(metric, a, b, part, options, model=model, group=part["side"][0])


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
        scope: Row = {"model": model, "benchmark": str(a.about["benchmark"]), "group": group}
        yield statistic_row(metric, answer=answer, params=with_reason(params, answer, FEW), **scope)
