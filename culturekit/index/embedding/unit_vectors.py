"""Vectors of length one, from what a model says."""

import numpy as np

from culturekit.errors import IntegrityError
from culturekit.index.encoder import Vectors

__all__ = ["unit"]


def unit(vectors: Vectors, *, where: str) -> Vectors:
    """Bring each vector to length one, float32; a model that gives no direction is refused.

    Args:
        vectors: float32 (n, dim).
        where: what the model computed in, for the message.
    """
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    wrong = int((~np.isfinite(lengths) | (lengths == 0)).sum())
    if wrong:
        raise IntegrityError(
            "the model gives vectors without a direction",
            where=where,
            found=f"{wrong} of {len(vectors)} are zero, infinite or not a number",
            hint="In float16 numbers overflow easily: try dtype=bfloat16 or dtype=float32." if "16" in where else "",
        )
    of_length_one: Vectors = (vectors / lengths).astype(np.float32)
    return of_length_one
