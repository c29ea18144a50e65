"""The Vendi score of kernels and features, against the vendi-score package and against labels."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from vendi_score import vendi as vendi_score

from culturekit.core.errors import UsageError
from culturekit.metrics import vendi, vendi_features, vendi_kernel

ORDERS = (0.2, 0.9, 1.0, 1.01, 2.0, 7.0, math.inf)


def features(items: int, width: int, *, seed: int = 1) -> NDArray[np.float64]:
    """Draw feature vectors of any length, (items, width)."""
    return np.random.default_rng(seed).normal(size=(items, width))


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")
@pytest.mark.parametrize("q", [0.5, 1.0, 2.0, 3.5])
def test_a_kernel_agrees_with_the_vendi_score_package(q: float) -> None:
    unit = features(20, 50) / np.linalg.norm(features(20, 50), axis=1, keepdims=True)
    kernel = unit @ unit.T
    assert vendi_kernel(kernel, q=q) == pytest.approx(float(vendi_score.score_K(kernel, q=q)), rel=1e-10)


@pytest.mark.parametrize("q", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("shape", [(60, 7), (7, 60)])
def test_features_agree_with_the_vendi_score_package(q: float, shape: tuple[int, int]) -> None:
    vectors = features(*shape)
    assert vendi_features(vectors, q=q) == pytest.approx(float(vendi_score.score_dual(vectors, q=q)), rel=1e-10)


@pytest.mark.parametrize("q", ORDERS)
@pytest.mark.parametrize("shape", [(30, 5), (5, 30), (8, 8), (1, 3)])
def test_features_agree_with_their_kernel(q: float, shape: tuple[int, int]) -> None:
    vectors = features(*shape)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert vendi_features(vectors, q=q) == pytest.approx(vendi_kernel(unit @ unit.T, q=q), rel=1e-9)


@pytest.mark.parametrize("q", ORDERS)
def test_a_kernel_of_labels_gives_the_score_of_the_labels(q: float) -> None:
    labels = [("Asia", "JP", "sushi"), ("Asia", "JP", "ramen"), ("Asia", "IN", "dosa"), ("Africa", "NG", "jollof")]
    weights = (0.2, 0.3, 0.5)
    kernel = np.array(
        [[sum(w * (a == b) for w, a, b in zip(weights, x, y, strict=True)) for y in labels] for x in labels]
    )
    assert vendi_kernel(kernel, q=q) == pytest.approx(vendi(labels, weights=weights, q=q), rel=1e-10)


@pytest.mark.parametrize("q", ORDERS)
def test_n_alike_count_as_one_and_n_orthogonal_as_n(q: float) -> None:
    assert vendi_kernel(np.ones((9, 9)), q=q) == pytest.approx(1, abs=1e-9)
    assert vendi_kernel(np.eye(9), q=q) == pytest.approx(9)
    assert vendi_features(np.tile([3.0, 4.0], (9, 1)), q=q) == pytest.approx(1, abs=1e-9)
    assert vendi_features(np.diag(np.arange(1.0, 10)), q=q) == pytest.approx(9)


@given(seed=st.integers(0, 10_000), q=st.sampled_from(ORDERS), copies=st.integers(2, 3))
@settings(deadline=None, derandomize=True, database=None, max_examples=40)
def test_order_length_and_duplicates_do_not_matter(seed: int, q: float, copies: int) -> None:
    vectors = features(12, 6, seed=seed)
    rng = np.random.default_rng(seed)
    score = vendi_features(vectors, q=q)
    assert vendi_features(rng.permutation(vectors), q=q) == pytest.approx(score, rel=1e-9)
    assert vendi_features(vectors * rng.uniform(0.1, 10, (12, 1)), q=q) == pytest.approx(score, rel=1e-9)
    assert vendi_features(np.tile(vectors, (copies, 1)), q=q) == pytest.approx(score, rel=1e-9)


def test_many_short_vectors_need_no_kernel_between_them() -> None:
    """The 20,000 × 20,000 kernel would take 3.2 GB."""
    vectors = np.tile(np.eye(4), (5000, 1))
    assert vendi_features(vectors) == pytest.approx(4)


def test_float32_vectors_do() -> None:
    vectors = features(40, 16)
    assert vendi_features(vectors.astype(np.float32)) == pytest.approx(vendi_features(vectors), rel=1e-5)
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    assert vendi_kernel(unit @ unit.T) == pytest.approx(vendi_features(vectors), rel=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vendi_kernel(np.ones((2, 3))), "K must be square; found 'shape (2, 3)'"),
        (lambda: vendi_kernel([[1.0, 0.2], [0.3, 1.0]]), "K must be symmetric; found 'cells that differ by 0.1'"),
        (lambda: vendi_kernel([[1.0, 0.2], [0.2, 2.0]]), "K[1, 1] must be 1, like the whole diagonal; found 2.0"),
        (lambda: vendi_kernel([[1.0, 3.0], [3.0, 1.0]]), "K must be positive semi-definite"),
        (lambda: vendi_kernel([[math.nan]]), "K must be finite in every cell"),
        (lambda: vendi_kernel([1.0]), "K must be a matrix with at least one cell"),
        (lambda: vendi_kernel([["a"]]), "K must be a matrix of numbers"),
        (lambda: vendi_kernel([[1.0]], q=0), "q must be a number above 0, or infinity; found 0"),
        (lambda: vendi_features(np.empty((0, 4))), "X must be a matrix with at least one cell"),
        (lambda: vendi_features([[1.0, 0.0], [0.0, 0.0]]), "X[1] must be a vector other than zero"),
        (lambda: vendi_features([[1.0]], q=math.nan), "q must be a number above 0, or infinity; found nan"),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named(call: Callable[[], float], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)
