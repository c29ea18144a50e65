"""Shares of answers that go together."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, t

from culturekit.core.errors import UsageError
from culturekit.metrics import clustered_share


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


def test_answers_that_are_copies_are_worth_one_each() -> None:
    images = np.repeat(np.arange(40), 3)
    values = (images % 4 == 0).astype(float)
    copied = clustered_share(values, {"image": images})
    single = clustered_share(values[::3], {"image": images[::3]})
    assert (copied.low, copied.high) == pytest.approx((single.low, single.high))


def test_annotators_that_differ_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    annotators = np.tile(np.arange(6), 50)
    values = (rng.random(300) < np.linspace(0.1, 0.9, 6)[annotators]).astype(float)
    images = np.repeat(np.arange(50), 6)
    narrow = clustered_share(values, {"image": images})
    wide = clustered_share(values, {"image": images, "annotator": annotators})
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


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


def test_arguments_are_checked() -> None:
    for values, clusters, message in (
        ([0.5, 2], {"image": [1, 2]}, "values must be from 0 to 1"),
        ([0.5], {}, "clusters must be of one kind or two"),
        ([0.5], {"image": [1, 2]}, "clusters"),
        ([], {"image": []}, "values must be a sequence of at least one number"),
    ):
        with pytest.raises(UsageError, match=message):
            clustered_share(values, clusters)
