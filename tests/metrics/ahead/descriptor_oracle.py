"""ALIGN, HAL and their kin written as the paper says them, pair by pair: slow, plain, and somebody else's order."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Image = Mapping[str, NDArray[np.float64]]


def random_image(rng: np.random.Generator, n_ref: Mapping[str, int], *, most: int = 6) -> Image:
    """Draw similarities of an image; a dimension may be empty or missing."""
    image = {}
    for name, count in n_ref.items():
        if rng.random() > 0.15:
            image[name] = rng.uniform(-0.2, 1.0, (int(rng.integers(0, most)), count)).round(2)
    return image


def align_by_pairs(image: Image, n_ref: Mapping[str, int], tau: float, *, pooled: bool = False) -> float:
    shares, hits, total = [], 0, 0
    for name, count in n_ref.items():
        if count:
            shown = sum(any(row[j] >= tau for row in image.get(name, ())) for j in range(count))
            shares.append(shown / count)
            hits, total = hits + shown, total + count
    return (hits / total if pooled else sum(shares) / len(shares)) if shares else math.nan


def hal_by_pairs(image: Image, n_ref: Mapping[str, int], tau: float, *, pooled: bool = False) -> float:
    shares, wrong, total = [], 0, 0
    for name, count in n_ref.items():
        if count:
            rows = list(image.get(name, ()))
            alone = sum(all(value < tau for value in row) for row in rows)
            shares.append(alone / len(rows) if rows else 0.0)
            wrong, total = wrong + alone, total + len(rows)
    if not shares:
        return math.nan
    return (wrong / total if total else 0.0) if pooled else sum(shares) / len(shares)


def ddiv_by_pairs(images: Sequence[Image], n_ref: Mapping[str, int], tau: float) -> float:
    scores = []
    for name, count in n_ref.items():
        if count:
            cover = [sum(any(row[j] >= tau for row in image.get(name, ())) for image in images) for j in range(count)]
            shares = [c / sum(cover) for c in cover if c]
            scores.append(-sum(p * math.log(p) for p in shares) / math.log(count) if shares and count > 1 else 0.0)
    return sum(scores) / len(scores) if scores and len(images) > 1 else math.nan


def sdiv_by_pairs(images: Sequence[Image], n_ref: Mapping[str, int], tau: float) -> float:
    scores = []
    for name, count in n_ref.items():
        if count:
            pooled = {name: np.concatenate([image.get(name, np.empty((0, count))) for image in images])}
            alone = [align_by_pairs(image, {name: count}, tau) for image in images]
            scores.append(align_by_pairs(pooled, {name: count}, tau) - sum(alone) / len(alone))
    return sum(scores) / len(scores) if scores and len(images) > 1 else math.nan
