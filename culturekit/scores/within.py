"""Diversity within cultures: how many artifacts of one country a model shows when prompts name that country."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.core.errors import NothingScored
from culturekit.core.inputs import Files
from culturekit.core.schemas import MATCHES, PROMPTS
from culturekit.core.stage import Work
from culturekit.core.tables import prompts_table, read_table
from culturekit.metrics.diversity.labels import Weights, kernel_name
from culturekit.metrics.statistics.intervals import Target, by_prompt, mean_of_these
from culturekit.scores.diversity import (
    Answer,
    QvsOptions,
    Within,
    answer_rows,
    collection_answers,
    image_collections,
    images_of_no_country,
)
from culturekit.scores.family import Row, Scored, equal_means, no_interval, scored, scores, statistic_row
from culturekit.scores.qvs import ARTIFACT, VS

NO_IMAGES = "countries of prompts without an image of the model"
NO_BATCH = "countries of which no repeat of a prompt has a full batch"

FIXED = ("kernels", "target", "within")  # Options that are what they are


@dataclass(frozen=True, slots=True)
class WithinOptions(QvsOptions):
    """How it is scored: by artifact, for these prompts, whatever kernels and target say."""

    kernels: tuple[Weights, ...] = (ARTIFACT,)
    target: Target = "these"
    within: Within = "country"


@scores(
    "within", VS, version=2, example="--matches matches/matches.parquet --prompts prompts/prompts.parquet --out scores",
    amend=lambda stage, _: replace(
        stage, options={one: value for one, value in stage.options.items() if one not in FIXED}
    ),
)  # fmt: skip
def within(
    work: Work,
    matches: Annotated[Files, Field(description="Table that `index map` wrote; repeatable.")],
    prompts: Annotated[Path, Field(description="Table of the prompts: which country each names.")],
    *,
    options: WithinOptions = WithinOptions(),
) -> Scored:
    """Score diversity within each country that prompts name.

    By artifact, and its mean over the countries.
    """
    table = read_table(prompts_table(prompts, work.scratch), PROMPTS)
    return score_within(matches.together(MATCHES), table, options=options)


def score_within(matches: pl.DataFrame, prompts: pl.DataFrame, *, options: QvsOptions) -> Scored:
    """Score each model within each country that prompts name, by artifact, and average over the countries.

    The values of a country are those of `score_qvs`: batches, repeats, prompts. The mean over countries weighs each of
    them the same, and its interval holds prompts and countries fixed. A country that cannot be scored has a row without
    a value, its n is 0, and the mean names it in `params`. Every country that prompts of the kinds with images name
    gets a row for each model. Kernels are not looked at.
    """
    options = replace(options, kernels=(ARTIFACT,), target="these", within="country")
    stated = prompts.drop_nulls("country")
    prompts_asked = stated.filter(pl.col("prompt_id").is_in(matches["prompt_id"].unique().to_list()))
    asked = stated.filter(pl.col("kind").is_in(prompts_asked["kind"].unique().to_list()))
    countries = dict(asked.select("prompt_id", "country").iter_rows())
    nowhere = images_of_no_country(matches, prompts)
    named = matches.filter(pl.col("prompt_id").is_in(list(countries)))
    if named.is_empty():
        raise NothingScored(
            "no image is of a prompt that names a country",
            expected="images of prompts of kind within-country or cube, and the table of these prompts",
            found=", ".join(f"{count:,} {why}" for why, count in nowhere.items() if count),
        )
    rows: list[Row] = []
    values: list[pl.DataFrame] = []
    left_out = {NO_IMAGES: 0, NO_BATCH: 0, **nowhere}
    together = [named.with_columns(concept=pl.lit(None, pl.String))] if named["concept"].n_unique() > 1 else []
    for table in (named, *together):
        parts = image_collections(table, options, countries)
        answers = [one for images in parts if images.repeats for one in collection_answers(images, {}, options)]
        written, value_table = answer_rows(answers, options.benchmark)
        rows += written
        values += value_table
        left_out[NO_BATCH] += sum(one.interval.n == 0 for one in answers)
        by_concept: dict[tuple[str, str | None], list[Answer]] = {}
        for one in answers:
            by_concept.setdefault((one.images.model, one.images.concept), []).append(one)
        for answers_of_concept in by_concept.values():
            absent = absent_countries(answers_of_concept, asked)
            left_out[NO_IMAGES] += len(absent)
            rows += [absent_row(answers_of_concept[0], country, options) for country in absent]
            rows += means(answers_of_concept, absent, options)
    return scored(rows, values, left_out=left_out)


def absent_countries(answers: Sequence[Answer], asked: pl.DataFrame) -> list[str]:
    """List the countries that prompts of a concept name and of which this model has no image at all."""
    concept = answers[0].images.concept
    wanted = asked if concept is None else asked.filter(pl.col("concept") == concept)
    return sorted(set(wanted["country"]) - {one.images.country for one in answers if one.images.country})


def params_of_row(answer: Answer) -> dict[str, object]:
    """Say how a score within countries was computed, apart from what is counted."""
    return {key: value for key, value in answer.params.items() if key != "images_left_out"}


def absent_row(like: Answer, country: str, options: QvsOptions) -> Row:
    """Make the row of a country of which a model has no image."""
    params = {**params_of_row(like), "images_left_out": 0, "no_value": NO_IMAGES}
    nothing = no_interval("these")
    scope = {"concept": like.images.concept, "country": country}
    return statistic_row(
        "vs", model=like.images.model, benchmark=options.benchmark, answer=nothing, params=params, **scope
    )


def means(of_concept: Sequence[Answer], absent: Sequence[str], options: QvsOptions) -> Iterator[Row]:
    """Average over countries, order by order."""
    for order in options.orders:
        wanted = "inf" if math.isinf(order) else float(order)
        answers = [one for one in of_concept if one.params["q"] == wanted]
        known = [one for one in answers if one.interval.n > 0]
        without = sorted([*absent, *(str(one.images.country) for one in answers if one.interval.n == 0)])
        params = {
            **params_of_row(answers[0]),
            "kernel": kernel_name(ARTIFACT),
            "over": "countries",
            "countries": len(known),
            "countries_without": without,
        }
        entered = sum(one.entered for one in known)
        of_countries = []
        for one in known:
            assert one.images.repeats is not None
            seen, repeats = np.isfinite(one.repeats), one.images.repeats
            of_countries.append(
                mean_of_these(by_prompt(one.repeats[seen], repeats.prompts[seen], repeats.numbers[seen]))
            )
        answer = equal_means(of_countries, n=entered, confidence=options.confidence)
        images = answers[0].images
        yield statistic_row(
            "vs", model=images.model, benchmark=options.benchmark, answer=answer, params=params, concept=images.concept
        )
