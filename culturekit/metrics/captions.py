"""The three alignments of a translated caption (Liu et al., On the Cultural Gap, equations 3 to 6), and the best."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.errors import UsageError, argument_error
from culturekit.metrics.arguments import float_array

TERMS = ("text", "image", "object")


@dataclass(frozen=True, slots=True)
class C3Alignment:
    """The alignment of a caption, term by term.

    Attributes:
        text: A_ST, with the original caption; NaN where it is missing, as the others.
        image: A_IT, with the image.
        object: A_OT, with the objects detected in the image.
    """

    text: float
    image: float
    object: float

    @property
    def total(self) -> float:
        """A, the sum of the terms that are present; NaN where none is."""
        return self.without()

    @property
    def missing(self) -> tuple[str, ...]:
        """The terms that could not be computed and are not in the total."""
        return tuple(term for term in TERMS if math.isnan(getattr(self, term)))

    def without(self, *left_out: str) -> float:
        """Sum the terms that are present, but for some: the ablations of the metric."""
        values = [getattr(self, term) for term in TERMS if term not in left_out]
        present = [value for value in values if not math.isnan(value)]
        return math.fsum(present) if present else math.nan


# The terms whose sum captions are ranked by: the whole, each baseline (LaBSE only, CLIP only), and two ablations
STRATEGIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"labse": ("text",), "clip": ("image",), "objects": ("object",), "no-objects": ("text", "image"), "c3": TERMS}
)


def alignment_c3(
    *,
    source: ArrayLike | None,
    target: ArrayLike | None,
    objects: ArrayLike | None,
    image: ArrayLike | None,
    image_target: ArrayLike | None,
) -> C3Alignment:
    """Score how well a translated caption fits its original, its image and the objects in the image.

    A_ST = mean over source of the maximum over target of the cosine, A_OT the same from objects, A_IT = the maximum
    over image_target of the cosine with the image. The authors use LaBSE for the first two, and CLIP for
    the third. Vectors may have any length but 0. None, or no rows, is a text without tokens, an image
    without objects, or no image: terms that need it are missing, NaN, and left out of the total.

    Args:
        source: the original caption, (M, dim) or, as one sentence vector, (dim,).
        target: the translated caption in the same space, (N, dim) or (dim,).
        objects: what was detected in the image, in the same space, (K, dim) or (dim,).
        image: the image, (image_dim,), or its patches, (P, image_dim): then A_IT is their mean.
        image_target: the translated caption in the space of the image, (N', image_dim) or (image_dim,).

    Returns:
        The terms and their total. Totals over different terms have different ranges: see `missing`.

    Raises:
        UsageError: vectors are not finite, have no direction, or differ in width where they share a space.
    """
    given = {"target": target, "source": source, "objects": objects}
    target_vectors, asked, seen = (unit_vectors(name, rows) for name, rows in given.items())
    pictured, spoken = unit_vectors("image", image), unit_vectors("image_target", image_target)
    texts = {"target": target_vectors, "source": asked, "objects": seen}
    for space in (texts, {"image": pictured, "image_target": spoken}):
        check_widths(**{name: rows.shape[1] for name, rows in space.items() if rows is not None})
    return C3Alignment(
        text=mean_of_maxima(asked, target_vectors),
        image=mean_of_maxima(pictured, spoken),
        object=mean_of_maxima(seen, target_vectors),
    )


def unit_vectors(name: str, vectors: ArrayLike | None) -> NDArray[np.float64] | None:
    """Read vectors at length 1, float64 (n, dim); None where there are none."""
    if vectors is None:
        return None
    rows = float_array(name, "an array of numbers, (n, dim) or (dim,)", vectors)
    if rows.size == 0:
        return None
    if rows.ndim not in {1, 2}:
        raise argument_error(name, "of shape (n, dim) or (dim,)", f"shape {rows.shape}")
    rows = np.atleast_2d(rows)
    largest = np.maximum(rows.max(axis=1, initial=0), -rows.min(axis=1, initial=0))
    bad = np.flatnonzero(~(np.isfinite(largest) & (largest > 0)))
    if len(bad):
        raise argument_error(f"{name}[{bad[0]}]", "finite and not all zero: it has no direction", rows[bad[0]])
    # Squares of huge or tiny numbers leave the range; a power of two takes no digit from any number.
    usual = largest.min() > 2.0**-200 and largest.max() < 2.0**200
    moderate = rows if usual else np.ldexp(rows, -np.frexp(largest)[1][:, None])
    return np.asarray(moderate / np.sqrt(np.einsum("ij,ij->i", moderate, moderate))[:, None])


def check_widths(**widths: int) -> None:
    """Refuse vectors that should share a space and differ in width."""
    if len(set(widths.values())) > 1:
        names = list(widths)
        raise UsageError(
            f"{', '.join(names[:-1])} and {names[-1]} must share one space: vectors of one width",
            found=", ".join(f"{name} {width}" for name, width in widths.items()),
            hint="source, target and objects come from one text encoder; image and image_target from another.",
        )


def mean_of_maxima(sides: NDArray[np.float64] | None, targets: NDArray[np.float64] | None) -> float:
    """Average over one side the largest cosine with the other; NaN where one is missing."""
    if sides is None or targets is None:
        return math.nan
    best = (sides @ targets.T).max(axis=1)
    return math.fsum(best) / len(best)


def grouped_maxima(
    sides: NDArray[np.float64], of_side: NDArray[np.int64], targets: NDArray[np.float64], of_target: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Average over each group of one side the largest cosine with its group of the other; NaN where one is empty.

    Unit vectors, (m, dim) and (n, dim), stand in order of their groups; `of_...` says where each begins and the last
    ends.
    """
    counts, others = np.diff(of_side), np.diff(of_target)
    found = np.full(len(counts), np.nan)
    shapes = counts * (others.max(initial=0) + 1) + others
    for shape in np.unique(shapes[(counts > 0) & (others > 0)]):  # groups of one shape are one product of stacks
        groups = np.flatnonzero(shapes == shape)
        left = sides[of_side[groups][:, None] + np.arange(counts[groups[0]])]
        right = targets[of_target[groups][:, None] + np.arange(others[groups[0]])]
        found[groups] = np.matmul(left, right.swapaxes(1, 2)).max(axis=2).mean(axis=1)
    return found


def keep_best(ids: Sequence[str], scores: ArrayLike, *, n: int) -> list[str]:
    """Name the n items of the highest score, best first; items of equal score stand in order of their ids.

    Args:
        ids: what the items are called, each once.
        scores: one per item, (len(ids),); an item whose score is NaN is never kept.
        n: how many to keep; where there are fewer, all with a score are kept.

    Returns:
        The ids kept. They do not depend on the order of the items.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise argument_error("n", "a whole number of at least 0", n)
    values = float_array("scores", "a sequence of numbers", scores)
    if values.shape != (len(ids),):
        raise argument_error("scores", f"one per id, of shape ({len(ids)},)", f"shape {values.shape}")
    if len(set(ids)) < len(ids):
        raise argument_error("ids", "names, each given once", ids)
    ranked = sorted((-value, name) for name, value in zip(ids, values.tolist(), strict=True) if not math.isnan(value))
    return [name for _, name in ranked[:n]]
