"""Scores after GeoDiv (Basu et al., ICLR 2026): a vision model answers questions about each image.

Affluence and maintenance are means of its ratings from 1 to 5. Diversity of entities and of backgrounds is, for each
question, the Hill number of order 1 of the answers, exp(H), scaled to 0 where all are the same and 1 where all of the K
allowed answers are as frequent: (exp(H) - 1) / (K - 1); then the mean over questions.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from culturekit import extend as ck

QUESTIONS = Path(__file__).with_name("questions.yaml")
AFFLUENCE = ck.Metric(
    name="geodiv_affluence",
    title="Affluence that images show",
    formula="mean rating of a vision model, 1 (impoverished) to 5 (luxurious), over the images of a country",
    low=1,
    high=5,
    direction="neither",
    unit="rating",
    paper="GeoDiv, Basu et al., ICLR 2026: Socio-Economic Visual Index",
    inputs=("judgments: image_id, task, item, value, choice", "images: image_id, model, prompt_id, country"),
    pitfalls=("The judge has a bias of its own: compare models by one judge, and ask people about a sample.",),
)
MAINTENANCE = replace(
    AFFLUENCE, name="geodiv_maintenance", title="How well kept what images show is",
    formula="mean rating of a vision model, 1 (decayed) to 5 (pristine), over the images of a country",
)  # fmt: skip
ENTITY = replace(
    AFFLUENCE, name="geodiv_entity", title="Diversity of how an entity looks", unit="share", low=0, high=1,
    formula="mean over prompts and questions of (exp(H) - 1) / (K - 1): H of the answers, K answers allowed",
    direction="higher", paper="GeoDiv, Basu et al., ICLR 2026: Visual Diversity Index",
    pitfalls=(*AFFLUENCE.pitfalls, "Few images show few answers: compare models with as many images a prompt."),
)  # fmt: skip
BACKGROUND = replace(ENTITY, name="geodiv_background", title="Diversity of backgrounds")
RATED = {"affluence": AFFLUENCE, "maintenance": MAINTENANCE}
VARIED = {"entity": ENTITY, "background": BACKGROUND}


@ck.scores("geodiv", *RATED.values(), *VARIED.values(), example="--judgments judged.parquet --images i.parquet --out g")
def geodiv(
    judgments: Annotated[ck.Files, Field(description="Table of answers to the questions of this package.")],
    images: Annotated[ck.Files, Field(description="Table of the images that were judged.")],
    *,
    confidence: ck.Confidence = ck.CONFIDENCE,
) -> ck.Scored:
    """Score affluence, maintenance, and the diversity of entities and backgrounds, by model and country."""
    made = images.together(ck.TABLES["images"]).select("image_id", "model", "prompt_id")
    asked = pl.concat([pl.read_parquet(path, columns=["image_id", "country"]) for path in images.places])
    said = judgments.together(ck.TABLES["judgments"]).select("image_id", "task", "item", "value", "choice")
    answers = said.join(made, on="image_id").join(asked, on="image_id").sort("image_id", "task", "item")
    return score_geodiv(answers, confidence=confidence)


def score_geodiv(answers: pl.DataFrame, *, confidence: float = ck.CONFIDENCE) -> ck.Scored:
    """Score every model over all countries, and on each; the values are those of prompts."""
    allowed = {(each.task, each.item): len(each.answers) for each in ck.load_questions([str(QUESTIONS)])}
    rows: list[ck.Row] = []
    values: list[pl.DataFrame] = []
    for task, metric in {**RATED, **VARIED}.items():
        own = answers.filter(task=task).drop_nulls("value" if task in RATED else "choice")
        for (model,), of_model in own.group_by("model", maintain_order=True):
            for country in (None, *of_model["country"].drop_nulls().unique().sort()):
                here = of_model if country is None else of_model.filter(country=country)
                found = [
                    (prompt, float(part["value"].to_numpy().mean()) if task in RATED else spread(part, allowed, task))
                    for (prompt,), part in here.sort("prompt_id").group_by("prompt_id", maintain_order=True)
                ]
                cells = pl.DataFrame(found, schema=["prompt_id", "value"], orient="row")
                answer = ck.interval(
                    cells["value"].to_numpy(), prompts=cells["prompt_id"].to_list(), repeats=[0] * cells.height,
                    target="population" if cells.height >= ck.FEWEST_PROMPTS else "these", confidence=confidence,
                )  # fmt: skip
                place = {"metric": metric.name, "model": str(model), "benchmark": "geodiv", "country": country}
                answer = replace(answer, n=here["image_id"].n_unique())
                rows.append(ck.statistic_row(**place, answer=answer, params={}, unit=metric.unit))
                values.append(ck.value_rows(place, {}, cells.select("prompt_id", "value", item="prompt_id")))
    none = answers.filter(pl.col("value").is_null(), pl.col("choice").is_null()).height
    return ck.scored(rows, values, left_out={"answers that are none": none})


def spread(answers: pl.DataFrame, allowed: dict[tuple[str, str], int], task: str) -> float:
    """Average the scaled Hill numbers of the questions of a task."""
    found = []
    for (item,), part in answers.group_by("item", maintain_order=True):
        shares = np.sort(part["choice"].value_counts()["count"].to_numpy()) / part.height
        hill = float(np.exp(-np.sum(shares * np.log(shares))))
        found.append((hill - 1) / (allowed[task, str(item)] - 1))
    return float(np.mean(found))
