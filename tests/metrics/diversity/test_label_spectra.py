"""Every way to a score against the dense kernel: deflation, nested sums, determinants, closed form, bisection."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.metrics import STANDARD_KERNELS, vendi
from culturekit.metrics.diversity.label_spectra import (
    CrossingKernel,
    Deflated,
    NestedKernel,
    deflate,
    effective_numbers,
    from_sums,
    largest_eigenvalue,
    nests,
    power_sum,
    tsallis_sums,
)
from culturekit.metrics.diversity.labels import label_classes
from tests.metrics.diversity.dense_oracle import INFINITY, crossing_codes, dense_of_codes, nested_codes, score_of

ORDERS = (0.1, 0.5, 0.9, 0.999999, 1.0, 1.000001, 1.05, 1.1, 1.11, 1.5, 2.0, 2.5, 3.0, 8.0, 50.0, INFINITY)
KERNELS = (
    (1 / 3, 1 / 3, 1 / 3),
    (0.5, 0.5, 0.0),
    (0.0, 0.5, 0.5),
    (0.7, 0.0, 0.3),
    (0.98, 0.01, 0.01),
    (0.01, 0.01, 0.98),
    (1e-6, 1e-3, 1 - 1e-6 - 1e-3),
)


def deflated(codes: np.ndarray, weights: tuple[float, ...]) -> Deflated:
    levels = [level for level, weight in enumerate(weights) if weight]
    return deflate(label_classes(list(codes.T)).on(levels), tuple(weights[level] for level in levels))


def by_sums(
    codes: np.ndarray, weights: tuple[float, ...], kind: type[NestedKernel] | type[CrossingKernel]
) -> list[float]:
    """Score without ever solving a matrix for eigenvalues, however few classes there are."""
    kernel = deflated(codes, weights)
    return from_sums(kernel, kind(kernel), ORDERS)


@pytest.mark.parametrize("weights", KERNELS)
@pytest.mark.parametrize("items", [14, 40, 160])
def test_nested_sums_agree_with_the_dense_kernel(weights: tuple[float, ...], items: int) -> None:
    codes = nested_codes(np.random.default_rng(items), items=items, artifacts=200, countries=20, continents=4)
    if not len(deflated(codes, weights).mass):
        pytest.skip("deflation left nothing")
    spectrum = dense_of_codes(codes, weights)
    for kind in (NestedKernel, CrossingKernel):
        expected = [score_of(spectrum, q) for q in ORDERS]
        np.testing.assert_allclose(by_sums(codes, weights, kind), expected, rtol=3e-11)


@pytest.mark.parametrize("weights", KERNELS[:6])
@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
@pytest.mark.parametrize("artifacts", [6, 90])
def test_determinants_agree_with_the_dense_kernel(weights: tuple[float, ...], share: float, artifacts: int) -> None:
    rng = np.random.default_rng(int(10 * share))
    codes = crossing_codes(rng, items=200, artifacts=artifacts, countries=12, continents=4, share=share)
    spectrum = dense_of_codes(codes, weights)
    expected = [score_of(spectrum, q) for q in ORDERS]
    np.testing.assert_allclose(by_sums(codes, weights, CrossingKernel), expected, rtol=3e-10)


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=30),
    weights=st.sampled_from([*KERNELS[:4], *STANDARD_KERNELS.values()]),
    q=st.sampled_from(ORDERS),
    copies=st.integers(1, 3),
)
@settings(deadline=None, derandomize=True, database=None, max_examples=150)
def test_any_labels_agree_with_the_dense_kernel(
    rows: list[tuple[int, int, int]], weights: tuple[float, float, float], q: float, copies: int
) -> None:
    codes = np.repeat(np.array(rows), copies, axis=0)
    expected = score_of(dense_of_codes(codes, weights), q)
    assert vendi(codes, weights=weights, q=q) == pytest.approx(expected, rel=1e-9)
    kernel = deflated(codes, weights)
    if len(kernel.mass) and len(kernel.weights) > 1:
        assert from_sums(kernel, CrossingKernel(kernel), [q])[0] == pytest.approx(expected, rel=1e-9)
        if nests(kernel):
            assert from_sums(kernel, NestedKernel(kernel), [q])[0] == pytest.approx(expected, rel=1e-9)


def test_a_million_items_without_a_country_are_no_burden() -> None:
    """An artifact that is known, in as many countries as there are items: one class after deflation."""
    items = 300_000
    codes = np.stack([np.zeros(items, int), np.arange(items), np.arange(items) % 3], axis=1)
    kernel = deflated(codes, (0.2, 0.3, 0.5))
    assert len(kernel.mass) == 3
    # Antisymmetric vectors see the countries only, those within artifacts' sums the artifacts too.
    country, artifact = 0.3 / items, 0.5 / 3 + 0.3 / items
    expected = np.array([country] * 3 + [artifact] * 2 + [0.2 + artifact])
    times = np.array([items / 3 - 1] * 3 + [1] * 3)
    for q, value in zip(
        (0.5, 1.0, 3.0), effective_numbers(label_classes(list(codes.T)), (0.2, 0.3, 0.5), (0.5, 1, 3)), strict=True
    ):
        spectrum = np.repeat(expected, times.astype(int))
        assert value == pytest.approx(score_of_many(spectrum, q), rel=1e-9)


def score_of_many(spectrum: np.ndarray, q: float) -> float:
    """Score without dropping what is small."""
    if q == 1:
        return float(np.exp(-np.sum(spectrum * np.log(spectrum))))
    return float(np.sum(spectrum**q) ** (1 / (1 - q)))


def test_sums_over_a_spectrum_that_is_known() -> None:
    codes = nested_codes(np.random.default_rng(8), items=400, artifacts=80, countries=9, continents=3)
    kernel = deflated(codes, (0.3, 0.3, 0.4))
    spectrum = np.linalg.eigvalsh(kernel.matrix())
    implicit = NestedKernel(kernel)
    assert implicit.rank == len(spectrum)
    assert implicit.trace == pytest.approx(spectrum.sum(), rel=1e-13)
    assert largest_eigenvalue(implicit) == pytest.approx(spectrum.max(), rel=1e-13)
    assert implicit.least <= spectrum.min() * (1 + 1e-12)
    assert implicit.most >= spectrum.max()
    t = np.array([1e-9, 1e-3, 1.0, 1e6])
    np.testing.assert_allclose(implicit.resolvent(t), (spectrum / (spectrum + t[:, None])).sum(axis=1), rtol=1e-12)
    z = np.array([0.3 + 0.1j, 1e-4 - 2e-3j])
    np.testing.assert_allclose(implicit.resolvent(z), (spectrum / (spectrum + z[:, None])).sum(axis=1), rtol=1e-11)
    sums = tsallis_sums(implicit, [0.25, 1.0])
    assert sums[1.0] == pytest.approx(-np.sum(spectrum * np.log(spectrum)), rel=1e-12)
    assert sums[0.25] == pytest.approx(np.sum(spectrum**0.25 - spectrum) / 0.75, rel=1e-12)
    top = spectrum.max()
    for q in (1.2, 4.0, 8.0, 30.0, 400.0):
        assert power_sum(implicit, q, largest=top) == pytest.approx(np.sum((spectrum / top) ** q), rel=1e-11)
    assert tsallis_sums(implicit, []) == {}


def test_the_score_falls_with_the_order_across_all_ways_of_computing_it() -> None:
    codes = nested_codes(np.random.default_rng(1), items=30_000, artifacts=3000, countries=80, continents=6)
    orders = [*np.geomspace(0.05, 1.2, 40), *np.linspace(1.3, 9, 40), 100, 1e4, INFINITY]
    scores = effective_numbers(label_classes(list(codes.T)), (1 / 3, 1 / 3, 1 / 3), orders)
    assert all(later < earlier for earlier, later in pairwise(scores))
    assert scores[-1] == pytest.approx(scores[-2], rel=1e-2)
    assert math.isclose(effective_numbers(label_classes(list(codes.T)), (0.5, 0.5, 0.5), [1])[0], effective_numbers(
        label_classes(list(codes.T)), (1 / 3, 1 / 3, 1 / 3), [1])[0], rel_tol=1e-12)  # fmt: skip
