"""Corrections for hubs, artifacts that are near to everything: cross-domain similarity (CSLS) and inverted softmax.

Both learn from a bank of images how near an artifact is to images in general. That bank is never the images that are
evaluated: what a model shows too often would be taken for a hub, and its bias corrected away or turned around.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from culturekit.index.encoder import Vectors
from culturekit.index.matching.match_scope import Adjusted, Scope
from culturekit.index.matching.match_scores import NOTHING, near_scores
from culturekit.stages.stage_command import Typed

__all__ = ["Adjustment", "AdjustmentName", "adjusted_by", "hubness"]

AdjustmentName: TypeAlias = Literal["csls", "inverted-softmax"]
BANK_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Adjustment:
    """How scores are corrected for hubs; not at all without a name.

    Attributes:
        name: `csls`, twice the score less the mean of the `neighbours` best scores that the artifact has in the bank,
            less that of the image among the artifacts (Conneau and others, 2018); or `inverted-softmax`, the score
            less temperature times the logarithm of the bank's mean of exp(score / temperature): the logarithm of
            what Smith and others (2017) take, in units of the score.
        neighbours: of `csls`.
        temperature: of `inverted-softmax`.
    """

    name: Annotated[
        AdjustmentName | None, Field(description="Correct scores for hubs; needs --bank."), Typed("adjust")
    ] = None
    neighbours: Annotated[
        int, Field(ge=1, le=1000, description="Neighbours that csls averages."), Typed(needs="adjust=csls")
    ] = 10
    temperature: Annotated[
        float,
        Field(gt=0, le=10, description="Temperature of inverted-softmax."),
        Typed(needs="adjust=inverted-softmax"),
    ] = 0.05


def hubness(scope: Scope, bank: Vectors, how: Adjustment, begin: int, end: int) -> NDArray[np.float64]:
    """Say how near the artifacts at places `begin` to `end` of a scope are to a bank of images: (end - begin,)."""
    best = np.full((end - begin, 0), NOTHING)
    logarithm = np.full(end - begin, -np.inf)
    for start in range(0, len(bank), BANK_AT_ONCE):
        scores = near_scores(scope, bank[start : start + BANK_AT_ONCE], begin, end)
        if how.name == "csls":
            best = np.sort(np.concatenate([best, scores], axis=1), axis=1)[:, -how.neighbours :]
        else:
            part = np.logaddexp.reduce(scores.astype(np.float64) / how.temperature, axis=1)
            logarithm = np.logaddexp(logarithm, part)
    if how.name == "csls":
        mean: NDArray[np.float64] = best.mean(axis=1, dtype=np.float64)
        return mean
    soft: NDArray[np.float64] = how.temperature * (logarithm - np.log(len(bank)))
    return soft


def adjusted_by(how: Adjustment, hubs: NDArray[np.float64]) -> Adjusted:
    """Give the correction that a scope applies; `hubs` is the hubness by artifact number."""
    if how.name == "csls":
        return Adjusted(2.0, -hubs, -4.0)
    return Adjusted(1.0, -hubs, -2.0)
