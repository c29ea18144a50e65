"""What stands beside the scores of faithfulness: how judgments ended, and how often each question was answered yes."""

import polars as pl

from culturekit.metrics.scoring.score_questions import ANSWERED, DSG
from culturekit.records.schemas import ANSWER_COUNTS, QUESTION_RATES

__all__ = ["answer_counts", "question_rates"]

NOT_YES_OR_NO = "neither yes nor no"


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
