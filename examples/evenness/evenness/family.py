"""The entropy of what the images of a prompt show, divided by the largest there could be.

GeoDiv asks a vision model about attributes of each image, and takes the normalised entropy of its answers. Here the
mapping answers: which artifact, country or continent an image shows.
"""

import math
from dataclasses import replace
from typing import Annotated, Literal, TypeAlias

import polars as pl
from pydantic import Field

from culturekit.extend import (
    CONFIDENCE,
    TABLES,
    Confidence,
    Files,
    Metric,
    Row,
    Scored,
    interval,
    scored,
    scores,
    statistic_row,
    value_rows,
)

Level: TypeAlias = Literal["artifact_id", "country", "continent"]

ENTROPY = Metric(
    name="evenness_entropy",
    title="Evenness of what the images of a prompt show",
    formula="mean over prompts and repeats of H / ln k: H of the shares of labels, k labels shown by any model",
    low=0,
    high=1,
    direction="higher",
    unit="share",
    paper="after GeoDiv: entropy of the answers about an image's attributes, normalised",
    inputs=("matches: model, concept, prompt_id, repeat, rank, abstained, and a column of labels",),
    pitfalls=("Few images cannot spread over many labels: compare models with as many images a repeat.",),
)
CELL = ["model", "concept", "prompt_id", "repeat"]


@scores("evenness", ENTROPY, example="--matches matches/matches.parquet --out evenness")
def evenness(
    matches: Annotated[Files, Field(description="Table of matches; repeat it for more than one.")],
    *,
    level: Annotated[Level, Field(description="Column of matches that says what is shown.")] = "country",
    confidence: Confidence = CONFIDENCE,
) -> Scored:
    """Score how evenly the images of a prompt spread over what they could show."""
    return score_evenness(matches.together(TABLES["matches"]), level=level, confidence=confidence)


def score_evenness(matches: pl.DataFrame, *, level: Level = "country", confidence: float = CONFIDENCE) -> Scored:
    """Score every model on each concept; the values are the evenness of each repeat of a prompt."""
    nearest = matches.filter(rank=1)
    seen = nearest.filter(~pl.col("abstained")).drop_nulls([*CELL, level])
    even = (
        seen.group_by(*CELL, level).len().sort(*CELL, level).group_by(CELL)
        .agg(value=pl.col("len").entropy(), images=pl.col("len").sum()).sort(CELL)
    )  # fmt: skip
    rows: list[Row] = []
    values: list[pl.DataFrame] = []
    for (model, concept), cells in even.group_by("model", "concept", maintain_order=True):
        labels = max(2, seen.filter(concept=concept)[level].n_unique())
        cells = cells.with_columns(pl.col("value").abs() / math.log(labels), item=pl.format("{}/{}", *CELL[2:]))
        answer = interval(
            cells["value"].to_numpy(), prompts=cells["prompt_id"].to_list(), repeats=cells["repeat"].to_list(),
            confidence=confidence,
        )  # fmt: skip
        place = {"metric": ENTROPY.name, "model": str(model), "benchmark": "evenness", "concept": str(concept)}
        params = {"level": level, "labels": labels}
        answer = replace(answer, n=int(cells["images"].sum()))
        rows.append(statistic_row(**place, answer=answer, params=params, unit=ENTROPY.unit))
        values.append(value_rows(place, params, cells.select("item", "prompt_id", "repeat", "value")))
    return scored(rows, values, left_out={"images that show nothing for sure": nearest.height - seen.height})
