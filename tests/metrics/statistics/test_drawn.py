"""Statistics of many draws at once are those of draw after draw, to the last digits, ties and gaps included."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from culturekit.metrics import correlate
from culturekit.metrics.statistics.chance_corrected import LEVELS, Level, counts_of, drawn_cohen
from culturekit.metrics.statistics.correlations import CORRELATIONS, STATISTICS, Correlation, bootstrap, many_draws
from culturekit.metrics.statistics.intervals import clustered
from culturekit.scores.agreement import cohen_of, drawn_statistics, statistics_of

Table = NDArray[np.float64]


def same(one: list[float], many: NDArray[np.float64]) -> None:
    """Equal to twelve digits, and undefined together."""
    assert [math.isnan(value) for value in one] == np.isnan(many).tolist()
    np.testing.assert_allclose(many, one, rtol=0, atol=1e-12, equal_nan=True)


def drawn_of(seed: int, clusters: int, *, count: int = 40) -> NDArray[np.int64]:
    """Draws with replacement, and each of the first three alone as often as there are clusters."""
    chosen = np.random.default_rng(seed).integers(0, clusters, (count, clusters))
    chosen[:3] = np.arange(3)[:, None] % clusters
    return chosen


@st.composite
def answers(data: st.DrawFn) -> Table:
    """Answers to items, (most answers, n_items): whole numbers, two or more an item, sometimes all alike."""
    items = data(st.integers(3, 14))
    numbers = np.random.default_rng(data(st.integers(0, 10**6)))
    table = numbers.integers(1, data(st.integers(2, 6)), (4, items)).astype(np.float64)
    table[2:][numbers.random((2, items)) < 0.4] = np.nan
    return table


@pytest.mark.parametrize("level", LEVELS)
@given(table=answers(), seed=st.integers(0, 1000))
@settings(max_examples=12, deadline=None)
def test_agreement(level: Level, table: Table, seed: int) -> None:
    chosen = drawn_of(seed, table.shape[1])
    many = drawn_statistics(table, level)
    assert set(many) == set(statistics_of(level))
    for metric, statistic in statistics_of(level).items():
        same([statistic(table[:, row]) for row in chosen], many[metric](chosen))


@given(seed=st.integers(0, 10**6), items=st.integers(3, 12))
@settings(max_examples=12, deadline=None)
def test_two_annotators(seed: int, items: int) -> None:
    pairs = np.random.default_rng(seed).integers(1, 4, (2, items)).astype(np.float64)
    chosen = drawn_of(seed, items)
    same([cohen_of(pairs[:, row]) for row in chosen], drawn_cohen(pairs)(chosen))


@st.composite
def scored(data: st.DrawFn) -> tuple[Table, list[int]]:
    """Two scores of items, with ties or without, and the prompts that items belong to."""
    numbers = np.random.default_rng(data(st.integers(0, 10**6)))
    count = data(st.integers(4, 30))
    rows = numbers.normal(size=(count, 2)) * data(st.sampled_from([1.0, 1e-6, 1e6])) + data(st.sampled_from([0, 100]))
    if data(st.booleans()):
        rows = np.round(numbers.normal(size=(count, 2)))
    return rows, numbers.integers(0, max(2, count // data(st.integers(1, 4))), count).tolist()


@pytest.mark.parametrize("method", CORRELATIONS)
@given(case=scored(), seed=st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_correlations(method: Correlation, case: tuple[Table, list[int]], seed: int) -> None:
    data = clustered(*case)
    chosen = drawn_of(seed, len(data.names))
    many = many_draws(data, method)
    assert many is not None
    if method == "pearson" and np.abs(case[0]).max() > 50:
        one = [STATISTICS[method](data.take(row)) for row in chosen]
        np.testing.assert_allclose(many(chosen), one, rtol=0, atol=1e-7, equal_nan=True)
    else:
        same([STATISTICS[method](data.take(row)) for row in chosen], many(chosen))


@pytest.mark.parametrize("method", CORRELATIONS)
def test_intervals_do_not_depend_on_how_draws_are_computed(method: Correlation) -> None:
    numbers = np.random.default_rng(5)
    pairs = numbers.normal(size=(90, 2)) + numbers.normal(size=(90, 1))
    prompts = [f"p{number % 30}" for number in range(90)]
    plain = bootstrap(
        pairs, statistic=STATISTICS[method], clusters=prompts, resamples=499, rng=np.random.default_rng(1)
    )
    quick = correlate(
        pairs[:, 0], pairs[:, 1], method=method, clusters=prompts, resamples=499, rng=np.random.default_rng(1)
    )
    assert (quick.value, quick.low, quick.high) == pytest.approx((plain.value, plain.low, plain.high), abs=1e-12)


def test_intervals_of_agreement_do_not_depend_on_it_either() -> None:
    table = np.random.default_rng(3).integers(1, 6, (3, 80)).astype(np.float64)
    many = drawn_statistics(table, "ordinal")

    def interval_of(statistic: Callable[[Table], float], *, metric: str | None) -> list[float]:
        answer = bootstrap(
            np.arange(80),
            statistic=lambda rows: statistic(table[:, rows.astype(np.int64)]),
            resamples=499,
            rng=np.random.default_rng(2),
            drawn=None if metric is None else lambda _: many[metric],
        )
        return [answer.value, answer.low, answer.high]

    for metric, statistic in statistics_of("ordinal").items():
        assert interval_of(statistic, metric=metric) == pytest.approx(interval_of(statistic, metric=None), abs=1e-12)


def test_numbers_that_are_too_many_to_compare_with_each_other_have_no_shortcut() -> None:
    table = np.random.default_rng(3).normal(size=(2, 40))
    assert counts_of(table).shape[1] == 80
    assert set(drawn_statistics(table, "interval")) == set(statistics_of("interval")) - {"krippendorff_alpha"}
