"""Triplet distances, and whether people choose the closer image."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import sqeuclidean

from culturekit.core.errors import UsageError
from culturekit.metrics import closer_rates, triplet_distance
from culturekit.metrics.inclusion.triplet_distances import closer_choices
from tests.metrics.inclusion.task_worlds import drawn_task1, judgement, task1


def drawn(*, n: int = 8, dim: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dim)), rng.normal(size=(n, dim)), rng.normal(size=(n, dim))


def test_it_is_far_minus_close_in_scipys_squares_over_the_largest() -> None:
    ref, a, b = drawn()
    raw = []
    for reference, first, second in zip(ref, a, b, strict=True):
        distances = sorted([sqeuclidean(reference, first), sqeuclidean(reference, second)])
        raw.append(distances[1] - distances[0])
    assert triplet_distance(ref, a, b) == pytest.approx(np.array(raw) / max(raw))
    assert triplet_distance(ref, a, b, maximum=10) == pytest.approx(np.array(raw) / 10)
    assert triplet_distance(ref[0], a[0], b[0]) == pytest.approx(raw[0])
    assert triplet_distance(ref[0], a[0], b[0], maximum=2) == pytest.approx(raw[0] / 2)


def test_by_hand() -> None:
    assert triplet_distance([0, 0], [1, 0], [3, 0]) == 8
    assert triplet_distance([[0.0], [0.0]], [[1.0], [2.0]], [[3.0], [-2.0]]).tolist() == [1, 0]  # type: ignore[union-attr]
    assert np.asarray(triplet_distance([[0.0]], [[1.0]], [[-1.0]])).tolist() == [0]


@given(st.integers(0, 1000))
def test_invariances(seed: int) -> None:
    ref, a, b = drawn(seed=seed)
    value = np.asarray(triplet_distance(ref, a, b))
    assert (np.asarray(triplet_distance(ref, b, a)) == value).all()
    assert (np.asarray(triplet_distance(ref[::-1], a[::-1], b[::-1]))[::-1] == value).all()
    assert np.asarray(triplet_distance(ref * 7, a * 7, b * 7)) == pytest.approx(value)
    assert np.asarray(triplet_distance(ref + 3, a + 3, b + 3)) == pytest.approx(value, abs=1e-9)
    assert value.min() >= 0
    assert value.max() == 1


@pytest.mark.parametrize(
    ("ref", "a", "message"),
    [([[1.0]], [[1.0, 2.0]], "a must be"), ([[float("nan")]], [[1.0]], "ref must be"), ([], [], "ref must be")],
)
def test_vectors_are_checked(ref: list[list[float]], a: list[list[float]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        triplet_distance(ref, a, a)
    with pytest.raises(UsageError, match="maximum must be a number above 0"):
        triplet_distance([1.0], [1.0], [1.0], maximum=0)


LINE = {f"t{n}-{end}": [place] for n, far in enumerate((1.5, 3.0, 9.0)) for end, place in
        (("ref", 0.0), ("1", 1.0), ("2", far))}  # fmt: skip
"""Three triplets on a line: the first image at 1, the second further and further away."""


def test_choices_are_held_against_each_extractors_closer_image() -> None:
    table = task1(*(judgement(f"t{n}", "a", "Africa", "1", "2") for n in range(3)))
    mirrored = {image: [10 - place[0]] if image.endswith("2") else place for image, place in LINE.items()}
    choices = closer_choices(table, {"inception": LINE, "clip": mirrored})
    inception = choices.filter(extractor="inception").sort("triplet_id")
    assert inception["closer"].to_list() == [True] * 3
    assert inception["distance"].to_list() == pytest.approx([1.25 / 80, 8 / 80, 1])
    # In the other space the second image of t2 is as far as the first: that triplet says nothing.
    assert choices.filter(extractor="clip")["triplet_id"].sort().to_list() == ["t0", "t1"]


def test_bins_are_those_that_all_extractors_reach() -> None:
    table = drawn_task1(triplets=30)
    rng = np.random.default_rng(0)
    images = sorted({*table["reference_id"], *table["first_id"], *table["second_id"]})
    even = {image: rng.normal(size=3) for image in images}
    heavy = {image: rng.standard_t(1, size=3) for image in images}
    rates = closer_rates(table, {"even": even, "heavy": heavy}, bins=5)
    assert rates.columns == ["extractor", "annotator_loc", "bin", "low", "high", "rate", "n"]
    per = {name: set(part["bin"]) for (name,), part in rates.partition_by("extractor", as_dict=True).items()}
    alone = {name: set(closer_rates(table, {name: own}, bins=5)["bin"]) for name, own in
             (("even", even), ("heavy", heavy))}  # fmt: skip
    assert per["even"] == per["heavy"] == alone["even"] & alone["heavy"]
    assert per["even"] != alone["even"] | alone["heavy"]
    shuffled = closer_rates(table.sample(fraction=1, shuffle=True, seed=1), {"heavy": heavy, "even": even}, bins=5)
    assert shuffled.equals(rates)


def test_rates_are_counted_by_hand() -> None:
    table = task1(
        *(judgement(f"t{n}", who, "Africa", choice, "2") for n in range(3) for who, choice in (("a", "1"), ("b", "2")))
    )
    rates = closer_rates(table, {"line": LINE}, bins=10, by=())
    assert rates.rows() == [("line", 0, 0.0, 0.1, 0.5, 2), ("line", 1, 0.1, 0.2, 0.5, 2), ("line", 9, 0.9, 1.0, 0.5, 2)]


def test_missing_features_are_named() -> None:
    table = task1(judgement("t9", "a", "Africa", "1", "2"))
    with pytest.raises(UsageError, match="the features line must be given for every image; 1 have none"):
        closer_rates(table, {"line": LINE})
    with pytest.raises(UsageError, match="extractors must be at least one"):
        closer_rates(table, {})
    with pytest.raises(UsageError, match="bins must be a whole number"):
        closer_rates(table, {"line": LINE}, bins=0)
    with pytest.raises(UsageError, match="annotations that choose a more similar image"):
        closer_choices(table.clear(), {"line": LINE})
    table = task1(judgement("t0", "a", "Africa", "1", "2"))
    with pytest.raises(UsageError, match="shape of ref"):
        closer_rates(table, {"line": {**LINE, "t0-1": [1.0, 2.0]}})
    with pytest.raises(UsageError, match="the features line must be finite; found 't0-1'"):
        closer_rates(table, {"line": {**LINE, "t0-1": [float("nan")]}})
