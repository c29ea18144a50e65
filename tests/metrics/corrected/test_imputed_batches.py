import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics import audit_sample, vendi, vendi_corrected
from culturekit.metrics.corrected.audited_counts import AuditedCounts, audited_counts
from culturekit.metrics.corrected.corrected_diversity import checked_options, correct_counts, mean_of
from culturekit.metrics.corrected.image_batches import ImageBatches, few_images, image_batches
from culturekit.metrics.corrected.imputed_batches import ImputedLabels, correct_batches, others
from culturekit.metrics.corrected.prompt_likeness import likeness_of
from culturekit.metrics.diversity.kernels import Weights
from tests.metrics.corrected.audits_by_hand import COUNTRIES, audits_of, mapped_with_error, matches_of

COUNTRY: Weights = (0.0, 1.0, 0.0)


def batches_of(
    mapped: list[list[int]], *, prompts: list[int] | None = None, weights: Weights = COUNTRY
) -> ImageBatches:
    parents = np.array([0, 0, 1])
    return ImageBatches(np.array(mapped), np.array(prompts or range(len(mapped))), parents, weights, 1.0)


def scored_by_definition(labels: tuple[int, ...], weights: Weights) -> float:
    triples = [(str([0, 0, 1][label]) if weights[1] else str(label), str(label), "") for label in labels]
    return vendi(triples, weights=weights) / len(labels)


def naive_mean(cells: list[int], findings: NDArray[np.float64], pull: NDArray[np.float64], weights: Weights) -> float:
    """Every way to label a batch, weighed by what an urn gives: each label adds its pull to the next of its kind."""
    total = chance = 0.0
    for labels in itertools.product(range(findings.shape[1]), repeat=len(cells)):
        odds = 1.0
        for place, label in enumerate(labels):
            odds *= findings[cells[place], label] * (1 + pull[label] * labels[:place].count(label))
        chance += odds
        total += odds * scored_by_definition(labels, weights)
    return total / chance


@pytest.mark.parametrize("weights", [COUNTRY, (1.0, 0.0, 0.0), (0.5, 0.5, 0.0)])
@pytest.mark.parametrize("strength", [0.0, 0.8])
def test_drawn_labels_score_what_all_labels_do_weighed_by_their_chance(weights: Weights, strength: float) -> None:
    findings = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
    pull = strength / np.array([0.5, 0.2, 0.3])
    batches = batches_of([[0, 0, 1]] * 2000, weights=weights)
    rng = np.random.default_rng(0)
    imputed = ImputedLabels(batches.mapped, findings=1, labels=3)
    for _ in range(6):
        labels = imputed.draw(findings[None], pull[None], rng.random(batches.mapped.shape))
    means = [
        batches.scores(imputed.draw(findings[None], pull[None], rng.random(batches.mapped.shape))).mean()
        for _ in range(10)
    ]
    assert labels.shape == (1, 2000, 3)
    # 20,000 batches whose scores scatter by less than 0.25: five standard errors.
    assert np.mean(means) == pytest.approx(naive_mean([0, 0, 1], findings, pull, weights), abs=0.009)


def test_batches_count_by_prompt() -> None:
    batches = batches_of([[0, 0], [0, 1], [1, 2]], prompts=[0, 0, 1])
    assert batches.scores(batches.mapped).tolist() == pytest.approx([0.5, 1.0, 1.0])
    assert batches.over_prompts(batches.scores(batches.mapped)) == pytest.approx((0.75 + 1) / 2)


def test_prompts_that_are_alike_pull_no_label_and_those_that_are_not_do() -> None:
    findings = np.eye(2)
    apart = batches_of([[0, 0, 0, 0], [1, 1, 1, 1]] * 20)
    mixed = batches_of([[0, 1, 0, 1], [1, 0, 1, 0]] * 20)
    for batches, part in ((apart, 0.95), (mixed, 0.0)):
        likeness = likeness_of(batches, batches.mapped)
        pull = likeness.pull(findings, float(likeness.inside.mean()))
        assert pull == pytest.approx(np.full(2, part / (1 - part) / 0.5))


def test_the_part_of_pairs_with_one_label_is_found_through_a_mapping_that_errs() -> None:
    rng = np.random.default_rng(3)
    errors = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]])
    shares, spread = np.array([0.5, 0.3, 0.2]), 4.0
    of_prompt = rng.dirichlet(spread * shares, size=6000)
    labels = np.array([rng.choice(3, size=8, p=row) for row in of_prompt])
    mapped = (errors[labels].cumsum(axis=2) < rng.random((*labels.shape, 1))).sum(axis=2)
    batches = batches_of(mapped.tolist())
    both = shares[:, None] * errors
    likeness = likeness_of(batches, mapped)
    pull = likeness.pull((both / both.sum(axis=0)).T, float(likeness.inside.mean()))
    assert pull * shares == pytest.approx(1 / spread, rel=0.1)


def test_one_value_does_not_scatter_and_several_do_as_their_mean_does() -> None:
    rng = np.random.default_rng(0)
    assert others(np.array([3.0]), draws=4, rng=rng).tolist() == [0, 0, 0, 0]
    values = rng.random(10)
    drawn = others(values, draws=20_000, rng=rng)
    assert drawn.std() == pytest.approx(values.std(ddof=1) / np.sqrt(10), rel=0.03)


def simulated(seed: int, *, prompts: int, spread: float) -> tuple[pl.DataFrame, pl.DataFrame, float]:
    """Prompts of 8 images with shares of their own, audits of 150 of them, and the true mean of their batches."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(spread * np.array([0.4, 0.2, 0.15, 0.1, 0.1, 0.05]), size=prompts)
    labels = np.array([rng.choice(6, size=8, p=row) for row in shares]).T.ravel()
    truth: list[str | None] = [COUNTRIES[label] for label in labels]
    matches = matches_of(mapped_with_error(truth, accuracy=0.8, rng=rng), prompts=prompts)
    found = dict(zip(matches["image_id"].to_list(), truth, strict=True))
    audit = audits_of({image: found[image] for image in audit_sample(matches, n=150, rng=rng)["image_id"]})
    batches = labels.reshape(8, prompts).T
    true = np.mean([vendi([("", str(label), "") for label in batch], weights=COUNTRY) / 8 for batch in batches])
    return matches, audit, float(true)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [5.0, 200.0])
def test_few_images_of_a_prompt_are_corrected_without_bias(spread: float) -> None:
    errors, held, by_shares = [], 0, []
    for seed in range(12):
        matches, audit, true = simulated(seed, prompts=60, spread=spread)
        answer = vendi_corrected(matches, audit, weights=COUNTRY, rng=np.random.default_rng(seed))
        errors.append(answer.value - true)
        held += answer.low <= true <= answer.high
        counts = audited_counts(matches, audit, weights=COUNTRY)
        mean = mean_of(counts, checked_options(COUNTRY, 1.0, 8, 0.95))
        by_shares.append(correct_counts(counts, mean, rng=np.random.default_rng(seed)).value - true)
    assert abs(np.mean(errors)) < 0.02  # their standard error is 0.006
    assert held >= 9
    assert abs(np.mean(errors)) < abs(np.mean(by_shares))


def test_many_images_of_a_prompt_are_corrected_by_their_shares() -> None:
    rng = np.random.default_rng(1)
    truth: list[str | None] = [COUNTRIES[label] for label in rng.choice(6, size=400)]
    matches = matches_of(mapped_with_error(truth, accuracy=0.8, rng=rng), prompts=10)
    audit = audits_of(dict(zip(matches["image_id"].to_list()[:150], truth, strict=False)))
    assert few_images(matches.head(399), 9)
    assert not few_images(matches, 8)
    counts = audited_counts(matches, audit, weights=COUNTRY)
    mean = mean_of(counts, checked_options(COUNTRY, 1.0, 8, 0.95))
    expected = correct_counts(counts, mean, rng=np.random.default_rng(5))
    assert vendi_corrected(matches, audit, weights=COUNTRY, rng=np.random.default_rng(5)) == expected


def test_a_rest_makes_no_batch_and_no_batch_at_all_is_said() -> None:
    matches = matches_of([COUNTRIES[number % 6] for number in range(60)], prompts=6)
    audit = audits_of({image: COUNTRIES[number % 6] for number, image in enumerate(matches["image_id"])})
    counts = audited_counts(matches, audit, weights=COUNTRY)
    batches = image_batches(matches, counts, weights=COUNTRY, q=1.0, size=4)
    assert batches.mapped.shape == (12, 4)
    assert batches.prompts.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    with pytest.raises(UsageError, match="no prompt has as many images as a batch; expected 12 images of some prompt"):
        vendi_corrected(matches, audit, weights=COUNTRY, size=12, rng=np.random.default_rng(0))


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 1000), order=st.permutations(range(4)))
def test_neither_names_nor_the_order_of_rows_change_the_answer(seed: int, order: list[int]) -> None:
    matches, audit, _ = simulated(seed, prompts=20, spread=5.0)
    ask = {"weights": COUNTRY}
    one = vendi_corrected(matches, audit, rng=np.random.default_rng(seed), **ask)  # type: ignore[arg-type]
    shuffled = matches.sample(fraction=1, shuffle=True, seed=seed)
    assert one == vendi_corrected(shuffled, audit.reverse(), rng=np.random.default_rng(seed), **ask)  # type: ignore[arg-type]
    names = {country: f"{country} (renamed)" for country in COUNTRIES}
    renamed = [table.with_columns(pl.col("country").replace(names)) for table in (matches, audit)]
    assert one == vendi_corrected(*renamed, rng=np.random.default_rng(seed), **ask)  # type: ignore[arg-type]
    # With other places in the alphabet other labels are drawn: the answer is the same but for that.
    turned = {country: f"{order[number % 4]}{country}" for number, country in enumerate(COUNTRIES)}
    other = [table.with_columns(pl.col("country").replace(turned)) for table in (matches, audit)]
    again = vendi_corrected(*other, rng=np.random.default_rng(seed), **ask)  # type: ignore[arg-type]
    assert again.value == pytest.approx(one.value, abs=0.25 * (one.high - one.low) + 1e-9)


def test_counts_of_one_label_have_no_scatter() -> None:
    mapped = np.zeros((5, 4), np.int64)
    counts = AuditedCounts(("a",), np.zeros(1, np.int64), np.full((5, 1), 4), np.full((1, 1), 40.0), 20, 40)
    batches = ImageBatches(mapped, np.arange(5), np.zeros(1, np.int64), COUNTRY, 1.0)
    answer = correct_batches(counts, batches, rng=np.random.default_rng(0), draws=20)
    assert (answer.value, answer.low, answer.high) == (0.25, 0.25, 0.25)
