"""The inception score: against torchmetrics' formula and a loop, splits in order, what its bounds are."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.errors import UsageError
from culturekit.metrics import InceptionScore, inception_score
from culturekit.metrics.realism.class_scores import split_scores


def drawn(seed: int, *, n: int, classes: int = 6) -> Any:
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.4), size=n)


@pytest.mark.parametrize(("n", "splits"), [(50, 10), (53, 10), (7, 7), (20, 1), (10, 3)])
def test_it_is_the_original_loop_over_splits(n: int, splits: int) -> None:
    from scipy.stats import entropy

    probs = drawn(n, n=n)
    values = []
    for split in range(splits):
        part = probs[split * n // splits : (split + 1) * n // splits]
        values.append(np.exp(np.mean([entropy(row, part.mean(axis=0)) for row in part])))
    found = inception_score(probs, splits=splits)
    assert (found.value, found.std) == pytest.approx((np.mean(values), np.std(values)), rel=1e-9, abs=1e-12)
    assert split_scores(probs, splits=splits).tolist() == pytest.approx(values)


@pytest.mark.filterwarnings("ignore::UserWarning:torchmetrics")
def test_it_is_torchmetrics() -> None:
    torch, inception = pytest.importorskip("torch"), pytest.importorskip("torchmetrics.image.inception")
    probs = drawn(1, n=60)

    class Same(torch.nn.Module):  # type: ignore[misc, name-defined]
        """Takes logits for features; torchmetrics shuffles, so that one split is what can be compared."""

        num_features = 6

        def forward(self, rows: Any) -> Any:
            return rows

    metric = inception.InceptionScore(feature=Same(), splits=1)
    metric.features = [torch.log(torch.from_numpy(probs))]
    value, _ = metric.compute()
    assert inception_score(probs, splits=1).value == pytest.approx(float(value), rel=1e-9)


def test_sure_and_different_is_best_and_unsure_or_equal_is_one() -> None:
    assert inception_score(np.tile(np.eye(5), (10, 1)), splits=10).value == pytest.approx(5)
    one = inception_score(np.eye(5), splits=1)
    assert isinstance(one, InceptionScore)
    assert one.value == pytest.approx(5)
    assert one.std == 0.0
    for unsure_or_equal in (np.full((20, 5), 0.2), np.eye(5)[[2] * 20]):
        assert inception_score(unsure_or_equal, splits=4).value == pytest.approx(1, abs=1e-12)


def test_splits_are_taken_in_order() -> None:
    probs = np.repeat(np.eye(4), 5, axis=0)
    assert inception_score(probs, splits=4).value == 1.0
    assert inception_score(probs[np.arange(20).reshape(4, 5).T.ravel()], splits=5).value == pytest.approx(4)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 8))
def test_bounds_and_what_does_not_matter(seed: int, n: int, classes: int) -> None:
    probs, rng = drawn(seed, n=n, classes=classes), np.random.default_rng(seed)
    value = inception_score(probs, splits=1).value
    assert 1 <= value <= classes * (1 + 1e-12)
    assert inception_score(probs[rng.permutation(n)][:, rng.permutation(classes)], splits=1).value == pytest.approx(
        value
    )
    assert inception_score(np.repeat(probs, 2, axis=0), splits=1).value == pytest.approx(value)
    assert inception_score(probs.astype(np.float32), splits=1).value == pytest.approx(value, rel=1e-5)


WRONG = [
    ([[0.5, 0.6]], 1, r"probs\[0\] must be probabilities: none below 0, summing to 1; found 'smallest 0.5, sum 1.1'"),
    ([[0.5, 0.5], [1.5, -0.5]], 1, r"probs\[1\] must be probabilities"),
    ([[0.5, 0.5]], 2, "splits must be a whole number from 1 to 1"),
    ([[0.5, 0.5]], 0, "splits must be a whole number from 1 to 1"),
    ([0.5, 0.5], 1, "probs must be one row of numbers per image"),
]


@pytest.mark.parametrize(("probs", "splits", "message"), WRONG)
def test_wrong_arguments_are_named(probs: Any, splits: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        inception_score(probs, splits=splits)
