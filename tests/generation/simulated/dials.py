"""Which knob of a simulated model gives which accuracy: an error of the mapping that is chosen, not met.

The accuracy is the share of pictures that the embedded encoder maps to what they show, when every artifact is drawn
equally often at 64 pixels and the index holds four pictures of each, drawn with all knobs at 0. The curves were fitted
to four sets each of 100, 300, 1,000 and 3,000 artifacts; `python benchmarks/recognition.py --full` measures fresh sets.
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import polars as pl

from culturekit.generation.simulated.simulated_backend import Attraction, Options, rows_of

Dial: TypeAlias = Literal["confusability", "hub_skew", "drift"]
DIALS: tuple[Dial, ...] = ("confusability", "hub_skew", "drift")
# log odds of a right match among 1,000 artifacts at confusability 0.5; their change with the logarithm of the number of
# artifacts, with confusability, and with the square of its distance from 0.5
AT_HALF, PER_SIZE, SLOPE, BEND = 2.511, -0.65, -30.21, 21.64
# logarithm of the odds at which a pull turns a match, among 1,000 artifacts; its change with the logarithm of their
# number. Without a third artifact that comes between it would be 0.
RESISTANCE: Mapping[Dial, tuple[float, float]] = {"hub_skew": (-0.187, -0.0337), "drift": (-0.212, -0.0332)}


def knob_for(dial: Dial, accuracy: float, *, artifacts: int, drawn: float = 1.0) -> float:
    """Give the value of a knob at which a share `accuracy` (0.6 to 0.97) of the pictures is mapped right.

    The index holds 100 to 10,000 `artifacts`; `drawn` is the share of pictures that the knob can draw away at all.
    """
    size = math.log(artifacts / 1000)
    if dial == "confusability":
        missing = AT_HALF + PER_SIZE * size - math.log(accuracy / (1 - accuracy))
        return 0.5 + (-SLOPE - math.sqrt(SLOPE**2 - 4 * BEND * missing)) / (2 * BEND)
    wrong = (1 - accuracy) / drawn
    assert wrong < 1, f"{dial} can bring the accuracy down to {1 - drawn:.2f} at most"
    level, per_size = RESISTANCE[dial]
    resistance = math.exp(level + per_size * size)
    return wrong * resistance / (1 - wrong + wrong * resistance)


def drawn_share(dial: Dial, cspace: pl.DataFrame) -> float:
    """Give the share of a CSpace's rows that a knob can draw away: no hub is drawn to a hub, no one drifts at home."""
    rows = list(rows_of(cspace))
    attraction = Attraction(rows, Options(hubs=3))
    away: Mapping[Dial, Callable[[str, str], bool]] = {
        "confusability": lambda artifact_id, concept: True,
        "hub_skew": lambda artifact_id, concept: artifact_id not in attraction.hubs[concept],
        "drift": lambda artifact_id, concept: artifact_id not in attraction.at_home,
    }
    return sum(away[dial](row.artifact_id, row.concept) for row in rows) / max(len(rows), 1)
