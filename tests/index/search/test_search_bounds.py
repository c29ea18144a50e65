"""What a scan may get wrong is never more than what is reckoned with, on vectors made to get it wrong."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.index.encoder import Vectors
from culturekit.index.search.flat_numpy import NumpySearcher, scan_error
from culturekit.index.search.search import exact_scores

pytest.importorskip("torch")
from culturekit.index.search.flat_torch import GROUP, as_bytes, query_bytes, turned, turning


def unit(vectors: Vectors) -> Vectors:
    wide = vectors.astype(np.float64)
    result: Vectors = (wide / np.sqrt((wide * wide).sum(axis=1, keepdims=True))).astype(np.float32)
    return result


def outlying(count: int, dim: int, *, seed: int, spike: float, shift: float) -> Vectors:
    """Vectors with one large dimension and a common middle, as those of CLIP have."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((count, dim), dtype=np.float32)
    vectors += np.float32(shift)
    vectors[:, seed % dim] += np.float32(spike * np.sqrt(dim))
    return unit(vectors)


def all_scores(vectors: Vectors, queries: Vectors) -> Vectors:
    owners = np.repeat(np.arange(len(queries)), len(vectors))
    rows = np.tile(np.arange(len(vectors)), len(queries))
    return exact_scores(queries, vectors, owners=owners, rows=rows).reshape(len(queries), len(vectors))


def test_scores_are_exact_sums_rounded_and_do_not_depend_on_company() -> None:
    vectors, queries = outlying(70, 129, seed=1, spike=1, shift=0.2), outlying(5, 129, seed=2, spike=0, shift=0.2)
    scores = all_scores(vectors, queries)
    for query, row in ((0, 0), (3, 17), (4, 69)):
        products = [float(a) * float(b) for a, b in zip(queries[query], vectors[row], strict=True)]
        assert abs(float(scores[query, row]) - math.fsum(products)) <= 2.0**-24
        alone = exact_scores(queries, vectors, owners=np.array([query]), rows=np.array([row]))
        assert alone[0] == scores[query, row]
    transposed = np.asfortranarray(vectors)
    np.testing.assert_array_equal(all_scores(transposed, queries), scores)


def test_no_score_is_minus_zero() -> None:
    vectors = np.array([[1, 0], [-1, 0]], np.float32)
    assert not np.signbit(all_scores(vectors, np.array([[0, -1]], np.float32))).any()


@settings(max_examples=40, deadline=None)
@given(dim=st.integers(1, 900), seed=st.integers(0, 999), spike=st.sampled_from([0, 2, 50]))
def test_float32_products_lie_within_their_bound(dim: int, seed: int, spike: float) -> None:
    vectors = outlying(40, dim, seed=seed, spike=spike, shift=0.3)
    queries = outlying(7, dim, seed=seed, spike=spike, shift=0.3)
    forwards = np.add.accumulate(queries[:, None, :] * vectors, axis=2)[
        :, :, -1
    ]  # the worst order: one after the other
    for products in (queries @ vectors.T, forwards):
        assert np.abs(products.astype(np.float64) - all_scores(vectors, queries)).max() <= scan_error(dim)


@settings(max_examples=60, deadline=None)
@given(
    dim=st.sampled_from([1, 3, 12, 16, 64, 100, 192, 512]),
    count=st.integers(1, 300),
    seed=st.integers(0, 999),
    spike=st.sampled_from([0, 0.5, 3, 100]),
    shift=st.sampled_from([0, 0.5]),
)
def test_products_of_bytes_lie_within_their_bound(dim: int, count: int, seed: int, spike: float, shift: float) -> None:
    vectors = outlying(count, dim, seed=seed, spike=spike, shift=shift)
    queries = np.concatenate([outlying(6, dim, seed=seed + 1, spike=spike, shift=shift), vectors[:3], np.eye(1, dim)])
    queries = queries.astype(np.float32)
    known = as_bytes(vectors)
    asked = query_bytes(queries, known)
    whole = asked.numbers.astype(np.int64) @ known.numbers.astype(np.int64).T
    scales = np.repeat(known.scales, GROUP)[:count]
    products = whole * asked.scales[:, None].astype(np.float64) * scales + asked.offsets[:, None]
    errors = asked.errors[:, None] + np.outer(asked.norms, np.repeat(known.lost, GROUP)[:count])
    assert (np.abs(products - all_scores(vectors, queries)[:, known.rows]) <= errors).all()
    assert sorted(known.rows.tolist()) == list(range(count))
    assert np.abs(known.numbers).max() <= 127


def test_turning_a_vector_spreads_one_large_number() -> None:
    known = {spike: as_bytes(outlying(500, 512, seed=3, spike=spike, shift=0)) for spike in (0.0, 2.0)}
    assert known[2.0].lost.max() < known[0.0].lost.max()
    rng = np.random.default_rng(4)
    lonely = np.eye(512)[rng.integers(0, 512, 300)] * 9 + rng.normal(size=(300, 512)) * 0.05
    assert as_bytes(unit(lonely.astype(np.float32))).lost.max() < 0.02  # its largest number alone would lose 0.05


@pytest.mark.parametrize("dim", [64, 48, 20, 7])
def test_the_turning_is_orthogonal_to_the_last_bit(dim: int) -> None:
    matrix = turning(dim)
    np.testing.assert_array_equal(matrix @ matrix.T, np.eye(len(matrix)))
    assert dim % len(matrix) == 0
    assert turned(np.ones((2, dim), np.float32), matrix).shape == (2, dim)


def test_candidates_never_pile_up() -> None:
    """Whatever passes by, no more wait than the limit and what one block brings."""
    vectors = np.repeat(unit(np.ones((1, 8), np.float32)), 5000, axis=0)
    seen = NumpySearcher(vectors).begin(vectors[:4], 3)
    for start in range(0, 5000, 500):
        seen.offer(vectors[start : start + 500] @ vectors[:4].T, start, group=16)
        assert sum(len(part[0]) for part in seen.waiting) + len(seen.close[0]) <= 2 * seen.limit
    assert seen.finish().rows.tolist() == [[0, 1, 2]] * 4
