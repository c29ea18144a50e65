"""Pairs of captions put to an image-text encoder: which of the two fits a picture better."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import argument_error
from culturekit.metrics.linguistic.neutral_groups import unit_vectors

__all__ = ["LOGIT_SCALE", "question_pair"]

LOGIT_SCALE = 100.0
"""What CLIP multiplies cosines by: the exponential of its learned logit scale, held at 100."""


def question_pair(
    images: ArrayLike, first: ArrayLike, second: ArrayLike, *, logit_scale: float = LOGIT_SCALE
) -> NDArray[np.float64]:
    """Give the share that each of two captions gets by softmax, float64 (n_images, 2); rows sum to 1.

    Args:
        images: float, (n_images, dim): vectors of pictures; they need not have length one.
        first: float, (dim,): the vector of the one caption, such as "a traditional environment".
        second: float, (dim,): that of the other.
        logit_scale: what cosines are multiplied by; it belongs to the encoder.

    Raises:
        UsageError: an argument is not of its shape, or the scale is not above 0.
    """
    pictures = unit_vectors("images", images)
    captions = []
    for name, caption in (("first", first), ("second", second)):
        captions.append(unit_vectors(name, np.asarray(caption)[None])[0])
        if len(captions[-1]) != pictures.shape[1]:
            raise argument_error(name, f"as wide as the images, {pictures.shape[1]}", f"width {len(captions[-1])}")
    if not 0 < logit_scale < np.inf:
        raise argument_error("logit_scale", "a number above 0", logit_scale)
    # The cosines are sums of single products: a picture's answer does not depend on who stands beside it.
    cosines = np.stack([(pictures * caption).sum(axis=1) for caption in captions], axis=1)
    logits = logit_scale * (cosines - cosines.max(axis=1, keepdims=True))
    shares = np.exp(logits)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
