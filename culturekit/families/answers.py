"""What judges answered about images: read, put into a matrix, and counted beside the scores."""

from collections import Counter

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.records.choices import ANSWERED
from culturekit.records.schemas import ANSWER_COUNTS, QUESTION_RATES

__all__ = ["DSG", "VQASCORE", "answer_counts", "answer_matrix", "own_answers", "question_rates"]

DSG, VQASCORE = "dsg", "vqascore"
"""The tasks of the judgments: answers to a prompt's questions, and the probability of yes."""

NOT_YES_OR_NO = "neither yes nor no"


def own_answers(rows: pl.DataFrame, images: pl.DataFrame, left_out: Counter[str]) -> pl.DataFrame:
    """Give judge, image_id, prompt_id, question_id and answer (1, 0, null) of what was asked about known images.

    The prompt is the image's: a judgment need not repeat it.
    """
    known = rows.drop("prompt_id").join(images.select("image_id", "prompt_id"), on="image_id", how="inner")
    left_out["judgments of no known image"] += rows.height - known.height
    usable = pl.col("outcome").is_in(ANSWERED)
    answers = known.select(
        "judge",
        "image_id",
        "prompt_id",
        question_id="item",
        answer=pl.when(usable).then(yes_or_no()).cast(pl.Float64),
        failed=~usable,
    )
    left_out["judgments that failed"] += int(answers["failed"].sum())
    unclear = answers.filter(~pl.col("failed") & pl.col("answer").is_null())
    left_out["answers that are neither yes nor no"] += unclear.height
    twice = answers.filter(pl.struct("judge", "image_id", "question_id").is_duplicated())
    if twice.height:
        row = twice.sort("image_id", "question_id").row(0, named=True)
        raise UsageError(
            "a judge answers a question about an image once",
            found=f"{row['judge']!r} on question {row['question_id']!r} of image {row['image_id']!r} several times",
        )
    return answers


def answer_matrix(answers: pl.DataFrame, images: list[str], questions: list[str]) -> NDArray[np.float64]:
    """Put answers into a row per image and a column per question; NaN where there is none."""
    rows, columns = ({name: number for number, name in enumerate(names)} for names in (images, questions))
    matrix = np.full((len(rows), len(columns)), np.nan)
    own = answers.filter(pl.col("image_id").is_in(images), pl.col("question_id").is_in(questions))
    for image, question, answer in own.select("image_id", "question_id", "answer").iter_rows():
        matrix[rows[image], columns[question]] = np.nan if answer is None else answer
    return matrix


def answer_counts(images: pl.DataFrame, judgments: pl.DataFrame) -> pl.DataFrame:
    """Count how the judgments of each model's images ended, task by task, over all concepts and for each.

    Args:
        images: image_id, model, concept.
        judgments: conforms to JUDGMENTS; those of other images count nowhere.
    """
    own = judgments.join(images.select("image_id", "model", "concept"), on="image_id", how="inner")
    unclear = (pl.col("task") == DSG) & pl.col("outcome").is_in(ANSWERED) & yes_or_no().is_null()
    own = own.with_columns(outcome=pl.when(unclear).then(pl.lit(NOT_YES_OR_NO)).otherwise("outcome"))
    cell = ("model", "task", "judge", "outcome")
    counted = (
        pl.len().cast(pl.UInt64).alias("judgments"),
        pl.col("image_id").n_unique().cast(pl.UInt64).alias("images"),
    )
    every = own.group_by(cell).agg(counted).with_columns(concept=pl.lit(None, pl.String))
    parted = own.filter(pl.col("concept").is_not_null()).group_by(*cell, "concept").agg(counted)
    columns = list(ANSWER_COUNTS.schema)
    return pl.concat([every.select(columns), parted.select(columns)])


def question_rates(images: pl.DataFrame, judgments: pl.DataFrame, questions: pl.DataFrame) -> pl.DataFrame:
    """Count how often each question was answered yes about the images of each model, and how often a parent with no.

    `failed` are images about which the answer was no, or was yes although a parent was answered no: what the question
    asks for is missing there. `rate` is their share of the images with an answer.

    Args:
        images: image_id, model, prompt_id, concept.
        judgments: conforms to JUDGMENTS; only answers to the questions count.
        questions: conforms to QUESTIONS.
    """
    said = judgments.filter(task=DSG).select(
        "judge", "image_id", question_id="item", yes=pl.when(pl.col("outcome").is_in(ANSWERED)).then(yes_or_no())
    )
    own = said.join(images.select("image_id", "model", "prompt_id", "concept"), on="image_id", how="inner")
    asked = own.join(questions, on=("prompt_id", "question_id"), how="inner")
    place = ("judge", "image_id", "question_id")
    above = asked.select(*place, parent="parents").explode("parent").drop_nulls("parent")
    answers = own.select("judge", "image_id", parent="question_id", parent_yes="yes")
    void = above.join(answers, on=("judge", "image_id", "parent"), how="left").group_by(place).agg(
        void=(~pl.col("parent_yes")).fill_null(False).any()
    )  # fmt: skip
    whole = asked.join(void, on=place, how="left").with_columns(pl.col("void").fill_null(False))
    of_question = ("judge", "model", "prompt_id", "question_id")
    counts = whole.group_by(of_question).agg(
        pl.col("text", "kind", "concept").first(),
        images=pl.len().cast(pl.UInt64),
        yes=counted(pl.col("yes").fill_null(False)),
        no=counted((~pl.col("yes")).fill_null(False)),
        unanswered=counted(pl.col("yes").is_null()),
        void=counted(pl.col("void")),
        failed=counted(pl.col("yes").is_not_null() & (~pl.col("yes").fill_null(False) | pl.col("void"))),
    )
    answered = pl.col("yes") + pl.col("no")
    rate = pl.when(answered > 0).then(pl.col("failed") / answered)
    return counts.with_columns(rate=rate).select(list(QUESTION_RATES.schema))


def yes_or_no() -> pl.Expr:
    """Read a choice as true or false; null for what is neither."""
    said = pl.col("choice").str.strip_chars().str.to_lowercase()
    return pl.when(said.is_in(["yes", "no"])).then(said == "yes")


def counted(condition: pl.Expr) -> pl.Expr:
    """Count rows for which a condition holds."""
    return condition.cast(pl.UInt64).sum()
