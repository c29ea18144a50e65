"""The manifold of real images, against the package prdc, and what is appealing in it."""

import numpy as np
import polars as pl
import prdc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from culturekit.core.errors import UsageError
from culturekit.metrics import appeal_and_similarity, appeal_in_manifold, in_manifold, squared_radii
from tests.metrics.inclusion.task_worlds import drawn_task1, judgement, task1


@pytest.mark.parametrize("k", [1, 3, 5])
def test_membership_is_prdcs_precision(k: int) -> None:
    rng = np.random.default_rng(k)
    real, fake = rng.normal(size=(300, 6)), rng.normal(0.5, 1.5, size=(270, 6))
    inside = in_manifold(real, fake, k=k)
    reference = prdc.compute_prdc(real, fake, nearest_k=k)["precision"]
    assert inside.mean() == pytest.approx(reference, abs=1e-12)


def test_radii_are_the_sorted_distances() -> None:
    real = np.random.default_rng(0).normal(size=(40, 4))
    squares = np.sort(cdist(real, real, "sqeuclidean"), axis=1)
    for k in (1, 4, 39):
        assert squared_radii(real, k=k) == pytest.approx(squares[:, k], rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=3, max_size=12), st.integers(1, 2))
def test_ties_are_exact_even_far_from_the_origin(points: list[tuple[int, int]], k: int) -> None:
    real = np.array(points, float)
    grid = np.array([(x, y) for x in range(4) for y in range(4)], float)
    whole = [[int(((p - q) ** 2).sum()) for q in real] for p in real]
    radii = [sorted(row[:i] + row[i + 1 :])[k - 1] for i, row in enumerate(whole)]
    expected = [any(((g - p) ** 2).sum() < r for p, r in zip(real, radii, strict=True)) for g in grid]
    for shift in (0.0, 2.0**26):
        moved = squared_radii(real + shift, k=k)
        assert moved.tolist() == radii
        assert in_manifold(real + shift, grid + shift, k=k).tolist() == expected


def world() -> tuple[pl.DataFrame, np.ndarray, dict[str, list[float]]]:
    """Three triplets: of t0 the first image is inside, of t1 both are, of t2 none is."""
    real = np.arange(10.0)[:, None]
    places = {"t0": (4.5, 100.0), "t1": (3.5, 5.5), "t2": (50.0, 60.0)}
    fake = {f"{name}-{end}": [place] for name, both in places.items() for end, place in zip("12", both, strict=True)}
    rows = [
        judgement(name, who, place, "1", chosen)
        for name in places
        for who, place, chosen in (("a", "Africa", "1"), ("b", "Europe", "2"), ("c", "Europe", "1"))
    ]
    return task1(*rows), real, fake


def test_only_triplets_with_exactly_one_image_inside_count() -> None:
    table, real, fake = world()
    found = appeal_in_manifold(table, real, fake, k=1, by=("annotator_loc",))
    assert found.rows() == [("Africa", 1.0, 1), ("Europe", 0.5, 2)]
    assert appeal_in_manifold(table, real, fake, k=1).columns == ["source", "region", "annotator_loc", "share", "n"]
    assert appeal_in_manifold(table, real, fake, k=1, by=()).rows() == [(2 / 3, 3)]
    other = table.with_columns(combo=pl.lit("C"))
    assert appeal_in_manifold(other, real, {}, k=1).height == 0
    assert appeal_in_manifold(table.reverse(), real[::-1], fake, k=1, by=()).rows() == [(2 / 3, 3)]


def test_a_wider_manifold_takes_in_more() -> None:
    table, real, fake = world()
    # With nine neighbours the farthest balls reach 9 away from both ends: nothing changes for t2 at 50 and 60.
    assert appeal_in_manifold(table, real, fake, k=9, by=())["n"].to_list() == [3]
    for wrong in (0, 10):
        with pytest.raises(UsageError, match="k must be a whole number from 1 to 9"):
            appeal_in_manifold(table, real, fake, k=wrong)


def test_features_are_checked() -> None:
    table, real, fake = world()
    with pytest.raises(UsageError, match="the features fake must be given for every image; 1 have none"):
        appeal_in_manifold(table, real, {name: place for name, place in fake.items() if name != "t2-1"}, k=1)
    with pytest.raises(UsageError, match="fake must be vectors of width 2"):
        appeal_in_manifold(table, np.hstack([real, real]), fake, k=1)
    with pytest.raises(UsageError, match="real must be finite vectors"):
        appeal_in_manifold(table, [1.0, 2.0], fake, k=1)


def test_appeal_and_similarity_coincide() -> None:
    table = task1(
        judgement("t", "a", "Africa", "1", "1"), judgement("u", "a", "Africa", "1", "2"),
        judgement("t", "b", "Europe", "2", "2"), judgement("u", "b", "Europe", None, "2"),
    )  # fmt: skip
    assert appeal_and_similarity(table, by=("annotator_loc",)).rows() == [("Africa", 0.5, 2), ("Europe", 1.0, 1)]
    drawn = drawn_task1()
    same = (drawn["similar_id"] == drawn["appealing_id"]).mean()
    assert appeal_and_similarity(drawn, by=()).rows() == [(same, drawn.height)]
    assert appeal_and_similarity(drawn).equals(appeal_and_similarity(drawn.reverse()))
    with pytest.raises(UsageError, match="colour"):
        appeal_and_similarity(drawn, by=("colour",))
