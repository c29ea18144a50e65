"""How often the intervals of AHEaD's ladder hold the true mean: simulated prompts and images of known truth.

The value of an image is like an ALIGN: the mean over five dimensions of shares of six references, whose chance varies
from prompt to prompt (a skewed beta distribution whose mean differs between countries).
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from recording import record

from culturekit.metrics.statistics.intervals import Target
from culturekit.recipes.cultivate.scores import rungs

RUNS = 2000
REFERENCES, DIMENSIONS = 6, 5
SPREAD = 6.0
"""Sum of the two parameters of the beta distribution: small means that prompts differ much."""


@dataclass(frozen=True)
class Case:
    """A design: countries, prompts per country, images per prompt, and what the interval is to speak about."""

    countries: int
    prompts: int
    images: int
    target: Target


CASES = (
    Case(1, 20, 10, "population"),
    Case(1, 36, 1, "population"),
    Case(5, 5, 10, "population"),
    Case(11, 36, 10, "population"),
    Case(1, 3, 10, "these"),
    Case(4, 2, 5, "these"),
    Case(1, 36, 10, "these"),
)


def main() -> None:
    """Simulate every design."""
    rng = np.random.default_rng(0)
    rows = []
    for case in CASES:
        runs = RUNS if case.countries < 10 else RUNS // 2
        held = [covers(case, rng) for _ in range(runs)]
        rows.append(
            [str(case.countries), str(case.prompts), str(case.images), case.target, f"{runs:,}", f"{np.mean(held):.1%}"]
        )
    record(
        "ahead_coverage",
        title="AHEaD's 95 % intervals: how often they hold the true mean",
        command="python benchmarks/ahead_coverage.py",
        table=[["countries", "prompts in each", "images of each", "speaks about", "runs", "holds the truth"], *rows],
    )


def covers(case: Case, rng: np.random.Generator) -> bool:
    """Draw once, and tell whether the interval of the mean over countries holds what it speaks about."""
    centres = np.linspace(0.2, 0.4, case.countries) if case.countries > 1 else np.array([0.3])
    chances = rng.beta(centres * SPREAD, (1 - centres) * SPREAD, (case.prompts, case.countries)).T
    truth = centres.mean() if case.target == "population" else chances.mean()
    shown = rng.binomial(REFERENCES, chances[..., None, None], (*chances.shape, case.images, DIMENSIONS))
    items = as_items(shown.mean(axis=-1) / REFERENCES)
    *_, answer = next(rungs(items, {}, target=case.target, confidence=0.95, prompt_items=False))
    return bool(answer.low <= truth <= answer.high)


def as_items(values: NDArray[np.float64]) -> pl.DataFrame:
    """Write values, (countries, prompts, images), one row per image."""
    country, prompt, image = (axis.ravel() for axis in np.indices(values.shape))
    return pl.DataFrame({"country": country, "prompt_id": prompt, "item": image, "value": values.ravel()}).with_columns(
        pl.col("country", "prompt_id", "item").cast(pl.String)
    )


if __name__ == "__main__":
    main()
