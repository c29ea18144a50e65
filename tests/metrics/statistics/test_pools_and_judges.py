"""Pools of annotators, and judges held against them."""

import math

import numpy as np
import pytest
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.metrics import (
    JudgeCalibration,
    PoolDivergence,
    calibrate_judge,
    compare,
    krippendorff_alpha,
    pool_divergence,
)


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


def test_pools_without_a_common_item_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="second must be scores of items that first has too"):
        pool_divergence({"a": 1.0}, {"b": 1.0}, rng=rng())


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


def test_a_record_without_its_pool_is_none() -> None:
    with pytest.raises(UsageError, match="a calibration record names its pool of people"):
        calibrate_judge(JUDGE, PEOPLE, pool="", rng=rng())
    with pytest.raises(UsageError, match="people must be of length 40"):
        calibrate_judge(JUDGE, PEOPLE[:3], pool="NG", rng=rng())
