"""Gaps between groups: against Welch, by hand, and by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.metrics import Comparison, group_gap
from culturekit.metrics.statistics.intervals import Target


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


COUNTRIES = np.repeat(["DE", "FR", "IN", "NG", "BR"], 12)
GROUPS = np.repeat(["GN", "GN", "GS", "GS", "GS"], 12)
PROMPTS = np.tile(np.repeat(np.arange(6), 2), 5)
VALUES = rng(1).normal(size=60) + (GROUPS == "GN")


def gap(values: np.ndarray = VALUES, *, target: Target = "population", confidence: float = 0.95) -> Comparison:
    return group_gap(
        values,
        groups=GROUPS,
        first="GN",
        second="GS",
        countries=COUNTRIES,
        prompts=PROMPTS,
        target=target,
        confidence=confidence,
    )


def test_one_country_a_group_is_welchs_test_of_prompt_means() -> None:
    keep = np.isin(COUNTRIES, ["DE", "IN"])
    answer = group_gap(
        VALUES[keep], groups=GROUPS[keep], first="GN", second="GS", countries=COUNTRIES[keep], prompts=PROMPTS[keep]
    )
    means = [VALUES[country == COUNTRIES].reshape(6, 2).mean(axis=1) for country in ("DE", "IN")]
    welch = stats.ttest_ind(*means, equal_var=False)
    limits = welch.confidence_interval(0.95)
    assert (answer.interval.low, answer.interval.high) == pytest.approx((limits.low, limits.high))
    assert answer.p == pytest.approx(welch.pvalue)


def test_by_hand_over_several_countries() -> None:
    answer = gap()
    means = {country: VALUES[country == COUNTRIES].reshape(6, 2).mean(axis=1) for country in np.unique(COUNTRIES)}
    sides = ["DE", "FR"], ["IN", "NG", "BR"]
    centre = [np.mean([means[country].mean() for country in side]) for side in sides]
    parts = [means[country].var(ddof=1) / 6 / len(side) ** 2 for side in sides for country in side]
    freedom = sum(parts) ** 2 / sum(part**2 / 5 for part in parts)
    margin = stats.t.ppf(0.975, freedom) * math.sqrt(sum(parts))
    assert answer.difference == pytest.approx(centre[0] - centre[1])
    assert answer.interval.high - answer.difference == pytest.approx(margin)
    assert (answer.n, answer.common, answer.left_out, answer.interval.n) == (30, 0, 0, 60)


def test_by_hand_for_these_prompts() -> None:
    answer = gap(target="these")
    parts = [
        VALUES[(country == COUNTRIES) & (prompt == PROMPTS)].var(ddof=1) / 2 / 6**2 / len(side) ** 2
        for side in (["DE", "FR"], ["IN", "NG", "BR"])
        for country in side
        for prompt in range(6)
    ]
    freedom = sum(parts) ** 2 / sum(part**2 for part in parts)
    assert answer.difference == pytest.approx(gap().difference)
    margin = stats.t.ppf(0.975, freedom) * math.sqrt(sum(parts))
    assert answer.interval.high - answer.difference == pytest.approx(margin)
    assert answer.p == pytest.approx(2 * stats.t.sf(abs(answer.difference) / math.sqrt(sum(parts)), freedom))


def test_these_prompts_are_held_fixed() -> None:
    shifted = VALUES + 5.0 * PROMPTS
    assert gap(shifted, target="these").interval.high - gap(shifted, target="these").difference == pytest.approx(
        gap(target="these").interval.high - gap(target="these").difference
    )
    assert gap(shifted).interval.high - gap(shifted).interval.low > 3 * (gap().interval.high - gap().interval.low)


def test_countries_count_the_same_however_many_prompts_they_have() -> None:
    answer = group_gap(
        [1, 1, 1, 1, 3, 0],
        groups=["a"] * 5 + ["b"],
        first="a",
        second="b",
        countries=["X", "X", "X", "X", "Y", "Z"],
        prompts=[1, 2, 3, 4, 1, 1],
    )
    assert answer.difference == 2
    assert math.isnan(answer.interval.low)
    assert math.isnan(answer.p)


def test_equal_groups_have_no_gap() -> None:
    targets: tuple[Target, ...] = ("population", "these")
    for target in targets:
        answer = gap(np.full(60, 0.7), target=target)
        assert (answer.difference, answer.interval.low, answer.interval.high, answer.p) == (0, 0, 0, 1)


def test_order_names_and_swapping() -> None:
    order = rng(2).permutation(60)
    shuffled = group_gap(
        VALUES[order],
        groups=GROUPS[order],
        first="GN",
        second="GS",
        countries=COUNTRIES[order],
        prompts=PROMPTS[order],
    )
    assert shuffled == gap()
    back = group_gap(VALUES, groups=GROUPS, first="GS", second="GN", countries=COUNTRIES, prompts=PROMPTS)
    assert back.difference == pytest.approx(-gap().difference)
    assert back.p == pytest.approx(gap().p)


def test_a_third_group_is_left_alone() -> None:
    groups = np.where(COUNTRIES == "BR", "other", GROUPS)
    answer = group_gap(
        VALUES, groups=groups, first="GN", second="GS", countries=COUNTRIES, prompts=PROMPTS, comparisons=3
    )
    keep = COUNTRIES != "BR"
    alone = group_gap(
        VALUES[keep], groups=GROUPS[keep], first="GN", second="GS", countries=COUNTRIES[keep], prompts=PROMPTS[keep]
    )
    assert answer.difference == alone.difference
    assert answer.left_out == 12
    assert answer.p_corrected == pytest.approx(min(1, 3 * alone.p))


def test_no_gap_is_seen_five_times_in_a_hundred() -> None:
    false = held = 0
    for run in range(1000):
        own = np.random.default_rng([30, run])
        values = own.normal(size=60) * np.repeat(own.uniform(0.5, 2, 5), 12)
        answer = gap(values)
        false += answer.p <= 0.05
        held += answer.interval.low <= 0 <= answer.interval.high
    assert 30 <= false <= 70
    assert held == 1000 - false


def test_an_argument_that_breaks_its_rule_is_named() -> None:
    with pytest.raises(UsageError, match="first and second must be two of the groups"):
        group_gap([1, 2], groups=["a", "b"], first="a", second="c", countries=["X", "Y"], prompts=[1, 2])
    with pytest.raises(UsageError, match="countries must be one per value, of length 2"):
        group_gap([1, 2], groups=["a", "b"], first="a", second="b", countries=["X"], prompts=[1, 2])
