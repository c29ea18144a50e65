"""From which margin on a match is kept, so that what is kept errs no more often than is allowed.

Twenty thresholds are looked at: those that accept 5 %, 10 %, ... 100 % of the held-out references. They follow from
the margins alone, so that whether the references were matched rightly is still open when they are fixed. For each, the
hypothesis "what it accepts errs more often than allowed" is tested with the exact binomial tail, from the strictest
threshold to the loosest. 1 - confidence is shared out among those that accept 25, 50, 75 and 100 %, but for any that
could prove nothing; a rejected hypothesis hands what it had on to the next (the fallback procedure of Wiens and
Dmitrienko, 2005). The chance that any threshold is called good that is not is at most 1 - confidence, however many
are tried.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.defaults import CONFIDENCE

__all__ = ["Abstention", "CurvePoint", "abstention_from", "error_bounds"]

THRESHOLDS = 20
STARTS = 4


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A threshold: how many references it accepts, how many of them were matched wrongly, and whether it holds.

    `upper` bounds the error of what it accepts from above, at the confidence for this threshold alone.
    """

    threshold: float
    accepted: int
    wrong: int
    upper: float
    holds: bool


@dataclass(frozen=True, slots=True)
class Abstention:
    """What held-out references say of the margins.

    Attributes:
        curve: the thresholds, the strictest first.
        chosen: the loosest that holds; None where none does, and every image abstains.
        references: how many were held out.
        artifacts: of how many artifacts.
        clustering: as how many one independent reference counts: those of an artifact may err together.
    """

    curve: tuple[CurvePoint, ...]
    chosen: CurvePoint | None
    references: int
    artifacts: int
    clustering: float

    @property
    def threshold(self) -> float:
        """The margin from which on a match is kept."""
        return float("inf") if self.chosen is None else self.chosen.threshold


def abstention_from(
    margins: NDArray[np.float32],
    wrong: NDArray[np.bool_],
    artifacts: NDArray[np.int64],
    *,
    max_error: float,
    confidence: float = CONFIDENCE,
) -> Abstention:
    """Choose the loosest margin at which held-out references show an error of at most `max_error`.

    Args:
        margins: float32 (n,), the lead of each reference's nearest artifact.
        wrong: bool (n,), whether that is another artifact than it shows.
        artifacts: int64 (n,), what each shows.
        max_error: the most that may err, of what is accepted.
        confidence: that the threshold holds, over the draw of the references.
    """
    clustering = design_effect(wrong, artifacts)
    curve: list[CurvePoint] = []
    thresholds, carried = candidate_thresholds(margins), 0.0
    taken = margins[:, np.newaxis] >= thresholds
    levels = first_levels(taken.sum(axis=0), max_error, 1 - confidence)
    for number, threshold in enumerate(thresholds.tolist()):
        accepted, errors = int(taken[:, number].sum()), int((taken[:, number] & wrong).sum())
        level = levels[number] + carried
        holds = tail(errors / clustering, accepted / clustering, max_error) <= level
        carried = level if holds else 0.0
        upper = error_bounds(errors, accepted, clustering=clustering, confidence=2 * confidence - 1)[1]
        curve.append(CurvePoint(threshold, accepted, errors, upper, holds))
    chosen = next((point for point in reversed(curve) if point.holds), None)
    return Abstention(tuple(curve), chosen, len(margins), len(np.unique(artifacts)), clustering)


def candidate_thresholds(margins: NDArray[np.float32]) -> NDArray[np.float32]:
    """Give the margins that accept equal shares of the references, the strictest first; the last accepts all."""
    if not len(margins):
        return np.empty(0, np.float32)
    falling = np.sort(margins)[::-1]
    places = -(-len(falling) * np.arange(1, THRESHOLDS) // THRESHOLDS) - 1
    return np.unique(np.append(falling[np.maximum(places, 0)], np.float32(0)))[::-1]


def first_levels(accepted: NDArray[np.int64], max_error: float, level: float) -> NDArray[np.float64]:
    """Share a level out among the thresholds where testing begins; where even no error would prove nothing, none."""
    starts = np.unique(-(-len(accepted) * np.arange(1, STARTS + 1) // STARTS) - 1)
    starts = starts[(1 - max_error) ** accepted[starts] <= level] if len(accepted) else starts[:0]
    shares = np.zeros(len(accepted))
    shares[starts] = level / max(len(starts), 1)
    return shares


def tail(errors: float, accepted: float, rate: float) -> float:
    """Give the chance of so few errors or fewer where a share of `rate` errs."""
    from scipy.special import betainc

    if accepted <= 0 or errors >= accepted:
        return 1.0
    return float(betainc(accepted - errors, errors + 1, 1 - rate))


def error_bounds(
    errors: float, accepted: float, *, clustering: float = 1.0, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Give the exact two-sided interval of an error rate (Clopper-Pearson), references counted by their worth."""
    from scipy.special import betaincinv

    errors, accepted = errors / clustering, accepted / clustering
    side = (1 - confidence) / 2
    lower = 0.0 if errors == 0 else float(betaincinv(errors, accepted - errors + 1, side))
    upper = 1.0 if errors >= accepted else float(betaincinv(errors + 1, accepted - errors, 1 - side))
    return lower, upper


def design_effect(wrong: NDArray[np.bool_], artifacts: NDArray[np.int64]) -> float:
    """Measure how much less references say that err together with others of their artifact; 1 if they do not.

    It is the variance of the error rate over artifacts, against that of as many independent references
    (Korn and Graubard, 1998).
    """
    count, rate = len(wrong), float(wrong.mean()) if len(wrong) else 0.0
    group = np.unique(artifacts, return_inverse=True)[1]
    groups = int(group.max(initial=-1)) + 1
    if groups < 2 or rate in {0.0, 1.0}:
        return 1.0
    excess = np.bincount(group, weights=wrong.astype(np.float64) - rate)
    between = groups / (groups - 1) * float((excess**2).sum()) / count**2
    return max(1.0, between / (rate * (1 - rate) / count))
