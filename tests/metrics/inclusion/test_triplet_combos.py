"""Triplets for the study: their number, their places, and the order of equals."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import cdist

from culturekit.core.errors import UsageError
from culturekit.core.schemas import TRIPLETS
from culturekit.metrics import ImageSet, image_set, triplet_distance, triplets

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
    with pytest.raises(UsageError, match="ids must be all different"):
        image_set("real", [[0.0], [1.0]], ids=["a", "a"], objects=["x", "x"], regions=["y", "y"])
    with pytest.raises(UsageError, match="regions must be one per vector"):
        image_set("real", [[0.0]], ids=["a"], objects=["x"], regions=[])


def test_nothing_is_drawn_and_frames_are_sorted() -> None:
    real, fake = both(seed=5)
    made = triplets(real, fake, near=3, far=2)
    assert made.equals(made.sort("object", "region", "combo", "reference_id"))
    assert made["triplet_id"].n_unique() == made.height
    assert isinstance(made, pl.DataFrame)
