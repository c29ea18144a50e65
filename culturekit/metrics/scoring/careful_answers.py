"""People's answers that count: those of who read along. Every score of answers begins here."""

from collections import Counter

import polars as pl

from culturekit.errors import NothingScored
from culturekit.metrics.scoring.image_collections import checked
from culturekit.records.schemas import ANNOTATIONS

__all__ = ["ATTENTION", "CARELESS", "FLAGS", "INCONSISTENT", "TOO_FAST", "careful_answers", "of_criterion"]

ATTENTION = "attention-failed"
INCONSISTENT = "inconsistent-repeats"
TOO_FAST = "too-fast"
FLAGS = (ATTENTION, INCONSISTENT, TOO_FAST)
"""The first two are an annotator's, in all that they answered; the last is an item's."""

CARELESS = "answers of people who did not read along"


def careful_answers(annotations: pl.DataFrame, left_out: Counter[str] | None = None) -> pl.DataFrame:
    """Keep the answers without a flag; the others are counted. `annotate aggregate --keep` takes flags away.

    Raises:
        UsageError: the table does not conform to ANNOTATIONS, or all its answers have flags.
    """
    table = checked(annotations, ANNOTATIONS)
    kept = table.filter(~pl.col("flags").list.eval(pl.element().is_in(FLAGS)).list.any())
    if kept.is_empty() and table.height:
        raise NothingScored(
            "no answer counts", expected="people who read along", found=f"{table.height:,} {CARELESS}",
            hint="annotation_checks.parquet says who missed what; `annotate aggregate --keep FLAG` lets answers count.",
        ).counting({CARELESS: table.height})  # fmt: skip
    if left_out is not None:
        left_out[CARELESS] += table.height - kept.height
    return kept


def of_criterion(answers: pl.DataFrame, criterion: str) -> pl.DataFrame:
    """Keep the answers to one question; where nobody has answered anything, there is none.

    Raises:
        UsageError: people answered others only.
    """
    asked = answers.filter(criterion=criterion)
    if asked.is_empty() and answers.height:
        found = ", ".join(answers["criterion"].unique().sort())
        raise NothingScored(f"no annotation is of the criterion {criterion!r}", found=found)
    return asked
