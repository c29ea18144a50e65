"""Keeping the best of many scored items."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from culturekit.metrics.arguments import argument_error

__all__ = ["keep_best"]


def keep_best(ids: Sequence[str], scores: ArrayLike, *, n: int) -> list[str]:
    """Name the n items of the highest score, best first; items of equal score stand in order of their ids.

    Args:
        ids: what the items are called, each once.
        scores: one per item, (len(ids),); an item whose score is NaN is never kept.
        n: how many to keep; where there are fewer, all with a score are kept.

    Returns:
        The ids kept. They do not depend on the order of the items.

    Raises:
        UsageError: an argument breaks its rule.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise argument_error("n", "a whole number of at least 0", n)
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise argument_error("scores", "a sequence of numbers", scores) from error
    if values.shape != (len(ids),):
        raise argument_error("scores", f"one per id, of shape ({len(ids)},)", f"shape {values.shape}")
    if len(set(ids)) < len(ids):
        raise argument_error("ids", "names, each given once", ids)
    ranked = sorted((-value, name) for name, value in zip(ids, values.tolist(), strict=True) if not math.isnan(value))
    return [name for _, name in ranked[:n]]
