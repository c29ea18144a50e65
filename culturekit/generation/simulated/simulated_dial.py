"""Which knob of a simulated model gives which accuracy: an error of the mapping that is chosen, not met.

The accuracy is the share of pictures that the embedded encoder maps to what they show, when every artifact is
drawn equally often at 64 pixels and the index holds four pictures of each, drawn with all knobs at 0. The curves
were fitted to four sets each of 100, 300, 1,000 and 3,000 artifacts; fresh sets are measured against them by
`python benchmarks/recognition.py --full`, and docs/simulated-models.md shows what comes of it.
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import polars as pl

from culturekit.errors import UsageError
from culturekit.generation.simulated.attraction import Attraction, Drawing, rows_of

__all__ = ["Dial", "accuracy_at", "drawn_share", "knob_for"]

Dial: TypeAlias = Literal["confusability", "hub_skew", "drift"]
"""The knobs that make pictures hard to map."""

ALIKE_AT_HALF, ALIKE_PER_SIZE, ALIKE_SLOPE, ALIKE_BEND = 2.511, -0.65, -30.21, 21.64
"""Log odds of a right match among 1,000 artifacts at confusability 0.5; their change with the logarithm of the
number of artifacts, with confusability, and with the square of its distance from 0.5."""

RESISTANCE: Mapping[Dial, tuple[float, float]] = {"hub_skew": (-0.187, -0.0337), "drift": (-0.212, -0.0332)}
"""Logarithm of the odds at which a pull turns a match, among 1,000 artifacts; its change with the logarithm of
their number. Without a third artifact that comes between it would be 0."""

LEAST_ACCURACY, MOST_ACCURACY = 0.6, 0.97
FEWEST, MOST = 100, 10_000


def knob_for(dial: Dial, accuracy: float, *, artifacts: int, drawn: float = 1.0) -> float:
    """Give the value of a knob at which a share `accuracy` of the pictures is mapped right.

    Args:
        dial: Which knob; the others stay at 0.
        accuracy: From 0.6 to 0.97.
        artifacts: How many artifacts the index holds, from 100 to 10,000.
        drawn: What share of the pictures the knob can draw away at all, see `drawn_share`.
    """
    check_range("accuracy", accuracy, LEAST_ACCURACY, MOST_ACCURACY)
    check_range("artifacts", artifacts, FEWEST, MOST)
    if dial == "confusability":
        missing = alike_at_half(artifacts) - math.log(accuracy / (1 - accuracy))
        root = math.sqrt(ALIKE_SLOPE**2 - 4 * ALIKE_BEND * missing)
        return 0.5 + (-ALIKE_SLOPE - root) / (2 * ALIKE_BEND)
    wrong = (1 - accuracy) / drawn if drawn > 1 - accuracy else 1.0
    if wrong == 1:
        raise UsageError(
            f"{dial} cannot bring the accuracy down to {accuracy}",
            expected=f"more than {max(0.0, 1 - drawn):.2f}, the share of pictures that it cannot draw away",
        )
    return wrong * resistance(dial, artifacts) / (1 - wrong + wrong * resistance(dial, artifacts))


def accuracy_at(dial: Dial, knob: float, *, artifacts: int, drawn: float = 1.0) -> float:
    """Give the accuracy that a knob leaves; the inverse of `knob_for`, and good in the same range."""
    check_range("artifacts", artifacts, FEWEST, MOST)
    if dial == "confusability":
        beyond = knob - 0.5
        return 1 / (1 + math.exp(-(alike_at_half(artifacts) + beyond * (ALIKE_SLOPE + ALIKE_BEND * beyond))))
    return 1 - drawn * knob / (knob + resistance(dial, artifacts) * (1 - knob)) if knob else 1.0


def drawn_share(dial: Dial, cspace: pl.DataFrame, *, hubs: int = 3, drift_to: tuple[str, ...] = ()) -> float:
    """Give the share of a CSpace's rows that a knob can draw away: no hub is drawn to a hub, no one drifts at home."""
    rows = list(rows_of(cspace))
    attraction = Attraction(rows, Drawing(hub_skew=0.0, hubs=hubs, drift=0.0, drift_to=drift_to))
    away: Mapping[Dial, Callable[[str, str], bool]] = {
        "confusability": lambda artifact_id, concept: True,
        "hub_skew": lambda artifact_id, concept: artifact_id not in attraction.hubs[concept],
        "drift": lambda artifact_id, concept: artifact_id not in attraction.at_home,
    }
    return sum(away[dial](row.artifact_id, row.concept) for row in rows) / max(len(rows), 1)


def alike_at_half(artifacts: int) -> float:
    """Give the log odds of a right match at confusability 0.5."""
    return ALIKE_AT_HALF + ALIKE_PER_SIZE * math.log(artifacts / 1000)


def resistance(dial: Dial, artifacts: int) -> float:
    """Give the odds at which a pull turns a match."""
    level, per_size = RESISTANCE[dial]
    return math.exp(level + per_size * math.log(artifacts / 1000))


def check_range(name: str, value: float, least: float, most: float) -> None:
    """Refuse what lies outside the range in which the curves were measured."""
    if not least <= value <= most:
        raise UsageError(
            f"no curve reaches {name} {value:,}",
            expected=f"{least:,} to {most:,}",
            hint="Try values of the knob and map the pictures instead.",
        )
