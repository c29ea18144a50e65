"""CLIPScore: how near the vector of an image is to the vector of a text."""

import numpy as np
from numpy.typing import ArrayLike

from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error
from culturekit.metrics.realism.distances import Floats
from culturekit.metrics.realism.features import Features, blocks, check_same_width, feature_rows

__all__ = ["clip_score"]


def clip_score(image_vectors: ArrayLike, text_vectors: ArrayLike, *, scale: float = 100.0) -> Floats:
    """Give max(scale · cos, 0) of each image with its text (Hessel et al. 2021, whose scale is 2.5).

    Args:
        image_vectors: float, (n, dim), of any length; normalised here.
        text_vectors: float, (n, dim): the text of each image.
        scale: 100 as most code has it, 1 for plain cosines.

    Returns:
        float64, (n,), each pair clamped by itself.

    Raises:
        UsageError: an argument breaks its rule, or a vector is zero and has no direction.
    """
    images, texts = feature_rows("image_vectors", image_vectors), feature_rows("text_vectors", text_vectors)
    check_same_width(("image_vectors", images), ("text_vectors", texts))
    if len(images) != len(texts):
        raise UsageError("each image has one text", expected=f"{len(images)} text_vectors", found=f"{len(texts)}")
    if not scale > 0 or not np.isfinite(scale):
        raise argument_error("scale", "a number above 0", scale)
    cosines = []
    for start, block in blocks(images):
        own = unit("image_vectors", block, start)
        other = unit("text_vectors", texts[start : start + len(block)], start)
        cosines.append(np.einsum("nd,nd->n", own, other))
    return np.asarray(np.clip(np.concatenate(cosines), 0, 1) * scale)


def unit(name: str, vectors: Features, start: int) -> Floats:
    """Scale rows to length 1, float64; the first row of zeros is named."""
    largest = np.abs(vectors).max(axis=1, keepdims=True).astype(np.float64)
    zero = np.flatnonzero(largest == 0)
    if len(zero):
        raise argument_error(f"{name}[{start + int(zero[0])}]", "a vector with a direction", "only zeros")
    moderate = vectors / largest
    return np.asarray(moderate / np.linalg.norm(moderate, axis=1, keepdims=True))
