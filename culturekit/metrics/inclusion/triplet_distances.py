"""How much nearer to a reference the one image lies than the other, and whether people see it so."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import argument_error, check_count
from culturekit.metrics.inclusion.region_rates import check_columns

__all__ = ["Features", "binned_choices", "closer_choices", "closer_rates", "feature_rows", "triplet_distance"]

Features: TypeAlias = Mapping[str, ArrayLike]
"""Image id -> float, (dim,): its vector in one extractor's space."""

Vectors: TypeAlias = NDArray[np.float64]

ENDS = ("reference_id", "first_id", "second_id")

BLOCK = 256
"""Triplets whose vectors are gathered at a time; the answer does not depend on it."""


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

    Raises:
        UsageError: a column is missing, nobody chose an image, or an image has no vector.
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
