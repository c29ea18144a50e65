"""Triplets: their number and places, their distances, and the manifold of real images."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import cdist, sqeuclidean

from culturekit.core.errors import UsageError
from culturekit.core.schemas import TRIPLETS
from culturekit.metrics import (
    ImageSet,
    appeal_and_similarity,
    appeal_in_manifold,
    closer_rates,
    image_set,
    triplet_distance,
    triplets,
)
from culturekit.metrics.inclusion.triplet_distances import closer_choices
from tests.metrics.inclusion.task_worlds import drawn_task1, judgement, task1

OBJECTS = ("bag", "car", "cooking pot", "dog", "plate of food", "storefront")
REGIONS = ("Africa", "Europe", "Southeast Asia")


def images(source: str, per: dict[tuple[str, str | None], int], *, seed: int = 0, dim: int = 4) -> ImageSet:
    rng = np.random.default_rng(seed)
    labels = [cell for cell, number in per.items() for _ in range(number)]
    return image_set(
        source,
        rng.normal(size=(len(labels), dim)),
        ids=[f"{source}-{name}-{region}-{number:04}" for number, (name, region) in enumerate(labels)],
        objects=[name for name, _ in labels],
        regions=[region for _, region in labels],
    )


def both(*, real: int = 20, prompted: int = 20, plain: int = 60, seed: int = 0) -> tuple[ImageSet, ImageSet]:
    cells = [("bag", "Africa"), ("bag", "Europe")]
    fake: dict[tuple[str, str | None], int] = {**dict.fromkeys(cells, prompted), ("bag", None): plain}
    return images("real", dict.fromkeys(cells, real), seed=seed), images("ldm", fake, seed=seed + 1)


def test_two_models_make_15300_triplets() -> None:
    cells = [(name, region) for name in OBJECTS for region in REGIONS]
    real = images("real", dict.fromkeys(cells, 90), dim=2)
    total = 0
    for model in ("dm", "ldm"):
        per: dict[tuple[str, str | None], int] = {**dict.fromkeys(cells, 90), **{(name, None): 90 for name in OBJECTS}}
        made = triplets(real, images(model, per, seed=len(model), dim=2))
        assert TRIPLETS.problems(made) == []
        per_cell = made.group_by("object", "region", "combo").len()
        assert per_cell["len"].unique().to_list() == [85]
        assert made.filter(pick="near").height == 60 * 90
        total += made.height
    assert total == 15_300


def place_of(image: str, reference: np.ndarray, pool: ImageSet, region: str | None) -> int:
    """Tell the how-many-th furthest of its pool an image is."""
    rows = [row for row, own in enumerate(pool.regions) if own == region]
    distances = cdist(pool.vectors[rows], reference[None], "sqeuclidean")[:, 0]
    ranked = sorted(range(len(rows)), key=lambda row: -distances[row])
    return [pool.ids[rows[row]] for row in ranked].index(image) + 1


def test_images_stand_at_the_stated_places() -> None:
    real, fake = both()
    made = triplets(real, fake, near=3, far=2)
    vectors = {**dict(zip(real.ids, real.vectors, strict=True)), **dict(zip(fake.ids, fake.vectors, strict=True))}
    for row in made.iter_rows(named=True):
        reference, region = vectors[row["reference_id"]], row["region"]
        expected: dict[str, list[tuple[ImageSet, str | None, int]]] = {
            "A": [(fake, region, 20), (fake, region, 8)], "B": [(real, region, 20), (real, region, 8)],
            "C": [(fake, region, 20), (fake, None, 48)], "D": [(fake, None, 6), (fake, region, 8)],
            "E": [(real, region, 20), (real, region, 8)],
        }  # fmt: skip
        for end, (pool, own, furthest) in zip(("first", "second"), expected[row["combo"]], strict=True):
            assert place_of(row[f"{end}_id"], reference, pool, own) == furthest
            distance = float(np.square(vectors[row[f"{end}_id"]] - reference).sum())
            assert row[f"{end}_distance"] == pytest.approx(distance)
        sources = ("real", "ldm") if row["combo"] in "ACD" else ("ldm", "real")
        assert (row["reference_source"], row["source"]) == sources
    assert made.height == 2 * 5 * 5
    known = triplet_distance(
        *(np.array([vectors[i] for i in made[c]]) for c in ("reference_id", "first_id", "second_id"))
    )
    gap = (made["second_distance"] - made["first_distance"]).abs()
    assert known == pytest.approx((gap / gap.max()).to_numpy())


def test_references_are_those_with_the_nearest_and_the_farthest_neighbours() -> None:
    real, fake = both()
    made = triplets(real, fake, near=3, far=2).filter(combo="A", region="Africa")
    rows = [row for row, own in enumerate(real.regions) if own == "Africa"]
    distances = cdist(real.vectors[rows], real.vectors[rows])
    np.fill_diagonal(distances, np.inf)
    ranked = [real.ids[rows[row]] for row in np.argsort(distances.min(axis=1), kind="stable")]
    assert set(made.filter(pick="near")["reference_id"]) == set(ranked[:3])
    assert set(made.filter(pick="far")["reference_id"]) == set(ranked[-2:])


def test_the_order_of_images_does_not_matter() -> None:
    real, fake = both()
    order = np.random.default_rng(0).permutation(len(real.ids))
    turned = image_set(
        "real", real.vectors[order], ids=[real.ids[row] for row in order],
        objects=[real.objects[row] for row in order], regions=[real.regions[row] for row in order],
    )  # fmt: skip
    assert triplets(turned, fake, near=3, far=2).equals(triplets(real, fake, near=3, far=2))


def test_equal_distances_are_ordered_by_id() -> None:
    real, fake = both()
    same = image_set("ldm", np.zeros_like(fake.vectors), ids=fake.ids, objects=fake.objects, regions=fake.regions)
    made = triplets(real, same, near=2, far=1).filter(combo="A", region="Africa")
    pool = [name for name, own in zip(same.ids, same.regions, strict=True) if own == "Africa"]
    assert made["first_id"].unique().to_list() == [pool[0]]
    assert made["second_id"].unique().to_list() == [pool[7]]


SHORT: list[tuple[dict[str, int], str]] = [
    ({"plain": 48}, "too few images for triplets of combo C"),
    ({"prompted": 8}, "too few images for triplets of combo A"),
    ({"real": 4}, "too few images for triplets of combo A"),
]


@pytest.mark.parametrize(("few", "message"), SHORT)
def test_too_few_images_are_named(few: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        triplets(*both(**few), near=3, far=2)
    assert "object 'bag', region 'Africa'" in str(caught.value)


def test_arguments_are_checked() -> None:
    real, fake = both()
    with pytest.raises(UsageError, match="near and far must be"):
        triplets(real, fake, near=0, far=0)
    with pytest.raises(UsageError, match="photographs that all have a region"):
        triplets(fake, fake)
    with pytest.raises(UsageError, match="fake must be vectors of width 4"):
        triplets(real, images("ldm", {("bag", None): 2}, dim=3))


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


# Three triplets on a line: the first image at 1, the second further and further away
LINE = {f"t{n}-{end}": [place] for n, far in enumerate((1.5, 3.0, 9.0)) for end, place in
        (("ref", 0.0), ("1", 1.0), ("2", far))}  # fmt: skip


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
    with pytest.raises(UsageError, match="annotations that choose a more similar image"):
        closer_choices(table.clear(), {"line": LINE})
    table = task1(judgement("t0", "a", "Africa", "1", "2"))
    with pytest.raises(UsageError, match="shape of ref"):
        closer_rates(table, {"line": {**LINE, "t0-1": [1.0, 2.0]}})
    with pytest.raises(UsageError, match="the features line must be finite; found 't0-1'"):
        closer_rates(table, {"line": {**LINE, "t0-1": [float("nan")]}})


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
