"""Imputed labels put right by an audit: prompts that differ, one label, few images, slopes."""

import itertools
import math
from dataclasses import dataclass
from itertools import combinations
from typing import cast

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.special import polygamma
from scipy.stats import beta, gamma, kstest, norm

from culturekit.core.errors import UsageError
from culturekit.metrics import vendi, vendi_corrected
from culturekit.metrics.corrected.audit_gates import NOTHING
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity, expected_diversity
from culturekit.metrics.corrected.imputed_prompts import (
    EVENNESS,
    STRENGTHS,
    AuditedCounts,
    Findings,
    Imputed,
    drawn_apart,
    drawn_labels,
    drawn_strength,
    drawn_tables,
    evenness_of,
    impute,
    trigamma,
)
from culturekit.metrics.corrected.rectified import (
    PAIRS,
    Parted,
    bend_along,
    bends,
    distances,
    slopes_of,
)
from tests.metrics.corrected.audits_by_hand import COUNTRIES, audited, mapped_with_error, matches_of, shown_by

COUNTRY = (0.0, 1.0, 0.0)
SHARES = np.array([0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
CONTINENTS = np.array([0, 1, 1, 2, 0, 3])


def counts_of(mapped: NDArray[np.int64], found: Findings, parents: NDArray[np.int64]) -> AuditedCounts:
    """Some audited images of labels without names; the last label is nothing."""
    return AuditedCounts((*map(str, parents[:-1]), NOTHING), parents, mapped, found)


class Differing:
    """Prompts with shares of their own around those of the model, and an audit of 150 of their images."""

    def __init__(self, seed: int, *, prompts: int, each: int, spread: float = 5.0, right: float = 0.8) -> None:
        rng = np.random.default_rng(seed)
        self.shares = rng.dirichlet(spread * SHARES, size=prompts)
        of = np.arange(prompts * each) % prompts
        truth: list[str | None] = [COUNTRIES[rng.choice(6, p=self.shares[prompt])] for prompt in of]
        self.matches = matches_of(mapped_with_error(truth, accuracy=right, rng=rng), prompts=prompts)
        self.audit = audited(self.matches, shown_by(self.matches, truth), n=150, rng=rng)

    def truth(self, size: int = 8) -> float:
        diversity = expected_diversity(size=size, continent=0.0, country=1.0, q=1.0, parents=[0] * 6)
        return float(diversity(self.shares).mean())


@pytest.mark.slow
@pytest.mark.parametrize(("prompts", "each", "size", "right"), [(24, 40, 8, 0.8), (24, 39, 8, 0.8), (150, 4, 4, 0.92)])
def test_prompts_that_differ_are_corrected_whatever_their_size(
    prompts: int, each: int, size: int, right: float
) -> None:
    errors, held = [], 0
    for seed in range(5):
        world = Differing(seed, prompts=prompts, each=each, right=right)
        answer = vendi_corrected(
            world.matches, world.audit, weights=COUNTRY, size=size, rng=np.random.default_rng(seed)
        )
        errors.append(answer.value - world.truth(size))
        held += answer.low <= world.truth(size) <= answer.high
    assert held >= 4
    assert abs(np.mean(errors)) < 0.025  # it was +.08 with 40 images, and -.01 with 39


@pytest.mark.parametrize("images", [50, 150])
def test_a_model_that_shows_all_countries_evenly_is_not_taken_to_show_nothing(images: int) -> None:
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth: list[str | None] = [COUNTRIES[label] for label in rng.integers(6, size=400)]
        matches = matches_of(truth, prompts=1)
        audit = audited(matches, shown_by(matches, truth), n=images, rng=rng)
        answer = vendi_corrected(matches, audit, weights=COUNTRY, rng=rng)
        counts = np.array([[truth.count(country) for country in COUNTRIES]])
        diversity = expected_diversity(size=8, continent=0.0, country=1.0, q=1.0, parents=[0] * len(COUNTRIES))
        errors.append(answer.value - float(diversity.of_images(counts)[0]))
    assert abs(np.mean(errors)) < 0.005  # all are mapped rightly; it was +.02 with 50


@pytest.mark.parametrize("seed", [0, 9])
def test_how_alike_images_of_small_prompts_are_widens_the_interval(seed: int) -> None:
    world = Differing(seed, prompts=75, each=4)
    answer = vendi_corrected(world.matches, world.audit, weights=COUNTRY, size=4, rng=np.random.default_rng(seed))
    assert answer.low <= world.truth(4) <= answer.high  # by slopes alone it lay outside


def test_the_same_seed_gives_the_same_answer_whatever_the_order_of_rows_and_prompts() -> None:
    world = Differing(1, prompts=10, each=12)
    one = vendi_corrected(world.matches, world.audit, weights=COUNTRY, rng=np.random.default_rng(3))
    assert one == vendi_corrected(
        world.matches.reverse(), world.audit.reverse(), weights=COUNTRY, rng=np.random.default_rng(3)
    )
    names = {country: f"{country} (renamed)" for country in COUNTRIES}
    renamed = [table.with_columns(pl.col("country").replace(names)) for table in (world.matches, world.audit)]
    assert one == vendi_corrected(*renamed, weights=COUNTRY, rng=np.random.default_rng(3))
    other = vendi_corrected(world.matches, world.audit, weights=COUNTRY, rng=np.random.default_rng(4))
    assert other.value == pytest.approx(one.value, abs=0.35 * (one.high - one.low))


@pytest.mark.parametrize(
    ("shown", "weights", "accuracy"),
    [(["JP"], COUNTRY, 0.3), (["JP"], COUNTRY, 1.0), (["JP", "IN"], (1.0, 0.0, 0.0), 0.8)],
)
def test_where_people_saw_one_label_or_continent_the_lower_end_is_that_of_one_label(
    shown: list[str | None], weights: tuple[float, float, float], accuracy: float
) -> None:
    truth = shown * (1200 // len(shown))
    matches = matches_of(mapped_with_error(truth, accuracy=accuracy, rng=np.random.default_rng(1)), prompts=3)
    audit = audited(matches, shown_by(matches, truth), n=150, rng=np.random.default_rng(2))
    for seed in range(4):
        answer = vendi_corrected(matches, audit, weights=weights, rng=np.random.default_rng(seed))
        assert answer.low == 1 / 8
        assert 1 / 8 < answer.high < 0.15


def test_prompts_without_images_for_a_batch_count_nothing_and_where_all_are_such_it_is_said() -> None:
    world = Differing(1, prompts=20, each=12)
    with pytest.raises(UsageError, match="no prompt has as many images as a batch; expected 12 images of some prompt"):
        vendi_corrected(
            world.matches.filter(pl.col("prompt_id") != "p0").group_by("prompt_id").head(11),
            world.audit,
            weights=COUNTRY,
            size=12,
            rng=np.random.default_rng(0),
        )


@pytest.mark.parametrize("images", [3, 300])
def test_labels_are_drawn_as_often_as_their_odds_say(images: int) -> None:
    odds = np.array([[0.1, 4.0], [0.0, 3.0], [0.7, 1.0], [0.2, 2.0]])
    rng, found = np.random.default_rng(0), np.zeros((4, 2))
    for _ in range(6_000 // images):
        column, label, times = drawn_labels(odds, np.array([2, 0]), np.array([images, images]), rng)
        np.add.at(found, (label, column), 1 if times is None else times)
    assert found / found.sum(axis=0) == pytest.approx(odds / odds.sum(axis=0), abs=0.025)


def added(label: NDArray[np.int64], values: list[float]) -> NDArray[np.float64]:
    """Add values by label."""
    return np.asarray(np.bincount(label, values, 5), np.float64)


def test_draws_from_the_model_have_the_mean_that_the_chinese_restaurant_has() -> None:
    rng, prior = np.random.default_rng(0), np.array([0.3, 1.5, 4.0, 0.2, 1.0])
    label, count, often = (np.array(each) for each in ([0, 0, 1, 2, 3], [1, 3, 2, 5, 40], [1, 2, 3, 1, 1]))
    drawn = np.array([drawn_tables(prior[None], label, count, often, rng)[0] for _ in range(4000)])
    coins = [
        [(c / (c + step), times) for step in range(n)] for c, n, times in zip(prior[label], count, often, strict=True)
    ]
    assert drawn.mean(axis=0) == pytest.approx(added(label, [sum(p * m for p, m in each) for each in coins]), abs=0.05)
    squares = added(label, [sum(p * (1 - p) * m for p, m in each) for each in coins])
    assert drawn.var(axis=0) == pytest.approx(squares, abs=0.1)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("shape", [2.0, 6.0, 1e4])
def test_limits_are_those_of_a_law_that_leans_as_diversity_bends(shape: float, confidence: float) -> None:
    margin = norm.ppf((1 + confidence) / 2)
    lean = (margin**2 + 1) / max(margin**2 - 1, 1.0)
    limits = np.array(distances(0.5, 9.0, 0.5**3 * 2 / np.sqrt(shape) / lean, confidence)) / 1.05
    ends = gamma.ppf([(1 - confidence) / 2, (1 + confidence) / 2], shape)
    assert limits == pytest.approx(0.5 * (ends - shape) / np.sqrt(shape), abs=0.03 + 0.03 * abs(limits[1]))


def test_limits_are_never_further_apart_than_those_of_labels_alone() -> None:
    low, high = distances(0.02, 0.01, 0.02**3, 0.95)
    assert high - low == pytest.approx(2 * 1.96 * 0.01, rel=1e-3)
    assert high > -low  # the longer side stays the longer
    assert distances(0.0, 0.01, 0.0, 0.95) == (0.0, 0.0)


@pytest.mark.parametrize("bend", [-0.2, -0.1, 0.1])
def test_limits_that_lean_hold_where_a_bent_value_is_put_right(bend: float) -> None:
    """What is measured errs as a normal law; the value is a parabola of it, put right, with the slope that it sees."""
    of_the_measured = np.random.default_rng(0).standard_normal(20_000)
    slopes = 1 + bend * of_the_measured
    errors = of_the_measured + bend / 2 * (of_the_measured**2 - 1)  # of the value at 0, where the slope is 1
    held = [
        [low <= -error <= high for low, high in (distances(size, 9.0, by * slope**2, 0.95) for by in (3 * bend, 0.0))]
        for error, slope, size in zip(errors, slopes, np.hypot(slopes, bend / 2**0.5), strict=True)
    ]
    leaning, straight = np.mean(held, axis=0)
    assert leaning > straight
    assert 0.945 < leaning < 0.97


def test_the_score_bends_along_the_likeliest_error_as_its_second_derivatives_say() -> None:
    diversity = expected_diversity(size=4, continent=0.0, country=1.0, q=1.0, parents=[0] * 5)
    shares = np.random.default_rng(5).dirichlet(np.full(5, 3.0), size=(1, 2))
    mapped = np.array([[10, 5, 3, 1, 1], [20, 4, 4, 4, 8]])
    slopes = slopes_of(diversity, shares, mapped)
    bent, moved, steps = [], [], 1e-3 * np.eye(5)
    for prompt, weight in enumerate(mapped.sum() / 2 / mapped.sum(axis=1)):
        places = shares[0, prompt] + steps[:, None] + steps[None], shares[0, prompt] + steps[:, None] - steps[None]
        more, less = (diversity(each.reshape(-1, 5)).reshape(5, 5) for each in places)
        back = diversity((shares[0, prompt] - steps[:, None] - steps[None]).reshape(-1, 5)).reshape(5, 5)
        second = (more - less - less.T + back) / 4e-6
        line = shares[0, prompt] * slopes[0, prompt]
        bent.append(line @ second @ line)
        moved.append(line @ slopes[0, prompt] / weight)
    assert bend_along(diversity, shares, mapped, slopes) == pytest.approx(np.mean(bent) / np.mean(moved) ** 2, rel=0.01)
    even = np.full((1, 2, 5), 0.2)
    assert bend_along(diversity, even, mapped, slopes_of(diversity, even, mapped)) == 0.0


def test_countries_outside_the_space_are_labels_of_their_own() -> None:
    rng = np.random.default_rng(3)
    countries = [f"c{number:02}" for number in range(30)]
    of = rng.integers(30, size=900)
    truth: list[str | None] = [countries[number] for number in of]
    matches = matches_of([countries[label] for label in np.where(of < 10, of, rng.integers(10, size=900))], prompts=3)
    matches, audit = (
        table.with_columns(continent=pl.lit("everywhere"))
        for table in (matches, audited(matches, shown_by(matches, truth), n=150, rng=rng))
    )
    diversity = expected_diversity(size=8, continent=0.0, country=1.0, q=1.0, parents=[0] * 30)
    true = float(diversity(np.full(30, 1 / 30))[0])
    answer = vendi_corrected(matches, audit, weights=COUNTRY, rng=rng)
    assert abs(answer.value - true) < 0.02
    assert answer.low <= true <= answer.high
    outside = pl.col("country") >= "c10"
    places = (pl.when(~outside).then(name).alias(name) for name in ("artifact_id", "country", "continent"))
    untold = audit.with_columns(*places, none_of_these=outside)
    for means in ("not in the list", "cannot tell"):
        told = untold.with_columns(none_means=pl.when("none_of_these").then(pl.lit(means)))
        with pytest.raises(UsageError, match="neither a country nor none of these"):
            vendi_corrected(matches, told, weights=COUNTRY, rng=rng)


def test_a_prompt_with_just_the_images_of_a_batch_counts_and_one_with_fewer_does_not() -> None:
    diversity = expected_diversity(size=8, continent=0.0, country=1.0, q=1.0, parents=[0, 1, 2])
    shares = np.array([[[0.6, 0.3, 0.1]] * 3])
    just, fewer, more = slopes_of(diversity, shares, np.array([[4, 3, 1], [4, 3, 0], [9, 5, 2]]))[0]
    assert just == pytest.approx(2 * more) and not fewer.any()
    assert just.argmin() == 0 and just.argmax() == 2


def test_the_slope_of_the_digamma_function_is_that_of_scipy() -> None:
    at = np.concatenate([np.geomspace(1e-6, 1, 40), np.linspace(1, 200, 40)])
    assert trigamma(at) == pytest.approx(polygamma(1, at), rel=1e-5)


def test_errors_that_fall_where_they_are_expected_are_told_from_those_that_each_label_has_of_its_own() -> None:
    labels, each = 8, 70
    towards = (1 - np.eye(labels)) / (labels - 1)
    as_expected = np.round(towards * each)
    of_its_own = np.roll(np.eye(labels), 1, axis=1) * each
    wrong, rng = np.stack([as_expected, of_its_own]), np.random.default_rng(1)
    close, far = np.mean([drawn_strength(wrong, np.stack([towards] * 2), rng) for _ in range(50)], axis=0)
    assert close > 0.5 * STRENGTHS[-1] > 10 * far


def test_nothing_and_something_are_drawn_first_then_the_labels_of_something() -> None:
    draws = drawn_apart(np.tile([2.0, 40.0, 6.0, 3.0, 9.0], (40_000, 1)), 2, np.random.default_rng(3))
    assert draws.sum(axis=1) == pytest.approx(np.ones(len(draws)))
    nothing = draws[:, 2]
    assert kstest(nothing, beta(6, 9).cdf).pvalue > 0.01
    assert kstest(draws[:, 0] / (1 - nothing), beta(2, 43).cdf).pvalue > 0.01
    assert abs(np.corrcoef(nothing, draws[:, 0] / (1 - nothing))[0, 1]) < 0.02


def test_labels_that_are_shown_evenly_say_nothing_about_pictures_of_nothing() -> None:
    """Twenty countries, evenly, and nothing in 15 of 100 audited images: so it is imputed for the other 1,100."""
    rng, labels = np.random.default_rng(0), 21
    shows = np.append(np.arange(85) % 20, np.full(15, 20))
    truth = np.append(shows, rng.permutation(np.append(np.arange(935) % 20, np.full(165, 20))))
    into = np.where((truth == 20) | (rng.random(1200) > 0.85), rng.integers(20, size=1200), truth)
    mapped = np.bincount(np.arange(1200) % 3 * labels + into, minlength=3 * labels).reshape(3, labels)
    found = Findings(np.arange(100) % 3, into[:100], np.eye(labels)[shows])
    parents = np.append(np.arange(20) // 4, 5)
    imputed = impute(counts_of(mapped, found, parents), np.ones((1, 100), bool), rng=np.random.default_rng(1))
    assert imputed.shares[0, :, 20] == pytest.approx(np.full(3, 0.15), abs=0.035)
    assert evenness_of(np.bincount(shows)[None].astype(np.float64), 20)[0] @ EVENNESS > 50
    only_nothing = evenness_of(np.array([[100.0]]), 0)
    assert only_nothing == pytest.approx(np.full_like(only_nothing, 1 / len(EVENNESS)))


LABELS, IMAGES, HELD, CHAINS = 4, 400, 20, 3
KERNEL = np.array([[1.0, 0.5, 0.0, 0.0], [0.5, 1.0, 0.0, 0.2], [0.0, 0.0, 1.0, 0.0], [0.0, 0.2, 0.0, 1.0]])


@dataclass
class Unlike:
    """How unlike two images are: it bends alike everywhere, so that all of it is known."""

    size: int = 2

    def __call__(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(1 - ((shares @ KERNEL) * shares).sum(axis=1))

    def of_images(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        images = counts.sum(axis=1)
        return np.asarray(1 - (((counts @ KERNEL) * counts).sum(axis=1) - images) / (images * (images - 1)))


def told(truth: NDArray[np.float64], imputed: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Ask how far an imputation goes too far: all images are mapped alike; each part is left out once."""
    audited = CHAINS * HELD
    shown = np.eye(LABELS)[rng.choice(LABELS, p=truth, size=audited)]
    part = np.arange(audited) % CHAINS
    mapped = np.array([[IMAGES, 0, 0, 0]])
    hidden = IMAGES - audited + HELD
    known = np.array([shown[part != chain].sum(axis=0) for chain in range(CHAINS)])
    counts = rng.multinomial(hidden, imputed, size=(CHAINS, 50, 1)) + known[:, None, None].astype(np.int64)
    chances = np.tile(imputed, (CHAINS, 1, 1))
    everything = Imputed(counts, chances, chances[:, None], np.zeros(1, np.int64), np.zeros(1, np.int64), chances)
    nowhere = np.zeros(audited, np.int64)
    audit = counts_of(mapped, Findings(nowhere, nowhere, shown), np.zeros(LABELS, int))
    told, trust = bends(audit, Parted(part, everything), cast(ExpectedDiversity, Unlike()), rng=rng)
    assert trust == pytest.approx(HELD * (HELD - 1) / (HELD * (HELD - 1) + PAIRS))
    return told


@pytest.mark.parametrize("truth", [[0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]])
def test_pairs_of_images_tell_how_far_the_step_goes_too_far(truth: list[float]) -> None:
    rng, imputed = np.random.default_rng(1), np.array([0.4, 0.3, 0.2, 0.1])
    error = np.array(truth) - imputed
    found = np.array([told(np.array(truth), imputed, rng) for _ in range(600)])
    pairs, hidden = HELD * (HELD - 1), (IMAGES - CHAINS * HELD + HELD) / IMAGES
    wanted = -pairs / (pairs + PAIRS) * hidden**2 * error @ KERNEL @ error
    assert abs(found.mean() - wanted) < 4 * found.std() / found.size**0.5
    assert found.std() / found.size**0.5 < 1e-3


def test_one_image_of_a_prompt_tells_nothing() -> None:
    mapped, nowhere = np.array([[4, 0, 0, 0]] * 3), np.arange(3)
    chances = np.full((CHAINS, 3, LABELS), 0.25)
    counts = np.full((CHAINS, 2, 3, LABELS), 1)
    everything = Imputed(counts, chances, chances[:, None], np.arange(3), np.zeros(3, np.int64), chances)
    found = Findings(nowhere, np.zeros(3, np.int64), np.eye(LABELS)[:3])
    audit, unlike = counts_of(mapped, found, np.zeros(LABELS, int)), cast(ExpectedDiversity, Unlike())
    told, trust = bends(audit, Parted(np.arange(3), everything), unlike, rng=np.random.default_rng(0))
    assert (told.tolist(), trust) == ([0, 0, 0], 0.0)


def test_where_the_mapping_is_mostly_wrong_the_value_is_hardly_too_high() -> None:
    countries, errors = [f"c{number:02}" for number in range(20)], []
    diversity = expected_diversity(size=8, continent=0.0, country=1.0, q=1.0, parents=[0] * 20)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        shares = rng.dirichlet(np.full(20, 1.0), size=3)
        shown = np.array([rng.choice(20, p=shares[number % 3]) for number in range(1200)])
        mapped = np.where(rng.random(1200) < 0.25, shown, rng.integers(20, size=1200))
        everywhere = pl.lit("everywhere").alias("continent")
        matches = matches_of([countries[label] for label in mapped], prompts=3).with_columns(everywhere)
        names = shown_by(matches, [countries[label] for label in shown])
        audits = audited(matches, names, n=150, rng=rng).with_columns(everywhere)
        answer = vendi_corrected(matches, audits, weights=(0.0, 1.0, 0.0), rng=rng)
        errors.append(answer.value - float(diversity(shares).mean()))
    assert abs(np.mean(errors)) < 0.018  # it was .025


PARENTS = [0, 0, 1, 1, 2]


def by_every_batch(shares: np.ndarray, *, size: int, weights: tuple[float, float], q: float) -> float:
    """The mean over all batches, one by one, each scored by `vendi`."""
    total = 0.0
    for batch in itertools.product(range(len(shares)), repeat=size):
        chance = math.prod(shares[label] for label in batch)
        if chance > 0:
            labels = [(PARENTS[label], label, label) for label in batch]
            total += chance * vendi(labels, weights=(*weights, 0.0), q=q) / size
    return total


@pytest.mark.parametrize("weights", [(0.0, 1.0), (0.5, 0.5), (0.2, 0.8)])
@pytest.mark.parametrize("q", [0.5, 1.0, 2.0, math.inf])
def test_it_is_the_mean_over_every_batch_there_is(weights: tuple[float, float], q: float) -> None:
    shares = np.array([0.4, 0.1, 0.25, 0.05, 0.2])
    diversity = expected_diversity(size=4, continent=weights[0], country=weights[1], q=q, parents=PARENTS)
    assert diversity(shares)[0] == pytest.approx(by_every_batch(shares, size=4, weights=weights, q=q), abs=1e-12)


@pytest.mark.parametrize(("continent", "country"), [(0.0, 1.0), (0.5, 0.5)])
def test_of_images_it_is_the_mean_over_all_batches_that_they_make(continent: float, country: float) -> None:
    parents = [0, 0, 1, 1, 2]
    diversity = expected_diversity(size=3, continent=continent, country=country, q=1.0, parents=parents)
    counts = np.array([[3, 1, 2, 0, 2], [0, 0, 3, 0, 0], [1, 1, 1, 1, 1]])
    every = [
        np.mean(
            [
                vendi([(str(parents[i]), str(i), "") for i in batch], weights=(continent, country, 0.0)) / 3
                for batch in combinations(np.repeat(np.arange(5), row).tolist(), 3)
            ]
        )
        for row in counts
    ]
    assert diversity.of_images(counts) == pytest.approx(every)
