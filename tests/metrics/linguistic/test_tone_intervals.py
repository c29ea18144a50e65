"""Intervals of the spread of tones: the jackknife by hand, and how often they hold the truth."""

import math

import numpy as np
import pytest
from scipy.stats import t

from culturekit.core.errors import UsageError
from culturekit.metrics import tone_spread, tone_spread_interval
from culturekit.metrics.linguistic.tone_histograms import SpreadKind

MILD = np.array([0.2, 0.18, 0.15, 0.12, 0.1, 0.08, 0.07, 0.05, 0.03, 0.02])


def drawn(
    rng: np.random.Generator, *, prompts: int = 30, per: int = 4, truth: np.ndarray = MILD
) -> tuple[np.ndarray, np.ndarray]:
    own = rng.dirichlet(truth * 8, size=prompts)
    tones = np.concatenate([rng.choice(10, size=per, p=each) for each in own])
    return np.eye(10)[tones], np.repeat(np.arange(prompts), per)


@pytest.mark.parametrize("kind", ["std", "mad"])
def test_it_is_the_jackknife_over_prompts(kind: SpreadKind) -> None:
    weights, prompts = drawn(np.random.default_rng(0), prompts=12)
    value = getattr(tone_spread(weights.mean(axis=0)), kind)
    without = np.array([getattr(tone_spread(weights[prompts != p].mean(axis=0)), kind) for p in range(12)])
    margin = t.ppf(0.975, 11) * math.sqrt(11 / 12 * ((without - without.mean()) ** 2).sum())
    corrected = 12 * value - 11 * without.mean()
    found = tone_spread_interval(weights, prompts, kind=kind)
    assert found.value == pytest.approx(value)
    assert found.low == pytest.approx(max(0, min(value, corrected) - margin))
    assert found.high == pytest.approx(max(value, corrected) + margin)


@pytest.mark.parametrize(("kind", "truth"), [("std", np.std(MILD)), ("mad", np.abs(MILD - 0.1).mean())])
def test_it_holds_the_truth_as_often_as_it_says(kind: SpreadKind, truth: float) -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        found = tone_spread_interval(*drawn(rng), kind=kind)
        held += found.low <= truth <= found.high
    assert 0.91 <= held / 300 <= 1.0


def test_order_does_not_matter_and_one_prompt_says_nothing() -> None:
    weights, prompts = drawn(np.random.default_rng(2))
    order = np.random.default_rng(3).permutation(len(prompts))
    found = tone_spread_interval(weights, prompts, kind="std")
    again = tone_spread_interval(weights[order], prompts[order], kind="std")
    assert (again.low, again.value, again.high) == pytest.approx((found.low, found.value, found.high), abs=1e-12)
    assert math.isnan(tone_spread_interval(weights, np.zeros(len(prompts)), kind="mad").low)
    same = tone_spread_interval(np.eye(10)[[4] * 6], np.arange(6), kind="std")
    assert (same.low, same.value, same.high) == pytest.approx((0.3, 0.3, 0.3))


def test_arguments_are_checked() -> None:
    with pytest.raises(UsageError, match="kind must be 'std' or 'mad'"):
        tone_spread_interval(np.eye(10), range(10), kind="iqr")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="clusters must be one per row"):
        tone_spread_interval(np.eye(10), [1], kind="std")
    with pytest.raises(UsageError, match="weights must be finite numbers"):
        tone_spread_interval([0.1], [1], kind="std")
