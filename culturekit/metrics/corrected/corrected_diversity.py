"""Corrected diversity: VS over batch size of what images really show, with an interval that holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.defaults import BATCH_SIZE, CONFIDENCE
from culturekit.metrics.arguments import argument_error, check_choice, check_order, check_size, polars_frame
from culturekit.metrics.corrected.artifact_pairs import pair_diversity
from culturekit.metrics.corrected.audit_design import Design
from culturekit.metrics.corrected.audited_counts import NONE, AuditedCounts, audited_counts
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity, expected_diversity
from culturekit.metrics.corrected.rectified import rectified
from culturekit.metrics.corrected.references import diversity_from_references
from culturekit.metrics.diversity.kernels import Weights, check_weights
from culturekit.metrics.statistics.intervals import Interval

__all__ = ["Method", "checked_options", "correct_counts", "mean_of_labels", "vendi_corrected"]

Method: TypeAlias = Literal["audit", "references"]

DRAWS = 300
FRAME = "a table, as a frame of polars or pandas"
LARGEST = 12
"""The largest batch: the number of kinds of batches grows fast."""


@dataclass(frozen=True, slots=True)
class CorrectionOptions:
    """Which diversity is corrected, checked."""

    weights: Weights
    q: float
    size: int
    confidence: float


def vendi_corrected(
    matches: pl.DataFrame,
    audit: pl.DataFrame,
    *,
    weights: Sequence[float],
    q: float = 1.0,
    size: int = BATCH_SIZE,
    method: Method = "audit",
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
    pool: str | None = None,
    references: pl.DataFrame | None = None,
    sample: pl.DataFrame | None = None,
    design: Design = "drawn",
) -> Interval:
    """Estimate the mean of VS_q/size over batches of what a model's images really show.

    Batches are of one prompt each, and prompts count alike; one with fewer images than a batch counts nothing.

    Kernels of continents and countries take every order; one with artifacts needs q=2, and gives
    1 / (1 + (size - 1) m), m the mean of k(i, j)² over pairs: the order-2 diversity of a batch of average pairs.

    Args:
        matches: MATCHES of one model, and usually of one concept; the nearest match of an image counts.
        audit: AUDITS of some of those images, drawn by `audit_sample`; others are not looked at.
        weights: of the same continent, the same country, the same artifact.
        q: the order, above 0.
        size: images per batch, at most 12.
        method: `audit` corrects by what people found. `references` corrects by how held-out reference images
            are mapped, only where the audit is large enough to see a bias of .02 and sees none.
        rng: draws the scatter of the estimate.
        confidence: how often such intervals are to hold the truth.
        pool: whose answers count, when several pools of people answered.
        references: for `references`: columns `mapped`, `true`: labels of held-out reference images, on the
            level of the kernel; `true` is null for pictures that show no culture, such as the floor of a diagnosis.
        sample: AUDIT_SAMPLE, the drawn images: answers about others, and parts without answers, are refused.
        design: `unknown` takes answers about images that nobody drew evenly; the interval then promises nothing.

    Returns:
        The corrected diversity, its interval, and how many images were audited.

    Raises:
        UsageError: an argument breaks its rule, or the audit cannot carry a correction.
    """
    check_choice("method", method, ("audit", "references"))
    options = checked_options(weights, q, size, confidence)
    matches, audit = of_one_model(polars_frame("matches", FRAME, matches)), polars_frame("audit", FRAME, audit)
    asked: Any = {"weights": options.weights, "pool": pool, "sample": sample, "design": design}
    if options.weights[2] > 0 and q == 2:
        return pair_diversity(matches, audit, size=size, confidence=confidence, **asked)
    counts = audited_counts(matches, audit, **asked)
    diversity = mean_of_labels(counts.parents, options)
    by_audit = correct_counts(counts, diversity, confidence=confidence, rng=rng)
    if method == "references":
        if references is None:
            raise argument_error("references", "the labels of held-out reference images", references)
        return diversity_from_references(
            counts, references, diversity, draws=DRAWS, confidence=confidence, rng=rng, by_audit=by_audit
        )
    return by_audit


def checked_options(weights: Sequence[float], q: float, size: int, confidence: float) -> CorrectionOptions:
    """Check what is asked for."""
    check_order(q)
    check_size(size)
    if not 2 <= size <= LARGEST:
        raise argument_error("size", f"between 2 and {LARGEST}", size)
    if not 0 < confidence < 1:
        raise argument_error("confidence", "between 0 and 1", confidence)
    return CorrectionOptions(check_weights(weights), q, size, confidence)


def mean_of_labels(parents: NDArray[np.int64], options: CorrectionOptions) -> ExpectedDiversity:
    """Prepare the mean diversity of batches as a function of the shares of labels, each in its continent."""
    continent, country, _ = options.weights
    # With continents alone the labels are the continents.
    outer, inner = (continent, country) if country > 0 else (0.0, 1.0)
    return expected_diversity(size=options.size, continent=outer, country=inner, q=options.q, parents=parents.tolist())


def of_one_model(matches: pl.DataFrame) -> pl.DataFrame:
    """Refuse matches of several models: each errs in its own way."""
    models = matches["model"].unique().sort().to_list()
    if len(models) != 1:
        raise argument_error("matches", "of one model", ", ".join(map(str, models)) or "no rows")
    return matches


def correct_counts(
    counts: AuditedCounts, diversity: ExpectedDiversity, *, confidence: float = CONFIDENCE, rng: np.random.Generator
) -> Interval:
    """Correct by the audit: what images show is imputed by prompt, and put right where the audit contradicts it."""
    none = counts.labels.index(NONE)
    return rectified(counts.mapped, counts.found, counts.parents, none, diversity, confidence=confidence, rng=rng)
