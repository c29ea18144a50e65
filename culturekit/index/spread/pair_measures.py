"""The measures of pairs of pictures that culturekit knows by name."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from culturekit.contract import Contract, hold
from culturekit.index.spread.pair_measure import PairMeasure
from culturekit.registry import Entry, Registry

__all__ = ["PAIR_MEASURES"]


def distances(_: object, answer: object, pictures: Sequence[object]) -> NDArray[np.float64]:
    """Take a finite distance of every two pictures."""
    shape = (len(pictures), len(pictures))
    kind = f"{answer.dtype} {answer.shape}" if isinstance(answer, np.ndarray) else type(answer).__name__
    fits = isinstance(answer, np.ndarray) and answer.dtype.kind == "f" and answer.shape == shape
    hold(fits, f"float64 {shape}", kind)
    found: NDArray[np.float64] = np.asarray(answer)
    hold(bool((np.isfinite(found) & (found >= 0)).all()), "finite numbers of at least 0", "others")
    hold(bool((np.diag(found) == 0).all()), "zeros on the diagonal", "others")
    hold(bool(np.allclose(found, found.T)), "one distance both ways", "two")
    return found


MEASURE = Contract(
    (PairMeasure,),
    answers={"distances": distances},
    says=lambda measure: {"parameters": dict(measure.parameters)},
)

PAIR_MEASURES: Registry[PairMeasure] = Registry(
    "measure of pairs",
    [
        Entry(
            "lpips",
            "culturekit.index.spread.lpips_measure:make",
            "LPIPS on AlexNet, VGG-16 or SqueezeNet: lpips:FILE, or lpips:HEADS?backbone=FILE, both safetensors",
            options="culturekit.index.spread.lpips_measure:Options",
            extra="embed",
            packages=("torch",),
        ),
    ],
    point="measure",
    contract=MEASURE,
)
