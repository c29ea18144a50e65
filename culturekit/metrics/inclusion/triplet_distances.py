"""How much nearer to a reference the one image lies than the other, and whether people see it so."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from culturekit.core.errors import UsageError, argument_error
from culturekit.core.schemas import TRIPLETS
from culturekit.metrics.arguments import check_count
from culturekit.metrics.inclusion.region_rates import check_columns
from culturekit.metrics.inclusion.task2_files import REAL
from culturekit.metrics.realism.manifolds import in_manifold

Features: TypeAlias = Mapping[str, ArrayLike]  # Image id -> float, (dim,): its vector in one extractor's space

Vectors: TypeAlias = NDArray[np.float64]

ENDS = ("reference_id", "first_id", "second_id")

BLOCK = 256  # Triplets whose vectors are gathered at a time; the answer does not depend on it


def triplet_distance(
    ref: ArrayLike, a: ArrayLike, b: ArrayLike, *, maximum: float | None = None
) -> float | NDArray[np.float64]:
    """Give |f(ref) - f(far)|² - |f(ref) - f(close)|², normalised by the maximum: 0 when both are as far.

    Far is whichever of the two is farther, so that a and b may change places.

    Args:
        ref: float, (n, dim): vectors of the references; or (dim,) for a single triplet.
        a: the same of the one image compared.
        b: the same of the other.
        maximum: what to divide by; without it the largest of these triplets, so that answers lie in [0, 1]. A single
            triplet has none to be compared with, and is divided by nothing unless a maximum is given.

    Returns:
        float64, (n,), or one number for a single triplet. Where all are 0, all stay 0.

    Raises:
        UsageError: shapes differ, or a number is not finite, or the maximum is not above 0.
    """
    sides = [np.asarray(side, dtype=np.float64) for side in (ref, a, b)]
    for name, side in zip(("ref", "a", "b"), sides, strict=True):
        if side.ndim not in (1, 2) or side.size == 0 or side.shape != sides[0].shape or not np.isfinite(side).all():
            raise argument_error(name, f"finite vectors of the shape of ref, {sides[0].shape}", f"shape {side.shape}")
    if maximum is not None and not 0 < maximum < np.inf:
        raise argument_error("maximum", "a number above 0", maximum)
    reference, first, second = sides
    raw = np.abs(squared(reference, second) - squared(reference, first))
    if maximum is None:
        maximum = 1.0 if raw.ndim == 0 else float(raw.max()) or 1.0
    scaled = raw / maximum
    return float(scaled) if scaled.ndim == 0 else np.asarray(scaled)


def squared(first: Vectors, second: Vectors) -> Vectors:
    """Give squared distances of vectors that stand beside each other."""
    return np.asarray(np.square(first - second).sum(axis=-1))


def closer_choices(task1: pl.DataFrame, extractors: Mapping[str, Features]) -> pl.DataFrame:
    """Tell for each annotation and extractor whether the more similar image is the closer one.

    Returns:
        The rows of `task1` that have an answer, once per extractor, with `extractor`, `distance` (normalised by the
        extractor's maximum over these triplets) and `closer`; triplets whose two images are equally far are left out.
    """
    check_columns("task1", task1, ("triplet_id", *ENDS, "similar_id"))
    if not extractors:
        raise argument_error("extractors", "at least one", dict(extractors))
    answered = task1.filter(pl.col("similar_id").is_not_null())
    if not answered.height:
        raise argument_error("task1", "annotations that choose a more similar image", "none that does")
    triplets = answered.select("triplet_id", *ENDS).unique().sort("triplet_id", *ENDS)
    parts = []
    for name in sorted(extractors):
        further = how_much_further(triplets, name, extractors[name])
        distance = np.abs(further)
        nearer = np.where(further > 0, triplets["first_id"].to_numpy(), triplets["second_id"].to_numpy())
        known = triplets.with_columns(
            extractor=pl.lit(name),
            distance=pl.Series(distance / (float(distance.max()) or 1.0), dtype=pl.Float64),
            nearer=pl.Series(nearer.astype(str), dtype=pl.String),
        ).filter(pl.Series(further != 0))
        parts.append(answered.join(known, on=["triplet_id", *ENDS]))
    return pl.concat(parts).with_columns(closer=pl.col("similar_id") == pl.col("nearer")).drop("nearer")


def how_much_further(triplets: pl.DataFrame, name: str, features: Features) -> Vectors:
    """Give by how much the second image of each triplet is further from the reference than the first, in squares."""
    sides = []
    for end in ENDS:
        images = triplets[end].unique().sort()
        sides.append((feature_rows(name, features, images.to_list()), images.search_sorted(triplets[end]).to_numpy()))
    parts = []
    for start in range(0, triplets.height, BLOCK):
        reference, first, second = (rows[places[start : start + BLOCK]] for rows, places in sides)
        triplet_distance(reference, first, second)  # refuses vectors of other widths
        parts.append(squared(reference, second) - squared(reference, first))
    return np.concatenate(parts)


def closer_rates(
    task1: pl.DataFrame, extractors: Mapping[str, Features], *, bins: int = 10, by: Sequence[str] = ("annotator_loc",)
) -> pl.DataFrame:
    """Give the share of annotations whose more similar image is the closer one, by distance and extractor.

    Distances are those of `closer_choices`; the bins are equally wide. Only bins in which every extractor has
    triplets are kept (common support): triplets were chosen by the distances of one extractor, which the others do
    not spread as widely.

    Args:
        task1: conforms to TASK1.
        extractors: extractor -> the vectors of the images.
        bins: how many bins from 0 to 1.
        by: columns that part the annotations further; may be none.

    Returns:
        `extractor`, the columns of `by`, `bin` (from 0), `low`, `high`, `rate` and `n`, the annotations. Sorted.

    Raises:
        UsageError: an argument breaks its rule, or an image has no vector.
    """
    binned = binned_choices(task1, extractors, bins=bins)
    check_columns("task1", binned, by)
    keys = ["extractor", *by, "bin", "low", "high"]
    rates = binned.group_by(keys).agg(rate=pl.col("closer").cast(pl.Float64).mean(), n=pl.len().cast(pl.UInt64))
    return rates.sort(keys).select(*keys, "rate", "n")


def binned_choices(task1: pl.DataFrame, extractors: Mapping[str, Features], *, bins: int) -> pl.DataFrame:
    """Add the `bin` of each choice's distance, with its ends; keep the bins that every extractor reaches."""
    check_count("bins", bins)
    choices = closer_choices(task1, extractors)
    number = (pl.col("distance") * bins).floor().clip(0, bins - 1).cast(pl.UInt32)
    binned = choices.with_columns(bin=number).with_columns(low=pl.col("bin") / bins, high=(pl.col("bin") + 1) / bins)
    present = binned.group_by("bin").agg(each=pl.col("extractor").n_unique())
    return binned.join(present.filter(pl.col("each") == len(extractors)).select("bin"), on="bin")


def feature_rows(name: str, features: Features, ids: Sequence[str]) -> Vectors:
    """Collect the vectors of images, float64 (n, dim)."""
    missing = sorted(set(ids) - set(features))
    if missing:
        raise argument_error(f"the features {name}", f"given for every image; {len(missing)} have none", missing[0])
    rows = [np.asarray(features[image], dtype=np.float64) for image in ids]
    shapes = {row.shape for row in rows}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise argument_error(f"the features {name}", "vectors of one width", f"shapes {sorted(shapes)}")
    collected = np.array(rows)
    if not np.isfinite(collected).all():
        raise argument_error(f"the features {name}", "finite", ids[int(np.argmin(np.isfinite(collected).all(axis=1)))])
    return collected


# The manifold of real images, whether appealing images lie in it, and whether what appeals is what looks similar.

APPEAL_COMBO = "A"  # The triplets with a photograph as reference and two generated images of the same prompt

CELL = ("source", "region", "annotator_loc")


def appeal_in_manifold(
    task1: pl.DataFrame, real: ArrayLike, fake: Features, *, k: int, by: Sequence[str] = CELL
) -> pl.DataFrame:
    """Give the share of appealing generated images that lie in the manifold of real ones.

    Only triplets of combo A count of whose two generated images exactly one lies inside: among those a coin would
    put half of the appealing ones inside. The manifold is PRDC's: an image is inside where it is strictly closer to a
    real image than that one's k-th real neighbour.

    Args:
        task1: conforms to TASK1.
        real: float, (n_real, dim): the features of all real images, whatever their region.
        fake: image id -> float, (dim,): those of the generated images.
        k: of the neighbours; the manifold grows with it.
        by: columns that part the annotations; may be none.

    Returns:
        The columns of `by`, `share` and `n`, the annotations; sorted.

    Raises:
        UsageError: an argument breaks its rule, or an image has no features.
    """
    chosen = appealing_inside(task1, real, fake, k=k)
    check_columns("task1", chosen, by)
    return shares_by(chosen, "inside", by)


def appealing_inside(task1: pl.DataFrame, real: ArrayLike, fake: Features, *, k: int) -> pl.DataFrame:
    """Keep the annotations that count, with whether the appealing image lies `inside`."""
    check_columns("task1", task1, ("combo", "first_id", "second_id", "appealing_id"))
    manifold = np.asarray(real, dtype=np.float64)
    if manifold.ndim != 2 or not np.isfinite(manifold).all():
        raise argument_error("real", "finite vectors, (n_real, dim)", f"shape {manifold.shape}")
    if k != int(k) or not 1 <= k < len(manifold):
        raise argument_error("k", f"a whole number from 1 to {len(manifold) - 1}, one less than the real images", k)
    asked = task1.filter((pl.col("combo") == APPEAL_COMBO) & pl.col("appealing_id").is_not_null())
    images = sorted({*asked["first_id"], *asked["second_id"]})
    inside = pl.Series(dtype=pl.String)
    if images:
        rows = feature_rows("fake", fake, images)
        if rows.shape[1] != manifold.shape[1]:
            raise argument_error("fake", f"vectors of width {manifold.shape[1]}, like real's", f"width {rows.shape[1]}")
        inside = pl.Series(images).filter(pl.Series(in_manifold(manifold, rows, k=int(k))))
    first, second, chosen = (pl.col(name).is_in(inside.implode()) for name in ("first_id", "second_id", "appealing_id"))
    return asked.filter(first != second).with_columns(inside=chosen)


def appeal_and_similarity(task1: pl.DataFrame, *, by: Sequence[str] = CELL) -> pl.DataFrame:
    """Give how often the image chosen as more similar is also the more appealing one.

    Args:
        task1: conforms to TASK1.
        by: columns that part the annotations; may be none.

    Returns:
        The columns of `by`, `share` and `n`, the annotations that answer both; sorted.
    """
    check_columns("task1", task1, by)
    return shares_by(both_criteria(task1), "same", by)


def both_criteria(task1: pl.DataFrame) -> pl.DataFrame:
    """Keep the annotations that answer both, with whether they chose the `same` image."""
    check_columns("task1", task1, ("similar_id", "appealing_id"))
    both = task1.filter(pl.col("similar_id").is_not_null() & pl.col("appealing_id").is_not_null())
    return both.with_columns(same=pl.col("similar_id") == pl.col("appealing_id"))


def shares_by(rows: pl.DataFrame, column: str, by: Sequence[str]) -> pl.DataFrame:
    """Give the share of rows that are true, by cell."""
    share, number = pl.col(column).cast(pl.Float64).mean().alias("share"), pl.len().cast(pl.UInt64).alias("n")
    if not by:
        return rows.select(share, number).filter(pl.col("n") > 0)
    return rows.group_by(by).agg(share, number).sort(by, nulls_last=True)


# Triplets for people to compare: a reference and two images at stated places in its order of distances.

# Photographs of an object in a region; images of the prompt "O in R"; images of the prompt "O"
Kind: TypeAlias = Literal["real", "in-region", "object"]

# An image by its place in a reference's order: of which kind, and the how-many-th furthest; 0 is the closest
Pick: TypeAlias = tuple[Kind, int]

# The combinations of the study: of which kind the reference is, and the two images that are compared
COMBOS: Mapping[str, tuple[Kind, Pick, Pick]] = MappingProxyType(
    {
        "A": ("real", ("in-region", 0), ("in-region", 8)),
        "B": ("in-region", ("real", 0), ("real", 8)),
        "C": ("real", ("in-region", 0), ("object", 48)),
        "D": ("real", ("object", 6), ("in-region", 8)),
        "E": ("object", ("real", 0), ("real", 8)),
    }
)

OF_HUNDRED = 100  # So many images the study had of each object and region, and of each object


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
    source: str, vectors: ArrayLike, *, ids: Sequence[str], objects: Sequence[str], regions: Sequence[str | None]
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
        for row in combo_rows(combo, name, region, real, fake, near=near, far=far, scaled=scaled)
    ]
    return pl.DataFrame(rows, schema=TRIPLETS.schema).sort("object", "region", "combo", "reference_id")


def members(images: ImageSet, region: str | None, name: str) -> tuple[list[str], Vectors]:
    """Find the images of an object and region."""
    labels = zip(images.objects, images.regions, strict=True)
    rows = [row for row, label in enumerate(labels) if label == (name, region)]
    return [images.ids[row] for row in rows], images.vectors[rows]


def combo_rows(
    combo: str, name: str, region: str, real: ImageSet, fake: ImageSet, *, near: int, far: int, scaled: bool
) -> Iterator[dict[str, Any]]:
    """Build the triplets of one combination for one object and region."""
    kind, *picks = COMBOS[combo]
    sides: dict[Kind, tuple[ImageSet, str | None]] = {
        "real": (real, region), "in-region": (fake, region), "object": (fake, None)
    }  # fmt: skip
    images = {each: members(*side, name) for each, side in sides.items()}
    if scaled:
        picks = [(each, max(1, round(last * len(images[each][0]) / OF_HUNDRED)) if last else 0) for each, last in picks]
    for each, number in (kind, max(2, near + far)), *((each, last + 1) for each, last in picks):
        if len(images[each][0]) < number:
            raise UsageError(
                f"too few images for triplets of combo {combo}",
                where=f"object {name!r}, region {region!r}, {each}",
                expected=f"at least {number}",
                found=str(len(images[each][0])),
            )
    ids, vectors = images[kind]
    source, reference_source = (fake.source, REAL) if kind == "real" else (REAL, fake.source)
    for pick, row in references(vectors, near=near, far=far):
        (first, first_distance), (second, second_distance) = (
            image_at(last, vectors[row], images[each]) for each, last in picks
        )
        yield {
            "triplet_id": f"{fake.source}/{name}/{region}/{combo}/{ids[row]}",
            "combo": combo,
            "object": name,
            "region": region,
            "reference_source": reference_source,
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
    places = [last for _, *picks in COMBOS.values() for kind, last in picks if kind in kinds]
    return max(near + far, 2, 0 if scaled else max(places) + 1)


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


def image_at(last: int, reference: Vectors, images: tuple[list[str], Vectors]) -> tuple[str, float]:
    """Find the image at a place in a reference's order, with its squared distance; equals stand in order of ids."""
    ids, vectors = images
    distances = np.square(vectors - reference).sum(axis=1)
    order = np.argsort(-distances if last else distances, kind="stable")
    row = int(order[max(0, last - 1)])
    return ids[row], float(distances[row])
