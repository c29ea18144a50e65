"""The threshold from real images: a quantile of best matches, not of all pairs."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.metrics import DEFAULT_TAU, PUBLISHED_TAUS, align, calibrate_tau

RNG = np.random.default_rng(5)
IMAGES = [{"objects": RNG.random((6, 4)), "attire": RNG.random((3, 2))} for _ in range(8)]


def test_it_is_a_quantile_of_best_matches() -> None:
    best = [max(column) for image in IMAGES for array in image.values() for column in array.T]
    for quantile in (0.0, 0.25, 0.5, 0.75, 1.0):
        assert calibrate_tau(IMAGES, quantile=quantile) == pytest.approx(float(np.quantile(best, quantile)), abs=1e-15)
    assert calibrate_tau(IMAGES) == calibrate_tau(IMAGES, quantile=0.75) == calibrate_tau(best)
    assert calibrate_tau(np.array(best)) == calibrate_tau(IMAGES)


def test_scipy_agrees_on_the_quantile() -> None:
    from scipy.stats.mstats import mquantiles

    best = np.concatenate([array.max(axis=0) for image in IMAGES for array in image.values()])
    linear = mquantiles(best, [0.75], alphap=1, betap=1)[0]
    assert calibrate_tau(IMAGES) == pytest.approx(float(linear), abs=1e-15)


def test_all_pairs_would_give_a_lower_threshold_and_more_alignment() -> None:
    pairs = np.concatenate([array.ravel() for image in IMAGES for array in image.values()])
    assert np.quantile(pairs, 0.75) < calibrate_tau(IMAGES)
    n_ref = {"objects": 4, "attire": 2}
    naive = np.mean([align(image, n_ref, tau=float(np.quantile(pairs, 0.75))) for image in IMAGES])
    assert naive > np.mean([align(image, n_ref, tau=calibrate_tau(IMAGES)) for image in IMAGES])


def test_a_quarter_of_the_references_is_covered_at_the_third_quartile() -> None:
    n_ref = {"objects": 4}
    images = [{"objects": image["objects"]} for image in IMAGES]
    covered = np.mean([align(image, n_ref, tau=calibrate_tau(images)) for image in images])
    assert covered == pytest.approx(0.25, abs=1 / 32)


def test_one_image_one_array_and_what_was_not_said() -> None:
    array = np.array([[0.1, 0.9], [0.4, 0.2]])
    assert calibrate_tau(array, quantile=1) == calibrate_tau({"objects": array}, quantile=1) == 0.9
    assert calibrate_tau([array, array], quantile=0) == 0.4
    quiet = [{"objects": array, "attire": None, "spatial": np.empty((0, 3))}, {}]
    assert calibrate_tau(quiet, quantile=0) == 0.4


def test_the_published_operating_points() -> None:
    assert list(PUBLISHED_TAUS.items()) == [(0.25, 0.29), (0.5, 0.39), (0.75, 0.52)]
    assert DEFAULT_TAU == 0.52


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_it_grows_with_the_quantile_and_ignores_order(best: list[float], low: float, high: float) -> None:
    low, high = sorted((low, high))
    assert calibrate_tau(best, quantile=low) <= calibrate_tau(best, quantile=high) + 1e-12
    assert calibrate_tau(best[::-1], quantile=low) == calibrate_tau(best, quantile=low)
    assert min(best) <= calibrate_tau(best) <= max(best)


BAD: list[tuple[Any, dict[str, Any], str]] = [
    ([], {}, "similarities must be of at least one prediction"),
    ({"objects": np.empty((0, 2))}, {}, "similarities must be of at least one prediction"),
    ([0.5, math.nan], {}, "similarities must be finite"),
    (np.zeros((2, 2, 2)), {}, r"similarities must be arrays of shape \(n_pred, n_ref\)"),
    ("high", {}, "similarities must be arrays of numbers"),
    ([0.5], {"quantile": 75}, "quantile must be between 0 and 1"),
    ([0.5], {"quantile": math.nan}, "quantile must be between 0 and 1"),
]


@pytest.mark.parametrize(("similarities", "options", "message"), BAD)
def test_what_breaks_a_rule_is_named(similarities: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        calibrate_tau(similarities, **options)
