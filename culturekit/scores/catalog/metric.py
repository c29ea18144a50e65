"""What each metric is: range, direction, source, and what a reader may get wrong."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Direction: TypeAlias = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class Metric:
    """The description of a metric, for the command line, the documentation and the report.

    Attributes:
        name: as it stands in the `metric` column of a scores table.
        title: for people.
        formula: in plain text.
        low: the smallest value possible.
        high: the largest value possible.
        direction: whether `higher` or `lower` values are better, or `neither`.
        unit: as it stands in the `unit` column.
        paper: where it was defined.
        inputs: the tables and columns it reads.
        pitfalls: what a reader may get wrong, one sentence or two each.
        licence: of the weights that it needs; empty when it needs none.
    """

    name: str
    title: str
    formula: str
    low: float
    high: float
    direction: Direction
    unit: str
    paper: str
    inputs: tuple[str, ...]
    pitfalls: tuple[str, ...]
    licence: str = ""


def describe(
    name: str,
    title: str,
    formula: str,
    *,
    paper: str,
    inputs: tuple[str, ...],
    pitfalls: tuple[str, ...],
    low: float = 0.0,
    high: float = 1.0,
    direction: Direction = "neither",
    unit: str = "share",
    licence: str = "",
) -> Metric:
    """Describe a metric: a share, of which neither more nor less is better, unless said otherwise."""
    return Metric(name, title, formula, low, high, direction, unit, paper, inputs, pitfalls, licence)


SCALES = {"embedded": (0.0, 1.0), "hpsv2": (-1.0, 1.0)}
"""What scorers of quality can say, by how their names begin: clarity, and a cosine."""


def scale_of(scorer: str) -> tuple[float, float] | None:
    """Give the smallest and the largest quality that a scorer can say; None where nobody knows."""
    return next((ends for name, ends in SCALES.items() if scorer.startswith(name)), None)
