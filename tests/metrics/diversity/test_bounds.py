"""Bounds of diversity with unknown items, held against every way of naming them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.metrics import STANDARD_KERNELS, vendi, vendi_bounds
from tests.metrics.diversity.dense_oracle import dense_of_codes, score_of

Triple = tuple[int, int, int]

WORLD: list[Triple] = [
    (continent, 2 * continent + country, 4 * continent + 2 * country + artifact)
    for continent in range(2)
    for country in range(2)
    for artifact in range(2)
]
"""Eight artifacts of four countries of two continents."""

kernels = st.sampled_from([*STANDARD_KERNELS.values(), (0.2, 0.0, 0.8), (0.6, 0.3, 0.1)])
orders = st.sampled_from([0.5, 1.0, 2.0, math.inf])


def every_way(known: list[Triple], unknown: int, weights: tuple[float, float, float], q: float) -> list[float]:
    """VS for every choice of artifacts of the world for the unknown items."""
    ways = itertools.combinations_with_replacement(WORLD, unknown)
    return [score_of(dense_of_codes(np.array([*known, *chosen]), weights), q) for chosen in ways]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORLD), min_size=1, max_size=6), st.integers(1, 3), kernels, orders)
def test_no_way_of_naming_the_unknown_items_leaves_the_bounds(
    known: list[Triple], unknown: int, weights: tuple[float, float, float], q: float
) -> None:
    low, high = vendi_bounds(known, unknown=unknown, weights=weights, q=q)
    scores = every_way(known, unknown, weights, q)
    assert low <= min(scores) + 1e-9
    assert max(scores) <= high + 1e-9


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(WORLD), min_size=1, max_size=6), st.integers(0, 3), kernels, orders)
def test_both_bounds_are_reached(
    known: list[Triple], unknown: int, weights: tuple[float, float, float], q: float
) -> None:
    low, high = vendi_bounds(known, unknown=unknown, weights=weights, q=q)
    new = [(100 + number,) * 3 for number in range(unknown)]
    assert high == pytest.approx(vendi([*known, *new], weights=weights, q=q), abs=1e-9)
    repeats = [vendi([*known, *[item] * unknown], weights=weights, q=q) for item in known]
    assert low == pytest.approx(min(repeats), abs=1e-9)


def test_with_everything_known_both_are_the_score_and_with_nothing_known_all_is_possible() -> None:
    low, high = vendi_bounds(WORLD[:3], unknown=0, weights=(0, 0.5, 0.5))
    assert low == high == pytest.approx(vendi(WORLD[:3], weights=(0, 0.5, 0.5)))
    assert vendi_bounds([], unknown=5, weights=(0, 0, 1)) == (1.0, 5.0)


def test_missing_labels_follow_the_rule_for_them() -> None:
    unlabelled = [(None, None, None)] * 3
    assert vendi_bounds(unlabelled, unknown=1, weights=(0, 0, 1), missing="equal") == pytest.approx(
        (1.0, math.exp(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25))))
    )
    assert vendi_bounds(unlabelled, unknown=1, weights=(0, 0, 1))[1] == pytest.approx(4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"labels": [], "unknown": 0}, "at least one item"),
        ({"labels": WORLD, "unknown": -1}, "0 or more"),
        ({"labels": WORLD, "unknown": 1, "q": 0}, "above 0"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        vendi_bounds(**{"weights": (0, 0, 1), **arguments})  # type: ignore[arg-type]
