"""Shares of tones that a rule found in all pictures, put right by people who named the tones of a random part.

With y what people say of a picture and f what the rule says, each over the ten tones, the mean of all pictures is that
of y - trust (f - mean of f), as in PPI++; one trust for all tones, so that they still add up. A share is a tone's part
of the pictures with skin. Its limits are Wilson's, for as many pictures as would scatter as much.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error
from culturekit.metrics.inclusion.clustered_shares import wilson
from culturekit.metrics.statistics.clustering import check_confidence
from culturekit.metrics.statistics.intervals import Interval

__all__ = ["FEWEST", "CorrectedTones", "corrected_tones"]

FEWEST = 30
"""Pictures that people looked at, and saw skin in; fewer put nothing right."""

FEWEST_ERRORS = 5
"""People who met fewer errors of the rule about a tone could have missed one: one more is then in its limits."""

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CorrectedTones:
    """What people would say of all pictures.

    Attributes:
        shares: of each tone, with its limits; `n` counts all pictures.
        rows: float64, (n_people, tones): what each picture that people saw says of the shares; their mean.
        people: how many pictures they looked at.
        trust: how far the rule counts, from 0 to 1.
    """

    shares: tuple[Interval, ...]
    rows: Values
    people: int
    trust: float


def corrected_tones(judged: ArrayLike, people: ArrayLike, *, confidence: float = CONFIDENCE) -> CorrectedTones:
    """Estimate the shares of tones that people would find in all pictures.

    Args:
        judged: float, (n, tones): 1 for the tone that a rule found; a picture without skin has none.
        people: float, (n, tones): the share of people who named each; NaN where nobody was asked.
        confidence: how often such intervals are to hold the shares of these pictures.

    Raises:
        UsageError: an argument breaks its rule, or people saw skin in fewer than FEWEST pictures.

    Example:
        >>> rule = np.tile(np.eye(10)[[3, 4]], (50, 1))
        >>> said = np.where(np.arange(100)[:, None] % 2, np.eye(10)[8], rule)
        >>> said[60:] = np.nan
        >>> [round(share.value, 2) for share in ck.corrected_tones(rule, said).shares][3:9]
        [0.5, 0.0, 0.0, 0.0, 0.0, 0.5]
    """
    from scipy.special import stdtrit

    check_confidence(confidence)
    said, answers = np.asarray(judged, np.float64), np.asarray(people, np.float64)
    if said.ndim != 2 or answers.shape != said.shape or not np.isfinite(said).all():
        raise argument_error("judged and people", "numbers, (n, tones) both", f"{said.shape} and {answers.shape}")
    asked = ~np.isnan(answers).any(axis=1)
    y, f, n = answers[asked], said[asked], int(asked.sum())
    seen = int((y.sum(axis=1) > 0).sum())
    if seen < FEWEST:
        raise UsageError(
            "people saw skin in too few pictures to put tones right", expected=f"{FEWEST}, better 150", found=str(seen)
        )
    trust = trust_in(y, f)
    told = y + trust * (said.mean(axis=0) - f)
    skin = float(told.mean(axis=0).sum())
    shares = told.mean(axis=0) / skin
    rows = shares + (told - shares * told.sum(axis=1, keepdims=True)) / skin
    unseen = 1 - n / len(said)
    one = np.where((np.abs(y - f) > 0).sum(axis=0) < FEWEST_ERRORS, 1 / n**2, 0.0)
    variance = (rows.var(axis=0, ddof=1) / n + one) * unseen
    limits = Limits(float(stdtrit(n - 1, (1 + confidence) / 2)), n / unseen if unseen > 0 else np.inf, len(said))
    each = zip(np.clip(shares, 0, 1).tolist(), variance.tolist(), (y.sum(axis=0) > 0).tolist(), strict=True)
    found = tuple(limits.around(value, scatter, met=met) for value, scatter, met in each)
    return CorrectedTones(found, rows, n, trust)


@dataclass(frozen=True, slots=True)
class Limits:
    """How limits are put around a share: by which quantile, as of at most so many pictures, of how many in all."""

    quantile: float
    most: float
    n: int

    def around(self, value: float, variance: float, *, met: bool) -> Interval:
        """Put limits around a share; what nobody `met` may not be there at all, whatever the rule says."""
        worth = value * (1 - value) / variance if variance > 0 and 0 < value < 1 else self.most
        low, high = wilson(value, worth, self.quantile)
        if not met:
            low, high = 0.0, max(high, wilson(0.0, self.most, self.quantile)[1])
        return Interval(value, low, high, self.n, "these")


def trust_in(people: Values, judged: Values) -> float:
    """Say how far a rule foretells what people say, over all tones together."""
    scatter = float(judged.var(axis=0).sum())
    together = float(((people - people.mean(axis=0)) * (judged - judged.mean(axis=0))).mean(axis=0).sum())
    return min(max(together / scatter, 0.0), 1.0) if scatter > 0 else 0.0
