"""Corrected diversity: VS over batch size of what images really show, with an interval that holds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.defaults import BATCH_SIZE, CONFIDENCE
from culturekit.errors import UsageError
from culturekit.metrics.arguments import (
    argument_error,
    check_choice,
    check_confidence,
    check_count,
    check_order,
    polars_frame,
)
from culturekit.metrics.corrected.artifact_pairs import FoundArtifacts, found_artifacts, pair_diversity
from culturekit.metrics.corrected.audit_design import Design
from culturekit.metrics.corrected.audit_gates import MOST_UNPLACED
from culturekit.metrics.corrected.audited_counts import NONE, AuditedCounts, audited_counts, label_column
from culturekit.metrics.corrected.audited_places import WIDER
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity, expected_diversity
from culturekit.metrics.corrected.raters import RatedInterval
from culturekit.metrics.corrected.rectified import Parted, parted, rectified
from culturekit.metrics.corrected.references import diversity_from_references
from culturekit.metrics.diversity.kernels import Kernel, Weights, check_weights
from culturekit.metrics.statistics.intervals import Interval

__all__ = ["CorrectedImages", "Method", "checked_options", "correct_counts", "mean_of_labels", "vendi_corrected"]

Method: TypeAlias = Literal["audit", "references"]

DRAWS = 300
FRAME = "a table, as a frame of polars or pandas"
ANSWERED = ("image_id", "artifact_id", "country", "continent")
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
    weights: Kernel,
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
        weights: of the same continent, the same country, the same artifact, or a name, as for `vendi`.
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
    images = CorrectedImages(matches, audit, rng=lambda _: rng, pool=pool, sample=sample, design=design)
    by_audit = images.vendi(weights, q=q, size=size, confidence=confidence)
    options = checked_options(weights, q, size, confidence)
    if method == "audit" or (options.weights[2] > 0 and q == 2):
        return by_audit
    if references is None:
        raise argument_error("references", "the labels of held-out reference images", references)
    counts, _ = images.imputed(options.weights)
    diversity = mean_of_labels(counts.parents, options)
    return diversity_from_references(
        counts, references, diversity, draws=DRAWS, confidence=confidence, rng=rng, by_audit=by_audit
    )


class CorrectedImages:
    """The images of a model and what people say of some: kernels of the same level share what is imputed."""

    def __init__(
        self,
        matches: pl.DataFrame,
        audit: pl.DataFrame,
        *,
        rng: Callable[[str], np.random.Generator],
        pool: str | None = None,
        sample: pl.DataFrame | None = None,
        design: Design = "drawn",
    ) -> None:
        """Take the tables of `vendi_corrected`, and what makes the draws of a level, or of a kernel, by its name."""
        self.matches = of_one_model(with_columns("matches", matches, {"model", "rank", *ANSWERED}))
        self.audit = with_columns("audit", audit, {"annotator", "none_of_these", *ANSWERED})
        self.rng = rng
        self.asked: dict[str, Any] = {"pool": pool, "sample": sample, "design": design}
        self.artifacts: FoundArtifacts | None = None
        self.levels: dict[str, tuple[AuditedCounts, Parted]] = {}

    def vendi(self, weights: Kernel, *, q: float, size: int, confidence: float) -> RatedInterval:
        """Correct one kernel, as `vendi_corrected` says."""
        options = checked_options(weights, q, size, confidence)
        if options.weights[2] > 0 and q == 2:
            if self.artifacts is None:
                self.artifacts = found_artifacts(self.matches, self.audit, weights=options.weights, **self.asked)
            refuse_adrift(self.artifacts.adrift, options.weights)
            return pair_diversity(self.artifacts, weights=options.weights, size=size, confidence=confidence)
        counts, told = self.imputed(options.weights)
        refuse_adrift(counts.adrift, options.weights)
        diversity, rng = mean_of_labels(counts.parents, options), self.rng(str(options.weights))
        return rectified(counts.mapped, counts.found, told, diversity, confidence=confidence, rng=rng)

    def imputed(self, weights: Weights) -> tuple[AuditedCounts, Parted]:
        """Count and impute the labels that a kernel looks at, once."""
        level = label_column(weights)
        if level not in self.levels:
            counts = audited_counts(self.matches, self.audit, weights=weights, **self.asked)
            self.levels[level] = counts, parted_counts(counts, self.rng(level))
        return self.levels[level]


def refuse_adrift(adrift: Mapping[str, float], weights: Weights) -> None:
    """Refuse a kernel of wider places than many answers name: what lies nowhere would be like nothing else."""
    for level, weight in zip(WIDER, weights[:2], strict=True):
        if weight > 0 and adrift.get(level, 0) > MOST_UNPLACED:
            raise UsageError(
                f"an audit does not say the {level} of what it names",
                where=f"{adrift[level]:.0%} of the audited images",
                expected=f"a {level} for all but {MOST_UNPLACED:.0%} of them",
                found="places that no image is mapped to",
            )


def checked_options(weights: Kernel, q: float, size: int, confidence: float) -> CorrectionOptions:
    """Check what is asked for."""
    check_order(q)
    check_count("size", size)
    if not 2 <= size <= LARGEST:
        raise argument_error("size", f"between 2 and {LARGEST}", size)
    check_confidence(confidence)
    return CorrectionOptions(check_weights(weights), q, size, confidence)


def mean_of_labels(parents: NDArray[np.int64], options: CorrectionOptions) -> ExpectedDiversity:
    """Prepare the mean diversity of batches as a function of the shares of labels, each in its continent."""
    continent, country, _ = options.weights
    # With continents alone the labels are the continents.
    outer, inner = (continent, country) if country > 0 else (0.0, 1.0)
    return expected_diversity(size=options.size, continent=outer, country=inner, q=options.q, parents=parents.tolist())


def with_columns(name: str, table: pl.DataFrame, needed: set[str]) -> pl.DataFrame:
    """Read a table that has at least some columns."""
    frame = polars_frame(name, FRAME, table)
    if lacking := needed - set(frame.columns):
        raise argument_error(name, f"a table with the columns {', '.join(sorted(lacking))}, too", frame.columns)
    return frame


def of_one_model(matches: pl.DataFrame) -> pl.DataFrame:
    """Refuse matches of several models: each errs in its own way."""
    models = matches["model"].unique().sort().to_list()
    if len(models) != 1:
        raise argument_error("matches", "of one model", ", ".join(map(str, models)) or "no rows")
    return matches


def correct_counts(
    counts: AuditedCounts, diversity: ExpectedDiversity, *, confidence: float = CONFIDENCE, rng: np.random.Generator
) -> RatedInterval:
    """Correct by the audit: what images show is imputed by prompt, and put right where the audit contradicts it."""
    told = parted_counts(counts, rng)
    return rectified(counts.mapped, counts.found, told, diversity, confidence=confidence, rng=rng)


def parted_counts(counts: AuditedCounts, rng: np.random.Generator) -> Parted:
    """Impute what the counted images show."""
    return parted(counts.mapped, counts.found, counts.parents, counts.labels.index(NONE), rng=rng)
