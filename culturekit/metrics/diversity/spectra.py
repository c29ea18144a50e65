"""From the eigenvalues of a kernel to the effective number of items: the exponential of the Rényi entropy."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["effective_number"]

NEGLIGIBLE = 1e-11
"""Eigenvalues below this are rounding noise. It matters for q < 1 only: noise of 1e-17 would enter as
1e-17 ** 0.1 = 0.02 each, which makes vendi-score up to 109 % wrong on rank-deficient kernels."""

NEAR_ONE = 0.1
"""So close to q = 1 the plain formula divides two small numbers, and loses digits."""


def effective_number(
    eigenvalues: NDArray[np.float64], *, q: float, times: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Count the items a spectrum is worth: VS_q = (sum of λ^q)^(1/(1-q)), and its limits at q = 1 and ∞.

    Args:
        eigenvalues: float64, (..., n), those of K/N; they sum to 1 but for rounding.
        q: the order, above 0; infinity is allowed.
        times: int64, (n,): how often each eigenvalue occurs; once where it is not given.

    Returns:
        float64, (...), each between 1 and the number of eigenvalues.
    """
    often = np.ones(eigenvalues.shape[-1], np.int64) if times is None else times
    kept = np.maximum(eigenvalues, 0.0)
    if q < 1:
        kept = np.where(kept < NEGLIGIBLE, 0.0, kept)
    kept = kept / (often * kept).sum(axis=-1, keepdims=True)
    return np.clip(np.exp(entropy(kept, often, q=q)), 1.0, often.sum())


def entropy(shares: NDArray[np.float64], times: NDArray[np.int64], *, q: float) -> NDArray[np.float64]:
    """Compute the Rényi entropy of order q, in nats, of shares (..., n) that sum to 1, each occurring some times."""
    positive = shares > 0
    logs = np.log(np.where(positive, shares, 1.0))
    if q == 1:
        return np.asarray(-(times * shares * logs).sum(axis=-1))
    largest = shares.max(axis=-1)
    if math.isinf(q):
        return np.asarray(-np.log(largest))
    if abs(q - 1) < NEAR_ONE:
        # sum λ^q = 1 + sum λ (λ^(q-1) - 1): exact however close q comes to 1.
        return np.asarray(np.log1p((times * shares * np.expm1((q - 1) * logs)).sum(axis=-1)) / (1 - q))
    # The largest share is factored out, so that a high order does not underflow.
    powers = np.where(positive, np.exp(q * (logs - np.log(largest)[..., None])), 0.0)
    scaled = (times * powers).sum(axis=-1)
    return np.asarray((q * np.log(largest) + np.log(scaled)) / (1 - q))
