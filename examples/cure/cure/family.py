"""How often images show the country that a prompt names, and how much more often than where none is named.

CuRe scores the marginal utility of saying more in a prompt. Here a prompt says one thing more, a country, and the
mapping tells whether an image shows it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.extend import (
    CONFIDENCE,
    FEWEST_PROMPTS,
    TABLES,
    Confidence,
    Family,
    Files,
    Metric,
    Scored,
    Stage,
    UsageError,
    Work,
    family_stage,
    interval,
    kept,
    prompts_table,
    read_table,
    roles_of,
    scored,
    statistic_row,
    value_rows,
)

TOLD = Metric(
    name="cure_told",
    title="Images of a country that show it",
    formula="mean over countries of the share of images of prompts that name it which show something of it",
    low=0,
    high=1,
    direction="higher",
    unit="share",
    paper="after CuRe: how a model answers to prompts that say more",
    inputs=("matches: model, concept, prompt_id, rank, countries, abstained", "prompts: prompt_id, country"),
    pitfalls=("An image that the mapping is not sure of shows no country.",),
)
GAIN = replace(
    TOLD,
    name="cure_gain",
    title="What naming a country adds",
    formula="mean over countries of that share less the share among images of prompts that name none",
    low=-1,
    pitfalls=(*TOLD.pitfalls, "A country that is shown anyway has little to gain."),
)


@dataclass(frozen=True, slots=True)
class CureReads:
    """What images were mapped to, and what they were asked for by."""

    matches: Annotated[Files, Field(description="Table of matches; repeat it for more than one.")]
    prompts: Annotated[Path, Field(description="Prompts, some of which name a country.")]


@dataclass(frozen=True, slots=True)
class CureOptions:
    """How sure to be."""

    confidence: Confidence = CONFIDENCE


def cure(given: CureReads, options: CureOptions, *, name: str = "scores") -> Stage:
    """Score how often images show the country that is named, and what naming it adds."""

    def score(work: Work) -> Scored:
        prompts = read_table(prompts_table(given.prompts, work.scratch), TABLES["prompts"])
        return score_cure(given.matches.together(TABLES["matches"]), prompts, options)

    return family_stage("cure", roles_of(given), kept(options), score, name=name)


def score_cure(matches: pl.DataFrame, prompts: pl.DataFrame, options: CureOptions) -> Scored:
    """Score every model on each concept; the values are those of countries."""
    asked = matches.filter(rank=1).join(prompts.select("prompt_id", named="country"), on="prompt_id")
    sure = asked.with_columns(countries=pl.when(~pl.col("abstained")).then("countries").otherwise([]))
    rows, values = [], []
    for (model, concept), images in sure.sort("model", "concept").group_by("model", "concept", maintain_order=True):
        found = pl.DataFrame(
            shares(images), schema={"item": pl.String, TOLD.name: float, GAIN.name: float}, orient="row"
        )
        if found.is_empty():
            continue
        for metric in (TOLD, GAIN):
            answer = interval(
                found[metric.name].to_numpy(), prompts=found["item"].to_list(), repeats=[0] * found.height,
                target="population" if found.height >= FEWEST_PROMPTS else "these", confidence=options.confidence,
            )  # fmt: skip
            place = {"metric": metric.name, "model": str(model), "benchmark": "cure", "concept": str(concept)}
            answer = replace(answer, n=images.height)
            rows.append(statistic_row(**place, answer=answer, params={}, unit=metric.unit))
            values.append(value_rows(place, {}, found.select("item", value=metric.name)))
    if not rows:
        raise UsageError(
            "nothing to compare", expected="images of prompts that name a country, and of some that name none"
        )
    return scored(rows, values)


def shares(images: pl.DataFrame) -> Iterator[tuple[str, float, float]]:
    """Give the share of images that show it, for each country, and how much more that is than where none is named."""
    untold = images.filter(pl.col("named").is_null())
    for (country,), told in images.drop_nulls("named").sort("named").group_by("named", maintain_order=True):
        if untold.height:
            here = pl.col("countries").list.contains(str(country)).mean()
            shown, anyway = (float(some.select(here).item()) for some in (told, untold))
            yield str(country), shown, shown - anyway


CURE = Family(
    cure,
    metrics=(TOLD, GAIN),
    example="--matches matches/matches.parquet --prompts prompts/prompts.parquet --out cure",
)
