"""P values of sign flips where few sums come out: counted, and as scipy draws them."""

import numpy as np
import pytest
from scipy import stats

from culturekit.verify.scores.comparisons import chances_of_sums, sign_flips


@pytest.mark.parametrize("seed", range(4))
def test_many_equal_gaps_are_counted_as_they_are_drawn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gaps = rng.choice([0.0, 0.5, -0.5, 1 / 3], size=30, p=[0.6, 0.2, 0.1, 0.1])
    drawn = stats.permutation_test(
        (gaps,), np.mean, permutation_type="samples", vectorized=True, n_resamples=9999, rng=rng
    ).pvalue
    assert sign_flips((gaps / 30).tolist(), 9999) == pytest.approx(drawn, abs=6 * 0.005)


def test_counting_gives_what_listing_gives() -> None:
    gaps = [0.5, 0.5, -0.25, 0.5, 0.25, 0.25]
    assert sign_flips(gaps, 10) == pytest.approx(sign_flips(gaps, 1000))


def test_sums_that_all_differ_are_not_counted() -> None:
    assert chances_of_sums(np.random.default_rng(0).normal(size=40).tolist()) is None


@pytest.mark.parametrize("seed", range(3))
def test_few_gaps_that_are_not_0_are_counted_among_many_that_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gaps = np.concatenate([rng.normal(0.3, 1, size=6) ** 3, rng.normal(size=14) * 1e-17])
    drawn = stats.permutation_test(
        (gaps,), np.mean, permutation_type="samples", vectorized=True, n_resamples=9999, rng=rng
    ).pvalue
    assert sign_flips((gaps / 20).tolist(), 9999) == pytest.approx(drawn, abs=6 * 0.005)
