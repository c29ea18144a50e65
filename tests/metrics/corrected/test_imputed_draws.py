import numpy as np
import pytest
from scipy.special import polygamma

from culturekit.metrics.corrected.imputed_draws import STRENGTHS, drawn_strength, trigamma
from culturekit.metrics.corrected.imputed_prompts import leanings


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
