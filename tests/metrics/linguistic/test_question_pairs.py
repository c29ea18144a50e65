"""Pairs of captions by softmax."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from culturekit.core.errors import UsageError
from culturekit.metrics import question_pair


def drawn(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(6, 12)), rng.normal(size=12), rng.normal(size=12)


def cosines(images: np.ndarray, caption: np.ndarray) -> np.ndarray:
    return np.asarray(images @ caption / np.linalg.norm(images, axis=1) / np.linalg.norm(caption))


@pytest.mark.parametrize("scale", [1.0, 100.0, 14.3])
def test_it_is_the_softmax_of_scaled_cosines(scale: float) -> None:
    images, first, second = drawn()
    logits = scale * np.stack([cosines(images, first), cosines(images, second)], axis=1)
    shares = question_pair(images, first, second, logit_scale=scale)
    assert shares == pytest.approx(softmax(logits, axis=1), abs=1e-12)
    assert shares[:, 0] == pytest.approx(expit(logits[:, 0] - logits[:, 1]), abs=1e-12)


def test_clips_scale_is_the_default() -> None:
    images, first, second = drawn()
    assert (question_pair(images, first, second) == question_pair(images, first, second, logit_scale=100)).all()


def test_identities_and_invariances() -> None:
    images, first, second = drawn()
    shares = question_pair(images, first, second)
    assert shares.sum(axis=1) == pytest.approx(np.ones(6))
    assert question_pair(images, first, first) == pytest.approx(np.full((6, 2), 0.5))
    assert question_pair(images, second, first) == pytest.approx(shares[:, ::-1])
    assert question_pair(images * 7, first * 3, second) == pytest.approx(shares)
    assert (question_pair(images[2:3], first, second) == shares[2:3]).all()
    assert question_pair([[1, 0]], [1, 0], [0, 1], logit_scale=1000).tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("images", "first", "message"),
    [
        ([[1.0, 0.0]], [1.0, 0.0, 0.0], "width"),
        ([[0.0, 0.0]], [1.0, 0.0], r"images\[0\] must be a vector with a direction"),
        ([[1.0, 0.0]], [0.0, 0.0], r"first\[0\] must be a vector with a direction"),
        ([1.0, 0.0], [1.0, 0.0], "images must be finite vectors"),
    ],
)
def test_arguments_are_checked(images: list[list[float]], first: list[float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        question_pair(images, first, first)


def test_the_scale_is_above_zero() -> None:
    images, first, second = drawn()
    with pytest.raises(UsageError, match="logit_scale must be a number above 0"):
        question_pair(images, first, second, logit_scale=0)


def test_captions_of_different_widths_are_refused() -> None:
    with pytest.raises(UsageError, match="width"):
        question_pair([[1.0, 0.0]], [1.0, 0.0], [1.0, 0.0, 0.0])
