"""The tables that AHEaD reads: which images are scored, what was said of them, and what should have been."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from culturekit.errors import UsageError
from culturekit.metrics.ahead.dimensions import DIMENSIONS
from culturekit.metrics.ahead.phrases import normalise_phrase
from culturekit.metrics.scoring.image_collections import checked
from culturekit.records.schemas import DESCRIPTORS, IMAGES, JUDGMENTS, PROMPTS

__all__ = ["EXTRACT", "STEREOTYPE", "Described", "described", "judged", "pictured"]

EXTRACT, STEREOTYPE = "extract", "stereotype"
"""The tasks of the judgments: descriptors that a model extracted, scores of stereotype candidates."""

ANSWERED = ("ok", "repaired")
"""The outcomes of a judgment that is an answer."""


@dataclass(frozen=True, slots=True)
class Described:
    """Images with what was said of them and what should have been, phrases normalised and each once.

    Attributes:
        images: image_id, model, prompt_id, repeat, country: those that are scored.
        references: prompt_id, dimension, phrase: of the prompts of these images, in dimensions that the extractor has.
        predictions: image_id, dimension, phrase: in dimensions in which the image's prompt has references.
        judge: the model that described the images.
        left_out: what is not scored, counted by reason.
    """

    images: pl.DataFrame
    references: pl.DataFrame
    predictions: pl.DataFrame
    judge: str
    left_out: Counter[str]


def pictured(images: pl.DataFrame, prompts: pl.DataFrame, left_out: Counter[str]) -> pl.DataFrame:
    """Give the images that were made, with model, prompt, repeat and country."""
    table, asked = checked(images, IMAGES), checked(prompts, PROMPTS)
    made = table.filter(status="ok")
    left_out["images not made"] += table.height - made.height
    known = made.select("image_id", "model", "prompt_id", "repeat").join(
        asked.select("prompt_id", "country"), on="prompt_id", how="inner"
    )
    left_out["images of no known prompt"] += made.height - known.height
    return known.sort("image_id")


def judged(judgments: pl.DataFrame, task: str) -> tuple[pl.DataFrame, str]:
    """Give the judgments of one task, with the only judge that made them."""
    rows = checked(judgments, JUDGMENTS).filter(task=task)
    judges = rows["judge"].unique().sort().to_list()
    if len(judges) != 1:
        raise UsageError(
            f"the judgments of the task {task!r} must come from one judge",
            expected="one judge",
            found=", ".join(judges) or f"no judgment of that task among {judgments.height}",
            hint="Score the judgments of each judge on their own." if judges else "",
        )
    return rows, str(judges[0])


def described(
    images: pl.DataFrame,
    descriptors: pl.DataFrame,
    extracted: pl.DataFrame,
    *,
    has: tuple[str, ...] | None,
    left_out: Counter[str],
) -> Described:
    """Put together what was said of images and what should have been.

    Args:
        images: as `pictured` gives them.
        descriptors: conforms to DESCRIPTORS: what a picture of each prompt should show.
        extracted: conforms to JUDGMENTS; of the task `extract` one row per image and token: `item` is the token. An
            empty item says that nothing was found in the dimension. An outcome other than `ok` and
            `repaired` says that the extractor did not answer: the image is not scored, because its silence
            means nothing.
        has: the dimensions that the extractor has; without it the five published ones and whichever else
            occurs among the judgments.
        left_out: counts to add to.
    """
    rows, judge = judged(extracted, EXTRACT)
    failed = rows.filter(~pl.col("outcome").is_in(ANSWERED))["image_id"].unique()
    told = images.filter(pl.col("image_id").is_in(rows["image_id"].implode()))
    answered = told.filter(~pl.col("image_id").is_in(failed.implode()))
    left_out["images not described"] += images.height - told.height
    left_out["images the extractor failed on"] += told.height - answered.height
    said = phrases_said(rows.join(answered, on="image_id", how="semi"))
    seen = has or (*DIMENSIONS, *rows["dimension"].drop_nulls().unique())
    references = phrases_asked(descriptors, answered, seen, left_out)
    scored = answered.join(references, on="prompt_id", how="semi").sort("image_id")
    left_out["images of prompts without descriptors"] += answered.height - scored.height
    placed = said.join(scored.select("image_id", "prompt_id"), on="image_id", how="inner")
    compared = placed.join(references, on=["prompt_id", "dimension"], how="semi")
    left_out["predictions in a dimension without references"] += placed.height - compared.height
    predictions = compared.select("image_id", "dimension", "phrase").sort("image_id", "dimension", "phrase")
    return Described(scored, references, predictions, judge, left_out)


def phrases_said(rows: pl.DataFrame) -> pl.DataFrame:
    """Give image_id, dimension and normalised phrase of extracted tokens, each once."""
    tokens = rows.filter(pl.col("item") != "")
    if tokens["dimension"].null_count():
        raise UsageError(
            "an extracted descriptor has no dimension",
            where=f"image {tokens.filter(pl.col('dimension').is_null())['image_id'][0]!r}",
            expected="a dimension: descriptors are compared within one",
        )
    return normalised(tokens.select("image_id", "dimension", "item"), "item").unique()


def phrases_asked(
    descriptors: pl.DataFrame, images: pl.DataFrame, has: tuple[str, ...], left_out: Counter[str]
) -> pl.DataFrame:
    """Give prompt_id, dimension and normalised phrase of the references of some images' prompts, each once."""
    asked = checked(descriptors, DESCRIPTORS).join(images, on="prompt_id", how="semi")
    phrases = normalised(asked.select("prompt_id", "dimension", "token"), "token").unique()
    unseen = phrases.filter(~pl.col("dimension").is_in(has))
    for dimension, count in unseen.group_by("dimension").len().sort("dimension").iter_rows():
        left_out[f"references the extractor cannot see: {dimension}"] += count
    return phrases.filter(pl.col("dimension").is_in(has)).sort("prompt_id", "dimension", "phrase")


def normalised(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Replace a column of texts by their phrases; texts of white space alone are nothing."""
    texts = frame[column].unique().to_list()
    forms: Mapping[str, str] = {text: normalise_phrase(text) for text in texts}
    phrases = frame[column].replace_strict(forms, return_dtype=pl.String)
    return frame.drop(column).with_columns(phrase=phrases).filter(pl.col("phrase") != "")
