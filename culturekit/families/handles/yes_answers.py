"""Answers of people that say yes or no, and how often they say yes, as rows."""

import numpy as np
import polars as pl

from culturekit.metrics.realism.clip_scores import YesBucket
from culturekit.metrics.scoring.score_rows import Row

__all__ = ["bucket_row", "yes_or_no"]

YES, NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0")


def yes_or_no() -> pl.Expr:
    """Read an answer from the value (1 or 0) or the choice (yes or no); null for anything else."""
    choice = pl.col("choice").str.strip_chars().str.to_lowercase()
    return (
        pl.when(pl.col("value").is_in([0.0, 1.0]))
        .then(pl.col("value") == 1)
        .when(choice.is_in(YES))
        .then(statement=True)
        .when(choice.is_in(NO))
        .then(statement=False)
        .otherwise(None)
    )


def bucket_row(bucket: YesBucket) -> Row:
    """Write a bucket; a limit that is not known is null."""
    return {
        "low": bucket.low,
        "score": bucket.score,
        "rate": bucket.rate,
        "ci_low": None if np.isnan(bucket.ci_low) else bucket.ci_low,
        "ci_high": None if np.isnan(bucket.ci_high) else bucket.ci_high,
        "images": bucket.images,
        "answers": bucket.answers,
    }
