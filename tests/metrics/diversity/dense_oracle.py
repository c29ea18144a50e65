"""The Vendi score straight from its definition: the N×N kernel written out, and all its eigenvalues."""

from collections.abc import Sequence

import numpy as np

from tests.oracles.vendi import NOISE, effective, kernel_of

INFINITY = float("inf")


def dense_of_codes(codes: np.ndarray, weights: Sequence[float]) -> np.ndarray:
    """Compute the eigenvalues of K/N from the whole kernel."""
    return np.linalg.eigvalsh(kernel_of(codes, weights) / len(codes))


def score_of(eigenvalues: np.ndarray, q: float) -> float:
    """Score a spectrum as the verification does; near 1, where its sum of powers loses digits, by logarithms."""
    if q == 1 or abs(q - 1) >= 0.1:
        return float(effective(eigenvalues, q))
    positive = eigenvalues[eigenvalues > NOISE]
    return float(np.exp(np.log1p(np.sum(positive * np.expm1((q - 1) * np.log(positive)))) / (1 - q)))


def nested_codes(
    rng: np.random.Generator, *, items: int, artifacts: int, countries: int, continents: int
) -> np.ndarray:
    """Draw items of artifacts that have one country each, and countries that have one continent each."""
    artifact = rng.zipf(1.4, items) % artifacts
    country = rng.integers(0, countries, artifacts)[artifact]
    continent = rng.integers(0, continents, countries)[country]
    return np.stack([continent, country, artifact], axis=1)


def crossing_codes(
    rng: np.random.Generator, *, items: int, artifacts: int, countries: int, continents: int, share: float
) -> np.ndarray:
    """Draw the same, with a share of countries, and a third of it of continents, replaced at random."""
    codes = nested_codes(rng, items=items, artifacts=artifacts, countries=countries, continents=continents)
    country = np.where(rng.random(items) < share, rng.integers(0, countries, items), codes[:, 1])
    continent = np.where(rng.random(items) < share / 3, rng.integers(0, continents, items), codes[:, 0])
    return np.stack([continent, country, codes[:, 2]], axis=1)
