"""The Vendi score of similarities of any kind and of feature vectors, and their mean cosine beside it."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.errors import UsageError, argument_error, check_choice
from culturekit.metrics.arguments import check_order, float_array
from culturekit.metrics.diversity.label_spectra import effective_number

TOLERANCE = 1e-6  # What rounding may do to a kernel: cosines of float32 vectors are off by a few times 1e-7

BLOCK = 65_536  # Vectors worked on at a time


def vendi_kernel(K: ArrayLike, *, q: float = 1.0) -> float:  # noqa: N803 - the name is part of the contract
    """Compute the Vendi score of a kernel.

    Args:
        K: float, (n, n): similarities, symmetric and positive semi-definite, with ones on the diagonal.
            For q < 1 they should have been computed in float64: the rounding of float32 looks like rank.
        q: the order, above 0; infinity is allowed.

    Returns:
        The score, between 1 and n.

    Raises:
        UsageError: K is no such kernel, or q no order.
    """
    check_order(q)
    kernel = matrix("K", K)
    if kernel.shape[0] != kernel.shape[1]:
        raise argument_error("K", "square", f"shape {kernel.shape}")
    check_similarities(kernel)
    eigenvalues = spectrum(kernel, items=len(kernel))
    if eigenvalues[0] < -TOLERANCE:
        raise argument_error("K", "positive semi-definite", f"an eigenvalue of {eigenvalues[0] * len(kernel):.3g}")
    return float(effective_number(eigenvalues, q=q))


def vendi_features(X: ArrayLike, *, q: float = 1.0) -> float:  # noqa: N803 - the name is part of the contract
    """Compute the Vendi score of feature vectors under cosine similarity.

    Args:
        X: float, (n, dim): one vector per item, not all zero. Rows are normalised here. The spectrum comes
            from X Xᵀ/n or XᵀX/n, whichever is smaller: their eigenvalues are the same but for zeros.
        q: the order, above 0; infinity is allowed.

    Returns:
        The score, between 1 and n.

    Raises:
        UsageError: X holds no such vectors, or q is no order.
    """
    check_order(q)
    features = matrix("X", X)
    largest = np.abs(features).max(axis=1)
    if not largest.all():
        row = int(np.argmin(largest))
        raise argument_error(f"X[{row}]", "a vector other than zero", features[row])
    # Squares of huge or tiny numbers leave the range; a power of two takes no digit from any number.
    moderate = np.ldexp(features, -np.frexp(largest)[1][:, None])
    unit = moderate / np.linalg.norm(moderate, axis=1)[:, None]
    gram = unit @ unit.T if unit.shape[0] <= unit.shape[1] else unit.T @ unit
    return float(effective_number(spectrum(gram, items=len(unit)), q=q))


def spectrum(gram: NDArray[np.float64], *, items: int) -> NDArray[np.float64]:
    """Give the eigenvalues of a symmetric matrix over the number of items, smallest first."""
    return np.asarray(np.linalg.eigvalsh(gram / items), np.float64)


def matrix(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Read a matrix of finite numbers with at least one cell."""
    cells = float_array(name, "a matrix of numbers", values)
    if cells.ndim != 2 or cells.size == 0:
        raise argument_error(name, "a matrix with at least one cell", f"shape {cells.shape}")
    if not np.isfinite(cells).all():
        raise argument_error(
            name, "finite in every cell", f"{np.count_nonzero(~np.isfinite(cells))} cells that are not"
        )
    return cells


def check_similarities(kernel: NDArray[np.float64]) -> None:
    """Refuse a square matrix, (n, n), that is not symmetric or does not give each item similarity 1 with itself."""
    asymmetry = float(np.abs(kernel - kernel.T).max())
    if asymmetry > TOLERANCE:
        raise argument_error("K", "symmetric", f"cells that differ by {asymmetry:.3g}")
    diagonal = np.diagonal(kernel)
    worst = int(np.argmax(np.abs(diagonal - 1)))
    if abs(diagonal[worst] - 1) > TOLERANCE:
        raise argument_error(f"K[{worst}, {worst}]", "1, like the whole diagonal", float(diagonal[worst]))


def mean_cosine(vectors: ArrayLike) -> float:
    """Average the cosines of all pairs of vectors, those with themselves included: (1/N²) Σ over i and j.

    This is the squared length of the mean of the unit vectors, so no pair is looked at. Slides on CUBE call it
    coverage; it has nothing to do with the coverage of `prdc`, and low values mean varied images.

    Args:
        vectors: float, (n, dim): one per image, not all zero; rows are normalised here, in float64.

    Returns:
        The mean, between 0 (they cancel out) and 1 (all alike).

    Raises:
        UsageError: there are no such vectors.
    """
    try:
        table = np.asarray(vectors)
        total = np.zeros(table.shape[1] if table.ndim == 2 else 0)
        if table.ndim != 2 or table.size == 0:
            raise argument_error("vectors", "a matrix with at least one cell", f"shape {table.shape}")
        for start in range(0, len(table), BLOCK):
            total += unit(table[start : start + BLOCK], start).sum(axis=0)
    except UsageError:
        raise
    except (TypeError, ValueError) as error:
        raise argument_error("vectors", "a matrix of numbers", vectors) from error
    mean = total / len(table)
    return min(float(mean @ mean), 1.0)


def unit(block: NDArray[np.generic], start: int) -> NDArray[np.float64]:
    """Normalise some rows, of which the first has the number `start`."""
    rows = np.asarray(block, np.float64)
    # Lengths of tiny or huge vectors would leave the range of numbers when squared.
    largest = np.abs(rows).max(axis=1)
    wrong = ~(np.isfinite(largest) & (largest > 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise argument_error(f"vectors[{start + row}]", "finite, and a vector other than zero", rows[row])
    rows = rows / largest[:, None]
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


# The weights of the label kernel, and the five triples that CUBE reports (Table 4 of the paper).

# How much the same continent, the same country and the same artifact count
Weights: TypeAlias = tuple[float, float, float]

STANDARD_KERNELS: Mapping[str, Weights] = MappingProxyType(
    {
        "continent": (1.0, 0.0, 0.0),
        "country": (0.0, 1.0, 0.0),
        "artifact": (0.0, 0.0, 1.0),
        "hierarchical": (0.5, 0.5, 0.0),
        "uniform": (1 / 3, 1 / 3, 1 / 3),
    }
)

Kernel: TypeAlias = str | Sequence[float]  # A standard kernel by its name, or weights

ROUNDING = 1e-9  # How far typed weights may be from their exact values, such as 0.3333333333 from 1/3


def check_weights(weights: Kernel) -> Weights:
    """Give the weights as three floats, by name or as they stand, or say why they are no kernel: k(i, i) must be 1."""
    rule = "three numbers of at least 0 that sum to 1, for (continent, country, artifact)"
    if isinstance(weights, str):
        check_choice("weights", weights, tuple(STANDARD_KERNELS))
        return STANDARD_KERNELS[weights]
    try:
        continent, country, artifact = (float(weight) for weight in weights)
    except (TypeError, ValueError) as error:
        raise argument_error("weights", rule, weights) from error
    if not min(continent, country, artifact) >= 0 or not abs(continent + country + artifact - 1) <= ROUNDING:
        raise argument_error("weights", rule, weights)
    return continent, country, artifact


def several_weights(weights: Kernel | Sequence[Kernel]) -> list[Weights]:
    """Read one kernel, or several."""
    if not hasattr(weights, "__len__"):
        raise argument_error("weights", "a triple of numbers, or triples", weights)
    return [check_weights(kernel) for kernel in ([weights] if is_single(weights) else weights)]  # type: ignore[arg-type]


def is_single(weights: Kernel | Sequence[Kernel]) -> bool:
    """Tell one kernel from several."""
    return isinstance(weights, str) or len(weights) == 0 or not all(hasattr(kernel, "__len__") for kernel in weights)


def counting_levels(weights: Weights) -> list[int]:
    """List the levels whose labels matter: 0 for the continent, 1 for the country, 2 for the artifact."""
    return [level for level, weight in enumerate(weights) if weight > 0]


def kernel_name(weights: Weights) -> str | None:
    """Name a triple of weights, when it is one of the standard ones."""
    for name, standard in STANDARD_KERNELS.items():
        if all(math.isclose(mine, theirs, abs_tol=ROUNDING) for mine, theirs in zip(weights, standard, strict=True)):
            return name
    return None
