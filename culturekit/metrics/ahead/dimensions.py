"""The dimensions of descriptors, and from which similarity on two descriptors count as the same."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import argument_error

__all__ = [
    "DEFAULT_TAU",
    "DIMENSIONS",
    "NOT_EXTRACTED",
    "PUBLISHED_TAUS",
    "Compared",
    "Similarities",
    "calibrate_tau",
    "check_tau",
    "compared",
    "dimension_name",
    "extracted_by",
]

Value = TypeVar("Value")

DIMENSIONS = ("background", "objects", "attire", "interaction", "spatial")
"""What the published extractor describes of an image."""

NOT_EXTRACTED = frozenset({"people"})
"""What published references have and the published extractor does not."""

ALIASES = {"setting": "background"}
"""The published data and extractor call the first dimension `setting`, the paper calls it background."""


def dimension_name(written: str) -> str:
    """Give the one name of a dimension, however it is written."""
    folded = " ".join(written.casefold().split())
    return ALIASES.get(folded, folded)


def named_once(argument: str, given: Mapping[str, Value]) -> dict[str, Value]:
    """Give what stands under each dimension, by the one name of that dimension."""
    named: dict[str, Value] = {}
    for written, value in given.items():
        if dimension_name(written) in named:
            raise argument_error(argument, f"each dimension once: {written!r} is a name of another one there", given)
        named[dimension_name(written)] = value
    return named


Similarities: TypeAlias = Mapping[str, ArrayLike | None]
"""Of one image: dimension -> cosines, (n_pred, n_ref); None for a dimension that the extractor does not have."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The dimensions of one image that can be compared.

    Attributes:
        arrays: dimension -> cosines, float64 (n_pred, n_ref) with n_ref > 0; n_pred = 0 where nothing was said.
        ignored: the dimensions left out: references that the extractor cannot see, and predictions in a
            dimension without references.
    """

    arrays: Mapping[str, NDArray[np.float64]]
    ignored: tuple[str, ...]

    @property
    def empty(self) -> tuple[str, ...]:
        """The dimensions with references in which nothing was said of the image."""
        return tuple(name for name, array in self.arrays.items() if len(array) == 0)


def compared(
    similarities: Similarities, n_ref: Mapping[str, int], *, extractor_dimensions: Collection[str] | None = None
) -> Compared:
    """Part the dimensions of an image into those that can be compared and those left out, both in alphabetical order.

    A dimension missing from `similarities` was looked at and nothing was said: it is empty. Three things say
    that the extractor does not have a dimension: `extractor_dimensions` without it, None in its place in
    `similarities`, or, where neither says anything of it, that it is one of NOT_EXTRACTED.
    """
    counts = reference_counts(n_ref)
    if not isinstance(similarities, Mapping):
        raise argument_error("similarities", "a mapping of dimension to (n_pred, n_ref) similarities", similarities)
    found = named_once("similarities", similarities)
    seen = extracted_by(counts, [found], extractor_dimensions)
    arrays = {name: matrix(name, found.get(name), counts[name]) for name in sorted(seen)}
    referenced = {name for name, count in counts.items() if count}
    unasked = {name for name, array in found.items() if counts.get(name, 0) == 0 and says_something(array)}
    return Compared(arrays, tuple(sorted((referenced - seen) | unasked)))


def extracted_by(
    counts: Mapping[str, int], images: Sequence[Similarities], extractor_dimensions: Collection[str] | None
) -> set[str]:
    """Name the dimensions with references that the extractor has; any image that has one shows that it does."""
    referenced = {name for name, count in counts.items() if count}
    if extractor_dimensions is not None:
        return referenced & set(map(dimension_name, extractor_dimensions))
    had = {dimension_name(name) for image in images for name, array in image.items() if array is not None}
    lacked = {dimension_name(name) for image in images for name, array in image.items() if array is None}
    return {name for name in referenced if name in had or name not in lacked | NOT_EXTRACTED}


def reference_counts(n_ref: Mapping[str, int]) -> dict[str, int]:
    """Check how many references each dimension has."""
    if not isinstance(n_ref, Mapping):
        raise argument_error("n_ref", "a mapping of dimension to number of references", n_ref)
    for name, count in n_ref.items():
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            raise argument_error(f"n_ref[{name!r}]", "a whole number of at least 0", count)
    return {name: int(count) for name, count in named_once("n_ref", n_ref).items()}


def matrix(name: str, array: ArrayLike | None, references: int) -> NDArray[np.float64]:
    """Read the similarities of one dimension, float64 (n_pred, references)."""
    place = f"similarities[{name!r}]"
    try:
        numbers = np.asarray([] if array is None else array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise argument_error(place, "an array of numbers, (n_pred, n_ref)", array) from error
    if numbers.shape[0:1] == (0,):
        return np.empty((0, references))
    if numbers.ndim != 2 or numbers.shape[1] != references:
        raise argument_error(place, f"of shape (n_pred, {references}), as n_ref says", f"shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise argument_error(place, "finite", float(numbers[~np.isfinite(numbers)][0]))
    return numbers


def says_something(array: ArrayLike | None) -> bool:
    """Tell whether an array has a row."""
    return array is not None and np.shape(array)[0:1] not in {(), (0,)}


def check_tau(tau: float) -> float:
    """Refuse a threshold that is not a number between -1 and 1, the range of a cosine."""
    if isinstance(tau, bool) or not isinstance(tau, int | float | np.floating | np.integer) or not -1 <= tau <= 1:
        raise argument_error("tau", "a number between -1 and 1, as cosines are", tau)
    return float(tau)


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
