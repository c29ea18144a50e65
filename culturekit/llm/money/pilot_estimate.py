"""From the tokens that a pilot took to those of all requests: separate ratios by size of the request."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "Pilot", "Total", "estimate_total"]

Floats: TypeAlias = npt.NDArray[np.float64]

ROWS_PER_STRATUM = 20
MOST_STRATA = 10
FEWEST_ROWS = 5
"""Below this many rows a stratum borrows the ratio of all."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """Of each request of a pilot: its estimated input, and the tokens it took; and what repairs added to that."""

    estimates: Floats
    inputs: Floats
    outputs: Floats
    all_inputs: int
    all_outputs: int


@dataclass(frozen=True, slots=True)
class Total:
    """Estimated tokens of many requests, each with its standard error."""

    inputs: float
    outputs: float
    input_error: float
    output_error: float


def estimate_total(estimates: Floats, pilot: Pilot) -> Total:
    """Estimate what requests take from what a pilot took.

    Requests are parted by size. In each part the input is in proportion to its estimate (Cochran 1977, Sampling
    Techniques, section 6.10, the separate ratio estimate), and the output is the mean of the part. What repairs took in
    the pilot is added in proportion.
    """
    edges = boundaries(np.concatenate([estimates, pilot.estimates]), len(pilot.estimates))
    parts, pilot_parts = np.digitize(estimates, edges), np.digitize(pilot.estimates, edges)
    inputs = outputs = input_variance = output_variance = 0.0
    for part in range(len(edges) + 1):
        size, rows = estimates[parts == part], pilot_parts == part
        if not len(size):
            continue
        if rows.sum() < FEWEST_ROWS:
            rows = np.ones_like(rows)
        ratio = pilot.inputs[rows].sum() / max(pilot.estimates[rows].sum(), 1.0)
        inputs += ratio * size.sum()
        outputs += pilot.outputs[rows].mean() * len(size)
        input_variance += variance(pilot.inputs[rows] - ratio * pilot.estimates[rows]) * len(size) ** 2
        output_variance += variance(pilot.outputs[rows]) * len(size) ** 2
    more_in = pilot.all_inputs / max(pilot.inputs.sum(), 1.0)
    more_out = pilot.all_outputs / max(pilot.outputs.sum(), 1.0)
    return Total(
        float(inputs * more_in),
        float(outputs * more_out),
        float(np.sqrt(input_variance) * more_in),
        float(np.sqrt(output_variance) * more_out),
    )


def variance(values: Floats) -> float:
    """Give the variance of the mean of some values."""
    return float(values.var(ddof=1) / len(values)) if len(values) > 1 else 0.0


def boundaries(estimates: Floats, rows: int) -> Floats:
    """Part requests by size into groups of about equal number, as many as the rows of a pilot allow."""
    strata = min(MOST_STRATA, max(1, rows // ROWS_PER_STRATUM))
    return np.unique(np.quantile(estimates, np.linspace(0, 1, strata + 1)[1:-1])) if strata > 1 else np.zeros(0)
