"""How far two labellings agree, counted again: the share that is equal, Cohen's kappa, and their limits."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from culturekit.verify.scores.averages import Answer
from culturekit.verify.scores.student import t_quantile

__all__ = ["Pair", "kappa_answer", "share_answer"]

Pair = tuple[str, str, str]
"""The label by the one, the label by the other, and the batch."""


def share_answer(pairs: Sequence[Pair], confidence: float) -> Answer:
    """Give the share of equal labels, and Wilson's limits for as many images as scatter like the batches."""
    if not pairs:
        return Answer(math.nan, math.nan, math.nan)
    n = len(pairs)
    share = sum(a == b for a, b, _ in pairs) / n
    deviations: defaultdict[str, float] = defaultdict(float)
    for a, b, batch in pairs:
        deviations[batch] += (a == b) - share
    k = len(deviations)
    if k < 2:
        return Answer(share, math.nan, math.nan)
    variance = math.fsum(one**2 for one in deviations.values()) / n**2 * k / (k - 1)
    worth = float(k) if variance <= 0 else min(float(n), share * (1 - share) / variance)
    square = t_quantile(k - 1, confidence) ** 2
    middle = (share + square / (2 * worth)) / (1 + square / worth)
    half = math.sqrt(square) * math.sqrt(share * (1 - share) / worth + square / (4 * worth**2)) / (1 + square / worth)
    return Answer(share, min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half)))


def kappa_answer(pairs: Sequence[Pair], confidence: float) -> Answer:
    """Give kappa, and t limits from leaving batches out one at a time."""
    value = kappa(pairs)
    batches = sorted({batch for *_, batch in pairs})
    nothing = Answer(value, math.nan, math.nan)
    if len(batches) < 2 or math.isnan(value):
        return nothing
    without = Leaving(pairs)
    values = [without.kappa(batch) for batch in batches]
    average = math.fsum(values) / len(values)
    spread = (len(batches) - 1) / len(batches) * math.fsum((one - average) ** 2 for one in values)
    if not spread > 0:
        return nothing
    margin = t_quantile(len(batches) - 1, confidence) * math.sqrt(spread)
    return Answer(value, max(-1.0, value - margin), min(1.0, value + margin))


def kappa(pairs: Sequence[Pair]) -> float:
    """Give Cohen's kappa; NaN where both give one and the same label, or there is nothing to compare."""
    if not pairs:
        return math.nan
    return of_counts(
        sum(a == b for a, b, _ in pairs), Counter(a for a, *_ in pairs), Counter(b for _, b, _ in pairs), len(pairs)
    )


def of_counts(equal: int, of_a: Counter[str], of_b: Counter[str], n: int) -> float:
    """Give kappa from how many labels are equal and how often each was given."""
    chance = sum(count * of_b[label] for label, count in of_a.items()) / n**2
    return (equal / n - chance) / (1 - chance) if chance < 1 else math.nan


class Leaving:
    """Kappa of all images but those of one batch."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        """Count everything once, and batch by batch."""
        self.members: defaultdict[str, list[Pair]] = defaultdict(list)
        for pair in pairs:
            self.members[pair[2]].append(pair)
        self.equal = sum(a == b for a, b, _ in pairs)
        self.of_a, self.of_b = Counter(a for a, *_ in pairs), Counter(b for _, b, _ in pairs)
        self.n = len(pairs)

    def kappa(self, batch: str) -> float:
        """Leave a batch out."""
        own = self.members[batch]
        of_a, of_b = Counter(self.of_a), Counter(self.of_b)
        of_a.subtract(a for a, *_ in own)
        of_b.subtract(b for _, b, _ in own)
        return of_counts(self.equal - sum(a == b for a, b, _ in own), of_a, of_b, self.n - len(own))
