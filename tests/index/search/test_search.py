"""Every engine finds what the twin finds: the same rows, the same scores, in the same order."""

import importlib.util
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from culturekit.core.errors import MissingDependency, UsageError
from culturekit.index.encoder import Vectors
from culturekit.index.search.search import (
    Found,
    NumpySearcher,
    Searcher,
    best_by_hand,
    exact_scores,
    scan_error,
    searcher,
)

Order = NDArray[np.int64]


def needs(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"needs {module}")


def half_precision(name: str) -> Callable[..., Searcher]:
    """The searcher of GPUs, on the CPU."""

    def make(vectors: Vectors, *, order: Order | None = None) -> Searcher:
        import torch

        from culturekit.index.search.flat_torch import GpuSearcher

        return GpuSearcher(vectors, order=order, device=torch.device("cpu"), dtype=getattr(torch, name))

    return make


def engine(name: str) -> Callable[..., Searcher]:
    def make(vectors: Vectors, *, order: Order | None = None) -> Searcher:
        return searcher(vectors, engine=name, order=order)

    return make


ENGINES = [
    pytest.param(engine("numpy"), id="numpy"),
    pytest.param(engine("auto"), id="auto"),
    pytest.param(engine("faiss"), id="faiss", marks=needs("faiss")),
    pytest.param(half_precision("float16"), id="float16", marks=needs("torch")),
    pytest.param(half_precision("bfloat16"), id="bfloat16", marks=needs("torch")),
    pytest.param(engine("torch:cuda"), id="gpu", marks=[needs("torch"), pytest.mark.gpu]),
    pytest.param(engine("faiss-gpu"), id="faiss-gpu", marks=[needs("faiss"), pytest.mark.gpu]),
]
every_engine = pytest.mark.parametrize("make", ENGINES)


def unit(vectors: NDArray[np.floating]) -> Vectors:
    wide = vectors.astype(np.float64)
    norms = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    result: Vectors = (wide / norms).astype(np.float32)
    return result


def random_unit(count: int, dim: int, *, seed: int) -> Vectors:
    return unit(np.random.default_rng(seed).normal(size=(count, dim)) + 1e-9)


def clustered(count: int, dim: int, *, spread: float, seed: int) -> Vectors:
    rng = np.random.default_rng(seed)
    middles = rng.normal(size=(max(count // 20, 1), dim)) + 0.5
    return unit(middles[rng.integers(0, len(middles), count)] + spread * rng.normal(size=(count, dim)))


def agree(
    make: Callable[..., Searcher], vectors: Vectors, queries: Vectors, *, k: int, order: Order | None = None,
    slices: Sequence[slice] | None = None,
) -> Found:  # fmt: skip
    found = make(vectors, order=order).best(queries, k=k, slices=slices)
    by_hand = best_by_hand(vectors, queries, k=k, order=order, slices=slices)
    np.testing.assert_array_equal(found.rows, by_hand.rows)
    np.testing.assert_array_equal(found.scores, by_hand.scores)
    assert (str(found.scores.dtype), str(found.rows.dtype)) == ("float32", "int64")
    return found


def test_the_twin_ranks_as_a_plain_sort_does() -> None:
    vectors, queries = clustered(300, 24, spread=0.3, seed=1), random_unit(20, 24, seed=2)
    found = best_by_hand(vectors, queries, k=7)
    products = queries.astype(np.float64) @ vectors.astype(np.float64).T
    np.testing.assert_array_equal(found.rows, np.argsort(-products, axis=1)[:, :7])
    np.testing.assert_allclose(found.scores, -np.sort(-products, axis=1)[:, :7], rtol=0, atol=1e-7)


@every_engine
@pytest.mark.parametrize(("count", "dim", "queries", "k"), [
    (3000, 64, 300, 10), (700, 48, 9, 100), (5000, 16, 40, 1), (130, 7, 3, 200), (2500, 32, 1, 5), (900, 3, 300, 64),
])  # fmt: skip
def test_random_and_clustered_ones(make: Callable[..., Searcher], count: int, dim: int, queries: int, k: int) -> None:
    agree(make, random_unit(count, dim, seed=3), random_unit(queries, dim, seed=4), k=k)
    vectors = clustered(count, dim, spread=0.1, seed=5)
    agree(make, vectors, unit(vectors[:queries] + 1e-3), k=k)


@every_engine
def test_duplicates_go_by_order_also_at_the_last_place(make: Callable[..., Searcher]) -> None:
    different = random_unit(40, 32, seed=6)
    vectors = different[np.random.default_rng(7).integers(0, 40, 2000)]
    for order in (None, np.random.default_rng(8).permutation(2000)):
        for k in (1, 49, 60, 500):
            agree(make, vectors, different[:12], k=k, order=order)


@every_engine
def test_all_rows_equal(make: Callable[..., Searcher]) -> None:
    vectors = np.repeat(random_unit(1, 64, seed=9), 6000, axis=0)
    found = agree(make, vectors, vectors[:70], k=3)
    assert found.rows.tolist() == [[0, 1, 2]] * 70


@pytest.mark.parametrize("step", [1e-8, 1e-7, 1e-5])
@every_engine
def test_near_ties(make: Callable[..., Searcher], step: float) -> None:
    rng = np.random.default_rng(10)
    middle, away = random_unit(1, 128, seed=11), rng.normal(size=(1, 128))
    vectors = unit(middle + rng.permutation(3000)[:, None] * step / 50 * away)
    agree(make, vectors, np.concatenate([middle, vectors[:20]]), k=10, order=rng.permutation(3000))


@every_engine
def test_denormal_numbers_and_one_long_number(make: Callable[..., Searcher]) -> None:
    vectors = np.zeros((200, 16), np.float32)
    vectors[:, 0] = np.where(np.arange(200) % 3, 1, -1)
    vectors[:, 1] = np.float32(1e-42) * np.arange(200, dtype=np.float32)
    queries = np.zeros((2, 16), np.float32)
    queries[0, 0] = queries[1, 1] = 1
    agree(make, vectors, queries, k=20)


@every_engine
def test_the_edges(make: Callable[..., Searcher]) -> None:
    none, one = np.empty((0, 8), np.float32), random_unit(1, 8, seed=12)
    found = agree(make, none, one, k=2)
    assert found.rows.tolist() == [[-1, -1]]
    assert found.scores.tolist() == [[-np.inf, -np.inf]]
    assert agree(make, one, one, k=3).rows.tolist() == [[0, -1, -1]]
    assert agree(make, one, none, k=3).rows.shape == (0, 3)
    many = random_unit(50, 8, seed=13)
    assert agree(make, many, one, k=3, slices=[]).rows.tolist() == [[-1, -1, -1]]


SLICES: list[Sequence[slice]] = [
    [slice(0, 700)], [slice(100, 130), slice(120, 900), slice(2999, 3000), slice(50, 50)],
    [slice(row, row + 1) for row in range(0, 3000, 7)],
    [slice(1500, None), slice(None, 3), *(slice(row, row + 1) for row in range(5, 200, 2))], [slice(64, 129)],
]  # fmt: skip


@every_engine
@pytest.mark.parametrize("slices", SLICES)
def test_slices_of_a_memory_map(make: Callable[..., Searcher], slices: Sequence[slice], tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", clustered(3000, 32, spread=0.4, seed=14))
    vectors = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    rows = np.unique(np.concatenate([np.arange(3000)[part] for part in slices]))
    order = np.random.default_rng(15).permutation(3000)
    found = agree(make, vectors, vectors[::101], k=5, order=order, slices=slices)
    assert set(found.rows.ravel().tolist()) <= {-1, *rows.tolist()}
    whole = best_by_hand(vectors[rows], vectors[::101], k=5, order=order[rows])
    np.testing.assert_array_equal(found.rows, rows[whole.rows])


@pytest.mark.parametrize("name", ["numpy", pytest.param("faiss", marks=needs("faiss"))])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_small_worlds(name: str, data: st.DataObject) -> None:
    """Vectors of few directions, moved by little or nothing: ties and near-ties everywhere."""
    seed = data.draw(st.integers(0, 2**20))
    rng = np.random.default_rng(seed)
    dim, count = data.draw(st.integers(1, 70)), data.draw(st.integers(1, 200))
    directions = random_unit(data.draw(st.integers(1, 6)), dim, seed=seed)
    moved = rng.normal(size=(count, dim)) * data.draw(st.sampled_from([0, 1e-8, 3e-8, 1e-6, 1e-2]))
    vectors = unit(directions[rng.integers(0, len(directions), count)] + moved)
    queries = np.concatenate([directions, vectors[: data.draw(st.integers(0, 12))]])
    edges = sorted(data.draw(st.lists(st.integers(0, count), min_size=2, max_size=4)))
    slices = data.draw(st.sampled_from([None, [slice(edges[0], edges[-1])], [slice(edges[0], edges[1])]]))
    order = data.draw(st.sampled_from([None, rng.permutation(count)]))
    agree(engine(name), vectors, queries, k=data.draw(st.integers(1, count + 3)), order=order, slices=slices)


@every_engine
def test_what_cannot_be_searched_is_refused(make: Callable[..., Searcher]) -> None:
    vectors, one = random_unit(20, 8, seed=17), random_unit(1, 8, seed=18)
    broken = vectors.copy()
    broken[7, 3] = np.nan
    with pytest.raises(UsageError, match=r"row 7: the vectors are not all unit.*found a number that is not fin"):
        make(broken)
    with pytest.raises(UsageError, match=r"row 0: the vectors are not all unit.*a norm of 1, found 1\.5"):
        make(vectors * np.float32(1.5))
    with pytest.raises(UsageError, match=r"the vectors cannot be searched.*found float64 \(20, 8\)"):
        make(vectors.astype(np.float64))
    with pytest.raises(UsageError, match="does not fit"):
        make(vectors, order=np.zeros(20, np.int64))
    search = make(vectors)
    with pytest.raises(UsageError, match=r"queries are of another dimension.*expected 8 numbers, found 9"):
        search.best(random_unit(2, 9, seed=19), k=1)
    with pytest.raises(UsageError, match=r"row 0: the queries are not all unit"):
        search.best(one * np.float32("inf"), k=1)
    with pytest.raises(UsageError, match="fewer than one"):
        search.best(one, k=0)
    for wrong in (slice(0, 21), slice(5, 2), slice(-3, None), slice(0, 9, 2)):
        with pytest.raises(UsageError, match="a slice lies outside"):
            search.best(one, k=1, slices=[wrong])


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        UsageError, match=r"there is no search 'fais'; expected auto or faiss or .*Did you mean 'faiss'"
    ):
        searcher(random_unit(3, 4, seed=20), engine="fais")


@needs("torch")
def test_a_device_that_is_not_there_is_refused() -> None:
    for name in ("torch:cuda:99", "torch:mps", "torch:nowhere"):
        with pytest.raises((UsageError, RuntimeError)):
            searcher(random_unit(3, 4, seed=21), engine=name).best(random_unit(1, 4, seed=22), k=1)


@needs("torch")
def test_torch_on_a_cpu_is_numpys() -> None:
    assert searcher(random_unit(3, 4, seed=21), engine="torch:cpu").name == "numpy"


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_missing_packages_are_named_as_such() -> None:
    with pytest.raises(MissingDependency, match=r"needs the package torch.*pip install .*culturekit\[embed\]"):
        searcher(random_unit(3, 4, seed=23), engine="torch")


# What a scan may get wrong is never more than what is reckoned with, on vectors made to get it wrong.


def outlying(count: int, dim: int, *, seed: int, spike: float) -> Vectors:
    """Vectors with one large dimension and a common middle, as those of CLIP have."""
    vectors = np.random.default_rng(seed).standard_normal((count, dim), dtype=np.float32) + np.float32(0.3)
    vectors[:, seed % dim] += np.float32(spike * np.sqrt(dim))
    return unit(vectors)


def all_scores(vectors: Vectors, queries: Vectors) -> Vectors:
    owners, rows = (part.ravel() for part in np.mgrid[: len(queries), : len(vectors)])
    return exact_scores(queries, vectors, owners=owners, rows=rows).reshape(len(queries), len(vectors))


def test_scores_are_exact_sums_rounded_and_do_not_depend_on_company() -> None:
    vectors, queries = outlying(70, 129, seed=1, spike=1), outlying(5, 129, seed=2, spike=0)
    scores = all_scores(vectors, queries)
    for query, row in ((0, 0), (3, 17), (4, 69)):
        products = [float(a) * float(b) for a, b in zip(queries[query], vectors[row], strict=True)]
        assert abs(float(scores[query, row]) - math.fsum(products)) <= 2.0**-24
        assert exact_scores(queries, vectors, owners=np.array([query]), rows=np.array([row])) == scores[query, row]
    np.testing.assert_array_equal(all_scores(np.asfortranarray(vectors), queries), scores)
    crossed = np.array([[1, 0], [-1, 0]], np.float32)
    assert not np.signbit(all_scores(crossed, np.array([[0, -1]], np.float32))).any()


@settings(max_examples=40, deadline=None)
@given(dim=st.integers(1, 900), seed=st.integers(0, 999), spike=st.sampled_from([0, 2, 50]))
def test_float32_products_lie_within_their_bound(dim: int, seed: int, spike: float) -> None:
    vectors, queries = outlying(40, dim, seed=seed, spike=spike), outlying(7, dim, seed=seed, spike=spike)
    one_by_one = np.add.accumulate(queries[:, None, :] * vectors, axis=2)[:, :, -1]  # the worst order
    for products in (queries @ vectors.T, one_by_one):
        assert np.abs(products.astype(np.float64) - all_scores(vectors, queries)).max() <= scan_error(dim)


def test_candidates_never_pile_up() -> None:
    """Whatever passes by, no more wait than the limit and what one block brings."""
    vectors = np.repeat(unit(np.ones((1, 8), np.float32)), 5000, axis=0)
    seen = NumpySearcher(vectors).begin(vectors[:4], 3)
    for start in range(0, 5000, 500):
        seen.offer(vectors[start : start + 500] @ vectors[:4].T, np.arange(start, start + 500), group=16)
        assert sum(len(part[0]) for part in seen.waiting) <= seen.limit
    assert seen.finish().rows.tolist() == [[0, 1, 2]] * 4
