"""The questions that images fail most often, and least."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.records.schemas import QUESTION_RATES
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["QUESTIONS_SHOWN", "QuestionLine", "questions_failed"]

QUESTIONS_SHOWN = 10
"""At either end; all stand in `question_rates.parquet`."""


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """A question, its prompt, and the share of each model's images that fail it, with how many were answered."""

    text: str
    kind: str
    concept: str | None
    prompt: str
    prompt_id: str
    rates: Mapping[str, tuple[float, int]]


def questions_failed(
    run: RunFolders, models: Sequence[str]
) -> tuple[tuple[QuestionLine, ...], tuple[QuestionLine, ...], int]:
    """Give the questions failed most and least often, each model counting alike, and how many have no answer at all."""
    if not run.models_with(roles.ANSWERS):
        return (), (), 0
    table = run.read(roles.FAITHFULNESS, QUESTION_RATES)
    if table is None or table.is_empty():
        return (), (), 0
    own = table.filter(pl.col("model").is_in(list(models)))
    place = ("prompt_id", "question_id")
    ordered = own.group_by(place).agg(mean=pl.col("rate").mean()).sort(
        ["mean", *place], descending=[True, False, False], nulls_last=True
    )  # fmt: skip
    known = ordered.filter(pl.col("mean").is_not_null())
    worst = known.head(QUESTIONS_SHOWN)
    best = known.tail(max(0, min(QUESTIONS_SHOWN, known.height - worst.height))).reverse()
    texts = run.prompts()
    lines = [
        tuple(line_of(own.filter(prompt_id=prompt, question_id=question), texts) for prompt, question, _ in part.rows())
        for part in (worst, best)
    ]
    return lines[0], lines[1], ordered.height - known.height


def line_of(rows: pl.DataFrame, texts: Mapping[str, str]) -> QuestionLine:
    """Put the rows of one question together."""
    first = rows.sort("model").row(0, named=True)
    rates = {row["model"]: (row["rate"], row["yes"] + row["no"]) for row in rows.to_dicts() if row["rate"] is not None}
    prompt = first["prompt_id"]
    return QuestionLine(first["text"], first["kind"], first["concept"], texts.get(prompt, prompt), prompt, rates)
