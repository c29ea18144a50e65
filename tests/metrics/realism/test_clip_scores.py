"""CLIPScore and what is made of it; means, shares and coverage over images in prompts."""

import math
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from culturekit.core.errors import UsageError
from culturekit.metrics import (
    PRESENCE_THRESHOLDS,
    YesBucket,
    balanced_sample,
    clip_score,
    clustered_share,
    interval,
    neighbourhoods,
    object_consistency,
    objects_present,
    yes_by_score,
)
from culturekit.metrics.realism.clip_scores import consistency_interval, nearest_own
from culturekit.metrics.realism.manifolds import coverage_interval, mean_interval, share_interval


@pytest.mark.parametrize("seed", range(5))
def test_clip_score_is_scikit_learns_cosine_clamped_per_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images, texts = rng.normal(size=(2, 30, 7)) * rng.uniform(0.01, 100, size=(2, 30, 1))
    expected = np.maximum(100 * cosine_similarity(images, texts).diagonal(), 0)
    assert clip_score(images, texts).tolist() == pytest.approx(expected.tolist(), abs=1e-10)
    assert (expected == 0).any()
    small = clip_score(images[:1] * 1e-300, texts[:1] * 1e100, scale=1)
    assert small == pytest.approx(expected[:1] / 100, abs=1e-12)


def test_a_zero_vector_is_named_by_its_own_row() -> None:
    images = np.ones((5000, 2))
    images[4500] = 0
    with pytest.raises(UsageError, match=r"image_vectors\[4500\]"):
        clip_score(images, np.ones((5000, 2)))


def test_an_object_is_present_from_the_threshold_on() -> None:
    scores = [0.2099999, 0.21, 0.25, 0.2499999]
    assert objects_present(scores).tolist() == [False, True, True, True]
    assert objects_present(scores, threshold=PRESENCE_THRESHOLDS["ldm"]).tolist() == [False, False, True, False]
    assert dict(PRESENCE_THRESHOLDS) == {"geode": 0.21, "dm": 0.21, "ldm": 0.25}


@pytest.mark.parametrize("seed", range(5))
def test_consistency_is_the_mean_of_polars_quantiles(seed: int) -> None:
    import polars as pl

    rng = np.random.default_rng(seed)
    table = pl.DataFrame({"score": rng.uniform(size=90), "object": rng.choice(["bag", "car", "dog"], 90)})
    low = table.group_by("object").agg(pl.col("score").quantile(0.1, "linear"))["score"]
    found = object_consistency(table["score"].to_numpy(), objects=table["object"].to_list())
    assert found == pytest.approx(low.mean())


def test_the_interval_of_consistency_holds_its_level() -> None:
    rng, runs, held = np.random.default_rng(0), 500, 0
    objects = [name for name in "abc" for _ in range(120)]
    true = np.mean([0.2 - 0.05 * 1.2815515655, 0.25 - 0.03 * 1.2815515655, 0.22 - 0.02 * 1.2815515655])
    for _ in range(runs):
        scores = np.concatenate([rng.normal(mean, sd, 120) for mean, sd in ((0.2, 0.05), (0.25, 0.03), (0.22, 0.02))])
        answer = consistency_interval(scores, objects=objects)
        held += bool(answer.low <= true <= answer.high)
    assert 0.92 <= held / runs <= 0.98
    assert math.isnan(consistency_interval([0.1, 0.2], objects=["a", "a"]).low)


def test_the_curve_of_yes_by_hand() -> None:
    scores = [0.205, 0.205, 0.209, 0.29, 0.29, 0.29]
    yes = [True, True, False, True, True, True]
    first, second = yes_by_score(scores, yes, images=["a", "a", "b", "c", "c", "c"])
    assert first.low == 0.2
    assert (first.score, first.rate) == pytest.approx((0.62 / 3 + 0.001 / 3, 2 / 3), abs=1e-9)
    assert (first.images, first.answers) == (2, 3)
    assert first.ci_low < 2 / 3 < first.ci_high
    # 0.29 / 0.01 is a little below 29 in floating point.
    assert (second.low, second.rate, second.images, second.answers) == (0.29, 1.0, 1, 3)
    assert isinstance(second, YesBucket) and math.isnan(second.ci_low)


def test_answers_that_repeat_an_image_add_no_certainty() -> None:
    rng = np.random.default_rng(1)
    yes, images = rng.random(40) < 0.6, [f"i{number}" for number in range(40)]
    once = yes_by_score([0.2] * 40, yes, images=images)[0]
    often = yes_by_score([0.2] * 200, np.tile(yes, 5), images=images * 5)[0]
    assert (often.ci_low, often.ci_high) == pytest.approx((once.ci_low, once.ci_high))
    assert (often.images, often.answers, once.answers) == (40, 200, 40)
    shuffled = rng.permutation(200)
    again = yes_by_score([0.2] * 200, np.tile(yes, 5)[shuffled], images=[(images * 5)[i] for i in shuffled])[0]
    assert (again.ci_low, again.ci_high) == pytest.approx((often.ci_low, often.ci_high))
    by_few = yes_by_score(
        [0.2] * 200, np.tile(yes, 5), images=images * 5, annotators=[str(n // 40) for n in range(200)]
    )
    assert by_few[0].ci_high - by_few[0].ci_low > often.ci_high - often.ci_low


def test_it_is_what_a_loop_over_cosines_finds() -> None:
    rng = np.random.default_rng(3)
    images, texts = rng.normal(size=(60, 8)), rng.normal(size=(4, 8)) * 7
    own = rng.integers(4, size=60)
    expected = []
    for image, place in zip(images, own, strict=True):
        cosines = [float(image @ text) / float(np.linalg.norm(text)) for text in texts]
        expected.append(all(cosines[place] > other for number, other in enumerate(cosines) if number != place))
    found = nearest_own(images, texts, own)
    assert found.tolist() == expected
    assert 0 < found.sum() < 60


def test_of_two_texts_that_are_as_near_neither_is_nearest() -> None:
    assert nearest_own(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([0])).tolist() == [False]


def test_with_equal_prompts_it_is_the_t_interval_over_prompts() -> None:
    rng = np.random.default_rng(0)
    values, prompts = rng.normal(size=120), np.repeat(np.arange(24), 5)
    found = mean_interval(values, clusters=prompts)
    expected = interval(values, prompts=prompts, repeats=np.tile(np.arange(5), 24), target="population")
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))
    found = mean_interval(values, clusters=prompts, target="these")
    expected = interval(values, prompts=prompts, repeats=np.tile(np.arange(5), 24), target="these")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_every_image_weighs_the_same_and_order_does_not_matter() -> None:
    values, prompts = np.arange(60.0), np.repeat(np.arange(20), np.tile([1, 5, 3, 3], 5))
    found = mean_interval(values, clusters=prompts)
    assert found.value == pytest.approx(29.5)
    order = np.random.default_rng(0).permutation(60)
    assert mean_interval(values[order], clusters=prompts[order]) == found
    assert mean_interval([3.0] * 25).low == mean_interval([3.0] * 25).high == 3.0


def test_a_share_is_clustered_share_with_enough_prompts() -> None:
    rng = np.random.default_rng(1)
    prompts = np.repeat(np.arange(30), 6)
    yes = rng.random(180) < np.repeat(rng.random(30), 6)
    found, expected = share_interval(yes, clusters=prompts), clustered_share(yes, {"prompt": prompts})
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))


@pytest.mark.parametrize("function", [mean_interval, share_interval])
def test_what_does_not_say_how_it_scatters_has_no_limits(function: Any) -> None:
    assert math.isnan(function([0, 1] * 20, clusters=[0, 1] * 20).low)
    assert math.isnan(function([0, 1, 1], clusters=[0, 0, 1], target="these").low)
    assert math.isnan(function([0, 1, 1]).low)
    with pytest.raises(UsageError, match="target must be 'these' or 'population'"):
        function([0, 1], clusters=[0, 1], target="all")


def test_a_share_on_which_all_agree_still_has_limits() -> None:
    from scipy.stats import binomtest

    found = share_interval([1] * 400, clusters=list(range(20)) * 20)
    assert found.value == found.high == 1
    # As uncertain as 20 images, by t with 19 degrees of freedom.
    assert 0.75 < found.low < binomtest(20, 20).proportion_ci(method="wilson").low
    assert share_interval([1] * 400, clusters=list(range(20)) * 20, target="these").low > 0.98
    with pytest.raises(UsageError, match="yes must be True and False"):
        share_interval([0.5] * 30)


def drawn_world(rng: np.random.Generator) -> Any:
    """Fakes of 30 prompts, each near a point of its own."""
    centres = rng.normal(size=(30, 2)) * 1.5
    return np.repeat(centres, 4, axis=0) + rng.normal(size=(120, 2)) * 0.4, np.repeat(np.arange(30), 4)


def test_the_interval_of_coverage_holds_its_level_and_a_bootstrap_does_not() -> None:
    rng = np.random.default_rng(5)
    real = rng.normal(size=(150, 2)) * 1.5
    coverages = [neighbourhoods(real, drawn_world(rng)[0]).prdc.coverage for _ in range(300)]
    true, held, below, runs = float(np.mean(coverages)), 0, 0, 200
    for _ in range(runs):
        fake, prompts = drawn_world(rng)
        answer = coverage_interval(neighbourhoods(real, fake, groups=prompts), strata=None, groups=30)
        held += answer.low <= true <= answer.high
        resampled = rng.integers(0, 30, 30)
        rows = (resampled[:, None] * 4 + np.arange(4)).ravel()
        below += neighbourhoods(real, fake[rows]).prdc.coverage < answer.value
    assert held / runs >= 0.93
    assert below / runs > 0.9


def test_the_jackknife_of_coverage_by_hand() -> None:
    rng = np.random.default_rng(8)
    real = rng.normal(size=(60, 2))
    fake, prompts = rng.normal(size=(44, 2)), np.repeat(np.arange(22), 2)
    found = neighbourhoods(real, fake, k=2, groups=prompts)
    without = [neighbourhoods(real, fake[prompts != out], k=2).prdc.coverage for out in range(22)]
    answer = coverage_interval(found, strata=None, groups=22)
    margin = 2.0796138447276626 * math.sqrt(21 * np.var(without))
    assert answer.value == found.prdc.coverage
    assert (answer.low, answer.high) == pytest.approx((answer.value - margin, min(1.0, answer.value + margin)))
    one_by_one = neighbourhoods(real, fake, k=2)
    answer = coverage_interval(one_by_one, strata=prompts, groups=44)
    left = np.array([neighbourhoods(real, np.delete(fake, row, axis=0), k=2).prdc.coverage for row in range(44)])
    variance = sum(np.square(pair - pair.mean()).sum() / 2 for pair in left.reshape(22, 2))
    assert answer.value - answer.low == pytest.approx(2.0738730679040147 * math.sqrt(variance))
    assert math.isnan(coverage_interval(one_by_one, strata=np.arange(44), groups=44).low)
    assert math.isnan(coverage_interval(neighbourhoods(real, fake[:8], k=2), strata=None, groups=8).low)


def test_a_balanced_sample_has_equally_many_of_each_cell() -> None:
    cells = ["b"] * 30 + ["a"] * 12 + ["c"] * 50
    drawn = balanced_sample(cells, rng=np.random.default_rng(0))
    assert [cells[row] for row in drawn] == ["b"] * 12 + ["a"] * 12 + ["c"] * 12
    assert len(set(drawn.tolist())) == 36
    assert drawn.tolist() == balanced_sample(cells, rng=np.random.default_rng(0)).tolist()
    assert drawn.tolist() != balanced_sample(cells, rng=np.random.default_rng(1)).tolist()
    assert len(balanced_sample(cells, size=5, rng=np.random.default_rng(0))) == 15
    assert balanced_sample([], rng=np.random.default_rng(0)).tolist() == []
    # Every row of a cell is as likely as any other.
    counts = np.zeros(92)
    for seed in range(300):
        counts[balanced_sample(cells, size=3, rng=np.random.default_rng(seed))] += 1
    assert counts[:30].std() < 3 * math.sqrt(30) and counts[:30].mean() == 30
    with pytest.raises(UsageError, match="expected 13 of each, found 12 of 'a'"):
        balanced_sample(cells, size=13, rng=np.random.default_rng(0))
