"""EXAG, how much more stereotypical an image is than real ones, and FAITH, the composite of three scores."""

from typing import Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import argument_error, check_choice

__all__ = ["Reduce", "exaggeration", "faithfulness"]

Reduce: TypeAlias = Literal["mean", "max"]
"""Over the stereotype candidates: their mean, or the worst of them."""


def exaggeration(scores: ArrayLike, real_mean: ArrayLike, *, reduce: Reduce = "mean") -> NDArray[np.float64]:
    """Say by how much images score above real images on what their country is stereotyped with.

    An image that scores below the real ones on a candidate makes up for nothing: the excess is cut at 0.

    Args:
        scores: f(I, k), (n_images, n_candidates): image-text scores of the stereotype candidates of a country.
        real_mean: (n_candidates,): the mean score of real images of that country on each candidate.
        reduce: `mean` over the candidates, or `max` as the variant.

    Returns:
        float64, (n_images,), at least 0; NaN where there is no candidate.

    Raises:
        UsageError: an argument breaks its rule.
    """
    check_choice("reduce", reduce, ("mean", "max"))
    values = finite_array("scores", scores, dimensions=2, shape="(n_images, n_candidates)")
    usual = finite_array("real_mean", real_mean, dimensions=1, shape="(n_candidates,)")
    if values.shape[1] != len(usual):
        raise argument_error("real_mean", f"of length {values.shape[1]}, like a row of scores", f"length {len(usual)}")
    if len(usual) == 0:
        return np.full(len(values), np.nan)
    excess = np.maximum(values - usual, 0.0)
    return np.asarray(excess.max(axis=1) if reduce == "max" else excess.mean(axis=1))


def finite_array(name: str, values: ArrayLike, *, dimensions: int, shape: str) -> NDArray[np.float64]:
    """Read an array of finite numbers, float64."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise argument_error(name, f"an array of numbers, {shape}", values) from error
    if array.ndim != dimensions:
        raise argument_error(name, f"of shape {shape}", f"shape {array.shape}")
    if not np.isfinite(array).all():
        raise argument_error(name, "finite", float(array[~np.isfinite(array)][0]))
    return array


@overload
def faithfulness(align: float, hal: float, exag: float) -> float: ...


@overload
def faithfulness(align: ArrayLike, hal: ArrayLike, exag: ArrayLike) -> "float | NDArray[np.float64]": ...


def faithfulness(align: ArrayLike, hal: ArrayLike, exag: ArrayLike) -> "float | NDArray[np.float64]":
    """Average alignment, freedom from hallucination and freedom from exaggeration: (A + (1 - H) + (1 - E)) / 3.

    Args:
        align: ALIGN, a number or an array; NaN is a score that is missing.
        hal: HAL, of the same shape.
        exag: EXAG, of the same shape.

    Returns:
        A number for numbers, else float64 of their shape; NaN where one of the three is missing.

    Raises:
        UsageError: an argument holds no numbers, or the shapes differ.
    """
    parts = []
    for name, values in (("align", align), ("hal", hal), ("exag", exag)):
        try:
            parts.append(np.asarray(values, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise argument_error(name, "a number or an array of numbers", values) from error
        if parts[-1].shape != parts[0].shape:
            raise argument_error(name, f"of shape {parts[0].shape}, like align", f"shape {parts[-1].shape}")
    answer = (parts[0] + (1 - parts[1]) + (1 - parts[2])) / 3
    return float(answer) if answer.ndim == 0 else answer
