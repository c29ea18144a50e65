"""Strategies that choose pairs of captions and images: what they keep, its export, and what it is worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.captions.exporting_pairs import PairFiles, PairOptions, export_pairs
from culturekit.builders.captions.selecting import SelectOptions, counted, select_pairs
from culturekit.defaults import CONFIDENCE
from culturekit.families.family import check_options, kept
from culturekit.families.family_stage import write_scored
from culturekit.families.handles.inputs import roles_of
from culturekit.metrics.linguistic.human_tables import item_scores
from culturekit.metrics.scoring.careful_answers import careful_answers
from culturekit.metrics.scoring.prompted_images import Place, mean_rows
from culturekit.metrics.scoring.score_rows import Scored, scored, value_rows
from culturekit.records.schemas import (
    ANNOTATIONS,
    CAPTIONS,
    IMAGES,
    PAIR_ITEMS,
    PROMPTS,
    SELECTED,
    TRANSLATIONS,
    VALUES,
)
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import StageCommand
from culturekit.storage.tables import read_table, table_outcome, write_table

__all__ = [
    "EXPORT",
    "RATING",
    "SELECT",
    "SelectReads",
    "captioned_images_stage",
    "export_pairs_stage",
    "means_of",
    "pair_items_stage",
    "ranked_values_stage",
    "select_stage",
    "worth_of",
    "worth_stage",
]


@dataclass(frozen=True, slots=True)
class SelectReads:
    """What is chosen from."""

    values: Annotated[Path, Field(description="Values that `score c3` wrote beside its scores.")]


def select_stage(given: SelectReads, options: SelectOptions) -> Stage:
    """Keep the best pairs of captions and images.

    By one strategy or several; it says why the others are left out.
    """
    check_options(options)

    def select(work: Work) -> Outcome:
        selected = select_pairs(read_table(given.values, VALUES), options)
        write_table(work.out, SELECTED, selected)
        return counted(selected, options)

    return Stage(
        "selected", "select", 1, select, roles_of(given), kept(options, but=("seed",)), {"draws": options.seed}
    )  # fmt: skip


def export_pairs_stage(given: PairFiles, options: PairOptions) -> Stage:
    """Write the pairs that a strategy keeps, with their licences.

    As a folder of images or as shards.
    """
    check_options(options)
    return Stage(
        "pairs", "export-pairs", 1, partial(export_pairs, given=given, options=options), roles_of(given), kept(options)
    )


SELECT = StageCommand(select_stage, "--values scores/values.parquet --keep 500 --strategies c3,random --out selected")
EXPORT = StageCommand(
    export_pairs_stage,
    "--selected selected/selected.parquet --captions translations/translations.parquet --images images/images.parquet "
    "--rights rights.csv --format webdataset --out pairs",
)


RATING, BENCHMARK = "rating_mean", "c3"
PEOPLE = "people"
KEYS = ("model", "metric", "criterion", "labels")


def captioned_images_stage(images: Path, prompts: Path) -> Stage:
    """Write the caption of each image that was made, by its id."""

    def run(work: Work) -> Outcome:
        made = read_table(images, IMAGES).filter(status="ok").select("image_id", "prompt_id")
        asked = made.join(read_table(prompts, PROMPTS), on="prompt_id").sort("image_id")
        captions = asked.select(
            "text", "language", id="image_id", category=pl.col("concept").fill_null(""),
            culture=pl.col("country").fill_null(""), round=pl.lit(0, pl.UInt32), proposer=pl.lit(None, pl.String),
        )  # fmt: skip
        return table_outcome(work, CAPTIONS, captions.select(list(CAPTIONS.schema)))

    return Stage("captioned", "captioned-images", 1, run, {"images": images, "prompts": prompts})


def pair_items_stage(images: Path, translations: Path, *, count: int, seed: int) -> Stage:
    """Draw pairs of pictures and translated captions that people are to rate, each with the same chance."""

    def run(work: Work) -> Outcome:
        made = read_table(images, IMAGES).filter(status="ok").select("image_id", "model")
        pairs = read_table(translations, TRANSLATIONS).join(made, left_on="id", right_on="image_id").sort("id")
        drawn = pairs[np.random.default_rng(seed).permutation(pairs.height)[:count].tolist()]
        items = drawn.select(item_id="id", image_id="id", model="model", caption="source", translation="text")
        return table_outcome(work, PAIR_ITEMS, items.sort("item_id"))

    inputs = {"images": images, "translations": translations}
    return Stage("rated-pairs", "pair-items", 1, run, inputs, {"count": count}, {"sample": seed})


def ranked_values_stage(selected: Path) -> Stage:
    """Write what each strategy ranks pairs by as values, to be held against people."""

    def run(work: Work) -> Outcome:
        ranked = read_table(selected, SELECTED)
        parts = [
            value_rows({"metric": "c3", "model": "captions", "benchmark": BENCHMARK}, {"strategy": part["strategy"][0]},
                       part.select("item", "value").sort("item"))
            for part in ranked.sort("strategy").partition_by("strategy", maintain_order=True)
        ]  # fmt: skip
        table = pl.concat(parts)
        return table_outcome(work, VALUES, table.sort(VALUES.key))

    return Stage("ranked-values", "ranked-values", 1, run, {"selected": selected})


def worth_stage(selected: Path, answers: Path | None, truth: Path | None) -> Stage:
    """Average, over the pairs that each strategy keeps, what people rate, and what is true where that is known."""

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
        said = {name: pl.col("params").str.json_path_match(f"$.{name}") for name in ("criterion", "labels")}
        parts.append(truth.filter(metric=RATING).select(said["criterion"].alias("criterion"), "item", "value",
                                                        said["labels"].alias("labels")))  # fmt: skip
    every = pl.concat(parts).join(kept, on="item")
    return means_of(every.with_columns(metric=pl.lit(RATING), prompt_id=pl.lit(None, pl.String)))


def means_of(values: pl.DataFrame, keys: Sequence[str] = KEYS) -> Scored:
    """Average values by model, metric, criterion and labels; the values stand beside the scores."""
    rows, behind = [], []
    for part in values.sort(*keys, "item").partition_by(keys, maintain_order=True):
        about = part.row(0, named=True)
        params = {"criterion": about["criterion"], "labels": about["labels"]}
        row, below = mean_rows(part, Place(about["metric"], about["model"], BENCHMARK), params, confidence=CONFIDENCE)
        rows.append(row)
        behind += below
    return scored(rows, behind, left_out={})
