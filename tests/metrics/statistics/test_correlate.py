"""Correlations: against scipy, where they are perfect, and with their intervals."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.metrics import correlate
from culturekit.metrics.statistics.correlations import CORRELATIONS, Correlation

SCIPY: dict[Correlation, Any] = {"spearman": stats.spearmanr, "kendall": stats.kendalltau, "pearson": stats.pearsonr}
PAIRS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=9)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@given(PAIRS)
@settings(deadline=None)
def test_agree_with_scipy_ties_included(pairs: list[tuple[int, int]]) -> None:
    a, b = map(list, zip(*pairs, strict=True))
    assume(len(set(a)) > 1 and len(set(b)) > 1)
    for method in CORRELATIONS:
        expected = SCIPY[method](a, b).statistic
        assert correlate(a, b, method=method, rng=rng()).value == pytest.approx(expected, abs=1e-9)
        assert correlate(b, a, method=method, rng=rng()).value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("method", CORRELATIONS)
def test_two_items_are_in_order_or_not(method: Correlation) -> None:
    for other, expected in (([3.0, 4.0], 1.0), ([4.0, 3.0], -1.0)):
        answer = correlate([1.0, 2.0], other, method=method, rng=rng())
        assert answer.value == pytest.approx(expected)
        assert answer.n == 2
        assert math.isnan(answer.low)


@pytest.mark.parametrize("method", CORRELATIONS)
def test_perfect_correlations_have_no_width(method: Correlation) -> None:
    values = rng().normal(size=30)
    for sign in (1, -1):
        answer = correlate(values, sign * 3 * values + 1, method=method, resamples=99, rng=rng())
        assert (answer.low, answer.value, answer.high) == pytest.approx((sign, sign, sign))
        assert -1 <= answer.low <= answer.high <= 1


@pytest.mark.parametrize("method", ["spearman", "kendall"])
def test_ranks_ignore_what_keeps_order(method: Correlation) -> None:
    a, b = rng().normal(size=(2, 25))
    plain, bent = (correlate(x, b, method=method, resamples=199, rng=rng()) for x in (a, np.exp(a)))
    assert plain == bent


def test_the_interval_is_over_clusters() -> None:
    a, noise = rng().normal(size=(2, 30))
    b = a + noise
    prompts = np.arange(30)
    alone = correlate(a, b, clusters=prompts, resamples=499, rng=rng())
    copies = correlate(np.repeat(a, 5), np.repeat(b, 5), clusters=np.repeat(prompts, 5), resamples=499, rng=rng())
    assert (copies.low, copies.high) == pytest.approx((alone.low, alone.high))
    assert copies.n == 150
    order = np.random.default_rng(3).permutation(30)
    assert correlate(a[order], b[order], clusters=prompts[order], resamples=499, rng=rng()) == alone


def test_few_clusters_have_no_interval() -> None:
    a, b = rng().normal(size=(2, 40))
    nine = correlate(a, b, clusters=np.arange(40) % 9, rng=rng())
    assert math.isnan(nine.low)
    assert math.isfinite(nine.value)
    assert math.isfinite(correlate(a, b, clusters=np.arange(40) % 10, resamples=99, rng=rng()).low)


def test_a_score_that_does_not_vary_correlates_with_nothing() -> None:
    for method in CORRELATIONS:
        answer = correlate([1.0] * 12, range(12), method=method, rng=rng())
        assert math.isnan(answer.value)
        assert math.isnan(answer.low)
        assert math.isnan(correlate([1.0], [2.0], method=method, rng=rng()).value)


def test_pearson_keeps_its_digits_far_from_zero() -> None:
    a, b = rng().normal(size=(2, 50))
    near = correlate(a, b, method="pearson", resamples=9, rng=rng()).value
    assert correlate(a + 1e7, 1e-9 * b, method="pearson", resamples=9, rng=rng()).value == pytest.approx(near, abs=1e-7)


def test_an_argument_that_breaks_its_rule_is_named() -> None:
    with pytest.raises(UsageError, match="b must be of length 2"):
        correlate([1, 2], [1], rng=rng())
    with pytest.raises(UsageError, match="method must be 'spearman' or 'kendall' or 'pearson'; found 'cosine'"):
        correlate([1, 2], [1, 2], method="cosine", rng=rng())  # type: ignore[arg-type]
