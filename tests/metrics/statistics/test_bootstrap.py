"""The bootstrap: against scipy, on degenerate data, over clusters, and by simulation."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.metrics import Interval, bootstrap, vendi
from culturekit.metrics.statistics.correlations import Method, widened


def mean(rows: np.ndarray) -> float:
    return float(rows.mean())


def median(rows: np.ndarray) -> float:
    return float(np.median(rows))


@pytest.mark.parametrize("method", ["BCa", "percentile", "basic"])
def test_agrees_with_scipy_at_the_widened_level(method: Method) -> None:
    values = np.sort(np.random.default_rng(1).gamma(2, 1, 35))
    answer = bootstrap(values, statistic=mean, method=method, resamples=999, rng=np.random.default_rng(7))
    expected = stats.bootstrap(
        (values,),
        np.mean,
        method=method,
        n_resamples=999,
        confidence_level=widened(0.95, clusters=35),
        vectorized=False,
        rng=np.random.default_rng(7),
    ).confidence_interval
    assert answer.value == pytest.approx(values.mean())
    assert (answer.low, answer.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert (answer.n, answer.target) == (35, "population")


def test_the_level_is_widened_as_t_is() -> None:
    """At the widened level a normal quantile of s/√n, s without Bessel's correction, is t's margin."""
    for clusters in (5, 30, 1000):
        quantile = stats.norm.ppf((1 + widened(0.95, clusters=clusters)) / 2)
        assert quantile * math.sqrt((clusters - 1) / clusters) == pytest.approx(stats.t.ppf(0.975, clusters - 1))


def test_clusters_are_drawn_whole() -> None:
    """Copies of a value within a cluster bring no certainty."""
    values = np.random.default_rng(2).normal(size=30)
    alone = bootstrap(values, statistic=mean, resamples=999, rng=np.random.default_rng(3))
    copies = bootstrap(
        np.repeat(values, 10),
        statistic=mean,
        clusters=np.repeat(np.argsort(np.argsort(values)), 10),
        resamples=999,
        rng=np.random.default_rng(3),
    )
    assert (copies.value, copies.low, copies.high) == pytest.approx((alone.value, alone.low, alone.high))
    naive = bootstrap(np.repeat(values, 10), statistic=mean, resamples=999, rng=np.random.default_rng(3))
    assert naive.high - naive.low < (copies.high - copies.low) / 2


def test_unequal_clusters_count_by_their_rows() -> None:
    answer = bootstrap([0, 0, 0, 1], statistic=mean, clusters=["a", "a", "a", "b"], rng=np.random.default_rng(4))
    assert answer.value == 0.25


@pytest.mark.parametrize("constant", [0.0, 0.1, -3.0, 1e9])
@pytest.mark.parametrize("statistic", [mean, median])
def test_equal_values_have_no_width(constant: float, statistic: Callable[[np.ndarray], float]) -> None:
    answer = bootstrap([constant] * 33, statistic=statistic, resamples=99, rng=np.random.default_rng(5))
    assert answer.value == pytest.approx(constant)
    assert answer.low == answer.value == answer.high


def test_rounding_is_no_width() -> None:
    """Means of 0.1 over clusters of unequal size differ in their last digit."""
    sizes = np.arange(1, 13)
    answer = bootstrap(
        np.full(78, 0.1), statistic=mean, clusters=np.repeat(sizes, sizes), resamples=99, rng=np.random.default_rng(5)
    )
    assert answer.low == answer.value == answer.high


def test_a_median_with_ties_has_a_flat_jackknife_and_still_limits() -> None:
    ratings = np.repeat([1, 2, 3, 4, 5], [2, 5, 9, 12, 4])
    answer = bootstrap(ratings, statistic=median, resamples=999, rng=np.random.default_rng(6))
    assert answer.low <= 3 < answer.high <= 5


def test_what_cannot_be_said_is_not_said() -> None:
    rng = np.random.default_rng(7)
    alone = bootstrap([1.0, 2.0], statistic=mean, clusters=["a", "a"], rng=rng)
    assert alone.value == 1.5
    assert math.isnan(alone.low)
    assert math.isnan(bootstrap([1.0, 2.0], statistic=lambda rows: math.nan, resamples=99, rng=rng).high)
    often = bootstrap([1.0, 2.0], statistic=lambda rows: math.nan if rows[0] > 1 else 1.0, resamples=99, rng=rng)
    assert math.isnan(often.high)


def test_many_clusters_need_no_acceleration(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(15).gamma(1, 1, 600)
    exact, flat = (
        bootstrap(values, statistic=mean, resamples=999, rng=np.random.default_rng(16))
        for limit in (2000, 500)
        if monkeypatch.setattr("culturekit.metrics.statistics.correlations.MANY_CLUSTERS", limit) is None
    )
    assert exact != flat
    assert (flat.low, flat.high) == pytest.approx((exact.low, exact.high), abs=0.1 * (exact.high - exact.low))


def test_two_clusters_give_the_widest_limits_there_are() -> None:
    answer = bootstrap([1.0, 2.0], statistic=mean, resamples=99, rng=np.random.default_rng(14))
    assert (answer.low, answer.high) == (1, 2)


def test_a_statistic_beyond_all_its_resamples_has_no_limits() -> None:
    """The number of different values: duplicates lower it, so that no resample comes near."""
    values = np.arange(40.0)
    answer = bootstrap(
        values, statistic=lambda rows: float(len(np.unique(rows))), resamples=199, rng=np.random.default_rng(8)
    )
    assert answer.value == 40
    assert math.isnan(answer.low)
    assert math.isnan(answer.high)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.floats(-5, 5), st.sampled_from("abcdef")), min_size=3, max_size=20), st.randoms())
def test_the_order_of_rows_does_not_matter(rows: list[tuple[float, str]], shuffler: object) -> None:
    def answer(order: list[tuple[float, str]]) -> Interval:
        values, clusters = zip(*order, strict=True)
        return bootstrap(values, statistic=mean, clusters=clusters, resamples=49, rng=np.random.default_rng(9))

    shuffled = list(rows)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]
    assert str(answer(rows)) == str(answer(shuffled))


def test_renaming_clusters_in_their_order_changes_nothing() -> None:
    values = np.random.default_rng(10).normal(size=24)
    texts = [f"p{number:02}" for number in np.repeat(np.arange(8), 3)]
    numbers = np.repeat(np.arange(8), 3) * 5
    first, second = (
        bootstrap(values, statistic=mean, clusters=keys, resamples=199, rng=np.random.default_rng(11))
        for keys in (texts, numbers)
    )
    assert first == second


def test_shifting_and_stretching_carry_over() -> None:
    values = np.random.default_rng(12).gamma(2, 1, 40)
    plain, moved = (
        bootstrap(sample, statistic=mean, resamples=499, rng=np.random.default_rng(13))
        for sample in (values, 3 * values - 1)
    )
    expected = (3 * plain.value - 1, 3 * plain.low - 1, 3 * plain.high - 1)
    assert (moved.value, moved.low, moved.high) == pytest.approx(expected)


def test_covers_the_truth_with_thirty_clusters() -> None:
    """300 intervals at 95 %; the benchmark statistics_coverage has the table."""
    held = 0
    for run in range(300):
        rng = np.random.default_rng([20, run])
        values = rng.normal(size=(30, 1)) + rng.normal(size=(30, 3))
        keys = np.repeat(np.arange(30), 3)
        answer = bootstrap(values.ravel(), statistic=mean, clusters=keys, resamples=149, rng=rng)
        held += answer.low <= 0 <= answer.high
    assert 0.92 <= held / 300 <= 0.98


def short(**changes: object) -> Interval:
    settings: dict[str, object] = {"statistic": mean, "rng": np.random.default_rng(0), **changes}
    values = settings.pop("values", [1.0, 2.0])
    return bootstrap(values, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": []}, "values must be at least one row of numbers, (n,) or (n, d)"),
        ({"values": [1, math.nan]}, "values[1] must be finite; found nan"),
        ({"values": [[1, 2], [3, math.inf]]}, "values[1, 1] must be finite; found inf"),
        ({"values": ["x"]}, "values must be numbers"),
        ({"clusters": ["a"]}, "clusters must be one per value, of length 2"),
        ({"clusters": ["a", None]}, "clusters must be all texts or all numbers"),
        ({"confidence": 95}, "confidence must be between 0 and 1; found 95"),
        ({"method": "magic"}, "method must be 'BCa' or 'percentile' or 'basic'; found 'magic'"),
        ({"resamples": 0}, "resamples must be a whole number of at least 1; found 0"),
        ({"statistic": vendi}, "resampling lowers a Vendi score, so use interval() over repeats; found 'vendi'"),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        short(**changes)
    assert message in str(caught.value)
