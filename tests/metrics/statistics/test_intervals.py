"""Intervals: against scipy and statsmodels, by simulation with a known truth, and at their edges."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binomtest, t
from statsmodels.stats import proportion

from culturekit.metrics import Interval, bootstrap, clustered_share, interval, proportion_interval, vendi
from culturekit.metrics.statistics.correlations import Method, widened
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


def test_a_prompt_without_scatter_lends_no_degrees_of_freedom() -> None:
    values = np.random.default_rng(5).normal(size=6)
    both = interval([*values, 0.5, 0.5], prompts=["a"] * 6 + ["b"] * 2, repeats=[*range(6), 0, 1])
    alone = interval(values, prompts=["a"] * 6, repeats=range(6))
    assert both.high - both.low == pytest.approx((alone.high - alone.low) / 2)


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
def test_equal_values_have_no_width_of_bootstrap(constant: float, statistic: Callable[[np.ndarray], float]) -> None:
    answer = bootstrap([constant] * 33, statistic=statistic, resamples=99, rng=np.random.default_rng(5))
    assert answer.value == pytest.approx(constant)
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


@given(st.integers(1, 400), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.99]))
def test_agree_with_statsmodels(trials: int, share: float, confidence: float) -> None:
    successes = round(share * trials)
    for method, name in (("wilson", "wilson"), ("clopper-pearson", "beta")):
        answer = proportion_interval(successes, trials, confidence=confidence, method=method)  # type: ignore[arg-type]
        expected = proportion.proportion_confint(successes, trials, alpha=1 - confidence, method=name)
        assert (answer.low, answer.high) == pytest.approx(expected, abs=1e-9)
        assert answer.value == successes / trials
        assert answer.n == trials


def test_independent_answers_are_wilsons_with_ts_quantile() -> None:
    values = np.array([1.0] * 30 + [0.0] * 70)
    found = clustered_share(values, {"answer": np.arange(100)})
    # The variance of a mean of 100 clusters is p(1 - p)/99, so they are worth 99 answers.
    p, n, quantile = 0.3, 99, t.ppf(0.975, 99)
    half = quantile * math.sqrt(p * (1 - p) / n + quantile**2 / (4 * n * n)) / (1 + quantile**2 / n)
    middle = (p + quantile**2 / (2 * n)) / (1 + quantile**2 / n)
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half))
    wilson = binomtest(30, 100).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((wilson.low, wilson.high), abs=0.002)
    assert (found.value, found.n) == (0.3, 100)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=40))
def test_limits_lie_around_the_share_and_within_zero_and_one(rows: list[tuple[bool, int, int]]) -> None:
    values, images, annotators = (np.array(column) for column in zip(*rows, strict=True))
    found = clustered_share(values, {"image": images, "annotator": annotators})
    if len(set(images)) == 1 and len(set(annotators)) == 1:
        assert math.isnan(found.low)
        return
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.high - found.low > 0
    order = np.random.default_rng(0).permutation(len(values))
    again = clustered_share(values[order], {"annotator": annotators[order], "image": images[order]})
    assert (again.low, again.high) == pytest.approx((found.low, found.high), abs=1e-9)
    turned = clustered_share(~values, {"image": images, "annotator": annotators})
    assert (1 - turned.high, 1 - turned.low) == pytest.approx((found.low, found.high), abs=1e-9)


def test_a_single_annotator_is_held_fixed() -> None:
    values, images = np.array([1.0, 0, 1, 1]), np.arange(4)
    with_one = clustered_share(values, {"image": images, "annotator": np.zeros(4, int)})
    assert with_one == clustered_share(values, {"image": images})


def simulated_coverage(*, runs: int, images: int, annotators: int, seed: int = 0) -> float:
    """Draw answers with an effect of the image and one of the annotator, and count how often the truth is held."""
    rng = np.random.default_rng(seed)
    effects = rng.normal(size=(2, 200_000))
    truth = float((1 / (1 + np.exp(-(0.4 + effects[0] + 0.5 * effects[1])))).mean())
    held = 0
    for _ in range(runs):
        of_image, of_annotator = rng.normal(0, 1, images), rng.normal(0, 0.5, annotators)
        who = np.stack([rng.permutation(annotators)[:3] for _ in range(images)])
        logits = 0.4 + of_image[:, None] + of_annotator[who]
        answers = (rng.random(who.shape) < 1 / (1 + np.exp(-logits))).astype(float).ravel()
        found = clustered_share(answers, {"image": np.repeat(np.arange(images), 3), "annotator": who.ravel()})
        held += found.low <= truth <= found.high
    return held / runs


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    assert 0.93 <= simulated_coverage(runs=600, images=100, annotators=20) <= 0.98
