"""Captioned pictures of `c3`: which pairs people rate, and what the pairs that a strategy keeps are worth."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.builders.captions.pairs import PAIRS_PER_SHARD, SelectOptions, firsts_in, terms_between, valued
from culturekit.core.choices import CONFIDENCE
from culturekit.core.declared import staged
from culturekit.core.errors import NothingScored
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import ANNOTATIONS, CAPTIONS, IMAGES, PAIR_ITEMS, PROMPTS, SELECTED, TRANSLATIONS, VALUES
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, scan_table, table_outcome, write_frames
from culturekit.metrics.linguistic.human_tables import item_scores
from culturekit.metrics.statistics.correlations import FEWEST_CLUSTERS, bootstrap, pearson
from culturekit.metrics.statistics.intervals import Interval
from culturekit.report.run_folders import with_params
from culturekit.scores.answers import careful_answers
from culturekit.scores.family import (
    Row,
    Scope,
    Scored,
    check_ranges,
    mean_rows,
    scored,
    statistic_row,
    value_rows,
    write_scored,
)

RATING, BENCHMARK = "rating_mean", "c3"
PEOPLE = "people"
EVERY, HARD = "all", ("vqascore", RATING)
KEYS = ("metric", "model", "criterion", "labels")

Means: TypeAlias = Iterator[tuple[Row, pl.DataFrame]]  # scores, each with the values that it is the mean of


@staged("captioned-images", "captioned")
def captioned_images_stage(work: Work, images: Path, prompts: Path) -> Outcome:
    """Write the caption that each image was drawn for, under the id of the image."""
    drawn = read_table(images, IMAGES).filter(status="ok").select("image_id", "prompt_id")
    rows = drawn.join(read_table(prompts, PROMPTS), on="prompt_id").sort("image_id")
    captions = rows.select(
        "text", "language", id="image_id", category=pl.col("concept").fill_null(""),
        culture=pl.col("country").fill_null(""), round=pl.lit(0, pl.UInt32), proposer=pl.lit(None, pl.String),
    )  # fmt: skip
    return table_outcome(work, CAPTIONS, captions.select(list(CAPTIONS.schema)))


@staged("pair-items", "rated-pairs", seeds={"sample": "seed"})
def pair_items_stage(work: Work, images: Path, translations: Path, *, count: int, seed: int) -> Outcome:
    """Draw pairs of pictures and translated captions for people to rate, each with the same chance."""
    drawn = read_table(images, IMAGES).filter(status="ok").select("image_id", "model")
    pairs = read_table(translations, TRANSLATIONS).join(drawn, left_on="id", right_on="image_id").sort("id")
    pairs = pairs[np.random.default_rng(seed).permutation(pairs.height)[:count].tolist()]
    items = pairs.select(item_id="id", image_id="id", model="model", caption="source", translation="text")
    return table_outcome(work, PAIR_ITEMS, items.sort("item_id"))


@staged(
    "ranked-values", "ranked-values", version=2, seeds={"draws": "seed"},
    decides=lambda given: {"strategies": given["options"].strategies},
)  # fmt: skip
def ranked_values_stage(work: Work, values: Path, items: Path, *, options: SelectOptions) -> Outcome:
    """Write what each strategy ranks the pairs that people rate by as values, to compare with their ratings."""
    about = {"metric": "c3", "model": "captions", "benchmark": BENCHMARK}
    rated = read_table(items, PAIR_ITEMS)["item_id"].to_list()
    firsts, count = firsts_in(values)
    parts = []
    for start in range(0, count, PAIRS_PER_SHARD):
        terms = terms_between(values, firsts, start, min(start + PAIRS_PER_SHARD, count))
        for strategy in dict.fromkeys(options.strategies):
            found = valued(strategy, terms, options, start=start).filter(pl.col("item").is_in(rated))
            parts.append(value_rows(about, {"strategy": strategy}, found.select("item", "value")))
    return table_outcome(work, VALUES, pl.concat(parts).sort(VALUES.key))


@staged("c3-pearson", "pearson", seeds={"bootstrap": "seed"}, packages=("numpy", "scipy"))
def followed_stage(work: Work, ranked: Path, answers: Path, *, resamples: int, seed: int) -> Outcome:
    """Correlate what each strategy ranks by with people's ratings, criterion by criterion and over all of them."""
    _, means = item_scores(careful_answers(read_table(answers, ANNOTATIONS)))
    values = with_params(read_table(ranked, VALUES), "strategy")
    return write_scored(work, followed_by(values, means, resamples=resamples, seed=seed))


def followed_by(values: pl.DataFrame, means: pl.DataFrame, *, resamples: int, seed: int) -> Scored:
    """Give Pearson's r of values with ratings, its BCa interval over items and its p value.

    `all` is the mean of the criteria's r, as in the paper; its p value, as the others', is that of a permutation test:
    how often items that swap their values at random have an r as far from 0.

    Args:
        values: item, strategy and value.
        means: item_id, criterion and score.
        resamples: of the bootstrap, and of the permutation test.
        seed: of both.
    """
    wide = means.pivot("criterion", index="item_id", values="score").drop_nulls()
    criteria = sorted(set(wide.columns) - {"item_id"})
    rows: list[Row] = []
    for (strategy,), part in values.drop_nulls("value").group_by("strategy", maintain_order=True):
        both = part.join(wide, left_on="item", right_on="item_id").sort("item")
        table = both.select("value", *criteria).to_numpy()
        for criterion in (*criteria, EVERY) if len(both) > 1 else ():
            columns = [0, *(number for number, name in enumerate(criteria, 1) if criterion in {name, EVERY})]
            rng = np.random.default_rng([seed, len(rows)])
            answer = _interval(table[:, columns], resamples=resamples, rng=rng)
            params = {"strategy": strategy, "with": {"criterion": criterion}, "method": "pearson",
                      "p": _permuted(table[:, columns], resamples=resamples, rng=rng)}  # fmt: skip
            rows.append(statistic_row("human_correlation", model="captions", benchmark=BENCHMARK, answer=answer,
                                      params=params))  # fmt: skip
    if not rows:
        raise NothingScored("no pair has a value and ratings", expected="ratings of the pairs that are ranked")
    return scored(rows, left_out={"pairs that lack a criterion": means["item_id"].n_unique() - wide.height})


def _mean_r(table: NDArray[np.float64]) -> float:
    """Average over criteria Pearson's r of the first column with the one of each."""
    return float(np.mean([pearson(table[:, [0, column]]) for column in range(1, table.shape[1])]))


def _interval(table: NDArray[np.float64], *, resamples: int, rng: np.random.Generator) -> Interval:
    """Give the mean of r, and BCa limits where there are enough items."""
    if len(table) < FEWEST_CLUSTERS or math.isnan(value := _mean_r(table)):
        return Interval(_mean_r(table), math.nan, math.nan, len(table), "population")
    found = bootstrap(table, statistic=_mean_r, resamples=resamples, rng=rng)
    return replace(found, value=value, low=max(found.low, -1.0), high=min(found.high, 1.0))


def _permuted(table: NDArray[np.float64], *, resamples: int, rng: np.random.Generator) -> float | None:
    """Say how often values that are dealt out at random have a mean r as far from 0."""
    unit = table - table.mean(axis=0)
    length = np.sqrt((unit**2).sum(axis=0))
    if not (length > 0).all():
        return None
    unit /= length
    ratings = unit[:, 1:].mean(axis=1)  # the mean of r is one product with the mean of what it is with
    found = abs(float(unit[:, 0] @ ratings))
    drawn = np.abs([rng.permutation(unit[:, 0]) @ ratings for _ in range(resamples)])
    return float((1 + (drawn >= found - 1e-12).sum()) / (1 + resamples))


@staged("pair-worth", "worth", version=2)
def worth_stage(work: Work, selected: Path, answers: Path | None, truth: Path | None) -> Outcome:
    """Average, over the pairs that each strategy keeps, what people rate, and the truth where it is known."""
    kept = scan_table(selected, SELECTED).filter("kept").select("item", "strategy").collect()
    rated = None if answers is None else read_table(answers, ANNOTATIONS)
    of_truth = ("metric", "params", "item", "value")
    known = None if truth is None else scan_table(truth, VALUES).select(of_truth).collect()
    return write_means(work, worth_of(kept, rated, known))


def worth_of(kept: pl.DataFrame, answers: pl.DataFrame | None, truth: pl.DataFrame | None) -> Means:
    """Average over the pairs that each strategy keeps, criterion by criterion; a strategy stands as the model.

    Args:
        kept: item and strategy.
        answers: conforms to ANNOTATIONS: what people say of some pairs; flagged answers do not count.
        truth: the ratings that all pairs deserve: metric, params, item and value.
    """
    parts: list[pl.DataFrame] = []
    if answers is not None:
        _, means = item_scores(careful_answers(answers))
        parts.append(means.select("criterion", item="item_id", value="score", labels=pl.lit(PEOPLE)))
    if truth is not None:
        criterion, labels = (pl.col("params").str.json_path_match(f"$.{name}") for name in ("criterion", "labels"))
        deserved = truth.filter(metric=RATING)
        parts.append(deserved.select(criterion.alias("criterion"), "item", "value", labels.alias("labels")))
    every = pl.concat(parts).with_columns(metric=pl.lit(RATING), prompt_id=pl.lit(None, pl.String))
    for (strategy,), items in kept.sort("strategy").group_by("strategy", maintain_order=True):
        yield from means_of(every.join(items.select("item"), on="item").with_columns(model=pl.lit(strategy)))


@staged("c3-difficulty", "difficulty")
def difficulty_stage(work: Work, prompts: Path, values: Numbered) -> Outcome:
    """Average the judge's scores, and people's ratings over all criteria, by category of error."""
    categories = read_table(prompts, PROMPTS).select("prompt_id", category="concept").drop_nulls()
    every = pl.concat([read_table(path, VALUES) for path in values.places]).filter(pl.col("metric").is_in(HARD))
    of_image = (
        every.drop_nulls("value").group_by("model", "metric", "item", "prompt_id").agg(pl.col("value").sort().mean())
    )
    return write_means(work, means_of(of_image.join(categories, on="prompt_id"), ("metric", "model", "category")))


def means_of(values: pl.DataFrame, keys: Sequence[str] = KEYS) -> Means:
    """Average values by metric, model and what else there is, in order of the key of VALUES."""
    for part in values.sort(*keys, "item").partition_by(keys, maintain_order=True):
        about = part.row(0, named=True)
        params = {name: about[name] for name in keys if name not in {"model", "metric"}}
        where = Scope(about["metric"], about["model"], BENCHMARK)
        row, (values_used,) = mean_rows(part, where, params, confidence=CONFIDENCE)
        yield row, values_used


def write_means(work: Work, means: Means) -> Outcome:
    """Write scores, and the values of one after the other beside them."""
    rows, count = list[Row](), 0

    def values() -> Iterator[pl.DataFrame]:
        nonlocal count
        for row, values in means:
            check_ranges(values)
            rows.append(row)
            count += values.height
            yield values

    path = write_frames(work.out, VALUES, values())
    done = write_scored(work, scored(rows))
    if not count:
        path.unlink()
        return done
    return replace(done, counts={**done.counts, "values": count})
