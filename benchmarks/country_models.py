"""Ten biased models with a known truth: what they show, how that is mapped, and audits of it."""

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.corrected.audit_gates import NOTHING
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity
from culturekit.metrics.corrected.imputed_prompts import AuditedCounts, Findings
from culturekit.metrics.corrected.rectified import parted, rectified
from culturekit.metrics.statistics.intervals import Interval

COUNTRIES, CONTINENTS, SIZE, IMAGES, AUDITED = 20, 5, 8, 100_000, 150
PARENTS = np.append(np.repeat(np.arange(CONTINENTS), COUNTRIES // CONTINENTS), CONTINENTS)
DRIFT = 0.1


def models() -> NDArray[np.float64]:
    """Give the shares of ten models, float64 (10, 21); the last label is a picture of nothing."""
    even = np.full(COUNTRIES, 1 / COUNTRIES)
    first = np.eye(COUNTRIES)[0]
    rank = 1 / np.arange(1, COUNTRIES + 1)
    four = np.where(np.arange(COUNTRIES) < 4, 0.25, 0.0)
    rows = [even, *(share * first + (1 - share) * even for share in (0.3, 0.5, 0.7, 0.85, 0.93))]
    rows += [rank / rank.sum(), rank**2 / (rank**2).sum(), 0.9 * four + 0.1 * even]
    shown = np.array([np.append(row, 0.0) for row in rows])
    return np.vstack([shown, np.append(np.zeros(COUNTRIES), 1.0)])


def mapping(accuracy: float, world: str) -> NDArray[np.float64]:
    """Give how each true label is mapped, float64 (21, 21); nothing is mapped to anything, evenly."""
    near = np.where(PARENTS[:-1, None] == PARENTS[None, :-1], 4.0, 1.0)
    np.fill_diagonal(near, 0.0)
    rows = accuracy * np.eye(COUNTRIES) + (1 - accuracy) * near / near.sum(axis=1, keepdims=True)
    towards = {"no drift": rows, "noise drift": np.full_like(rows, 1 / COUNTRIES)}.get(world)
    if towards is None:
        towards = np.tile(np.where(np.arange(COUNTRIES) < 3, 1 / 3, 0.0), (COUNTRIES, 1))
    drifted = (1 - DRIFT) * rows + DRIFT * towards
    return np.pad(np.vstack([drifted, np.full(COUNTRIES, 1 / COUNTRIES)]), ((0, 0), (0, 1)))


def audited(
    shares: NDArray[np.float64], errors: NDArray[np.float64], rng: np.random.Generator, *, images: int = IMAGES
) -> AuditedCounts:
    """Draw a model's images, map them, and audit every k-th in the order of the mapped labels."""
    both = rng.multinomial(images, (shares[:, None] * errors).ravel()).reshape(errors.shape)
    mapped = both.sum(axis=0)
    places = np.floor((np.arange(AUDITED) + rng.random()) * images / AUDITED)
    met = np.bincount(np.searchsorted(np.cumsum(mapped), places, side="right"), minlength=len(mapped))
    audit = np.array([rng.multivariate_hypergeometric(both[:, label], count) for label, count in enumerate(met)])
    label, shown = (np.repeat(each, audit.ravel()) for each in np.indices(audit.shape).reshape(2, -1))
    labels = (*(f"label {number:02d}" for number in range(len(mapped) - 1)), NOTHING)
    found = Findings(np.zeros(AUDITED, np.int64), label, np.eye(len(mapped))[shown])
    return AuditedCounts(labels, PARENTS, mapped[None], found)


def correct_counts(counts: AuditedCounts, diversity: ExpectedDiversity, *, rng: np.random.Generator) -> Interval:
    """Correct by the audit."""
    parts = parted(counts, rng=rng)
    return rectified(counts, parts, diversity, confidence=0.95, rng=rng)
