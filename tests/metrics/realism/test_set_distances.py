"""Fréchet and kernel distance, inception score: against SciPy, torchmetrics and loops, identities, few images."""

import math
from typing import Any

import numpy as np
import pytest

from culturekit.metrics import (
    InceptionScore,
    frechet_distance,
    inception_score,
    kernel_distance,
    kernel_distance_interval,
)
from culturekit.metrics.realism import features, set_distances
from culturekit.metrics.realism.set_distances import split_scores
from tests.oracles.set_distances import squared_mmd


def two_sets(seed: int, *, n: int, m: int, dim: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(dim, dim)) / math.sqrt(dim)
    return rng.normal(size=(n, dim)), rng.normal(size=(m, dim)) @ mix + rng.normal(size=dim) * 0.3


@pytest.mark.parametrize("seed", range(8))
def test_the_frechet_distance_is_that_of_scipys_matrix_root(seed: int) -> None:
    from scipy.linalg import sqrtm

    a, b = two_sets(seed, n=90, m=70, dim=12)
    first, second = np.cov(a.T), np.cov(b.T)
    root = np.real(sqrtm(first @ second))
    expected = np.square(a.mean(axis=0) - b.mean(axis=0)).sum() + np.trace(first + second - 2 * root)
    assert frechet_distance(a, b) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("n", "m", "dim"), [(200, 150, 20), (30, 25, 64), (2, 2, 5), (2, 40, 8), (300, 300, 6)])
def test_the_frechet_distance_is_torchmetrics(n: int, m: int, dim: int) -> None:
    torch, fid = pytest.importorskip("torch"), pytest.importorskip("torchmetrics.image.fid")
    a, b = two_sets(n, n=n, m=m, dim=dim)
    moments = [torch.from_numpy(part) for rows in (a, b) for part in (rows.mean(axis=0), np.cov(rows.T))]
    assert frechet_distance(a, b) == pytest.approx(float(fid._compute_fid(*moments)), rel=1e-5)


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = two_sets(3, n=200, m=100, dim=9)
    whole = frechet_distance(a, b), kernel_distance(a, b), kernel_distance_interval(a, b)
    monkeypatch.setattr(features.blocks, "__defaults__", (17,))
    monkeypatch.setattr(set_distances, "BLOCK", 23)
    assert frechet_distance(a, b) == pytest.approx(whole[0], rel=1e-9)
    assert kernel_distance(a, b) == pytest.approx(whole[1], rel=1e-9)
    parts = kernel_distance_interval(a, b)
    assert (parts.low, parts.high) == pytest.approx((whole[2].low, whole[2].high), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_kernel_distance_is_that_of_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = two_sets(seed, n=int(rng.integers(2, 20)), m=int(rng.integers(2, 20)), dim=int(rng.integers(1, 9)))
    assert kernel_distance(a, b) == pytest.approx(squared_mmd(a, b), rel=1e-9)
    assert kernel_distance(b, a) == pytest.approx(kernel_distance(a, b), rel=1e-9)


def test_the_kernel_distance_has_no_bias_where_the_frechet_distance_has() -> None:
    rng = np.random.default_rng(0)
    found = np.array([kernel_distance(*rng.normal(size=(2, 20, 4))) for _ in range(400)])
    assert abs(found.mean()) < 3 * found.std() / math.sqrt(400)
    assert np.mean([frechet_distance(*rng.normal(size=(2, 20, 4))) for _ in range(50)]) > 0.2


def naive_jackknife(a: Any, b: Any, codes: Any) -> tuple[float, float]:
    """Leave out each cluster of a, then each row of b, and recompute."""
    first = [squared_mmd(a[codes != code], b) for code in np.unique(codes)]
    second = [squared_mmd(a, np.delete(b, row, axis=0)) for row in range(len(b))]
    return tuple((len(values) - 1) * float(np.var(values)) for values in (first, second))  # type: ignore[return-value]


def test_the_interval_is_that_of_a_jackknife_by_hand() -> None:
    from scipy.stats import t

    a, b = two_sets(2, n=12, m=9, dim=3)
    codes = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
    answer = kernel_distance_interval(a, b, a_clusters=codes)
    margin = t.ppf(0.975, 3) * math.sqrt(sum(naive_jackknife(a, b, codes)))
    assert answer.value == pytest.approx(squared_mmd(a, b))
    assert (answer.low, answer.high) == pytest.approx((answer.value - margin, answer.value + margin))
    order = np.random.default_rng(0).permutation(12)
    again = kernel_distance_interval(a[order], b, a_clusters=[f"prompt {codes[i]}" for i in order])
    assert (again.low, again.high) == pytest.approx((answer.low, answer.high))


def test_one_cluster_leaves_the_limits_open() -> None:
    a, b = two_sets(2, n=12, m=9, dim=3)
    answer = kernel_distance_interval(a, b, a_clusters=[1] * 12)
    assert math.isnan(answer.low) and math.isnan(answer.high)
    assert answer.value == pytest.approx(kernel_distance(a, b))


def test_nominal_intervals_hold_the_true_kernel_distance() -> None:
    rng, runs = np.random.default_rng(7), 400
    # Of normal vectors with mean s in each of 3 dimensions, E(x·y/3 + 1)³ follows from E x·y and its square.
    shift, dim = 0.5, 3

    def expected(first: float, second: float) -> float:
        inner = first * second
        square = inner**2 + (first**2 + second**2 + 1) / dim
        cube = inner**3 + 3 * inner * (first**2 + second**2 + 1) / dim + 2 * (3 * inner) / dim**2
        return cube + 3 * square + 3 * inner + 1

    true = expected(0, 0) + expected(shift, shift) - 2 * expected(0, shift)
    # The formula itself, against a large sample.
    large = kernel_distance(rng.normal(size=(6000, dim)), rng.normal(size=(6000, dim)) + shift)
    assert large == pytest.approx(true, abs=0.05)
    held = 0
    for _ in range(runs):
        answer = kernel_distance_interval(rng.normal(size=(60, dim)), rng.normal(size=(60, dim)) + shift)
        held += answer.low <= true <= answer.high
    assert 0.92 <= held / runs <= 0.985


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
    assert isinstance(found, InceptionScore)
    assert (found.value, found.std) == pytest.approx((np.mean(values), np.std(values)), rel=1e-9, abs=1e-12)
    assert split_scores(probs, splits=splits).tolist() == pytest.approx(values)
