"""Triplets for people to compare: a reference and two images at stated places in its order of distances."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error
from culturekit.metrics.inclusion.task2_files import REAL
from culturekit.records.schemas import TRIPLETS

__all__ = ["COMBOS", "Combo", "ImageSet", "Kind", "Place", "check_triplets", "image_set", "images_needed", "triplets"]

Kind: TypeAlias = Literal["real", "in-region", "object"]
"""Photographs of an object in a region; images of the prompt "O in R"; images of the prompt "O"."""

Row: TypeAlias = dict[str, Any]
Vectors: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Place:
    """An image by its place in a reference's order: of which kind, and the how-many-th furthest; 0 is the closest."""

    kind: Kind
    furthest: int = 0


@dataclass(frozen=True, slots=True)
class Combo:
    """What a triplet is made of."""

    reference: Kind
    first: Place
    second: Place


COMBOS: Mapping[str, Combo] = MappingProxyType(
    {
        "A": Combo("real", Place("in-region"), Place("in-region", 8)),
        "B": Combo("in-region", Place("real"), Place("real", 8)),
        "C": Combo("real", Place("in-region"), Place("object", 48)),
        "D": Combo("real", Place("object", 6), Place("in-region", 8)),
        "E": Combo("object", Place("real"), Place("real", 8)),
    }
)
"""The combinations of the study."""


@dataclass(frozen=True, slots=True)
class ImageSet:
    """Images with features.

    Attributes:
        source: `real`, or the model.
        ids: (n,): all different.
        objects: (n,): what each image shows, or was to show.
        regions: (n,): where; None for images whose prompt named no region.
        vectors: float64, (n, dim).
    """

    source: str
    ids: tuple[str, ...]
    objects: tuple[str, ...]
    regions: tuple[str | None, ...]
    vectors: Vectors


def image_set(
    source: str,
    vectors: ArrayLike,
    *,
    ids: Sequence[str],
    objects: Sequence[str],
    regions: Sequence[str | None],
) -> ImageSet:
    """Put images together, in the order of their ids.

    Raises:
        UsageError: lengths differ, an id stands twice, or a number is not finite.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise argument_error("vectors", "finite numbers, (n, dim)", f"shape {rows.shape}")
    for name, labels in (("ids", ids), ("objects", objects), ("regions", regions)):
        if len(labels) != len(rows):
            raise argument_error(name, f"one per vector, of length {len(rows)}", f"length {len(labels)}")
    if len(set(ids)) < len(ids):
        raise argument_error("ids", "all different", sorted(ids))
    order = sorted(range(len(ids)), key=lambda row: ids[row])
    return ImageSet(
        source,
        tuple(ids[row] for row in order),
        tuple(objects[row] for row in order),
        tuple(regions[row] for row in order),
        rows[order],
    )


def triplets(real: ImageSet, fake: ImageSet, *, near: int = 60, far: int = 25, scaled: bool = False) -> pl.DataFrame:
    """Build the triplets of one model: five combinations for each object and region.

    Of the images that can be references of a combination, the `near` whose nearest neighbour among them is nearest
    are taken, and the `far` whose is farthest. The two images compared stand at stated places in the order of their
    distances from the reference. Equal distances are ordered by id: nothing is drawn. With 60 and 25 there are 425
    triplets per object and region; six objects, three regions and two models make 15,300.

    Args:
        real: photographs, each with a region.
        fake: the images of one model, of prompts with a region and without.
        near: references with the nearest neighbours.
        far: references with the farthest.
        scaled: places are those of 100 images, as the study had; of fewer, the 48th furthest is nearer to the front.

    Returns:
        Conforms to TRIPLETS, in the order of object, region, combination and reference.

    Raises:
        UsageError: an object and region have too few images of a kind, or widths differ.
    """
    if near < 0 or far < 0 or near + far < 1:
        raise argument_error("near and far", "whole numbers of at least 0, together at least 1", (near, far))
    if real.vectors.shape[1] != fake.vectors.shape[1]:
        raise argument_error("fake", f"vectors of width {real.vectors.shape[1]}, like real's", fake.vectors.shape)
    if None in real.regions:
        raise argument_error("real", "photographs that all have a region", real.ids[real.regions.index(None)])
    cells = sorted({(name, region) for name, region in zip(real.objects, real.regions, strict=True) if region})
    rows = [
        row
        for name, region in cells
        for combo in COMBOS
        for row in combo_rows(combo, Cell.collect(real, fake, name, region), near=near, far=far, scaled=scaled)
    ]
    return pl.DataFrame(rows, schema=TRIPLETS.schema).sort("object", "region", "combo", "reference_id")


@dataclass(frozen=True, slots=True)
class Cell:
    """The images of one object and region, by kind: ids in order, and vectors."""

    object: str
    region: str
    model: str
    images: Mapping[Kind, tuple[list[str], Vectors]]

    @classmethod
    def collect(cls, real: ImageSet, fake: ImageSet, name: str, region: str) -> "Cell":
        """Collect the images of a cell."""
        kinds: dict[Kind, tuple[ImageSet, str | None]] = {
            "real": (real, region),
            "in-region": (fake, region),
            "object": (fake, None),
        }
        return cls(name, region, fake.source, {kind: members(*of, name) for kind, of in kinds.items()})

    def need(self, kind: Kind, number: int, combo: str) -> tuple[list[str], Vectors]:
        """Give the images of a kind, of which there must be so many."""
        ids, vectors = self.images[kind]
        if len(ids) < number:
            raise UsageError(
                f"too few images for triplets of combo {combo}",
                where=f"object {self.object!r}, region {self.region!r}, {kind}",
                expected=f"at least {number}",
                found=str(len(ids)),
            )
        return ids, vectors

    def scaled(self, place: Place) -> Place:
        """Move a place to where it stands among as many images as there are."""
        among = max(1, round(place.furthest * len(self.images[place.kind][0]) / OF_HUNDRED))
        return replace(place, furthest=among) if place.furthest else place


def members(images: ImageSet, region: str | None, name: str) -> tuple[list[str], Vectors]:
    """Find the images of an object and region."""
    labels = zip(images.objects, images.regions, strict=True)
    rows = [row for row, label in enumerate(labels) if label == (name, region)]
    return [images.ids[row] for row in rows], images.vectors[rows]


OF_HUNDRED = 100
"""So many images the study had of each object and region, and of each object."""


def combo_rows(combo: str, cell: Cell, *, near: int, far: int, scaled: bool = False) -> Iterator[Row]:
    """Build the triplets of one combination in one cell."""
    made = COMBOS[combo]
    if scaled:
        made = replace(made, first=cell.scaled(made.first), second=cell.scaled(made.second))
    ids, vectors = cell.need(made.reference, max(2, near + far), combo)
    source = cell.model if made.reference == "real" else REAL
    for pick, row in references(vectors, near=near, far=far):
        chosen = [
            image_at(place, vectors[row], cell.need(place.kind, place.furthest + 1, combo))
            for place in (made.first, made.second)
        ]
        (first, first_distance), (second, second_distance) = chosen
        yield {
            "triplet_id": f"{cell.model}/{cell.object}/{cell.region}/{combo}/{ids[row]}",
            "combo": combo,
            "object": cell.object,
            "region": cell.region,
            "reference_source": REAL if made.reference == "real" else cell.model,
            "source": source,
            "pick": pick,
            "reference_id": ids[row],
            "first_id": first,
            "second_id": second,
            "first_distance": first_distance,
            "second_distance": second_distance,
        }


def images_needed(*kinds: Kind, near: int, far: int, scaled: bool) -> int:
    """Say how many images of these kinds a prompt has at least where its triplets are made."""
    places = [place for combo in COMBOS.values() for place in (combo.first, combo.second) if place.kind in kinds]
    return max(near + far, 2, 0 if scaled else max(place.furthest for place in places) + 1)


def references(vectors: Vectors, *, near: int, far: int) -> Iterator[tuple[str, int]]:
    """Choose references by the distance of their nearest neighbour; rows are in the order of their ids."""
    nearest = np.array([nearest_other(vectors, row) for row in range(len(vectors))])
    order = np.argsort(nearest, kind="stable")
    yield from (("near", int(row)) for row in order[:near])
    # From the far end the first of equals by id comes first, too.
    left = order[near:]
    farthest = left[np.argsort(-nearest[left], kind="stable")]
    yield from (("far", int(row)) for row in farthest[:far])


def nearest_other(vectors: Vectors, row: int) -> float:
    """Give the squared distance of the nearest other vector."""
    distances = np.square(vectors - vectors[row]).sum(axis=1)
    distances[row] = np.inf
    return float(distances.min())


def image_at(place: Place, reference: Vectors, images: tuple[list[str], Vectors]) -> tuple[str, float]:
    """Find the image at a place in a reference's order, with its squared distance; equals stand in order of ids."""
    ids, vectors = images
    distances = np.square(vectors - reference).sum(axis=1)
    order = np.argsort(distances if place.furthest == 0 else -distances, kind="stable")
    row = int(order[max(0, place.furthest - 1)])
    return ids[row], float(distances[row])


def check_triplets(task1: pl.DataFrame) -> None:
    """Refuse choices of an image that was not compared, and triplets of no known kind."""
    for column in ("similar_id", "appealing_id"):
        other = (pl.col(column) != pl.col("first_id")) & (pl.col(column) != pl.col("second_id"))
        strange = task1.filter(other)
        if strange.height:
            row = strange.row(0, named=True)
            raise UsageError(
                f"{column} names an image that was not compared, in {strange.height:,} annotations",
                where=f"triplet {row['triplet_id']!r}", expected=f"{row['first_id']!r} or {row['second_id']!r}",
                found=repr(row[column]),
            )  # fmt: skip
    kinds = sorted(set(task1["combo"]) - set(COMBOS))
    if kinds:
        raise argument_error("combo", f"one of {', '.join(COMBOS)}", kinds[0])
