"""Captioned pictures of `c3`: which pairs people rate, and what the pairs that a strategy keeps are worth."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from culturekit.builders.captions.pairs import PAIRS_PER_SHARD, SelectOptions, firsts_in, terms_between, valued
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.schemas import (
    ANNOTATIONS,
    CAPTIONS,
    IMAGES,
    PAIR_ITEMS,
    PROMPTS,
    SELECTED,
    TRANSLATIONS,
    VALUES,
)
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table, table_outcome
from culturekit.core.work import Outcome, Work
from culturekit.metrics.linguistic.human_tables import item_scores
from culturekit.scores.answers import careful_answers
from culturekit.scores.family import write_scored
from culturekit.scores.image_collections import Place, mean_rows
from culturekit.scores.score_rows import Scored, scored, value_rows

RATING, BENCHMARK = "rating_mean", "c3"
PEOPLE = "people"
KEYS = ("model", "metric", "criterion", "labels")


def captioned_images_stage(images: Path, prompts: Path) -> Stage:
    """Write the caption that each image was drawn for, under the id of the image."""

    def run(work: Work) -> Outcome:
        drawn = read_table(images, IMAGES).filter(status="ok").select("image_id", "prompt_id")
        rows = drawn.join(read_table(prompts, PROMPTS), on="prompt_id").sort("image_id")
        captions = rows.select(
            "text", "language", id="image_id", category=pl.col("concept").fill_null(""),
            culture=pl.col("country").fill_null(""), round=pl.lit(0, pl.UInt32), proposer=pl.lit(None, pl.String),
        )  # fmt: skip
        return table_outcome(work, CAPTIONS, captions.select(list(CAPTIONS.schema)))

    return Stage("captioned", "captioned-images", 1, run, {"images": images, "prompts": prompts})


def pair_items_stage(images: Path, translations: Path, *, count: int, seed: int) -> Stage:
    """Draw pairs of pictures and translated captions for people to rate, each with the same chance."""

    def run(work: Work) -> Outcome:
        drawn = read_table(images, IMAGES).filter(status="ok").select("image_id", "model")
        pairs = read_table(translations, TRANSLATIONS).join(drawn, left_on="id", right_on="image_id").sort("id")
        pairs = pairs[np.random.default_rng(seed).permutation(pairs.height)[:count].tolist()]
        items = pairs.select(item_id="id", image_id="id", model="model", caption="source", translation="text")
        return table_outcome(work, PAIR_ITEMS, items.sort("item_id"))

    inputs = {"images": images, "translations": translations}
    return Stage("rated-pairs", "pair-items", 1, run, inputs, {"count": count}, {"sample": seed})


def ranked_values_stage(values: Path, items: Path, options: SelectOptions) -> Stage:
    """Write what each strategy ranks the pairs that people rate by as values, to compare with their ratings."""

    def run(work: Work) -> Outcome:
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

    inputs, decided = {"values": values, "items": items}, {"strategies": options.strategies}
    return Stage("ranked-values", "ranked-values", 2, run, inputs, decided, {"draws": options.seed})


def worth_stage(selected: Path, answers: Path | None, truth: Path | None) -> Stage:
    """Average, over the pairs that each strategy keeps, what people rate, and the truth where it is known."""

    def run(work: Work) -> Outcome:
        rated = None if answers is None else read_table(answers, ANNOTATIONS)
        known = None if truth is None else read_table(truth, VALUES)
        return write_scored(work, worth_of(read_table(selected, SELECTED), rated, known))

    given = {"selected": selected, "answers": answers, "truth": truth}
    return Stage("worth", "pair-worth", 2, run, {role: path for role, path in given.items() if path is not None})


def worth_of(selected: pl.DataFrame, answers: pl.DataFrame | None, truth: pl.DataFrame | None) -> Scored:
    """Average over the pairs that each strategy keeps, criterion by criterion; a strategy stands as the model.

    Args:
        selected: conforms to SELECTED.
        answers: conforms to ANNOTATIONS: what people say of some pairs; flagged answers do not count.
        truth: conforms to VALUES: the ratings that all pairs deserve.
    """
    kept = selected.filter("kept").select("item", model="strategy")
    parts: list[pl.DataFrame] = []
    if answers is not None:
        _, means = item_scores(careful_answers(answers))
        parts.append(means.select("criterion", item="item_id", value="score", labels=pl.lit(PEOPLE)))
    if truth is not None:
        params = [pl.col("params").str.json_path_match(f"$.{name}").alias(name) for name in ("criterion", "labels")]
        ratings = truth.filter(metric=RATING).with_columns(params)
        parts.append(ratings.select("criterion", "item", "value", "labels"))
    every = pl.concat(parts).join(kept, on="item")
    return means_of(every.with_columns(metric=pl.lit(RATING), prompt_id=pl.lit(None, pl.String)))


def means_of(values: pl.DataFrame, keys: Sequence[str] = KEYS) -> Scored:
    """Average values by model, metric, criterion and labels; the values stand beside the scores."""
    rows, below = [], []
    for part in values.sort(*keys, "item").partition_by(keys, maintain_order=True):
        about = part.row(0, named=True)
        params = {"criterion": about["criterion"], "labels": about["labels"]}
        where = Place(about["metric"], about["model"], BENCHMARK)
        row, values_of_row = mean_rows(part, where, params, confidence=CONFIDENCE)
        rows.append(row)
        below += values_of_row
    return scored(rows, below, left_out={})
