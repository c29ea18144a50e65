"""Intervals: against scipy, by simulation with a known truth, and at their edges."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.metrics import Interval, interval, vendi
from culturekit.metrics.statistics.intervals import Target

LABELLED = [(prompt, repeat) for prompt in ("a", "b", "c") for repeat in range(50)]
TARGETS: tuple[Target, ...] = ("these", "population")
PROMPTS = [prompt for prompt, _ in LABELLED]
REPEATS = [repeat for _, repeat in LABELLED]


def test_one_prompt_gives_the_t_interval_of_scipy() -> None:
    values = np.random.default_rng(1).normal(3, 2, 17)
    answer = interval(values, prompts=["p"] * 17, repeats=range(17), confidence=0.9)
    low, high = stats.t.interval(0.9, 16, loc=values.mean(), scale=stats.sem(values))
    assert answer.value == pytest.approx(values.mean())
    assert (answer.low, answer.high) == pytest.approx((low, high), rel=1e-9)
    assert (answer.n, answer.target) == (17, "these")


def test_two_prompts_give_welchs_interval_of_scipy() -> None:
    """The mean of two prompts has half the width of their difference."""
    rng = np.random.default_rng(2)
    first, second = rng.normal(0, 1, 12), rng.normal(0, 5, 7)
    answer = interval([*first, *second], prompts=[1] * 12 + [2] * 7, repeats=[*range(12), *range(7)])
    welch = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert answer.high - answer.low == pytest.approx((welch.high - welch.low) / 2, rel=1e-9)
    assert answer.value == pytest.approx((first.mean() + second.mean()) / 2)


def test_a_population_gives_the_t_interval_over_prompt_means() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0, 1, (24, 1)) + rng.normal(0, 0.1, (24, 5))
    answer = interval(
        values.ravel(), prompts=np.repeat(np.arange(24), 5), repeats=np.tile(np.arange(5), 24), target="population"
    )
    means = values.mean(axis=1)
    low, high = stats.t.interval(0.95, 23, loc=means.mean(), scale=stats.sem(means))
    assert (answer.value, answer.low, answer.high) == pytest.approx((means.mean(), low, high), rel=1e-9)
    assert (answer.n, answer.target) == (120, "population")


def vendi_law(shares: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """List all values that VS@8/8 can take for images drawn by these shares, with their probabilities."""
    values, chances = [], []
    for counts in itertools.product(range(9), repeat=len(shares)):
        if sum(counts) == 8:
            labels = [("", "", f"x{place}") for place, count in enumerate(counts) for _ in range(count)]
            values.append(vendi(labels) / 8)
            chances.append(stats.multinomial.pmf(counts, 8, shares))
    return np.array(values), np.array(chances) / np.sum(chances)


def test_covers_the_truth_for_these_prompts() -> None:
    """Three prompts, 50 repeats, the true VS@8 known exactly: 2,000 intervals at a nominal 95 %."""
    laws = [vendi_law(shares) for shares in ((0.7, 0.1, 0.1, 0.1), (0.4, 0.3, 0.2, 0.1), (0.9, 0.04, 0.03, 0.03))]
    truth = np.mean([values @ chances for values, chances in laws])
    rng = np.random.default_rng(20_241_120)
    drawn = [values[rng.choice(len(values), (2000, 50), p=chances)] for values, chances in laws]
    runs = np.concatenate(drawn, axis=1)
    answers = [interval(run, prompts=PROMPTS, repeats=REPEATS, rng=rng) for run in runs]
    covered = np.mean([answer.low <= truth <= answer.high for answer in answers])
    assert 0.93 <= covered <= 0.97


def test_covers_the_truth_for_a_population_of_prompts() -> None:
    rng = np.random.default_rng(20_241_121)
    prompts, repeats = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20)
    covered = 0
    for _ in range(1000):
        values = rng.normal(0.5, 0.1, (20, 1)) + rng.normal(0, 0.05, (20, 3))
        answer = interval(values.ravel(), prompts=prompts, repeats=repeats, target="population")
        covered += answer.low <= 0.5 <= answer.high
    assert 930 <= covered <= 970


def test_each_prompt_counts_the_same_however_many_repeats_it_has() -> None:
    answer = interval([0.0, 0.0, 0.0, 1.0, 1.0], prompts=["a", "a", "a", "b", "b"], repeats=[0, 1, 2, 0, 1])
    assert answer.value == 0.5


@pytest.mark.parametrize("constant", [0.1, 1 / 3, 0.7, 1e-9, 12345.678])
@pytest.mark.parametrize("target", TARGETS)
def test_equal_values_have_no_width(constant: float, target: Target) -> None:
    prompts, repeats = np.repeat(np.arange(21), 7), np.tile(np.arange(7), 21)
    answer = interval([constant] * 147, prompts=prompts, repeats=repeats, target=target)
    assert answer.low == answer.value == answer.high == constant


def test_one_repeat_says_nothing_about_its_scatter() -> None:
    answer = interval([0.2, 0.4, 0.6], prompts=["a", "b", "c"], repeats=[0, 0, 0])
    assert answer.value == pytest.approx(0.4)
    assert math.isnan(answer.low)
    assert math.isnan(answer.high)
    mixed = interval([0.2, 0.4, 0.6], prompts=["a", "b", "b"], repeats=[0, 0, 1])
    assert math.isnan(mixed.low)


def test_one_repeat_is_enough_for_a_population() -> None:
    values = np.linspace(0, 1, 20)
    answer = interval(values, prompts=range(20), repeats=[0] * 20, target="population")
    assert answer.low < 0.5 < answer.high


def test_a_prompt_without_scatter_lends_no_degrees_of_freedom() -> None:
    values = np.random.default_rng(5).normal(size=6)
    both = interval([*values, 0.5, 0.5], prompts=["a"] * 6 + ["b"] * 2, repeats=[*range(6), 0, 1])
    alone = interval(values, prompts=["a"] * 6, repeats=range(6))
    assert both.high - both.low == pytest.approx((alone.high - alone.low) / 2)


def test_the_order_of_the_values_does_not_matter() -> None:
    rng = np.random.default_rng(6)
    values = rng.normal(size=150)
    order = rng.permutation(150)
    shuffled = interval(
        values[order], prompts=[PROMPTS[place] for place in order], repeats=[REPEATS[place] for place in order]
    )
    assert shuffled == interval(values, prompts=PROMPTS, repeats=REPEATS)


def test_shifting_and_stretching_carry_over() -> None:
    values = np.random.default_rng(7).normal(size=150)
    plain = interval(values, prompts=PROMPTS, repeats=REPEATS)
    moved = interval(2 * values + 5, prompts=PROMPTS, repeats=REPEATS)
    expected = (2 * plain.value + 5, 2 * plain.low + 5, 2 * plain.high + 5)
    assert (moved.value, moved.low, moved.high) == pytest.approx(expected)


def test_a_confident_interval_is_wider() -> None:
    values = np.random.default_rng(8).normal(size=150)
    narrow, wide = (interval(values, prompts=PROMPTS, repeats=REPEATS, confidence=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high
    assert narrow == Interval(narrow.value, narrow.low, narrow.high, 150, "these")


def of_pair(values: list[float], *, target: Target = "these", confidence: float = 0.95) -> Interval:
    """Call with two repeats of one prompt."""
    return interval(values, prompts=["a", "a"], repeats=[0, 1], target=target, confidence=confidence)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interval([], prompts=[], repeats=[]), "values must be a sequence of at least one number"),
        (lambda: of_pair([0.1, math.inf]), "values[1] must be finite; found inf"),
        (lambda: of_pair([0.1]), "prompts must be one per value, of length 1"),
        (lambda: interval([1, 2], prompts=["a", "a"], repeats=[0]), "repeats must be one per value, of length 2"),
        (lambda: interval([1, 2], prompts=["a", None], repeats=[0, 1]), "prompts must be all texts or all numbers"),  # type: ignore[arg-type]
        (lambda: interval([1, 2], prompts=["a", "a"], repeats=[3, 3]), "several for prompt a, repeat 3"),
        (lambda: of_pair([1, 2], confidence=95), "confidence must be between 0 and 1; found 95"),
        (lambda: of_pair([1, 2], target="all"), "target must be 'these' or 'population'; found 'all'"),  # type: ignore[arg-type]
        (lambda: of_pair([1, 2], target="population"), "expected at least 20 prompts, found 1"),
        (lambda: of_pair([1, 2], target="population"), "few prompts cannot"),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named(call: Callable[[], Interval], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)
