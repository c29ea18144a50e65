from itertools import product

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample, vendi_corrected
from culturekit.metrics.corrected.audited_counts import RaterModel
from culturekit.metrics.corrected.corrected_diversity import (
    LEVELS,
    corrected_pair_mean,
    found_artifacts,
    means_of_images,
    squared_similarities,
    u_statistic,
)
from tests.metrics.corrected.audits_by_hand import CONTINENT, COUNTRIES, audits_of, matches_of

UNIFORM = (1 / 3, 1 / 3, 1 / 3)
ARTIFACT = (0.0, 0.0, 1.0)
ARTIFACTS = 40
LABELS = ("country", "continent", "artifact_id")


def drawn(images: int, *, accuracy: float, seed: int) -> tuple[pl.DataFrame, dict[str, str | None], dict[str, str]]:
    """Images of artifacts that are common to different degrees, some of them mapped to another artifact."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, ARTIFACTS + 1)
    true = rng.choice(ARTIFACTS, p=shares / shares.sum(), size=images)
    mapped = np.where(rng.random(images) < accuracy, true, rng.integers(ARTIFACTS, size=images))
    matches = matches_of([COUNTRIES[a % 6] for a in mapped], artifacts=[f"a{a}" for a in mapped])
    ids = matches["image_id"].to_list()
    countries: dict[str, str | None] = {i: COUNTRIES[a % 6] for i, a in zip(ids, true, strict=True)}
    return matches, countries, {i: f"a{a}" for i, a in zip(ids, true, strict=True)}


def numbered(matches: pl.DataFrame) -> NDArray[np.int64]:
    return matches.select(pl.col("continent", "country", "artifact_id").rank("dense").cast(pl.Int64)).to_numpy().T


def true_mean(images: int, weights: tuple[float, float, float]) -> float:
    """The mean of k² over pairs, from the shares themselves."""
    shares = 1 / np.arange(1, ARTIFACTS + 1)
    shares = shares / shares.sum()
    country = np.arange(ARTIFACTS) % 6
    continent = np.array([sorted(set(CONTINENT.values())).index(CONTINENT[COUNTRIES[c]]) for c in country])
    kernel = sum(
        weight * (codes[:, None] == codes[None, :])
        for weight, codes in zip(weights, (continent, country, np.arange(ARTIFACTS)), strict=True)
    )
    return float(shares @ kernel**2 @ shares)


@pytest.mark.parametrize("weights", [UNIFORM, ARTIFACT, (0.2, 0.3, 0.5)])
def test_the_mean_over_all_pairs_is_counted_without_looking_at_pairs(weights: tuple[float, float, float]) -> None:
    matches, _, _ = drawn(300, accuracy=0.8, seed=1)
    labels = numbered(matches)
    pairs = squared_similarities(labels, weights)
    assert means_of_images(labels, weights) == pytest.approx(pairs.sum(axis=1) / 299, abs=1e-12)


@pytest.mark.parametrize(("labels", "most"), [(100, 1.3), (20, 1.4)])
def test_the_variance_of_a_mean_over_pairs_is_that_of_its_formula(labels: int, most: float) -> None:
    rng, n = np.random.default_rng(0), 60
    for shares, above in (
        (np.full(labels, 1 / labels), most),
        (np.r_[0.6, np.full(labels - 1, 0.4 / (labels - 1))], 1.1),
    ):
        alike = float((shares**2).sum())
        of_one, of_two = float((shares**3).sum()) - alike**2, alike - alike**2
        true = (4 * (n - 2) * of_one + 2 * of_two) / (n * (n - 1))  # Hoeffding
        found = []
        for _ in range(400):
            said = rng.choice(labels, p=shares, size=n)
            pairs = (said[:, None] == said).astype(np.float64)
            np.fill_diagonal(pairs, 0.0)
            found.append(u_statistic(pairs)[1])
        assert 0.9 <= np.mean(found) / true <= above  # of 100 even labels the jackknife alone gave 2.2 times as much


@pytest.mark.parametrize("weights", [UNIFORM, ARTIFACT])
def test_a_mapping_never_makes_the_interval_wider_than_labels_alone(weights: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(3)
    true = rng.integers(ARTIFACTS, size=400)
    hubs = np.where(rng.random(400) < 0.5, true, rng.integers(3, size=400))
    shown = [matches_of([COUNTRIES[a % 6] for a in each], artifacts=[f"a{a}" for a in each]) for each in (hubs, true)]
    sample = audit_sample(shown[0], n=150, rng=rng)["image_id"]
    said = shown[1].filter(pl.col("image_id").is_in(sample.implode()))
    artifacts = dict(said.select("image_id", "artifact_id").iter_rows())
    audits = audits_of(dict(said.select("image_id", "country").iter_rows()), artifacts=artifacts)
    nothing = shown[0].with_columns(pl.lit(shown[0][name][0]).alias(name) for name in LABELS)
    mapped, alone = (
        vendi_corrected(matches, audits, weights=weights, q=2.0, rng=np.random.default_rng(0))
        for matches in (shown[0], nothing)
    )
    assert mapped.high - mapped.low <= 1.01 * (alone.high - alone.low)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [UNIFORM, ARTIFACT])
def test_the_interval_holds_the_order_two_diversity_of_what_is_shown(weights: tuple[float, float, float]) -> None:
    value = 1 / (1 + 7 * true_mean(ARTIFACTS, weights))
    held, errors, naive = 0, [], []
    for seed in range(40):
        matches, countries, artifacts = drawn(2000, accuracy=0.75, seed=seed)
        sample = audit_sample(matches, n=150, rng=np.random.default_rng(seed))["image_id"].to_list()
        audit = audits_of({i: countries[i] for i in sample}, artifacts={i: artifacts[i] for i in sample})
        answer = vendi_corrected(matches, audit, weights=weights, q=2.0, rng=np.random.default_rng(0))
        naive.append(1 / (1 + 7 * means_of_images(numbered(matches), weights).mean()) - value)
        held += answer.low <= value <= answer.high
        errors.append(answer.value - value)
    assert held >= 33  # 95 % of 40 is 38; fewer than 33 would come once in a thousand
    assert abs(np.mean(errors)) < 0.02
    assert abs(np.mean(naive)) > 2 * abs(np.mean(errors))


@pytest.mark.parametrize("weights", [UNIFORM, ARTIFACT])
def test_a_mapping_that_is_always_right_leaves_how_images_scatter_told_with_caution(
    weights: tuple[float, float, float],
) -> None:
    labels = numbered(drawn(300, accuracy=1.0, seed=2)[0])
    found = [labels.astype(float)[level] * np.where(np.arange(300) < 60, 1, np.nan) for level in range(3)]
    columns = dict(zip(LEVELS, labels, strict=True)) | dict(
        zip([f"{level}_found" for level in LEVELS], found, strict=True)
    )
    images = pl.DataFrame(columns).with_columns(pl.selectors.ends_with("_found").fill_nan(None))
    raters = RaterModel(np.eye(1), np.ones(1), 1.0)
    mean = corrected_pair_mean(images, "p", weights=weights, raters=raters, helped=True)
    of_images = squared_similarities(labels, weights).sum(axis=1) / 299
    assert mean.value == pytest.approx(of_images.mean())
    assert mean.variance == pytest.approx(1.1**2 * 4 * of_images.var(ddof=1) / 300)


def test_each_prompt_needs_an_audit_of_its_own() -> None:
    matches, countries, artifacts = drawn(300, accuracy=0.8, seed=1)
    two = matches.with_columns(prompt_id=pl.when(pl.int_range(pl.len()) < 200).then(pl.lit("p")).otherwise(pl.lit("r")))
    sample = audit_sample(two, n=36, rng=np.random.default_rng(1))
    audit = audits_of(countries, artifacts=artifacts).filter(pl.col("image_id").is_in(sample["image_id"].implode()))
    with pytest.raises(UsageError, match="too few images of a prompt were audited"):
        vendi_corrected(two, audit, weights=ARTIFACT, q=2.0, rng=np.random.default_rng(0))


def test_what_an_audit_may_have_missed_is_the_same_in_three_prompts_as_in_one() -> None:
    matches = matches_of(["JP"] * 600, prompts=3, artifacts=["x"] * 600)
    widths = []
    for table in (matches, matches.with_columns(prompt_id=pl.lit("p"))):
        asked = audit_sample(table, n=150, rng=np.random.default_rng(1))["image_id"].to_list()
        audit = audits_of(dict.fromkeys(asked, "JP"), artifacts=dict.fromkeys(asked, "x"))
        answer = vendi_corrected(table, audit, weights=ARTIFACT, q=2.0, rng=np.random.default_rng(0))
        assert answer.low <= 1 / 8 < answer.high
        widths.append(answer.high - answer.low)
    assert widths[0] == pytest.approx(widths[1], rel=0.01)  # it was wider by the root of three


@pytest.mark.parametrize("prompts", [1, 3])
def test_pairs_of_one_mapped_label_that_an_even_audit_meets_seldom_are_made_good(prompts: int) -> None:
    truth: list[str | None] = [COUNTRIES[number // prompts % 6] for number in range(540)]
    matches = matches_of(truth, prompts=prompts, artifacts=[f"unlike all others {number}" for number in range(540)])
    shown = dict(zip(matches["image_id"].to_list(), truth, strict=True))
    asked = audit_sample(matches, n=90, rng=np.random.default_rng(1))["image_id"].to_list()
    audit = audits_of({i: shown[i] for i in asked}, artifacts={i: f"dish of {shown[i]}" for i in asked})
    found = found_artifacts(matches, audit, weights=ARTIFACT)
    each = 540 // prompts
    for helped, (name, rows) in product((True, False), found.images.group_by("prompt_id")):
        images = rows.drop("prompt_id")
        mean = corrected_pair_mean(images, str(name), weights=ARTIFACT, raters=found.raters, helped=helped)
        assert mean.value == pytest.approx((each / 6 - 1) / (each - 1), abs=1e-12)  # diversity was up to .04 higher


def test_few_images_of_each_prompt_do_not_make_a_model_look_more_diverse() -> None:
    errors = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        drawn = rng.choice(6, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05], size=400)
        matches = matches_of(["JP"] * 400, prompts=16, artifacts=["x"] * 400)
        dishes = {image: f"dish {label}" for image, label in zip(matches["image_id"], drawn, strict=True)}
        audit = audits_of(dict.fromkeys(dishes, "JP"), artifacts=dishes)
        value = vendi_corrected(matches, audit, weights=ARTIFACT, q=2.0, rng=rng).value
        errors.append(value - 1 / (1 + 7 * 0.245))
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(40)  # it was 3.8 standard errors too high
