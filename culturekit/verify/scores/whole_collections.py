"""Scores of images without prompt and repeat: one value of all, and a jackknife around it."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.verify.scores.averages import Answer, Mean, mean, t_answer
from culturekit.verify.scores.image_batches import Collection
from culturekit.verify.scores.vendi import order_of, vendi_of_classes

__all__ = ["whole_answer"]

GROUPS = 100
"""Groups of images that the jackknife leaves out in turn; which image is in which is a draw with seed 0."""


def whole_answer(
    row: Mapping[str, Any], images: Collection, quality: NDArray[np.float64] | None
) -> tuple[Answer, int, dict[str, object]]:
    """Work out the score of a whole collection: the answer, how many images entered, and what params say of it."""
    about, count = row["about"], len(images.images)
    if row["metric"] == "quality":
        known = [] if quality is None else [float(value) for value in quality if np.isfinite(value)]
        if not known:
            return Answer(math.nan, math.nan, math.nan), 0, {}
        return t_answer(mean(known), float(about["confidence"])), len(known), {}
    if row["metric"] == "vs":
        quality = None
    elif quality is None or np.isnan(quality).any():
        return Answer(math.nan, math.nan, math.nan), 0, {"bias_corrected": None}

    def score(kept: NDArray[np.bool_]) -> float:
        vendi = vendi_of_classes(images.codes[kept], about["weights"], order_of(about["q"])) / count
        # Whatever is left out, the score is a share of all images.
        return vendi if quality is None else vendi * float(quality[kept].mean())

    value = score(np.ones(count, np.bool_))
    if count < 2:
        return Answer(value, math.nan, math.nan), count, {"bias_corrected": None}
    corrected = jackknife(score, count, value)
    limits = t_answer(corrected, float(about["confidence"]))
    said: dict[str, object] = {"bias_corrected": corrected.value, "images_left_out": 0}
    return Answer(value, limits.low, limits.high), count, said


def jackknife(score: Any, count: int, whole: float) -> Mean:  # noqa: ANN401 - a function of what is kept
    """Correct the bias that falls as one over n by leaving groups out in turn (Busing, Meijer, van der Leeden 1999)."""
    groups = np.random.default_rng(0).permutation(count) % min(GROUPS, count)
    number = int(groups.max()) + 1
    sizes = [int((groups == one).sum()) for one in range(number)]
    without = [score(groups != one) for one in range(number)]
    corrected = number * whole - math.fsum((1 - size / count) * left for size, left in zip(sizes, without, strict=True))
    scatter = []
    for size, left in zip(sizes, without, strict=True):
        ratio = count / size
        scatter.append((ratio * whole - (ratio - 1) * left - corrected) ** 2 / (ratio - 1))
    return Mean(corrected, math.fsum(scatter) / number, number - 1.0)
