"""The Vendi score by its definition: write the kernel down, take its eigenvalues, count what they are worth."""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# (n, 3): numbers that are equal where labels are, for continent, country and artifact
Codes: TypeAlias = NDArray[np.int64]

LEVELS = ("continent", "country", "artifact")

# The five kernels of the paper's Table 4
KERNELS = {
    "continent": (1, 0, 0),
    "country": (0, 1, 0),
    "artifact": (0, 0, 1),
    "hierarchical": (1 / 2, 1 / 2, 0),
    "uniform": (1 / 3, 1 / 3, 1 / 3),
}

NOISE = 1e-11  # Eigenvalues below are rounding; for orders below 1 they would enter as if they were something


def spelled(label: str) -> str:
    """Take case, surrounding spaces and the way in which letters are composed out of a label."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", label.strip()).casefold())


def coded(triples: Iterable[Sequence[str | None]], *, missing: str) -> Codes:
    """Number labels; a missing one is unlike all others (`distinct`), or like other missing ones (`equal`)."""
    numbers: list[dict[str | int, int]] = [{}, {}, {}]
    rows = []
    for place, triple in enumerate(triples):
        row = []
        for known, label in zip(numbers, triple, strict=True):
            name: str | int = (place if missing == "distinct" else -1) if label is None else spelled(label)
            row.append(known.setdefault(name, len(known)))
        rows.append(row)
    return np.array(rows, np.int64).reshape(-1, 3)


def kernel_of(codes: Codes, weights: Sequence[float]) -> NDArray[np.float64]:
    """Write k(i, j) = w1 [same continent] + w2 [same country] + w3 [same artifact], over the last two axes."""
    kernel = np.zeros((*codes.shape[:-1], codes.shape[-2]))
    for level, weight in enumerate(weights):
        column = codes[..., level]
        kernel += weight * (column[..., :, None] == column[..., None, :])
    return kernel


def kernel_name(weights: Sequence[float]) -> str | None:
    """Name weights that are those of the paper."""
    for name, named in KERNELS.items():
        if all(abs(mine - theirs) <= 1e-9 for mine, theirs in zip(weights, named, strict=True)):
            return name
    return None


def order_of(text: object) -> float:
    """Read an order from params, where infinity is a text."""
    return math.inf if text == "inf" else float(str(text))


def vendi_of_kernels(kernels: NDArray[np.float64], q: float) -> NDArray[np.float64]:
    """Give VS_q of kernels (..., n, n): (sum of λ^q)^(1/(1-q)) over the eigenvalues λ of K/n."""
    return effective(np.linalg.eigvalsh(kernels / kernels.shape[-1]), q)


def effective(eigenvalues: NDArray[np.float64], q: float) -> NDArray[np.float64]:
    """Count what eigenvalues that sum to 1 are worth."""
    shares = np.where(eigenvalues < NOISE, 0.0, eigenvalues)
    if q == 1:
        logs = np.log(np.where(shares > 0, shares, 1.0))
        return np.asarray(np.exp(-(shares * logs).sum(axis=-1)))
    if math.isinf(q):
        return np.asarray(1 / shares.max(axis=-1))
    powers = np.where(shares > 0, np.where(shares > 0, shares, 1.0) ** q, 0.0)
    return np.asarray(powers.sum(axis=-1) ** (1 / (1 - q)))


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
