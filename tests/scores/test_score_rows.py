import math

import pytest
from scipy import stats

from culturekit.metrics.statistics.intervals import Mean
from culturekit.scores.family import equal_means


def test_independent_means_count_alike_with_the_freedom_of_welch_and_satterthwaite() -> None:
    means = [Mean(0.2, 0.01, 5), Mean(0.5, 0.04, 8), Mean(0.8, 0.0225, 20)]
    found = equal_means(means, n=90, confidence=0.9)
    freedom = 0.0725**2 / (0.01**2 / 5 + 0.04**2 / 8 + 0.0225**2 / 20)
    margin = stats.t(freedom).ppf(0.95) * math.sqrt(0.0725) / 3
    assert found.value == pytest.approx(0.5)
    assert found.n == 90
    assert (found.low, found.high) == pytest.approx((0.5 - margin, 0.5 + margin))


def test_means_without_scatter_have_no_width_and_no_means_no_value() -> None:
    found = equal_means([Mean(0.2, 0.0, 5), Mean(0.4, 0.0, 5)], n=2, confidence=0.9)
    assert (found.low, found.value, found.high) == pytest.approx((0.3, 0.3, 0.3))
    assert math.isnan(equal_means([], n=0, confidence=0.9).value)
