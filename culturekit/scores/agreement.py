"""From annotations to agreement within each pool of people, how far pools lie apart, and how judge models do."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.choices import CONFIDENCE, RESAMPLES
from culturekit.core.declared import Seed, Typed, check_choices
from culturekit.core.errors import NothingScored
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import JUDGMENTS
from culturekit.metrics.arguments import check_count
from culturekit.metrics.statistics.chance_corrected import (
    MOST_CHOICES,
    Level,
    agreeing_pairs,
    cohen_kappa,
    counts_of,
    drawn_alpha,
    drawn_cohen,
    drawn_fleiss,
    drawn_pairwise,
    drawn_unanimous,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_agreement,
    unanimous_agreement,
)
from culturekit.metrics.statistics.correlations import FEWEST_CLUSTERS, Statistic, bootstrap
from culturekit.metrics.statistics.intervals import Drawn, Interval
from culturekit.metrics.statistics.pools import pool_divergence
from culturekit.scores.answers import (
    ANSWERS_READ,
    NEVER_MERGED,
    PoolRatings,
    PoolsBy,
    judge_rows,
    pooled_ratings,
    read_answers,
)
from culturekit.scores.catalog import CORRECTION, UNBOUNDED, Metric, describe
from culturekit.scores.compare import Found, correct_families
from culturekit.scores.diversity import Distinct
from culturekit.scores.family import (
    Confidence,
    Correction,
    Row,
    Scored,
    own_generator,
    scored,
    scores,
    statistic_row,
    value_rows,
    with_reason,
)

PEOPLE = "people"  # What stands in the column model where nobody's pictures are scored, but the people who judged them

FEW_ITEMS = f"fewer than {FEWEST_CLUSTERS} items with two answers, or no scatter"


_coefficient = partial(describe, low=-1.0, unit="coefficient")


def _agreement(name: str, title: str, formula: str, *, paper: str, low: float, pitfalls: tuple[str, ...]) -> Metric:
    """Describe a measure of agreement; more of it is better, whatever is agreed on."""
    return _coefficient(
        name, title, formula, paper=paper, low=low, inputs=(ANSWERS_READ,), pitfalls=(*NEVER_MERGED, *pitfalls),
        direction="higher",
    )  # fmt: skip


POOL_DIFFERENCE = _coefficient(
    "pool_difference",
    "Difference of two pools of annotators",
    "mean over items judged by both of (mean of pool a - mean of pool b); for a choice, of the shares that chose it",
    paper="paired permutation test: Fisher 1935",
    inputs=(ANSWERS_READ,),
    pitfalls=(
        "Only items that both pools judged enter; params.left_out counts the others.",
        "Pools that differ in region may differ in how they were recruited as well.",
        CORRECTION,
    ),
    low=-UNBOUNDED,
    high=UNBOUNDED,
    unit="difference",
)

POOL_CORRELATION = _coefficient(
    "pool_correlation",
    "Correlation of two pools of annotators",
    "Spearman's rho of the item means of two pools",
    paper="Spearman 1904; Efron 1987",
    inputs=(ANSWERS_READ,),
    pitfalls=("Few annotators per item make it low, even where the pools agree: their means are noisy.",),
    direction="higher",
)

ALPHA = _agreement(
    "krippendorff_alpha",
    "Krippendorff's alpha",
    "1 - observed / expected disagreement; by sameness, rank or squared distance (params.level)",
    paper="Krippendorff 2004, Content Analysis",
    pitfalls=(
        "It is low where nearly all answers are the same, however much annotators agree: read pairwise_agreement "
        "beside it. Below 0 there is less agreement than chance would give.",
    ),
    low=-1.0,
)

COHEN = _agreement(
    "cohen_kappa",
    "Cohen's kappa",
    "(observed - expected agreement) / (1 - expected), of two annotators on the items both answered",
    paper="Cohen 1960",
    pitfalls=("Only where a pool has two annotators. Answers count as same or not, whatever their distance.",),
    low=-1.0,
)

FLEISS = _agreement(
    "fleiss_kappa",
    "Fleiss' kappa",
    "(P - Pe) / (1 - Pe): P the mean over items of the share of agreeing pairs, Pe the sum of squared shares of "
    "answers",
    paper="Fleiss 1971",
    pitfalls=(
        "Items may have different numbers of annotators; each item counts the same.",
        "Answers count as same or not: for ratings on a scale krippendorff_alpha with level ordinal says more.",
    ),
    low=-1.0,
)

PAIRWISE = _agreement(
    "pairwise_agreement",
    "Pairwise agreement",
    "mean over items of the share of pairs of annotators with the same answer",
    paper="Hall et al. 2024, Towards Geographic Inclusion in the Evaluation of Text-to-Image Models",
    pitfalls=("It is not corrected for chance: two annotators who guess between two answers agree half the time.",),
    low=0.0,
)

UNANIMOUS = _agreement(
    "unanimous_agreement",
    "Unanimous agreement",
    "share of items on which all annotators gave the same answer",
    paper=PAIRWISE.paper,
    pitfalls=("It falls with the number of annotators; compare items with equally many.",),
    low=0.0,
)

JUDGE_BIAS = _coefficient(
    "judge_bias",
    "Bias of a judge model",
    "mean over items of (the judge's verdict - the mean of the pool's annotators)",
    paper="paired t interval",
    inputs=(ANSWERS_READ, "judgments: image_id, prompt_id, judge, task, item, value"),
    pitfalls=(
        *NEVER_MERGED,
        "A bias near 0 is compatible with a judge that is wrong about every item: read judge_agreement beside it.",
        "It holds for the kind of items judged here, and for no others.",
    ),
    low=-UNBOUNDED,
    high=UNBOUNDED,
    unit="difference",
)

JUDGE_AGREEMENT = _agreement(
    "judge_agreement",
    "Agreement of a judge model with people",
    "Krippendorff's alpha of the judge's verdicts and the pool's item means, as two annotators",
    paper=ALPHA.paper,
    pitfalls=("People's means are compared, so it exceeds the agreement of the judge with a single person.",),
    low=-1.0,
)


@dataclass(frozen=True, slots=True)
class AgreementOptions:
    """How agreement is computed; the seed is that of bootstraps and permutations."""

    by: Annotated[
        PoolsBy,
        Field(description="What makes a pool: region, in-region or not, or the flag recruitment:NAME."),
        Typed("pools"),
    ] = "region"
    level: Annotated[Level, Field(description="Of Krippendorff's alpha for ratings that are numbers.")] = "ordinal"
    correction: Correction = "holm"
    confidence: Confidence = CONFIDENCE
    resamples: Annotated[int, Field(ge=99, description="Resamples of each bootstrap and permutation test.")] = RESAMPLES
    seed: Seed = 0


@scores(
    "agreement", ALPHA, COHEN, FLEISS, JUDGE_AGREEMENT, JUDGE_BIAS, PAIRWISE, POOL_CORRELATION, POOL_DIFFERENCE,
    UNANIMOUS, version=5, example="--annotations annotations/annotations.parquet --out agreement",
    seeds={"resampling": "seed"},
)  # fmt: skip
def agreement(
    annotations: Annotated[Path, Field(description="What people answered.")],
    judgments: Annotated[
        Numbered, Field(description="Verdicts of judge models to hold against people; repeatable.")
    ] = Numbered(),
    *,
    distinct: Distinct = False,
    options: AgreementOptions = AgreementOptions(),
) -> Scored:
    """Score the agreement of annotators within each pool.

    And the divergence between pools.
    """
    verdicts = judgments.together(JUDGMENTS) if judgments else None
    return score_agreement(read_answers(annotations, distinct=distinct), verdicts, options=options)


def score_agreement(
    annotations: pl.DataFrame, judgments: pl.DataFrame | None = None, *, options: AgreementOptions
) -> Scored:
    """Score agreement per scheme, criterion and pool, and the divergence of every two pools.

    A judge is held against people where its task is their scheme and its item their criterion.

    Returns:
        Rows of the metrics krippendorff_alpha, fleiss_kappa, cohen_kappa (of two annotators), pairwise_agreement,
        unanimous_agreement, pool_difference, pool_correlation, judge_bias and judge_agreement. As values, the
        pairwise agreement on each item and the difference of two pools on each.
    """
    check_choices(options)
    check_count("resamples", options.resamples)
    left_out: Counter[str] = Counter()
    pools, left_out["neither_value_nor_choice"] = pooled_ratings(annotations, by=options.by, left_out=left_out)
    if not pools:
        raise NothingScored(
            "nobody answered anything", expected="annotations with values or choices", found="none"
        ).counting(left_out)
    rows = [row for pool in pools for row in agreement_rows(pool, options)]
    divergence, differences = divergences(pools, options, left_out)
    if judgments is not None:
        of_judges, unmatched = judge_rows(judgments, pools, seed=options.seed, resamples=options.resamples,
                                          confidence=options.confidence, by=options.by)  # fmt: skip
        rows += of_judges
        left_out["judgment_without_people"] = unmatched
    values = []
    for pool in pools:
        scope = {"metric": "pairwise_agreement", "model": PEOPLE, "benchmark": pool.scheme, "group": pool.pool}
        shares = agreeing_pairs(counts_of(pool.table()).astype(np.float64))
        items = pl.DataFrame({"item": sorted(pool.answers["item_id"].unique()), "value": shares})
        values.append(value_rows(scope, named(pool, options), items))
    return scored([*rows, *divergence], [*values, *differences], left_out=left_out)


def agreement_rows(pool: PoolRatings, options: AgreementOptions) -> Iterator[Row]:
    """Make the rows of one pool on one criterion."""
    table = pool.table()
    table = table[:, np.isfinite(table).sum(axis=0) > 1]
    answers = pool.answers
    about = {"annotators": answers["annotator"].n_unique(), "answers": answers.height}
    level: Level = options.level if pool.numeric else "nominal"
    drawn = drawn_statistics(table, level)
    for metric, statistic in statistics_of(level).items():
        extra = {**about, "level": level} if metric == "krippendorff_alpha" else about
        answer = over_items(table, statistic, drawn.get(metric), pool, metric, options)
        params = with_reason({**named(pool, options), **extra}, answer, FEW_ITEMS)
        yield statistic_row(metric, model=PEOPLE, benchmark=pool.scheme, answer=answer, params=params, group=pool.pool)
    pairs = pool.of_annotators()
    if pairs is not None:
        many = drawn_cohen(pairs) if len(np.unique(pairs)) <= MOST_CHOICES else None
        answer = over_items(pairs, cohen_of, many, pool, "cohen", options)
        params = with_reason({**named(pool, options), **about}, answer, FEW_ITEMS)
        scope = {"model": PEOPLE, "benchmark": pool.scheme, "group": pool.pool}
        yield statistic_row("cohen_kappa", answer=answer, params=params, **scope)


def statistics_of(level: Level) -> dict[str, Statistic]:
    """Name the statistics of a table of answers, (most answers, n_items)."""
    return {
        "krippendorff_alpha": lambda table: krippendorff_alpha(table, level=level),
        "fleiss_kappa": lambda table: fleiss_kappa(counts_of(table)),
        "pairwise_agreement": lambda table: pairwise_agreement(counts_of(table)),
        "unanimous_agreement": lambda table: unanimous_agreement(counts_of(table)),
    }


def cohen_of(pairs: NDArray[np.float64]) -> float:
    """Compute Cohen's kappa of the answers of two annotators, (2, n_items)."""
    return cohen_kappa(pairs[0].tolist(), pairs[1].tolist())


def drawn_statistics(table: NDArray[np.float64], level: Level) -> dict[str, Drawn]:
    """Name the same statistics of many draws of items at once; alpha of numbers where these are few enough."""
    choices = np.unique(table[np.isfinite(table)])
    if len(choices) == 0:
        return {}
    counts = counts_of(table).astype(np.float64)
    square = level == "nominal" or len(choices) <= MOST_CHOICES
    return {
        **({"krippendorff_alpha": drawn_alpha(counts, choices, level=level)} if square else {}),
        "fleiss_kappa": drawn_fleiss(counts),
        "pairwise_agreement": drawn_pairwise(counts),
        "unanimous_agreement": drawn_unanimous(counts),
    }


def over_items(
    table: NDArray[np.float64],
    statistic: Statistic,
    drawn: Drawn | None,
    pool: PoolRatings,
    metric: str,
    options: AgreementOptions,
) -> Interval:
    """Compute a statistic of all items, and its limits by drawing items again."""
    items = table.shape[1]
    if items < FEWEST_CLUSTERS:
        value = statistic(table) if items else math.nan
        return Interval(value, math.nan, math.nan, items, "population")
    return bootstrap(
        np.arange(items),
        statistic=lambda chosen: statistic(table[:, chosen.astype(np.int64)]),
        confidence=options.confidence,
        resamples=options.resamples,
        rng=own_generator(options.seed, metric, pool.scheme, pool.criterion, pool.pool),
        drawn=lambda _: drawn,
    )


def named(pool: PoolRatings, options: AgreementOptions) -> dict[str, object]:
    """Say in params whose answers to what these are."""
    return {"scheme": pool.scheme, "criterion": pool.criterion, "pool": pool.pool, "pools_by": options.by}


def divergences(
    pools: Sequence[PoolRatings], options: AgreementOptions, left_out: Counter[str]
) -> tuple[list[Row], list[pl.DataFrame]]:
    """Compare every two pools on every criterion: rows, and the difference on each item as values.

    Choice by choice, where these are categories; names, such as those of two pictures of an item, are none.
    """
    found: list[Found] = []
    rows: list[Row] = []
    values: list[pl.DataFrame] = []
    for first, second in itertools.combinations(pools, 2):
        if (first.scheme, first.criterion) != (second.scheme, second.criterion):
            continue
        choices = [None] if first.numeric else sorted({*first.answers["choice"], *second.answers["choice"]})
        if len(choices) > MOST_CHOICES:
            left_out["pools_compared_by_no_choice_of_too_many"] += 1
            continue
        for choice in choices:
            means = first.item_means(choice), second.item_means(choice)
            common = sorted(means[0].keys() & means[1].keys())
            if not common:
                continue
            pair = f"{first.pool} - {second.pool}"
            where = {"model": PEOPLE, "benchmark": first.scheme}
            scope: dict[str, Any] = {**where, "concept": None, "country": None, "group": pair}
            about: dict[str, object] = {"scheme": first.scheme, "criterion": first.criterion}
            of_pools = {"a": first.pool, "b": second.pool, "pools_by": options.by}
            params = about | of_pools | ({} if choice is None else {"choice": choice})
            answer = pool_divergence(
                *means,
                confidence=options.confidence,
                resamples=options.resamples,
                rng=own_generator(options.seed, first.scheme, first.criterion, pair, choice),
            )
            items = pl.DataFrame({"item": common, "value": [means[0][item] - means[1][item] for item in common]})
            values.append(value_rows({"metric": "pool_difference", **scope}, params, items))
            params["left_out"] = answer.difference.left_out
            found.append(Found((first.scheme,), scope, params, answer.difference))
            follows = with_reason({**params, "method": "spearman"}, answer.correlation, FEW_ITEMS)
            rows.append(statistic_row("pool_correlation", answer=answer.correlation, params=follows, **scope))
    return [*rows, *correct_families("pool_difference", found, options.correction, "a single common item")], values
