import numpy as np
import pytest
from scipy.special import polygamma
from scipy.stats import beta, kstest

from culturekit.metrics.corrected.imputed_prompts import (
    EVENNESS,
    STRENGTHS,
    Findings,
    drawn_apart,
    drawn_strength,
    evenness_of,
    impute,
    leanings,
    trigamma,
)


def test_the_slope_of_the_digamma_function_is_that_of_scipy() -> None:
    at = np.concatenate([np.geomspace(1e-6, 1, 40), np.linspace(1, 200, 40)])
    assert trigamma(at) == pytest.approx(polygamma(1, at), rel=1e-5)


def test_errors_that_fall_where_they_are_expected_are_told_from_those_that_each_label_has_of_its_own() -> None:
    labels, each = 8, 70
    towards = (1 - np.eye(labels)) / (labels - 1)
    as_expected = np.round(towards * each)
    of_its_own = np.roll(np.eye(labels), 1, axis=1) * each
    wrong, rng = np.stack([as_expected, of_its_own]), np.random.default_rng(1)
    close, far = np.mean([drawn_strength(wrong, np.stack([towards] * 2), rng) for _ in range(50)], axis=0)
    assert close > 0.5 * STRENGTHS[-1] > 10 * far


def test_errors_lean_towards_labels_that_images_are_mapped_to() -> None:
    rows = leanings(np.zeros((2, 4, 4)), np.array([30, 10, 0, 5]), np.array([0, 0, 0, 1]))
    assert rows.sum(axis=2) == pytest.approx(np.ones((2, 4)))
    assert not rows[:, (0, 1, 3), 2].any()
    assert (rows[:, 0, 1] > rows[:, 0, 3]).all()


def test_nothing_and_something_are_drawn_first_then_the_labels_of_something() -> None:
    draws = drawn_apart(np.tile([2.0, 40.0, 6.0, 3.0, 9.0], (40_000, 1)), 2, np.random.default_rng(3))
    assert draws.sum(axis=1) == pytest.approx(np.ones(len(draws)))
    nothing = draws[:, 2]
    assert kstest(nothing, beta(6, 9).cdf).pvalue > 0.01
    assert kstest(draws[:, 0] / (1 - nothing), beta(2, 43).cdf).pvalue > 0.01
    assert abs(np.corrcoef(nothing, draws[:, 0] / (1 - nothing))[0, 1]) < 0.02


def test_labels_that_are_shown_evenly_say_nothing_about_pictures_of_nothing() -> None:
    """Twenty countries, evenly, and nothing in 15 of 100 audited images: so it is imputed for the other 1,100."""
    rng, labels = np.random.default_rng(0), 21
    shows = np.append(np.arange(85) % 20, np.full(15, 20))
    truth = np.append(shows, rng.permutation(np.append(np.arange(935) % 20, np.full(165, 20))))
    into = np.where((truth == 20) | (rng.random(1200) > 0.85), rng.integers(20, size=1200), truth)
    mapped = np.bincount(np.arange(1200) % 3 * labels + into, minlength=3 * labels).reshape(3, labels)
    found = Findings(np.arange(100) % 3, into[:100], np.eye(labels)[shows])
    parents = np.append(np.arange(20) // 4, 5)
    imputed = impute(mapped, found, np.ones((1, 100), bool), parents, 20, rng=np.random.default_rng(1))
    assert imputed.shares[0, :, 20] == pytest.approx(np.full(3, 0.15), abs=0.035)
    assert evenness_of(np.bincount(shows)[None].astype(np.float64), 20)[0] @ EVENNESS > 50
    only_nothing = evenness_of(np.array([[100.0]]), 0)
    assert only_nothing == pytest.approx(np.full_like(only_nothing, 1 / len(EVENNESS)))
