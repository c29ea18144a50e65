"""Agreement of raters, pools, judges and labellings, copies among raters, and statistics of many draws at once."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import krippendorff
import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from sklearn import metrics as sklearn_metrics
from statsmodels.stats import inter_rater

from culturekit.metrics import (
    JudgeCalibration,
    PoolDivergence,
    calibrate_judge,
    cohen_kappa,
    compare,
    correlate,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_agreement,
    pool_divergence,
    rating_counts,
    unanimous_agreement,
)
from culturekit.metrics.statistics.chance_corrected import (
    LEVELS,
    Level,
    copied_raters,
    counts_of,
    drawn_cohen,
    equal_share,
    kappa_interval,
)
from culturekit.metrics.statistics.correlations import CORRELATIONS, STATISTICS, Correlation, bootstrap, many_draws
from culturekit.metrics.statistics.intervals import clustered
from culturekit.scores.agreement import cohen_of, drawn_statistics, statistics_of

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


COLUMNS = ("annotator", "question", "criterion", "said", "seconds")


def study(
    seed: int, *, raters: int = 3, items: int = 60, hard: float = 0.5, slips: tuple[float, float] = (0.05, 0.2),
    choices: int = 5, careless: int = 0, copied: str = "", edits: float = 0.0, timed: bool = False,
) -> pl.DataFrame:  # fmt: skip
    """Three questions an item: people slip now and then, more often on hard ones; the careless answer at random."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, choices, (items, 3))
    chance = np.where(rng.random(truth.shape) < hard, 0.35, 0.0)
    said: dict[str, tuple[Any, Any]] = {}

    def changed(answers: Any, share: Any) -> Any:
        return np.where(rng.random(answers.shape) < share, rng.integers(0, choices, answers.shape), answers)

    for rater in range(raters):
        share = 1.0 if rater < careless else np.maximum(chance, rng.uniform(*slips))
        said[f"r{rater}"] = changed(truth, share), rng.uniform(8, 40, items).round(1)
    if copied:
        answers, times = said[copied]
        said["z"] = changed(answers, edits), times if timed else rng.uniform(8, 40, items).round(1)
    rows = [
        (name, f"{item}/{question}", str(question), str(answers[item, question]), float(times[item]))
        for name, (answers, times) in said.items() for item in range(items) for question in range(3)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


HONEST: dict[str, Mapping[str, Any]] = {
    "usual": {},
    "easy items": {"hard": 0, "slips": (0.0, 0.01)},
    "trivial items": {"hard": 0, "slips": (0.0, 0.0)},
    "mostly easy items": {"hard": 0.1, "slips": (0.0, 0.02), "items": 300},
    "good and bad raters": {"hard": 0.1, "slips": (0.0, 0.3), "raters": 8},
    "one careless": {"careless": 1},
    "one careless, easy items": {"careless": 1, "hard": 0, "slips": (0.02, 0.05)},
    "two alone": {"raters": 2, "hard": 0, "slips": (0.02, 0.05)},
    "yes or no": {"choices": 2, "hard": 0.1, "slips": (0.0, 0.1), "items": 300},
}


@pytest.mark.parametrize("case", HONEST)
def test_honest_raters_are_several(case: str) -> None:
    assert [found for seed in range(40) if (found := copied_raters(study(seed, **HONEST[case])))] == []


COPIED: dict[str, Mapping[str, Any]] = {
    "all answers": {"copied": "r0"},
    "with one careless": {"copied": "r1", "careless": 1, "raters": 2},
    "few answers, with their times": {"copied": "r1", "careless": 1, "raters": 2, "items": 20, "timed": True},
    "nobody else": {"copied": "r0", "raters": 1},
    "a few answers changed": {"copied": "r0", "edits": 0.01, "items": 200},
}


@pytest.mark.parametrize("case", COPIED)
def test_a_copy_is_found_with_whose_it_is(case: str) -> None:
    given = COPIED[case]
    for seed in range(20):
        assert copied_raters(study(seed, **given)) == {"z": given["copied"]}


def test_of_several_copies_one_stays_and_order_is_nothing() -> None:
    answers = study(1, copied="r0")
    again = answers.filter(annotator="z").with_columns(annotator=pl.lit("y"))
    both = pl.concat([answers, again]).sample(fraction=1, shuffle=True, seed=3)
    assert copied_raters(both) == {"y": "r0", "z": "r0"}
    assert copied_raters(both.head(30)) == copied_raters(both.clear()) == {}


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
