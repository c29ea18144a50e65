"""Mapped and audited labels as counts: all that the correction looks at, however many images there are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.corrected.audit_gates import audited_answers
from culturekit.metrics.corrected.raters import majority_shares
from culturekit.metrics.diversity.kernels import Weights

__all__ = ["NONE", "AuditedCounts", "audited_counts", "label_column"]

NONE = "(none of these)"
"""The label of a picture that shows no artifact; all such pictures are alike in that."""


@dataclass(frozen=True, slots=True)
class AuditedCounts:
    """What was mapped and what was found.

    Attributes:
        labels: the labels that occur, mapped or found, in alphabetical order.
        parents: int64, (n_labels,): the continent of each.
        mapped: int64, (n_prompts, n_labels): images by prompt and mapped label.
        audit: float64, (n_labels, n_labels): audited images by mapped label and what they really show; a
            share of an image where raters leave a doubt.
        images: how many images were mapped.
        audited: how many of them were audited.
    """

    labels: tuple[str, ...]
    parents: NDArray[np.int64]
    mapped: NDArray[np.int64]
    audit: NDArray[np.float64]
    images: int
    audited: int


def audited_counts(
    matches: pl.DataFrame,
    audit: pl.DataFrame,
    *,
    weights: Weights,
    pool: str | None = None,
    sample: pl.DataFrame | None = None,
) -> AuditedCounts:
    """Count the nearest matches of one model by label, and the audited ones by label and finding.

    Args:
        matches: MATCHES of one model; only rank 1 counts.
        audit: AUDITS; rows of images that are not among the matches are not looked at, and answers that name a
            continent only say nothing where countries count.
        weights: which levels count: countries or continents.
        pool: whose answers count; needed only when several pools answered.
        sample: AUDIT_SAMPLE: which images people were asked about.
    """
    column = label_column(weights)
    nearest = matches.filter(pl.col("rank") == 1)
    said = audited_answers(nearest, audit, weights=weights, pool=pool, sample=sample)
    found = said.select("image_id", "annotator", label=pl.when("none_of_these").then(pl.lit(NONE)).otherwise(column))
    images = nearest.select("image_id", "prompt_id", label=pl.col(column).fill_null(NONE))
    parents = continents_of(nearest, said, column)
    labels = tuple(sorted(parents))
    number = pl.Enum(labels)
    coded = images.with_columns(pl.col("label").cast(number).to_physical())
    shares = majority_shares(found.with_columns(pl.col("label").cast(number).to_physical()), labels=len(labels))
    table = np.zeros((len(labels), len(labels)))
    both = coded.join(shares, on="image_id", how="inner", suffix="_found")
    np.add.at(table, (both["label"].to_numpy(), both["label_found"].to_numpy()), both["share"].to_numpy())
    continents = sorted(set(parents.values()))
    return AuditedCounts(
        labels=labels,
        parents=np.array([continents.index(parents[label]) for label in labels]),
        mapped=by_prompt(coded, len(labels)),
        audit=table,
        images=images.height,
        audited=said["image_id"].n_unique(),
    )


def label_column(weights: Weights) -> str:
    """Say which column holds the labels of a kernel; artifacts are more than an audit of some images can tell."""
    if weights[2] > 0:
        raise UsageError(
            "the order q = 1 cannot be corrected for kernels with artifacts: a small audit meets most artifacts never",
            expected="weights without the artifact level, or q=2",
            found=f"weights={weights}",
        )
    return "country" if weights[1] > 0 else "continent"


def continents_of(nearest: pl.DataFrame, said: pl.DataFrame, column: str) -> dict[str, str]:
    """Give the continent of every label that was mapped or found; a country lies in one continent."""
    pairs = pl.concat(
        [
            nearest.select(label=column, continent="continent"),
            said.filter(~pl.col("none_of_these")).select(label=column, continent="continent"),
        ]
    ).unique()
    pairs = pairs.with_columns(pl.col("label").fill_null(NONE), pl.col("continent").fill_null(NONE)).sort("label")
    twice = pairs.filter(pl.col("label").is_duplicated())
    if twice.height:
        raise UsageError(
            f"a {column} lies in several continents, in the matches or in the audit",
            expected="one continent for each",
            found=f"{twice['label'][0]} in {', '.join(twice.filter(label=twice['label'][0])['continent'].to_list())}",
        )
    return {**dict(pairs.iter_rows()), NONE: NONE}


def by_prompt(coded: pl.DataFrame, labels: int) -> NDArray[np.int64]:
    """Count images by prompt and mapped label; images without a prompt are of one."""
    counts = coded.group_by("prompt_id", "label").len().sort("prompt_id", "label")
    prompts: Sequence[str | None] = counts["prompt_id"].unique(maintain_order=True).to_list()
    rows = {prompt: row for row, prompt in enumerate(prompts)}
    table = np.zeros((len(prompts), labels), np.int64)
    for prompt, label, count in counts.iter_rows():
        table[rows[prompt], label] = count
    return table
