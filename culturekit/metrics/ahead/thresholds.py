"""The similarity from which two descriptors count as the same, and how to find it for another encoder."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.ahead.dimensions import Similarities
from culturekit.metrics.arguments import argument_error

__all__ = ["DEFAULT_TAU", "PUBLISHED_TAUS", "calibrate_tau"]

PUBLISHED_TAUS: Mapping[float, float] = {0.25: 0.29, 0.5: 0.39, 0.75: 0.52}
"""The quartiles that CULTIVate found for all-MiniLM-L6-v2, by quantile."""

DEFAULT_TAU = PUBLISHED_TAUS[0.75]
"""It agreed best with people."""


def calibrate_tau(
    similarities: "Similarities | ArrayLike | Sequence[Similarities]", *, quantile: float = 0.75
) -> float:
    """Give a quantile of how similar, at best, real images' descriptors are to each reference.

    The quantile is of best matches, one per image and reference: the maximum over the predictions. A quantile of
    all pairs would be far lower, because most pairs have nothing to do with each other, and would push ALIGN to 1.

    Args:
        similarities: of real images: a mapping of dimension -> cosines, (n_pred, n_ref), or a sequence of such
            mappings, one per image; or one array (n_pred, n_ref); or best matches already, (n,).
        quantile: between 0 and 1.

    Returns:
        The threshold. Dimensions in which nothing was said have no best match and do not count.

    Raises:
        UsageError: an argument breaks its rule, or there is no best match at all.
    """
    if not 0 <= quantile <= 1:
        raise argument_error("quantile", "between 0 and 1", quantile)
    found = list(best_of(similarities))
    best = np.concatenate(found) if found else np.empty(0)
    if len(best) == 0:
        raise argument_error("similarities", "of at least one prediction and one reference", similarities)
    if not np.isfinite(best).all():
        raise argument_error("similarities", "finite", float(best[~np.isfinite(best)][0]))
    return float(np.quantile(best, quantile))


def best_of(similarities: "Similarities | ArrayLike | Sequence[Similarities]") -> Iterator[NDArray[np.float64]]:
    """Yield the best matches of each array; NaN stays, to be refused."""
    if isinstance(similarities, Mapping):
        for array in similarities.values():
            if array is not None:
                yield from best_of(array)
    elif isinstance(similarities, Sequence) and any(isinstance(each, Mapping | np.ndarray) for each in similarities):
        for each in similarities:
            yield from best_of(each)
    else:
        yield best_of_array(similarities)


def best_of_array(similarities: object) -> NDArray[np.float64]:
    """Take the maximum over the predictions; numbers in a row are best matches already."""
    try:
        array = np.asarray(similarities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise argument_error("similarities", "arrays of numbers, (n_pred, n_ref)", similarities) from error
    if array.ndim == 1:
        return array
    if array.ndim != 2:
        raise argument_error("similarities", "arrays of shape (n_pred, n_ref)", f"shape {array.shape}")
    return array.max(axis=0) if len(array) else np.empty(0)
