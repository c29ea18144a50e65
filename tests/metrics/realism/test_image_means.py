"""Means, shares and coverage over images in prompts: by hand, and by simulation of what their intervals hold."""

import math
from typing import Any

import numpy as np
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import balanced_sample, clustered_share, interval, neighbourhoods
from culturekit.metrics.realism.manifolds import coverage_interval, mean_interval, share_interval


def test_with_equal_prompts_it_is_the_t_interval_over_prompts() -> None:
    rng = np.random.default_rng(0)
    values, prompts = rng.normal(size=120), np.repeat(np.arange(24), 5)
    found = mean_interval(values, clusters=prompts)
    expected = interval(values, prompts=prompts, repeats=np.tile(np.arange(5), 24), target="population")
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))
    found = mean_interval(values, clusters=prompts, target="these")
    expected = interval(values, prompts=prompts, repeats=np.tile(np.arange(5), 24), target="these")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_every_image_weighs_the_same_and_order_does_not_matter() -> None:
    values, prompts = np.arange(60.0), np.repeat(np.arange(20), np.tile([1, 5, 3, 3], 5))
    found = mean_interval(values, clusters=prompts)
    assert found.value == pytest.approx(29.5)
    order = np.random.default_rng(0).permutation(60)
    assert mean_interval(values[order], clusters=prompts[order]) == found
    assert mean_interval([3.0] * 25).low == mean_interval([3.0] * 25).high == 3.0


def test_a_share_is_clustered_share_with_enough_prompts() -> None:
    rng = np.random.default_rng(1)
    prompts = np.repeat(np.arange(30), 6)
    yes = rng.random(180) < np.repeat(rng.random(30), 6)
    found, expected = share_interval(yes, clusters=prompts), clustered_share(yes, {"prompt": prompts})
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))


@pytest.mark.parametrize("function", [mean_interval, share_interval])
def test_what_does_not_say_how_it_scatters_has_no_limits(function: Any) -> None:
    assert math.isnan(function([0, 1] * 20, clusters=[0, 1] * 20).low)
    assert math.isnan(function([0, 1, 1], clusters=[0, 0, 1], target="these").low)
    assert math.isnan(function([0, 1, 1]).low)
    with pytest.raises(UsageError, match="target must be 'these' or 'population'"):
        function([0, 1], clusters=[0, 1], target="all")


def test_a_share_on_which_all_agree_still_has_limits() -> None:
    from scipy.stats import binomtest

    found = share_interval([1] * 400, clusters=list(range(20)) * 20)
    assert found.value == found.high == 1
    # As uncertain as 20 images, by t with 19 degrees of freedom.
    assert 0.75 < found.low < binomtest(20, 20).proportion_ci(method="wilson").low
    assert share_interval([1] * 400, clusters=list(range(20)) * 20, target="these").low > 0.98
    with pytest.raises(UsageError, match="yes must be True and False"):
        share_interval([0.5] * 30)


@pytest.mark.parametrize(("target", "spread"), [("population", 0.2), ("these", 0.2), ("these", 0.0)])
def test_the_interval_of_a_share_holds_its_level(target: Any, spread: float) -> None:
    rng, runs, held = np.random.default_rng(3), 600, 0
    prompts = np.repeat(np.arange(25), 6)
    fixed = np.clip(rng.normal(0.8, spread, 25), 0, 1)
    # The mean of a normal variable clipped to [0, 1].
    true = fixed.mean() if target == "these" else np.clip(rng.normal(0.8, spread, 10**6), 0, 1).mean()
    for _ in range(runs):
        rates = fixed if target == "these" else np.clip(rng.normal(0.8, spread, 25), 0, 1)
        answer = share_interval(rng.random(150) < rates[prompts], clusters=prompts, target=target)
        held += answer.low <= true <= answer.high
    assert 0.93 <= held / runs <= 0.98


def drawn_world(rng: np.random.Generator) -> Any:
    """Fakes of 30 prompts, each near a point of its own."""
    centres = rng.normal(size=(30, 2)) * 1.5
    return np.repeat(centres, 4, axis=0) + rng.normal(size=(120, 2)) * 0.4, np.repeat(np.arange(30), 4)


def test_the_interval_of_coverage_holds_its_level_and_a_bootstrap_does_not() -> None:
    rng = np.random.default_rng(5)
    real = rng.normal(size=(150, 2)) * 1.5
    coverages = [neighbourhoods(real, drawn_world(rng)[0]).prdc.coverage for _ in range(300)]
    true, held, below, runs = float(np.mean(coverages)), 0, 0, 200
    for _ in range(runs):
        fake, prompts = drawn_world(rng)
        answer = coverage_interval(neighbourhoods(real, fake, groups=prompts), strata=None, groups=30)
        held += answer.low <= true <= answer.high
        resampled = rng.integers(0, 30, 30)
        rows = (resampled[:, None] * 4 + np.arange(4)).ravel()
        below += neighbourhoods(real, fake[rows]).prdc.coverage < answer.value
    assert held / runs >= 0.93
    assert below / runs > 0.9


def test_the_jackknife_of_coverage_by_hand() -> None:
    rng = np.random.default_rng(8)
    real = rng.normal(size=(60, 2))
    fake, prompts = rng.normal(size=(44, 2)), np.repeat(np.arange(22), 2)
    found = neighbourhoods(real, fake, k=2, groups=prompts)
    without = [neighbourhoods(real, fake[prompts != out], k=2).prdc.coverage for out in range(22)]
    answer = coverage_interval(found, strata=None, groups=22)
    margin = 2.0796138447276626 * math.sqrt(21 * np.var(without))
    assert answer.value == found.prdc.coverage
    assert (answer.low, answer.high) == pytest.approx((answer.value - margin, min(1.0, answer.value + margin)))
    one_by_one = neighbourhoods(real, fake, k=2)
    answer = coverage_interval(one_by_one, strata=prompts, groups=44)
    left = np.array([neighbourhoods(real, np.delete(fake, row, axis=0), k=2).prdc.coverage for row in range(44)])
    variance = sum(np.square(pair - pair.mean()).sum() / 2 for pair in left.reshape(22, 2))
    assert answer.value - answer.low == pytest.approx(2.0738730679040147 * math.sqrt(variance))
    assert math.isnan(coverage_interval(one_by_one, strata=np.arange(44), groups=44).low)
    assert math.isnan(coverage_interval(neighbourhoods(real, fake[:8], k=2), strata=None, groups=8).low)


def test_a_balanced_sample_has_equally_many_of_each_cell() -> None:
    cells = ["b"] * 30 + ["a"] * 12 + ["c"] * 50
    drawn = balanced_sample(cells, rng=np.random.default_rng(0))
    assert [cells[row] for row in drawn] == ["b"] * 12 + ["a"] * 12 + ["c"] * 12
    assert len(set(drawn.tolist())) == 36
    assert drawn.tolist() == balanced_sample(cells, rng=np.random.default_rng(0)).tolist()
    assert drawn.tolist() != balanced_sample(cells, rng=np.random.default_rng(1)).tolist()
    assert len(balanced_sample(cells, size=5, rng=np.random.default_rng(0))) == 15
    assert balanced_sample([], rng=np.random.default_rng(0)).tolist() == []
    # Every row of a cell is as likely as any other.
    counts = np.zeros(92)
    for seed in range(300):
        counts[balanced_sample(cells, size=3, rng=np.random.default_rng(seed))] += 1
    assert counts[:30].std() < 3 * math.sqrt(30) and counts[:30].mean() == 30
    with pytest.raises(UsageError, match="expected 13 of each, found 12 of 'a'"):
        balanced_sample(cells, size=13, rng=np.random.default_rng(0))
