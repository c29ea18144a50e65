"""PRDC: against the package and exact integers, ties, copies and radii of zero, and what must not matter."""

import contextlib
import io
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prdc import compute_prdc

from culturekit.metrics import PRDC, Neighbourhoods, in_manifold, neighbourhoods, prdc, squared_radii, unduplicated
from culturekit.metrics.realism import features as distances
from culturekit.metrics.realism.features import block_bound, clouds, exact_squares, rough_squares
from tests.metrics.realism.manifold_oracle import oracle_prdc, squares

seeds = st.integers(0, 2**32 - 1)


def by_package(real: Any, fake: Any, k: int) -> PRDC:
    with contextlib.redirect_stdout(io.StringIO()):
        found = compute_prdc(real_features=real, fake_features=fake, nearest_k=k)
    return PRDC(*(float(found[name]) for name in ("precision", "recall", "density", "coverage")))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_it_equals_the_package_on_random_features(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    n, m, dim, k = rng.integers(30, 300), rng.integers(30, 300), rng.integers(2, 80), int(rng.integers(1, 8))
    real = (rng.normal(size=(n, dim)) + 0.5).astype(kind)
    fake = (rng.normal(size=(m, dim)) * rng.uniform(0.6, 1.2)).astype(kind)
    assert astuple(prdc(real, fake, k=k)) == pytest.approx(astuple(by_package(real, fake, k)), abs=1e-12)


@settings(max_examples=80, deadline=None)
@given(seeds)
def test_on_lattices_full_of_ties_and_copies_it_equals_exact_integers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dim, levels, k = int(rng.integers(1, 7)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    real = rng.integers(0, levels + 1, size=(rng.integers(k + 1, 60), dim))
    fake = rng.integers(0, levels + 1, size=(rng.integers(k + 1, 60), dim))
    expected = oracle_prdc(real, fake, k=k)
    assert prdc(real, fake, k=k) == expected
    assert prdc(real.astype(np.float32), fake.astype(np.float32), k=k) == expected
    # Far from the origin, where the expansion in float32 knows no digits at all.
    assert prdc(real + 10**6, fake + 10**6, k=k) == expected
    # A power of two scales without rounding.
    assert prdc(real * 2.0**-70, fake * 2.0**-70, k=k) == expected


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_copies_outliers_and_far_centres_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dim, k = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    pool = rng.normal(size=(25, dim)) * 10.0 ** rng.uniform(-6, 6, size=(25, 1)) + rng.choice([0.0, 1e4])
    real, fake = pool[rng.integers(0, 25, 40)], pool[rng.integers(0, 25, 30)]
    fake[:5] += rng.normal(size=(5, dim)) * 1e-6
    assert prdc(real, fake, k=k) == oracle_prdc(real, fake, k=k)


def test_the_package_is_wrong_about_ties_far_from_the_origin_and_this_is_not() -> None:
    lattice = np.random.default_rng(3).integers(0, 4, size=(60, 3))
    exact, far = oracle_prdc(lattice, lattice, k=3), lattice + 1e8
    assert prdc(far, far, k=3) == exact
    assert astuple(by_package(far, far, 3)) != pytest.approx(astuple(exact))


@pytest.mark.parametrize("block", [1, 7, 16, 33, 1000])
def test_blocks_and_order_change_nothing(block: int) -> None:
    rng = np.random.default_rng(5)
    real, fake = rng.integers(0, 6, size=(90, 3)) / 3, rng.integers(0, 6, size=(70, 3)) / 3
    whole = neighbourhoods(real, fake, k=3)
    parts = neighbourhoods(real, fake, k=3, block=block)
    assert np.array_equal(squared_radii(real, k=3), squared_radii(real, k=3, block=block))
    for name in ("around_fake", "recalled", "covered", "only_group"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))
    order, other = rng.permutation(90), rng.permutation(70)
    assert prdc(real[order], fake[other], k=3) == whole.prdc
    turned = fake[:, ::-1], real[:, ::-1]
    assert prdc(turned[1], turned[0], k=3) == whole.prdc


def test_many_hits_in_one_block_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    real, fake = rng.integers(0, 3, size=(150, 2)), rng.normal(size=(140, 2)) * 1e-3 + 1
    expected = oracle_prdc(real.astype(float), fake, k=40)
    monkeypatch.setattr("culturekit.metrics.realism.features.PAIRS", 50)
    monkeypatch.setattr("culturekit.metrics.realism.manifolds.PAIRS", 50)
    monkeypatch.setattr(distances, "PAIR_BYTES", 100)
    assert prdc(real, fake, k=40) == expected


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_the_error_of_the_fast_way_stays_within_its_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 700))
    x = rng.normal(size=(20, dim)) * 10.0 ** rng.uniform(-8, 8, size=(20, 1)) + rng.uniform(-1e3, 1e3)
    y = x[rng.permutation(20)[:15]] + rng.normal(size=(15, dim)) * 10.0 ** rng.uniform(-8, 0)
    left, right = clouds(x, y)
    rough = rough_squares(left, slice(0, 20), right, slice(0, 15), np.empty(300, np.float32))
    error = np.abs(rough - squares(x, y) * left.scale**2)
    assert (error <= block_bound(dim, left.norms[:, None], right.norms[None, :])).all()
    assert left.norms.max() <= 1 and left.scale == right.scale
    pairs = np.arange(15)
    assert exact_squares(x, pairs, y, pairs).tolist() == exact_squares(y, pairs, x, pairs).tolist()


def test_radii_are_kept_by_the_hash_of_the_features_and_k() -> None:
    rng = np.random.default_rng(1)
    real, fakes, cache = rng.normal(size=(50, 3)), rng.normal(size=(2, 40, 3)), dict[tuple[str, int], Any]()
    first = prdc(real, fakes[0], cache=cache)
    assert len(cache) == 2
    key = next(key for key, radii in cache.items() if len(radii) == 50)
    assert (len(key[0]), key[1]) == (64, 5)
    # What the cache says is believed: without radii nothing is real.
    cache[key] = np.zeros(50)
    assert prdc(real, fakes[0], cache=cache).precision == 0.0 < first.precision
    assert prdc(real.copy() + 1e-12, fakes[0], cache=cache) == first
    assert len({*cache}) == 3
    prdc(real, fakes[1], k=3, cache=cache)
    assert len(cache) == 5


def test_in_manifold_is_what_precision_is_the_mean_of() -> None:
    rng = np.random.default_rng(4)
    real, fake = rng.normal(size=(100, 6)), rng.normal(size=(60, 6)) * 1.2
    found = neighbourhoods(real, fake, k=4)
    inside = in_manifold(real, fake, k=4)
    assert isinstance(found, Neighbourhoods)
    assert inside.tolist() == (found.around_fake > 0).tolist()
    assert [bool(in_manifold(real, [point], k=4)[0]) for point in fake] == inside.tolist()


def test_groups_that_alone_cover_a_real_are_named() -> None:
    real = np.array([[0.0], [1.0], [10.0], [11.0]])
    fake = np.array([[0.2], [0.3], [10.5], [50.0]])
    found = neighbourhoods(real, fake, k=1, groups=[7, 7, 8, 8])
    assert found.covered.tolist() == [True] * 4
    assert found.only_group.tolist() == [7, 7, 8, 8]
    assert neighbourhoods(real, fake, k=1).only_group.tolist() == [-1, -1, 2, 2]


def test_unduplicated_drops_every_copy() -> None:
    rows = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [3.0, 1.0]], np.float32)
    assert unduplicated(rows).tolist() == [False, True, False, True]
    assert unduplicated(np.empty((0, 3))).tolist() == []
    assert unduplicated(rows[::-1].copy()).tolist() == [True, False, True, False]
