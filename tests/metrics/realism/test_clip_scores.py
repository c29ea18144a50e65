"""CLIPScore and what is made of it: cosines, objects shown, consistency, how often people agree."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from culturekit.core.errors import UsageError
from culturekit.metrics import (
    PRESENCE_THRESHOLDS,
    YesBucket,
    clip_score,
    object_consistency,
    objects_present,
    yes_by_score,
)
from culturekit.metrics.realism.clip_scores import consistency_interval

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("seed", range(5))
def test_clip_score_is_scikit_learns_cosine_clamped_per_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images, texts = rng.normal(size=(2, 30, 7)) * rng.uniform(0.01, 100, size=(2, 30, 1))
    expected = np.maximum(100 * cosine_similarity(images, texts).diagonal(), 0)
    assert clip_score(images, texts).tolist() == pytest.approx(expected.tolist(), abs=1e-10)
    assert (expected == 0).any()


@settings(max_examples=50)
@given(seeds, st.floats(1e-3, 1e3))
def test_clip_score_identities_and_invariances(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    images, texts = rng.normal(size=(2, 12, 5))
    found = clip_score(images, texts)
    assert ((found >= 0) & (found <= 100)).all()
    assert clip_score(images, images).tolist() == pytest.approx([100.0] * 12)
    assert clip_score(images, -images).tolist() == [0.0] * 12
    assert clip_score(images * factor, texts / factor).tolist() == pytest.approx(found.tolist(), abs=1e-9)
    assert clip_score(texts, images).tolist() == pytest.approx(found.tolist(), abs=1e-9)
    assert clip_score(images, texts, scale=1).tolist() == pytest.approx((found / 100).tolist(), abs=1e-12)
    order = rng.permutation(12)
    assert clip_score(images[order], texts[order]).tolist() == found[order].tolist()
    assert clip_score(images[:1] * 1e-300, texts[:1] * 1e100).tolist() == pytest.approx(found[:1].tolist(), abs=1e-9)


def test_many_pairs_are_scored_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    images, texts = np.random.default_rng(0).normal(size=(2, 5000, 3)).astype(np.float32)
    whole = clip_score(images, texts)
    assert whole[4990:].tolist() == clip_score(images[4990:], texts[4990:]).tolist()


WRONG_PAIRS = [
    (([[1, 2], [0, 0]], [[1, 1], [1, 1]]), r"image_vectors\[1\] must be a vector with a direction; found 'only zeros'"),
    (([[1, 2]], [[0.0, 0.0]]), r"text_vectors\[0\] must be a vector with a direction"),
    (([[1, 2]], [[1, 2], [1, 2]]), "each image has one text; expected 1 text_vectors, found 2"),
    (([[1, 2]], [[1, 2, 3]]), "image_vectors and text_vectors must come from one extractor"),
]


@pytest.mark.parametrize(("vectors", "message"), WRONG_PAIRS)
def test_what_has_no_cosine_is_named(vectors: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        clip_score(*vectors)


def test_a_zero_vector_is_named_by_its_own_row() -> None:
    images = np.ones((5000, 2))
    images[4500] = 0
    with pytest.raises(UsageError, match=r"image_vectors\[4500\]"):
        clip_score(images, np.ones((5000, 2)))
    with pytest.raises(UsageError, match="scale must be a number above 0"):
        clip_score(images[:1], images[:1], scale=0)


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


def test_every_object_weighs_the_same_in_consistency() -> None:
    scores, objects = [0.3] * 100 + [0.1], ["car"] * 100 + ["bag"]
    assert object_consistency(scores, objects=objects) == pytest.approx(0.2)
    assert object_consistency(scores[::-1], objects=objects[::-1]) == pytest.approx(0.2)
    assert object_consistency([0.1, 0.3, 0.2], objects=["a"] * 3, percentile=50) == pytest.approx(0.2)
    assert object_consistency(scores * 2, objects=objects * 2) == pytest.approx(0.2)


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


def test_the_curve_of_independent_answers_has_wilsons_limits() -> None:
    from scipy.stats import binomtest

    rng = np.random.default_rng(0)
    yes = rng.random(4000) < 0.7
    (bucket,) = yes_by_score([0.2] * 4000, yes, images=[str(number) for number in range(4000)])
    expected = binomtest(int(yes.sum()), 4000).proportion_ci(method="wilson")
    assert (bucket.ci_low, bucket.ci_high) == pytest.approx((expected.low, expected.high), abs=1e-4)


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


WRONG_ANSWERS = [
    ({"yes": [1, 2]}, "yes must be True and False, or 1 and 0; found 2.0"),
    ({"images": ["a"]}, "images must be one per score, of length 2"),
    ({"images": ["a", "a"]}, "an image has one score; found an image with two"),
    ({"width": 0}, "width must be a number above 0"),
    ({"annotators": ["x"]}, "annotators must be one per score"),
]


@pytest.mark.parametrize(("change", "message"), WRONG_ANSWERS)
def test_wrong_answers_are_named(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"scores": [0.1, 0.2], "yes": [True, False], "images": ["a", "b"], **change}
    with pytest.raises(UsageError, match=message):
        yes_by_score(arguments.pop("scores"), arguments.pop("yes"), **arguments)


def test_wrong_objects_are_named() -> None:
    with pytest.raises(UsageError, match="objects must be one per score, of length 2"):
        object_consistency([0.1, 0.2], objects=["a"])
    with pytest.raises(UsageError, match="percentile must be from 0 to 100"):
        object_consistency([0.1, 0.2], objects=["a", "b"], percentile=101)
