"""Prompts that differ, one label, few images: what imputed labels give, put right by the audit."""

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics import audit_sample, vendi_corrected
from culturekit.metrics.corrected.expected_diversity import expected_diversity
from culturekit.metrics.corrected.imputed_draws import tables
from culturekit.metrics.corrected.imputed_prompts import Findings, impute
from culturekit.metrics.corrected.rectified import beyond, distances
from tests.metrics.corrected.audits_by_hand import COUNTRIES, audits_of, mapped_with_error, matches_of

COUNTRY = (0.0, 1.0, 0.0)
SHARES = np.array([0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
CONTINENTS = np.array([0, 1, 1, 2, 0, 3])


class Differing:
    """Prompts with shares of their own around those of the model, and an audit of 150 of their images."""

    def __init__(self, seed: int, *, prompts: int, each: int, spread: float = 5.0) -> None:
        rng = np.random.default_rng(seed)
        self.shares = rng.dirichlet(spread * SHARES, size=prompts)
        of = np.arange(prompts * each) % prompts
        truth: list[str | None] = [COUNTRIES[rng.choice(6, p=self.shares[prompt])] for prompt in of]
        self.matches = matches_of(mapped_with_error(truth, accuracy=0.8, rng=rng), prompts=prompts)
        of_image = dict(zip(self.matches["image_id"].to_list(), truth, strict=True))
        drawn = audit_sample(self.matches, n=150, rng=rng)["image_id"].to_list()
        self.audit = audits_of({image: of_image[image] for image in drawn})

    def truth(self, size: int = 8) -> float:
        diversity = expected_diversity(size=size, continent=0.0, country=1.0, q=1.0, parents=[0] * 6)
        return float(diversity(self.shares).mean())


@pytest.mark.slow
@pytest.mark.parametrize(("prompts", "each", "size"), [(24, 40, 8), (24, 39, 8), (150, 4, 4)])
def test_prompts_that_differ_are_corrected_whatever_their_size(prompts: int, each: int, size: int) -> None:
    errors, held = [], 0
    for seed in range(5):
        world = Differing(seed, prompts=prompts, each=each)
        answer = vendi_corrected(
            world.matches, world.audit, weights=COUNTRY, size=size, rng=np.random.default_rng(seed)
        )
        errors.append(answer.value - world.truth(size))
        held += answer.low <= world.truth(size) <= answer.high
    assert held >= 4
    assert abs(np.mean(errors)) < 0.025  # it was +.08 with 40 images, and -.01 with 39


@pytest.mark.parametrize("audited", [50, 150])
def test_a_model_that_shows_all_countries_evenly_is_not_taken_to_show_nothing(audited: int) -> None:
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth: list[str | None] = [COUNTRIES[label] for label in rng.integers(6, size=400)]
        matches = matches_of(truth, prompts=1)
        drawn = audit_sample(matches, n=audited, rng=rng)["image_id"].to_list()
        of_image = dict(zip(matches["image_id"].to_list(), truth, strict=True))
        answer = vendi_corrected(
            matches, audits_of({image: of_image[image] for image in drawn}), weights=COUNTRY, rng=rng
        )
        counts = np.array([[truth.count(country) for country in COUNTRIES]])
        diversity = expected_diversity(size=8, continent=0.0, country=1.0, q=1.0, parents=[0] * len(COUNTRIES))
        errors.append(answer.value - float(diversity.of_images(counts)[0]))
    assert abs(np.mean(errors)) < 0.005  # all are mapped rightly; it was +.02 with 50


@pytest.mark.parametrize("seed", [3, 5])
def test_how_alike_images_of_small_prompts_are_widens_the_interval(seed: int) -> None:
    world = Differing(seed, prompts=75, each=4)
    answer = vendi_corrected(world.matches, world.audit, weights=COUNTRY, size=4, rng=np.random.default_rng(seed))
    assert answer.low <= world.truth(4) <= answer.high  # it was .02 below the lower limit


def test_what_slopes_explain_of_the_draws_is_no_doubt_that_people_leave() -> None:
    rng = np.random.default_rng(0)
    counts = [rng.multinomial(10, SHARES, size=(40, 5)) for _ in range(2)]
    slope = rng.normal(size=(5, 6))
    straight = np.stack([np.einsum("dkl,kl->d", one, slope) / 50 for one in counts])
    assert beyond(straight, counts, slope) == pytest.approx(0.0, abs=1e-12)
    apart = np.array([[0.0], [1.0]])  # draws of two imputations that differ
    assert beyond(straight + apart, counts, slope) == pytest.approx(0.25)


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


@pytest.mark.parametrize("accuracy", [0.3, 1.0])
def test_where_people_saw_one_label_the_lower_end_is_that_of_one_label(accuracy: float) -> None:
    truth: list[str | None] = ["JP"] * 1200
    matches = matches_of(mapped_with_error(truth, accuracy=accuracy, rng=np.random.default_rng(1)), prompts=3)
    sample = audit_sample(matches, n=150, rng=np.random.default_rng(2))["image_id"].to_list()
    for seed in range(4):
        answer = vendi_corrected(
            matches, audits_of(dict.fromkeys(sample, "JP")), weights=COUNTRY, rng=np.random.default_rng(seed)
        )
        assert answer.low == 1 / 8
        assert 1 / 8 < answer.high < 0.15


def test_where_people_saw_one_continent_its_kernel_begins_at_one_label() -> None:
    truth: list[str | None] = ["JP", "IN"] * 300
    matches = matches_of(mapped_with_error(truth, accuracy=0.8, rng=np.random.default_rng(1)))
    shown = dict(zip(matches["image_id"].to_list(), truth, strict=True))
    sample = audit_sample(matches, n=150, rng=np.random.default_rng(2))["image_id"].to_list()
    audit = audits_of({image: shown[image] for image in sample})
    answer = vendi_corrected(matches, audit, weights=(1.0, 0.0, 0.0), rng=np.random.default_rng(0))
    assert answer.low == 1 / 8  # it was above that in 20 of 20 audits
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


def mapped_images(seed: int, *, prompts: int, each: int) -> tuple[NDArray[np.int64], Findings]:
    """Images mapped without error, of which a tenth is audited."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(6, p=SHARES, size=(prompts, each))
    mapped = np.array([np.bincount(row, minlength=7) for row in labels])
    prompt, place = np.divmod(np.arange(0, labels.size, 10), each)
    shown = labels[prompt, place]
    return mapped, Findings(prompt, shown, np.eye(7)[shown])


def test_a_mapping_without_error_is_imputed_as_it_is() -> None:
    mapped, found = mapped_images(1, prompts=12, each=60)
    imputed = impute(mapped, found, np.append(CONTINENTS, 4), 6, rng=np.random.default_rng(0))
    assert (imputed.counts.sum(axis=2) == 60).all()
    assert np.abs(imputed.counts.mean(axis=0) - mapped).max() < 4
    there = mapped > 0
    assert imputed.chances.sum(axis=2)[there] == pytest.approx(1.0)
    assert imputed.shares.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.slow
def test_chains_of_different_seeds_tell_the_same() -> None:
    world = Differing(2, prompts=24, each=40)
    values = [
        vendi_corrected(world.matches, world.audit, weights=COUNTRY, rng=np.random.default_rng(seed)).value
        for seed in range(4)
    ]
    assert np.ptp(values) < 0.03


def test_draws_from_the_model_have_the_mean_that_the_chinese_restaurant_has() -> None:
    rng = np.random.default_rng(0)
    counts, prior = np.array([[1, 2, 5, 40, 0]]), np.array([0.3, 1.5, 4.0, 0.2, 1.0])
    drawn = np.mean([tables(counts, prior, rng)[0] for _ in range(4000)], axis=0)
    expected = [sum(c / (c + step) for step in range(n)) for c, n in zip(prior, counts[0], strict=True)]
    assert drawn == pytest.approx(expected, abs=0.05)


def test_limits_lie_as_far_as_the_error_tells() -> None:
    away = np.random.default_rng(0).normal(0, 0.01, 4000)
    low, high = distances(away, 0.02, 0.1, 0.95)
    assert (low, high) == pytest.approx((-1.96 * 0.021, 1.96 * 0.021), rel=0.05)
    assert distances(np.zeros(10), 0.01, 0.1, 0.95) == pytest.approx((-0.0196, 0.0196), abs=1e-4)


@pytest.mark.parametrize("draws", [90, 300])
def test_limits_beyond_all_draws_lie_further_out_than_those_within(draws: int) -> None:
    away = np.random.default_rng(0).normal(0, 0.01, draws)
    of_95, of_999, of_9999 = (np.ptp(distances(away, 0.01, 1.0, confidence)) for confidence in (0.95, 0.999, 0.9999))
    assert of_999 / of_95 == pytest.approx(3.29 / 1.96, rel=0.1)  # it was that of the farthest draws
    assert of_9999 / of_999 == pytest.approx(3.89 / 3.29, rel=0.01)  # both were


def test_limits_are_never_further_apart_than_those_of_labels_alone() -> None:
    away = np.random.default_rng(0).gamma(2.0, 0.01, 4000)
    low, high = distances(away - away.mean(), 0.02, 0.01, 0.95)
    assert high - low == pytest.approx(2 * 1.96 * 0.01, rel=1e-3)
    assert high > -low  # the longer side stays the longer


def test_countries_outside_the_space_are_labels_of_their_own() -> None:
    rng = np.random.default_rng(3)
    countries = [f"c{number:02}" for number in range(30)]
    of = rng.integers(30, size=900)
    truth: list[str | None] = [countries[number] for number in of]
    matches = matches_of([countries[label] for label in np.where(of < 10, of, rng.integers(10, size=900))], prompts=3)
    ids = audit_sample(matches, n=150, rng=rng)["image_id"].to_list()
    of_image = dict(zip(matches["image_id"].to_list(), truth, strict=True))
    audit = audits_of({image: of_image[image] for image in ids}).with_columns(continent=pl.lit("everywhere"))
    matches = matches.with_columns(continent=pl.lit("everywhere"))
    diversity = expected_diversity(size=8, continent=0.0, country=1.0, q=1.0, parents=[0] * 30)
    true = float(diversity(np.full(30, 1 / 30))[0])
    answer = vendi_corrected(matches, audit, weights=COUNTRY, rng=rng)
    assert abs(answer.value - true) < 0.02
    assert answer.low <= true <= answer.high
    outside = pl.col("country") >= "c10"
    untold = audit.with_columns(country=pl.when(~outside).then("country"), none_of_these=outside)
    for means in ("not in the list", "cannot tell"):
        told = untold.with_columns(none_means=pl.when("none_of_these").then(pl.lit(means)))
        with pytest.raises(UsageError, match="neither a country nor none of these"):
            vendi_corrected(matches, told, weights=COUNTRY, rng=rng)
