"""Spearman, Kendall and Pearson of pairs, by their definitions."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

__all__ = ["CORRELATIONS"]

Pairs: TypeAlias = Sequence[tuple[float, float]]


def pearson(pairs: Pairs) -> float:
    """Divide the covariance by both deviations."""
    if not pairs:
        return math.nan
    x, y = zip(*pairs, strict=True)
    centre_x, centre_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    own = math.fsum((one - centre_x) ** 2 for one in x), math.fsum((one - centre_y) ** 2 for one in y)
    if len(set(x)) < 2 or len(set(y)) < 2:
        return math.nan
    return math.fsum((a - centre_x) * (b - centre_y) for a, b in pairs) / math.sqrt(own[0] * own[1])


def spearman(pairs: Pairs) -> float:
    """Correlate ranks."""
    if not pairs:
        return math.nan
    x, y = zip(*pairs, strict=True)
    return pearson(list(zip(ranks(x), ranks(y), strict=True)))


def ranks(values: Sequence[float]) -> list[float]:
    """Rank values, ties in the middle."""
    ordered = sorted(values)
    places: dict[float, list[int]] = {}
    for place, value in enumerate(ordered, start=1):
        places.setdefault(value, []).append(place)
    return [(places[value][0] + places[value][-1]) / 2 for value in values]


def kendall(pairs: Pairs) -> float:
    """Count pairs of items that both order alike, less those that they do not; ties are left out on either side."""
    surplus = apart_x = apart_y = 0
    for (a, b), (c, d) in combinations(pairs, 2):
        surplus += ((a > c) - (a < c)) * ((b > d) - (b < d))
        apart_x += a != c
        apart_y += b != d
    return surplus / math.sqrt(apart_x * apart_y) if apart_x and apart_y else math.nan


CORRELATIONS: Mapping[str, Callable[[Pairs], float]] = {"spearman": spearman, "kendall": kendall, "pearson": pearson}
