"""Agreement of raters, pools, judges and labellings: against scikit-learn, statsmodels and krippendorff."""

import math
from typing import Literal

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sklearn_metrics
from statsmodels.stats import inter_rater

from culturekit.metrics import (
    JudgeCalibration,
    PoolDivergence,
    calibrate_judge,
    cohen_kappa,
    compare,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_agreement,
    pool_divergence,
    rating_counts,
    unanimous_agreement,
)
from culturekit.metrics.statistics.chance_corrected import LEVELS, equal_share, kappa_interval

WEIGHTS: tuple[Literal["none", "linear", "quadratic"], ...] = ("none", "linear", "quadratic")
PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=40)
TABLES = st.lists(
    st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0, math.nan]), min_size=4, max_size=4), min_size=2, max_size=20
)


@given(PAIRS)
@settings(deadline=None)
def test_cohen_agrees_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    a, b = map(list, zip(*pairs, strict=True))
    assume(len({*a, *b}) > 1)
    for weights in WEIGHTS:
        expected = sklearn_metrics.cohen_kappa_score(a, b, weights=None if weights == "none" else weights)
        assert cohen_kappa(a, b, weights=weights) == pytest.approx(expected, abs=1e-9, nan_ok=True)
        assert cohen_kappa(b, a, weights=weights) == pytest.approx(expected, abs=1e-9, nan_ok=True)


@given(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=2, max_size=30))
@settings(deadline=None)
def test_fleiss_agrees_with_statsmodels_and_ignores_order_and_names(answers: list[list[int]]) -> None:
    ratings = np.array(answers)
    assume(len(np.unique(ratings)) > 1)
    counts = inter_rater.aggregate_raters(ratings)[0]
    expected = inter_rater.fleiss_kappa(counts)
    assert fleiss_kappa(counts) == pytest.approx(expected, abs=1e-9)
    assert fleiss_kappa(counts[::-1, ::-1]) == pytest.approx(expected, abs=1e-9)
    items = np.repeat(np.arange(len(ratings)), 5)
    assert fleiss_kappa(rating_counts(items.tolist(), ratings.ravel().tolist())) == pytest.approx(expected, abs=1e-9)


@given(TABLES)
@settings(deadline=None)
def test_alpha_agrees_with_krippendorff(columns: list[list[float]]) -> None:
    ratings = np.array(columns).T
    pairable = ratings[:, np.isfinite(ratings).sum(axis=0) > 1]
    assume(len(np.unique(pairable[np.isfinite(pairable)])) > 1)
    for level in LEVELS:
        expected = krippendorff.alpha(ratings, level_of_measurement=level)
        assert krippendorff_alpha(ratings, level=level) == pytest.approx(expected, abs=1e-9)
        assert krippendorff_alpha(ratings[::-1, ::-1], level=level) == pytest.approx(expected, abs=1e-9)


def test_alpha_keeps_its_digits_far_from_zero_and_on_many_values() -> None:
    ratings = np.random.default_rng(1).normal(size=(3, 2000))
    near = krippendorff_alpha(ratings, level="interval")
    assert krippendorff_alpha(ratings + 1e6, level="interval") == pytest.approx(near, abs=1e-8)
    assert krippendorff_alpha(ratings * 7, level="ordinal") == krippendorff_alpha(ratings, level="ordinal")


def test_one_answer_only_says_nothing_of_agreement_beyond_chance() -> None:
    assert math.isnan(cohen_kappa([1, 1], [1, 1]))
    assert math.isnan(fleiss_kappa([[3, 0], [3, 0]]))
    assert math.isnan(fleiss_kappa([[1, 0], [0, 1]]))
    for level in LEVELS:
        assert math.isnan(krippendorff_alpha([[2, 2], [2, 2]], level=level))
        assert math.isnan(krippendorff_alpha([[1, math.nan], [math.nan, 2]], level=level))
    assert math.isnan(pairwise_agreement([[1, 0], [0, 1]]))
    assert math.isnan(unanimous_agreement([[1, 0], [0, 1]]))


def test_agreement_by_hand_with_unequal_numbers_of_answers() -> None:
    counts = [[2, 1], [0, 4], [1, 1], [1, 0]]
    assert pairwise_agreement(counts) == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert unanimous_agreement(counts) == pytest.approx(1 / 3)
    shares = np.array([3, 6]) / 9
    expected = ((1 / 3 + 1 + 0) / 3 - (shares**2).sum()) / (1 - (shares**2).sum())
    assert fleiss_kappa(counts) == pytest.approx(expected)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


ITEMS = [f"i{number:02}" for number in range(30)]
TRUTH = rng(1).uniform(1, 5, 30)
FIRST = dict(zip(ITEMS, (TRUTH + rng(2).normal(0, 0.3, 30)).tolist(), strict=True))
SECOND = dict(zip(ITEMS[5:], (TRUTH[5:] - 1 + rng(3).normal(0, 0.3, 25)).tolist(), strict=True))


def test_a_pool_that_judges_lower_and_orders_alike() -> None:
    answer = pool_divergence(FIRST, SECOND, resamples=999, rng=rng())
    assert isinstance(answer, PoolDivergence)
    assert answer.difference.interval.low < 1 < answer.difference.interval.high
    assert answer.difference.p <= 0.002
    assert (answer.difference.common, answer.difference.left_out) == (25, 5)
    both = [FIRST[item] for item in ITEMS[5:]], [SECOND[item] for item in ITEMS[5:]]
    assert answer.correlation.value == pytest.approx(stats.spearmanr(*both).statistic)
    assert answer.correlation.n == 25


def test_a_pool_does_not_differ_from_itself_and_order_does_not_matter() -> None:
    answer = pool_divergence(FIRST, FIRST, resamples=99, rng=rng())
    assert (answer.difference.difference, answer.difference.p) == (0, 1)
    assert answer.correlation.value == 1
    turned = pool_divergence(
        dict(reversed(list(FIRST.items()))), dict(reversed(list(SECOND.items()))), resamples=99, rng=rng()
    )
    assert turned == pool_divergence(FIRST, SECOND, resamples=99, rng=rng())


PEOPLE = rng(4).uniform(0, 1, 40)
JUDGE = PEOPLE + 0.2 + rng(5).normal(0, 0.1, 40)


def test_a_calibration_names_pool_bias_and_agreement() -> None:
    record = calibrate_judge(JUDGE, PEOPLE, pool="NG", resamples=499, rng=rng())
    assert isinstance(record, JudgeCalibration)
    low, high = stats.ttest_rel(JUDGE, PEOPLE).confidence_interval(0.95)
    assert (record.pool, record.n) == ("NG", 40)
    assert record.bias == pytest.approx((JUDGE - PEOPLE).mean())
    assert (record.interval.low, record.interval.high) == pytest.approx((low, high))
    assert record.agreement.value == pytest.approx(krippendorff_alpha([JUDGE, PEOPLE], level="interval"))
    assert record.agreement.low < record.agreement.value < record.agreement.high


def test_clusters_widen_what_images_of_a_prompt_share() -> None:
    prompts = np.repeat(np.arange(10), 4)
    judge = PEOPLE + np.repeat(rng(6).normal(0, 0.3, 10), 4)
    alone = calibrate_judge(judge, PEOPLE, pool="NG", resamples=99, rng=rng())
    together = calibrate_judge(judge, PEOPLE, pool="NG", clusters=prompts, resamples=99, rng=rng())
    assert together.interval.high - together.interval.low > 1.3 * (alone.interval.high - alone.interval.low)
    reference = compare(judge, PEOPLE, clusters=prompts, rng=rng())
    assert together.interval.low == pytest.approx(reference.interval.low)


def test_a_perfect_judge_and_a_small_sample() -> None:
    record = calibrate_judge(PEOPLE, PEOPLE, pool="in-region", resamples=99, rng=rng())
    assert (record.bias, record.interval.low, record.interval.high) == (0, 0, 0)
    assert record.agreement.low == record.agreement.value == 1
    few = calibrate_judge(JUDGE[:9], PEOPLE[:9], pool="NG", level="ordinal", rng=rng())
    assert math.isnan(few.agreement.low)
    assert few.level == "ordinal"
    single = calibrate_judge(JUDGE[:4], PEOPLE[:4], pool="NG", clusters=["p"] * 4, rng=rng())
    assert math.isnan(single.interval.low)


LABELS = st.sampled_from(["BR", "IN", "JP", "TR"])
ROWS = st.lists(st.tuples(LABELS, LABELS, st.integers(0, 4)), min_size=2, max_size=40)


@given(ROWS)
def test_kappa_is_cohens_and_its_interval_the_jackknife_written_down(rows: list[tuple[str, str, int]]) -> None:
    a, b, batch = (np.array(column) for column in zip(*rows, strict=True))
    found = kappa_interval(a, b, batches=batch)
    expected = cohen_kappa(a.tolist(), b.tolist())
    assert found.value == pytest.approx(expected, nan_ok=True)
    batches = sorted(set(batch.tolist()))
    if len(batches) < 2 or math.isnan(expected):
        assert math.isnan(found.low)
        return
    without = np.array([cohen_kappa(a[batch != one].tolist(), b[batch != one].tolist()) for one in batches])
    spread = (len(batches) - 1) / len(batches) * float(((without - without.mean()) ** 2).sum())
    if not spread > 1e-20:
        return
    margin = stats.t.ppf(0.975, len(batches) - 1) * math.sqrt(spread)
    assert found.low == pytest.approx(max(-1.0, expected - margin))
    assert found.high == pytest.approx(min(1.0, expected + margin))


def test_the_share_of_equal_labels_and_its_limits_widen_where_batches_go_together() -> None:
    a = np.array(["x"] * 80)
    alone = np.where(np.random.default_rng(0).permutation(80) < 60, "x", "y")
    batched = np.array(["x"] * 8 * 7 + ["y"] * 8 * 2 + ["x"] * 4 + ["y"] * 4)
    batch = np.repeat(np.arange(10), 8)
    even, uneven = equal_share(a, alone, batches=batch), equal_share(a, batched, batches=batch)
    assert (even.value, uneven.value, even.n) == (0.75, 0.75, 80)
    assert even.high - even.low < uneven.high - uneven.low


def test_full_agreement_has_no_limits_since_nothing_scatters() -> None:
    found = kappa_interval(["x", "y", "x", "y"], ["x", "y", "x", "y"], batches=[0, 0, 1, 1])
    assert found.value == 1.0
    assert math.isnan(found.low)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Batches that differ in how well the routes agree: 400 worlds of 30 batches of 8."""
    rng = np.random.default_rng(11)
    held = np.zeros(2)
    truth_share, truth_kappa = 0.6 + 0.4 / 5, 0.6
    for _ in range(400):
        a = rng.integers(0, 5, 240)
        copied = rng.random(240) < np.repeat(rng.beta(6, 4, 30), 8)
        b = np.where(copied, a, rng.integers(0, 5, 240))
        batch = np.repeat(np.arange(30), 8)
        share, kappa = equal_share(a, b, batches=batch), kappa_interval(a, b, batches=batch)
        held += [share.low <= truth_share <= share.high, kappa.low <= truth_kappa <= kappa.high]
    assert (held / 400 > 0.92).all()
    assert (held / 400 < 0.985).all()
