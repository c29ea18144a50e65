"""Diversity at a fixed number of items, and in the limit of many: against expectations and the textbook."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from culturekit.metrics import Interval, vendi, vendi_batches, vendi_jackknife, vendi_rarefied

SHARES = np.array([0.5, 0.25, 0.15, 0.1])
ARTIFACT = (0.0, 0.0, 1.0)


def draw(rng: np.random.Generator, items: int) -> np.ndarray:
    """Draw labels by SHARES; artifacts 0 and 1 are of one country."""
    artifact = rng.choice(len(SHARES), items, p=SHARES)
    return np.stack([np.zeros(items, int), np.array([0, 0, 1, 2])[artifact], artifact], axis=1)


def expected_vs(size: int) -> float:
    """Average VS over all ways to draw `size` items, exactly."""
    total = 0.0
    for counts in itertools.product(range(size + 1), repeat=len(SHARES)):
        if sum(counts) == size:
            share = np.array([count for count in counts if count]) / size
            total += float(stats.multinomial.pmf(counts, size, SHARES)) * math.exp(-np.sum(share * np.log(share)))
    return total


def test_rarefaction_is_unbiased_and_its_interval_holds() -> None:
    truth, runs = expected_vs(4), 300
    answers = [
        vendi_rarefied(
            draw(np.random.default_rng([1, run]), 80), size=4, weights=ARTIFACT, rng=np.random.default_rng(run)
        )
        for run in range(runs)
    ]
    mean = np.mean([answer.value for answer in answers])
    assert mean == pytest.approx(truth, abs=float(4 * np.std([answer.value for answer in answers]) / math.sqrt(runs)))
    covered = np.mean([answer.low <= truth <= answer.high for answer in answers])
    assert covered > 0.93
    assert answers[0] == Interval(answers[0].value, answers[0].low, answers[0].high, 80, "population")


def test_a_single_batch_has_a_value_but_no_interval() -> None:
    labels = draw(np.random.default_rng(0), 9)
    answer = vendi_rarefied(labels, size=9, weights=(0, 0.5, 0.5), q=2, rng=np.random.default_rng(1))
    assert answer.value == pytest.approx(vendi(labels, weights=(0, 0.5, 0.5), q=2))
    assert math.isnan(answer.low)
    assert math.isnan(answer.high)


def test_large_batches_need_no_kernel() -> None:
    labels = draw(np.random.default_rng(0), 3000)
    answer = vendi_rarefied(labels, size=1000, weights=(0.2, 0.3, 0.5), rng=np.random.default_rng(1))
    assert answer.low < vendi(labels, weights=(0.2, 0.3, 0.5)) < answer.high
    batches = vendi_batches(labels, size=1000, weights=(0.2, 0.3, 0.5), q=0.5)
    expected = [vendi(labels[start : start + 1000], weights=(0.2, 0.3, 0.5), q=0.5) / 1000 for start in (0, 1000, 2000)]
    np.testing.assert_allclose(batches, expected, rtol=1e-12)


def test_leaving_out_single_items_is_the_jackknife_of_the_textbook() -> None:
    labels = draw(np.random.default_rng(2), 30)
    whole = vendi(labels, weights=(0, 0.4, 0.6))
    without = np.array([vendi(np.delete(labels, row, axis=0), weights=(0, 0.4, 0.6)) for row in range(30)])
    value = 30 * whole - 29 * without.mean()
    margin = stats.t.ppf(0.95, 29) * math.sqrt(29 * without.var())
    answer = vendi_jackknife(labels, weights=(0, 0.4, 0.6), confidence=0.9, rng=np.random.default_rng(0))
    assert (answer.value, answer.low, answer.high) == pytest.approx((value, value - margin, value + margin), rel=1e-9)
    assert (answer.n, answer.target) == (30, "population")


def test_groups_of_unequal_size_correct_the_same_bias() -> None:
    """The plain score of 205 items is too low by 0.02 on average; three quarters of that go."""
    truth = math.exp(-np.sum(SHARES * np.log(SHARES)))
    plain, better = [], []
    for run in range(300):
        labels = draw(np.random.default_rng([3, run]), 205)
        plain.append(vendi(labels))
        better.append(vendi_jackknife(labels, weights=ARTIFACT, groups=20, rng=np.random.default_rng(run)))
    error = np.std(plain) / math.sqrt(300)
    assert np.mean(plain) < truth - 2 * error
    assert np.mean([answer.value for answer in better]) == pytest.approx(truth, abs=float(3 * error))
    assert 0.91 < np.mean([answer.low <= truth <= answer.high for answer in better]) < 0.98


def test_a_single_item_says_nothing_of_its_scatter() -> None:
    answer = vendi_jackknife([("a", "b", "c")], weights=ARTIFACT, rng=np.random.default_rng(0))
    assert answer.value == 1
    assert math.isnan(answer.low)
