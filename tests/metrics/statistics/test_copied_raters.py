"""Copies are found where answers are hard enough to tell, and honest raters, on easy items too, are never merged."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.metrics.statistics.chance_corrected import copied_raters

COLUMNS = ("annotator", "question", "criterion", "said", "seconds")


def study(
    seed: int, *, raters: int = 3, items: int = 60, hard: float = 0.5, slips: tuple[float, float] = (0.05, 0.2),
    choices: int = 5, careless: int = 0, copied: str = "", edits: float = 0.0, timed: bool = False,
) -> pl.DataFrame:  # fmt: skip
    """Three questions an item: people slip now and then, more often on hard ones; the careless answer at random."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, choices, (items, 3))
    chance = np.where(rng.random(truth.shape) < hard, 0.35, 0.0)
    said: dict[str, tuple[Any, Any]] = {}

    def changed(answers: Any, share: Any) -> Any:
        return np.where(rng.random(answers.shape) < share, rng.integers(0, choices, answers.shape), answers)

    for rater in range(raters):
        share = 1.0 if rater < careless else np.maximum(chance, rng.uniform(*slips))
        said[f"r{rater}"] = changed(truth, share), rng.uniform(8, 40, items).round(1)
    if copied:
        answers, times = said[copied]
        said["z"] = changed(answers, edits), times if timed else rng.uniform(8, 40, items).round(1)
    rows = [
        (name, f"{item}/{question}", str(question), str(answers[item, question]), float(times[item]))
        for name, (answers, times) in said.items() for item in range(items) for question in range(3)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


HONEST: dict[str, Mapping[str, Any]] = {
    "usual": {},
    "easy items": {"hard": 0, "slips": (0.0, 0.01)},
    "trivial items": {"hard": 0, "slips": (0.0, 0.0)},
    "mostly easy items": {"hard": 0.1, "slips": (0.0, 0.02), "items": 300},
    "good and bad raters": {"hard": 0.1, "slips": (0.0, 0.3), "raters": 8},
    "one careless": {"careless": 1},
    "one careless, easy items": {"careless": 1, "hard": 0, "slips": (0.02, 0.05)},
    "two alone": {"raters": 2, "hard": 0, "slips": (0.02, 0.05)},
    "yes or no": {"choices": 2, "hard": 0.1, "slips": (0.0, 0.1), "items": 300},
}


@pytest.mark.parametrize("case", HONEST)
def test_honest_raters_are_several(case: str) -> None:
    assert [found for seed in range(40) if (found := copied_raters(study(seed, **HONEST[case])))] == []


COPIED: dict[str, Mapping[str, Any]] = {
    "all answers": {"copied": "r0"},
    "with one careless": {"copied": "r1", "careless": 1, "raters": 2},
    "few answers, with their times": {"copied": "r1", "careless": 1, "raters": 2, "items": 20, "timed": True},
    "nobody else": {"copied": "r0", "raters": 1},
    "a few answers changed": {"copied": "r0", "edits": 0.01, "items": 200},
}


@pytest.mark.parametrize("case", COPIED)
def test_a_copy_is_found_with_whose_it_is(case: str) -> None:
    given = COPIED[case]
    for seed in range(20):
        assert copied_raters(study(seed, **given)) == {"z": given["copied"]}


def test_of_several_copies_one_stays_and_order_is_nothing() -> None:
    answers = study(1, copied="r0")
    again = answers.filter(annotator="z").with_columns(annotator=pl.lit("y"))
    both = pl.concat([answers, again]).sample(fraction=1, shuffle=True, seed=3)
    assert copied_raters(both) == {"y": "r0", "z": "r0"}
    assert copied_raters(both.head(30)) == copied_raters(both.clear()) == {}
