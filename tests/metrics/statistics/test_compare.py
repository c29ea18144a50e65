"""Comparisons, gaps, corrections and correlations: against scipy and statsmodels, and by simulation."""

import itertools
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats import multitest

from culturekit.metrics import Comparison, benjamini_hochberg, compare, compare_models, correlate, group_gap, holm
from culturekit.metrics.statistics.comparisons import compare_over_countries
from culturekit.metrics.statistics.correlations import CORRELATIONS, Correlation
from culturekit.metrics.statistics.intervals import Target


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


A = rng(1).normal(size=12)
B = A + rng(2).normal(0.4, 0.5, 12)
PROMPTS = np.arange(12)


def test_paired_gives_the_paired_t_interval_of_scipy() -> None:
    answer = compare(A, B, clusters=PROMPTS, rng=rng())
    low, high = stats.ttest_rel(A, B).confidence_interval(0.95)
    assert answer.difference == pytest.approx((A - B).mean())
    assert (answer.interval.low, answer.interval.high) == pytest.approx((low, high))
    assert (answer.n, answer.common, answer.left_out, answer.interval.n) == (12, 12, 0, 24)


def test_the_p_value_is_that_of_all_sign_patterns() -> None:
    differences = (A - B)[:8]
    patterns = np.array(list(itertools.product((1, -1), repeat=8))) @ differences
    expected = np.mean(np.abs(patterns) >= abs(differences.sum()) - 1e-12)
    assert compare(A[:8], B[:8], clusters=PROMPTS[:8], rng=rng()).p == pytest.approx(expected)


def test_with_very_many_clusters_it_is_that_of_t() -> None:
    a, b = rng(3).normal(size=1001), rng(4).normal(0.05, 1, 1001)
    answer = compare(a, b, clusters=np.arange(1001), rng=rng())
    assert answer.p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    fewer = compare(a[1:], b[1:], clusters=np.arange(1000), rng=rng())
    assert fewer.p == pytest.approx(stats.ttest_rel(a[1:], b[1:]).pvalue, abs=0.01)


def test_unpaired_is_welchs_test_of_scipy() -> None:
    a, b = rng(5).normal(size=9), rng(6).normal(1, 3, 14)
    answer = compare(a, b, clusters=(np.arange(9), np.arange(14)), paired=False, rng=rng())
    welch = stats.ttest_ind(a, b, equal_var=False)
    limits = welch.confidence_interval(0.95)
    assert (answer.interval.low, answer.interval.high) == pytest.approx((limits.low, limits.high))
    assert answer.p == pytest.approx(welch.pvalue)
    assert (answer.n, answer.common, answer.left_out) == (14, 9, 0)


def test_these_prompts_with_one_prompt_is_welchs_test_of_their_repeats() -> None:
    a, b = rng(7).normal(size=10), rng(8).normal(0.5, 2, 13)
    answer = compare(a, b, clusters=(["p"] * 10, ["p"] * 13), target="these", rng=rng())
    welch = stats.ttest_ind(a, b, equal_var=False)
    assert answer.p == pytest.approx(welch.pvalue)
    assert answer.interval.low == pytest.approx(welch.confidence_interval(0.95).low)
    assert answer.interval.target == "these"


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("target", ["population", "these"])
def test_the_same_data_does_not_differ(paired: bool, target: str) -> None:
    values = rng(9).normal(size=24)
    keys = np.repeat(np.arange(8), 3)
    answer = compare(values, values, clusters=keys, paired=paired, target=target, rng=rng())  # type: ignore[arg-type]
    assert answer.difference == 0
    assert answer.p == answer.p_corrected == 1
    assert answer.interval.low <= 0 <= answer.interval.high
    constant = compare([0.3] * 24, [0.3] * 24, clusters=keys, paired=paired, target=target, rng=rng())  # type: ignore[arg-type]
    assert (constant.interval.low, constant.interval.high, constant.p) == (0, 0, 1)


def test_the_order_of_rows_does_not_matter() -> None:
    values, keys = rng(10).normal(size=(2, 60)), np.repeat(np.arange(20), 3)
    order = rng(11).permutation(60)
    targets: tuple[Target, ...] = ("population", "these")
    for target in targets:
        plain = compare(*values, clusters=keys, target=target, rng=rng())
        shuffled = compare(*values[:, order], clusters=keys[order], target=target, rng=rng())
        assert plain == shuffled


def test_only_common_prompts_enter_and_the_others_are_counted() -> None:
    answer = compare([1, 2, 9], [0, 2, 50, 60], clusters=(["p", "q", "x"], ["p", "q", "y", "z"]), rng=rng())
    assert answer.difference == pytest.approx(0.5)
    assert (answer.n, answer.common, answer.left_out) == (2, 2, 3)


def test_prompts_count_the_same_however_many_images_they_have() -> None:
    answer = compare([0, 0, 0, 4], [0, 0, 0, 0], clusters=["p", "p", "p", "q"], rng=rng())
    assert answer.difference == 2


def test_two_values_with_a_pair_of_prompts_are_not_a_pair_of_keys() -> None:
    assert compare([1.0, 2.0], [1.0, 2.0], clusters=("p", "q"), rng=rng()).common == 2


def test_one_prompt_says_nothing_of_others() -> None:
    answer = compare([1.0, 2.0], [3.0, 4.0], clusters=["p", "p"], rng=rng())
    assert math.isnan(answer.p)
    assert math.isnan(answer.p_corrected)
    assert math.isnan(answer.interval.low)
    assert math.isnan(compare([1.0], [2.0], clusters=["p"], paired=False, rng=rng()).p)


def test_several_comparisons_are_corrected() -> None:
    once, often = (compare(A, B, clusters=PROMPTS, comparisons=number, rng=rng()) for number in (1, 3))
    assert often.p == once.p == once.p_corrected
    assert often.p_corrected == pytest.approx(min(1, 3 * once.p))


@pytest.mark.parametrize("design", ["paired", "unpaired", "these"])
def test_no_difference_is_seen_five_times_in_a_hundred(design: str) -> None:
    false = 0
    for run in range(1000):
        own = np.random.default_rng([21, run])
        prompts = own.normal(size=(12, 1)) if design != "unpaired" else np.zeros((12, 1))
        a, b = (prompts + own.normal(size=(12, 2)) for _ in range(2))
        keys = np.repeat(np.arange(12), 2)
        answer = compare(
            a.ravel(),
            b.ravel(),
            clusters=keys,
            paired=design != "unpaired",
            target="these" if design == "these" else "population",
            resamples=199,
            rng=own,
        )
        false += answer.p <= 0.05
    assert 30 <= false <= 70


def models(count: int = 4, *, seed: int = 0) -> pl.DataFrame:
    values = rng(seed).normal(size=(count, 20)) + np.arange(count)[:, None] / 2
    return pl.DataFrame(
        {
            "model": np.repeat([f"m{number}" for number in range(count)], 20),
            "prompt_id": np.tile([f"p{number}" for number in range(20)], count),
            "value": values.ravel(),
        }
    )


def test_compare_models_makes_all_pairs_and_corrects_them() -> None:
    table = models()
    rows = compare_models(table, rng=rng())
    assert rows.select("a", "b").rows() == list(itertools.combinations(["m0", "m1", "m2", "m3"], 2))
    np.testing.assert_allclose(rows["p_corrected"], holm(rows["p"].to_numpy()))
    one = table.filter(pl.col("model") == "m0")["value"], table.filter(pl.col("model") == "m1")["value"]
    assert rows["difference"][0] == pytest.approx(one[0].mean() - one[1].mean())  # type: ignore[operator]
    milder = compare_models(table, correction="benjamini-hochberg", rng=rng())
    assert (milder["p_corrected"] <= rows["p_corrected"]).all()
    assert rows.equals(compare_models(table.sample(fraction=1, shuffle=True, seed=3), rng=rng()))


def test_compare_models_leaves_unknown_values_out_and_says_what_is_missing() -> None:
    table = models(2).with_columns(
        value=pl.when(pl.col("prompt_id") == "p3").then(None).otherwise(pl.col("value")), extra=pl.lit(1)
    )
    assert compare_models(table, rng=rng())["common"][0] == 19


def over_countries(paired: bool = True, target: str = "population") -> Comparison:
    a, b = rng(12).normal(size=30), rng(13).normal(size=30)
    keys = [f"p{number:02}" for number in range(30)]
    places = ["X"] * 20 + ["Y"] * 10
    return compare_over_countries(
        a, b, clusters=(keys, keys), countries=(places, places), paired=paired, target=target, rng=rng()  # type: ignore[arg-type]
    )  # fmt: skip


def test_over_countries_each_country_counts_the_same() -> None:
    a, b = rng(12).normal(size=30), rng(13).normal(size=30)
    parts = (a - b)[:20], (a - b)[20:]
    answer = over_countries()
    assert answer.difference == pytest.approx((parts[0].mean() + parts[1].mean()) / 2)
    errors = [part.var(ddof=1) / len(part) for part in parts]
    freedom = sum(errors) ** 2 / (errors[0] ** 2 / 19 + errors[1] ** 2 / 9)
    margin = stats.t.ppf(0.975, freedom) * math.sqrt(sum(errors)) / 2
    assert answer.interval.high - answer.difference == pytest.approx(margin)
    unpaired = over_countries(paired=False)
    assert unpaired.difference == pytest.approx(answer.difference)
    assert unpaired.interval.high > unpaired.interval.low


@pytest.mark.parametrize("paired", [True, False])
def test_over_countries_prompts_of_one_side_enter_unpaired_only(paired: bool) -> None:
    a, b = rng(12).normal(size=30), rng(13).normal(size=30)
    keys, places = [f"p{number:02}" for number in range(30)], ["X"] * 20 + ["Y"] * 10
    sides = {"clusters": (keys, keys[5:]), "countries": (places, places[5:])}
    answer = compare_over_countries(a, b[5:], **sides, paired=paired, rng=rng())  # type: ignore[arg-type]
    first = a[5 if paired else 0 : 20].mean() - b[5:20].mean()
    assert answer.difference == pytest.approx((first + a[20:].mean() - b[20:].mean()) / 2)
    assert (answer.n, answer.common, answer.left_out) == ((25, 25, 5) if paired else (30, 25, 0))


def test_over_countries_the_p_value_is_that_of_all_sign_patterns() -> None:
    keys, places = [f"p{number:02}" for number in range(8)], ["X"] * 6 + ["Y"] * 2
    answer = compare_over_countries(A[:8], B[:8], clusters=(keys, keys), countries=(places, places), rng=rng())
    weighted = (A - B)[:8] / np.repeat([6, 2], [6, 2])
    patterns = np.array(list(itertools.product((1, -1), repeat=8))) @ weighted
    assert answer.p == pytest.approx(np.mean(np.abs(patterns) >= abs(weighted.sum()) - 1e-12))
    assert answer.difference == pytest.approx(weighted.sum() / 2)


def test_over_one_country_is_a_comparison() -> None:
    keys = [f"p{number:02}" for number in range(12)]
    one = compare_over_countries(A, B, clusters=(keys, keys), countries=(["X"] * 12, ["X"] * 12), rng=rng())
    plain = compare(A, B, clusters=keys, rng=rng())
    assert one.difference == pytest.approx(plain.difference)
    assert one.interval.low == pytest.approx(plain.interval.low)
    assert one.p == pytest.approx(plain.p)


def test_without_a_generator_the_permutations_are_the_same_every_time() -> None:
    many = rng(3).normal(size=(2, 40))
    one = compare(many[0], many[1], clusters=np.arange(40))
    assert one == compare(many[0], many[1], clusters=np.arange(40))
    assert one.p == compare(many[0], many[1], clusters=np.arange(40), rng=rng(0)).p


COUNTRIES = np.repeat(["DE", "FR", "IN", "NG", "BR"], 12)
GROUPS = np.repeat(["GN", "GN", "GS", "GS", "GS"], 12)
GROUP_GAP_PROMPTS = np.tile(np.repeat(np.arange(6), 2), 5)
VALUES = rng(1).normal(size=60) + (GROUPS == "GN")


EVERY = np.full(60, True)


def gap(values: np.ndarray = VALUES, *, of: np.ndarray = EVERY, groups: np.ndarray = GROUPS, **more: Any) -> Comparison:
    chosen = {"groups": groups[of], "countries": COUNTRIES[of], "prompts": GROUP_GAP_PROMPTS[of]}
    return group_gap(values[of], **chosen, first="GN", second="GS", **more)


def test_one_country_a_group_is_welchs_test_of_prompt_means() -> None:
    answer = gap(of=np.isin(COUNTRIES, ["DE", "IN"]))
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
        VALUES[(country == COUNTRIES) & (prompt == GROUP_GAP_PROMPTS)].var(ddof=1) / 2 / 6**2 / len(side) ** 2
        for side in (["DE", "FR"], ["IN", "NG", "BR"])
        for country in side
        for prompt in range(6)
    ]
    freedom = sum(parts) ** 2 / sum(part**2 for part in parts)
    assert answer.difference == pytest.approx(gap().difference)
    margin = stats.t.ppf(0.975, freedom) * math.sqrt(sum(parts))
    assert answer.interval.high - answer.difference == pytest.approx(margin)
    assert answer.p == pytest.approx(2 * stats.t.sf(abs(answer.difference) / math.sqrt(sum(parts)), freedom))


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


def test_a_third_group_is_left_alone() -> None:
    answer = gap(groups=np.where(COUNTRIES == "BR", "other", GROUPS), comparisons=3)
    alone = gap(of=COUNTRIES != "BR")
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


P = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(P)
@settings(max_examples=15, deadline=None)
def test_agree_with_statsmodels(p: list[float]) -> None:
    for ours, method in ((holm, "holm"), (benjamini_hochberg, "fdr_bh")):
        np.testing.assert_allclose(ours(p), multitest.multipletests(p, method=method)[1], atol=1e-12)


def test_a_comparison_that_could_not_be_made_does_not_count() -> None:
    for correct in (holm, benjamini_hochberg):
        answer = correct([0.01, np.nan, 0.03])
        np.testing.assert_array_equal(answer[[0, 2]], correct([0.01, 0.03]))
        assert np.isnan(answer[1])
        assert np.isnan(correct([np.nan])).all()
        assert correct([]).size == 0


SCIPY: dict[Correlation, Any] = {"spearman": stats.spearmanr, "kendall": stats.kendalltau, "pearson": stats.pearsonr}
PAIRS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=9)


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
def test_perfect_correlations_have_no_width(method: Correlation) -> None:
    values = rng().normal(size=30)
    for sign in (1, -1):
        answer = correlate(values, sign * 3 * values + 1, method=method, resamples=99, rng=rng())
        assert (answer.low, answer.value, answer.high) == pytest.approx((sign, sign, sign))
        assert -1 <= answer.low <= answer.high <= 1


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
