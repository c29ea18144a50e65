"""The quality-weighted score: a product, with the properties that CUBE states for it."""

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.metrics import QVS, STANDARD_KERNELS, qvs, vendi

LABELS = [("Asia", "JP", "sushi"), ("Asia", "IN", "dosa"), ("Africa", "NG", "jollof"), ("Africa", "NG", "jollof")]
QUALITY = [0.2, 0.4, 0.9, 0.1]


@pytest.mark.parametrize("weights", STANDARD_KERNELS.values())
@pytest.mark.parametrize("q", [0.5, 1.0, 2.0, math.inf])
def test_is_mean_quality_times_diversity(weights: tuple[float, float, float], q: float) -> None:
    score = qvs(LABELS, QUALITY, weights=weights, q=q)
    assert score.quality == pytest.approx(0.4)
    assert score.diversity == vendi(LABELS, weights=weights, q=q) / 4
    assert score.value == score.quality * score.diversity


def test_a_frame_and_an_array_do_as_well() -> None:
    frame = pl.DataFrame(LABELS, schema=["continent", "country", "artifact"], orient="row")
    assert qvs(frame, np.array(QUALITY), weights=(0, 0, 1)) == qvs(LABELS, QUALITY, weights=(0, 0, 1))


def test_reaches_one_for_perfect_and_different_items_and_zero_for_worthless_ones() -> None:
    different = [("Asia", "JP", f"x{number}") for number in range(8)]
    assert qvs(different, [1.0] * 8, weights=(0, 0, 1)).value == pytest.approx(1)
    assert qvs(different, [0.0] * 8, weights=(0, 0, 1)).value == 0


def test_is_aware_of_quality() -> None:
    """Of two equally diverse collections, the better one scores at least as high."""
    other = [("Europe", country, artifact) for _, country, artifact in LABELS]
    weights = (0.0, 0.5, 0.5)
    better, worse = qvs(LABELS, QUALITY, weights=weights), qvs(other, [0.3] * 4, weights=weights)
    assert better.diversity == pytest.approx(worse.diversity)
    assert better.value > worse.value


@given(
    quality=st.lists(st.floats(0, 1), min_size=4, max_size=4),
    copies=st.integers(1, 6),
    weights=st.sampled_from(list(STANDARD_KERNELS.values())),
    q=st.sampled_from([0.5, 1.0, 2.0, math.inf]),
)
@settings(deadline=None, derandomize=True, database=None, max_examples=60)
def test_duplication_scales(quality: list[float], copies: int, weights: tuple[float, float, float], q: float) -> None:
    once = qvs(LABELS, quality, weights=weights, q=q)
    copied = qvs(LABELS * copies, quality * copies, weights=weights, q=q)
    assert copies * copied.value == pytest.approx(once.value, rel=1e-9)


def test_missing_labels_follow_the_convention() -> None:
    nothing = [(None, None, None)] * 2
    assert qvs(nothing, [1, 1], weights=(0, 0, 1)).diversity == pytest.approx(1)
    assert qvs(nothing, [1, 1], weights=(0, 0, 1), missing="equal").diversity == 0.5
    spelled = [("a", "b", "c"), ("a", "b", "C")]
    assert qvs(spelled, [1, 1], weights=(0, 0, 1)).diversity == 0.5
    assert qvs(spelled, [1, 1], weights=(0, 0, 1), normalize_labels=False).diversity == pytest.approx(1)


def test_a_score_is_a_value() -> None:
    assert QVS(quality=0.5, diversity=0.5) == QVS(0.5, 0.5)
    with pytest.raises(AttributeError):
        QVS(0.5, 0.5).quality = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: qvs(LABELS, [0.1], weights=(0, 0, 1)), "quality must be of length 4"),
        (lambda: qvs(LABELS, [], weights=(0, 0, 1)), "quality must be a sequence of at least one number"),
        (lambda: qvs(LABELS, [0.1, 0.2, math.nan, 0.4], weights=(0, 0, 1)), "quality[2] must be finite; found nan"),
        (lambda: qvs(LABELS, ["good"] * 4, weights=(0, 0, 1)), "quality must be a sequence of numbers"),
        (lambda: qvs([], [], weights=(0, 0, 1)), "labels must be at least one"),
        (lambda: qvs(LABELS, QUALITY, weights=(0, 0, 2)), "weights must be three numbers"),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named(call: Callable[[], QVS], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)
