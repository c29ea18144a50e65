"""Descriptors as phrases, lists of them in flat arrays, and best similarities: a product of matrices per dimension."""

import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.errors import UsageError, argument_error
from culturekit.metrics.arguments import float_array

# The dimensions of descriptors, and from which similarity on two descriptors count as the same.

Value = TypeVar("Value")

# What the published extractor describes of an image
DIMENSIONS = ("background", "objects", "attire", "interaction", "spatial")

NOT_EXTRACTED = frozenset({"people"})  # What published references have and the published extractor does not

# The published data and extractor call the first dimension `setting`, the paper calls it background
ALIASES = {"setting": "background"}


def dimension_name(written: str) -> str:
    """Give the one name of a dimension, however it is written."""
    folded = " ".join(written.casefold().split())
    return ALIASES.get(folded, folded)


def named_once(argument: str, given: Mapping[str, Value]) -> dict[str, Value]:
    """Give what stands under each dimension, by the one name of that dimension."""
    named: dict[str, Value] = {}
    for written, value in given.items():
        if dimension_name(written) in named:
            raise argument_error(argument, f"each dimension once: {written!r} is a name of another one there", given)
        named[dimension_name(written)] = value
    return named


# Of one image: dimension -> cosines, (n_pred, n_ref); None for a dimension that the extractor does not have
Similarities: TypeAlias = Mapping[str, ArrayLike | None]


@dataclass(frozen=True, slots=True)
class Compared:
    """The dimensions of one image that can be compared."""

    # dimension -> cosines, float64 (n_pred, n_ref) with n_ref > 0; n_pred = 0 where nothing was said
    arrays: Mapping[str, NDArray[np.float64]]
    # the dimensions left out: references that the extractor cannot see, and predictions in a dimension without
    # references
    ignored: tuple[str, ...]

    @property
    def empty(self) -> tuple[str, ...]:
        """The dimensions with references in which nothing was said of the image."""
        return tuple(name for name, array in self.arrays.items() if len(array) == 0)


def compared(
    similarities: Similarities, n_ref: Mapping[str, int], *, extractor_dimensions: Collection[str] | None = None
) -> Compared:
    """Part the dimensions of an image into those that can be compared and those left out, both in alphabetical order.

    A dimension missing from `similarities` was looked at and nothing was said: it is empty. Three things say
    that the extractor does not have a dimension: `extractor_dimensions` without it, None in its place in
    `similarities`, or, where neither says anything of it, that it is one of NOT_EXTRACTED.
    """
    counts = reference_counts(n_ref)
    if not isinstance(similarities, Mapping):
        raise argument_error("similarities", "a mapping of dimension to (n_pred, n_ref) similarities", similarities)
    found = named_once("similarities", similarities)
    seen = extracted_by(counts, [found], extractor_dimensions)
    arrays = {name: matrix(name, found.get(name), counts[name]) for name in sorted(seen)}
    referenced = {name for name, count in counts.items() if count}
    unasked = {name for name, array in found.items() if counts.get(name, 0) == 0 and says_something(array)}
    return Compared(arrays, tuple(sorted((referenced - seen) | unasked)))


def extracted_by(
    counts: Mapping[str, int], images: Sequence[Similarities], extractor_dimensions: Collection[str] | None
) -> set[str]:
    """Name the dimensions with references that the extractor has; any image that has one shows that it does."""
    referenced = {name for name, count in counts.items() if count}
    if extractor_dimensions is not None:
        return referenced & set(map(dimension_name, extractor_dimensions))
    had = {dimension_name(name) for image in images for name, array in image.items() if array is not None}
    lacked = {dimension_name(name) for image in images for name, array in image.items() if array is None}
    return {name for name in referenced if name in had or name not in lacked | NOT_EXTRACTED}


def reference_counts(n_ref: Mapping[str, int]) -> dict[str, int]:
    """Check how many references each dimension has."""
    if not isinstance(n_ref, Mapping):
        raise argument_error("n_ref", "a mapping of dimension to number of references", n_ref)
    for name, count in n_ref.items():
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            raise argument_error(f"n_ref[{name!r}]", "a whole number of at least 0", count)
    return {name: int(count) for name, count in named_once("n_ref", n_ref).items()}


def matrix(name: str, array: ArrayLike | None, references: int) -> NDArray[np.float64]:
    """Read the similarities of one dimension, float64 (n_pred, references)."""
    where = f"similarities[{name!r}]"
    numbers = float_array(where, "an array of numbers, (n_pred, n_ref)", [] if array is None else array)
    if numbers.shape[0:1] == (0,):
        return np.empty((0, references))
    if numbers.ndim != 2 or numbers.shape[1] != references:
        raise argument_error(where, f"of shape (n_pred, {references}), as n_ref says", f"shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise argument_error(where, "finite", float(numbers[~np.isfinite(numbers)][0]))
    return numbers


def says_something(array: ArrayLike | None) -> bool:
    """Tell whether an array has a row."""
    return array is not None and np.shape(array)[0:1] not in {(), (0,)}


def check_tau(tau: float) -> float:
    """Refuse a threshold that is not a number between -1 and 1, the range of a cosine."""
    if isinstance(tau, bool) or not isinstance(tau, int | float | np.floating | np.integer) or not -1 <= tau <= 1:
        raise argument_error("tau", "a number between -1 and 1, as cosines are", tau)
    return float(tau)


# The quartiles that CULTIVate found for all-MiniLM-L6-v2, by quantile
PUBLISHED_TAUS: Mapping[float, float] = {0.25: 0.29, 0.5: 0.39, 0.75: 0.52}

DEFAULT_TAU = PUBLISHED_TAUS[0.75]  # It agreed best with people


def calibrate_tau(
    similarities: "Similarities | ArrayLike | Sequence[Similarities]", *, quantile: float = 0.75
) -> float:
    """Give a quantile of how similar, at best, real images' descriptors are to each reference.

    The quantile is of best matches, one per image and reference: the maximum over the predictions. A quantile of
    all pairs would be far lower, because most pairs have nothing to do with each other, and would push ALIGN to 1.

    Args:
        similarities: of real images: a mapping of dimension -> cosines, (n_pred, n_ref), or a sequence of such
            mappings, one per image; or one array (n_pred, n_ref); or best matches already, (n,).
        quantile: between 0 and 1.

    Returns:
        The threshold. Dimensions in which nothing was said have no best match and do not count.

    Raises:
        UsageError: an argument breaks its rule, or there is no best match at all.
    """
    if not 0 <= quantile <= 1:
        raise argument_error("quantile", "between 0 and 1", quantile)
    found = list(best_of(similarities))
    best = np.concatenate(found) if found else np.empty(0)
    if len(best) == 0:
        raise argument_error("similarities", "of at least one prediction and one reference", similarities)
    if not np.isfinite(best).all():
        raise argument_error("similarities", "finite", float(best[~np.isfinite(best)][0]))
    return float(np.quantile(best, quantile))


def best_of(similarities: "Similarities | ArrayLike | Sequence[Similarities]") -> Iterator[NDArray[np.float64]]:
    """Yield the best matches of each array; NaN stays, to be refused."""
    if isinstance(similarities, Mapping):
        for array in similarities.values():
            if array is not None:
                yield from best_of(array)
    elif isinstance(similarities, Sequence) and any(isinstance(each, Mapping | np.ndarray) for each in similarities):
        for each in similarities:
            yield from best_of(each)
    else:
        yield best_of_array(similarities)


def best_of_array(similarities: object) -> NDArray[np.float64]:
    """Take the maximum over the predictions; numbers in a row are best matches already."""
    array = float_array("similarities", "arrays of numbers, (n_pred, n_ref)", similarities)
    if array.ndim == 1:
        return array
    if array.ndim != 2:
        raise argument_error("similarities", "arrays of shape (n_pred, n_ref)", f"shape {array.shape}")
    return array.max(axis=0) if len(array) else np.empty(0)


def normalise_phrase(text: str) -> str:
    """Write a phrase in the one form that equal phrases share.

    Unicode NFC, then casefold, then NFC again because casefolding can decompose, then runs of white space to
    one space, none at the ends.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join(folded.split())


@dataclass(frozen=True, slots=True)
class PhraseLists:
    """Many lists of phrases, one after the other.

    Attributes:
        phrases: int64, (total,): numbers of phrases, such as rows of an array of vectors.
        starts: int64, (n_lists + 1,): where each list begins; list i is phrases[starts[i]:starts[i + 1]].
    """

    phrases: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How long each list is, int64 (n_lists,)."""
        return np.diff(self.starts)


def phrase_lists(lists: Sequence[Sequence[int]]) -> PhraseLists:
    """Put lists of phrase numbers into flat arrays; a phrase that a list repeats counts once."""
    distinct = [np.unique(np.asarray(each, dtype=np.int64)) for each in lists]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in distinct], dtype=np.int64)])
    phrases = np.concatenate(distinct) if distinct else np.empty(0, np.int64)
    return PhraseLists(phrases, starts.astype(np.int64))


NOTHING_SAID = -np.inf  # The best similarity to a reference where an image has no prediction: below every threshold

DECIMALS = 12  # Similarities are rounded here, so that how a product was cut into blocks cannot decide a tie with tau

ROWS_AT_ONCE = 65_536

# Multiplications in one product below which BLAS starts no threads. On a busy machine threads wait for each other
# longer than such products take: larger ones took five times as long for 19,000 images.
ALONE = 250_000


@dataclass(frozen=True, slots=True)
class BestMatches:
    """Best similarities of cells; a cell is one image in one dimension.

    Attributes:
        of_reference: float64, flat: cell by cell, for each reference of its group how similar the nearest
            prediction is; NOTHING_SAID where there is none.
        reference_starts: int64, (n_cells + 1,): where each cell's references begin.
        of_prediction: float64, flat like the predictions: how similar the nearest reference is.
    """

    of_reference: NDArray[np.float64]
    reference_starts: NDArray[np.int64]
    of_prediction: NDArray[np.float64]

    def covered(self, tau: float) -> NDArray[np.int64]:
        """Count the references that each cell shows, int64 (n_cells,)."""
        sums = np.concatenate([[0], np.cumsum(self.of_reference >= tau)])
        return np.asarray(sums[self.reference_starts[1:]] - sums[self.reference_starts[:-1]])


def best_matches(
    vectors: ArrayLike, *, references: PhraseLists, predictions: PhraseLists, groups: NDArray[np.int64]
) -> BestMatches:
    """Compare the predictions of every cell with the references of its group, by cosine.

    The images of a prompt share its references: per group, each distinct predicted phrase is compared once with each
    reference in one product, however many images predict it, and images then take maxima of its rows.

    Args:
        vectors: one row per distinct phrase, (n_phrases, dim), of any length but 0; cosines are taken here.
        references: the phrases of each group (a prompt in a dimension), at least one per group.
        predictions: the phrases of each cell (an image in a dimension); a list may be empty.
        groups: int64, (n_cells,): the group that each cell is compared with.

    Returns:
        The best similarity of each reference and of each prediction, rounded to 12 decimals.
    """
    rows, norms = unit_rows("vectors", vectors)
    check_lists(references, predictions, groups, phrases=len(rows))
    starts = np.concatenate([[0], np.cumsum(references.lengths[groups])]).astype(np.int64)
    plan = grouped(predictions, groups, phrases=len(rows))
    of_prediction, found = np.empty(len(predictions.phrases)), [np.empty(0)]
    for part in plan.parts:
        asked = references.phrases[references.starts[part.group] : references.starts[part.group + 1]]
        lengths = norms[part.distinct, None] * norms[asked]
        cosines = np.round(products(rows, part.distinct, asked) / lengths, DECIMALS)
        of_prediction[part.places] = cosines.max(axis=1)[part.which]
        found.append(np.maximum.reduceat(cosines[part.which], part.firsts, axis=0).ravel())
    of_reference = np.full(int(starts[-1]), NOTHING_SAID)
    of_reference[places_of(starts, plan.cells)] = np.concatenate(found)
    return BestMatches(of_reference, starts, of_prediction)


@dataclass(frozen=True, slots=True)
class Part:
    """The predictions of the cells of one group, cell by cell."""

    group: int  # which group
    places: NDArray[np.int64]  # int64, (n,): where they stand among all predictions
    distinct: NDArray[np.int64]  # int64, (n_distinct,): their phrases, each once
    which: NDArray[np.int64]  # int64, (n,): which of these each prediction is
    firsts: NDArray[np.int64]  # int64, (n_cells,): the first of each cell


@dataclass(frozen=True, slots=True)
class Plan:
    """The cells in which something was said, int64 (n_cells,) and in order of their groups, and their predictions."""

    cells: NDArray[np.int64]
    parts: Iterator[Part]


def grouped(predictions: PhraseLists, groups: NDArray[np.int64], *, phrases: int) -> Plan:
    """Bring cells into the order of their groups, and find the distinct phrases of each group in one sort."""
    lengths = predictions.lengths
    saying = np.flatnonzero(lengths > 0)
    cells = saying[np.argsort(groups[saying], kind="stable")]
    places, owners = places_of(predictions.starts, cells), np.repeat(groups[cells], lengths[cells])
    keys, which = np.unique(owners * phrases + predictions.phrases[places], return_inverse=True)
    firsts = np.cumsum(lengths[cells]) - lengths[cells]
    present = np.unique(groups[cells])
    cuts = zip(
        present.tolist(),
        *(spans(sorted_groups, present) for sorted_groups in (groups[cells], owners, keys // max(1, phrases))),
        strict=True,
    )
    parts = (
        Part(group, places[p0:p1], keys[d0:d1] % phrases, which[p0:p1] - d0, firsts[c0:c1] - p0)
        for group, (c0, c1), (p0, p1), (d0, d1) in cuts
    )
    return Plan(cells, parts)


def spans(ordered: NDArray[np.int64], present: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Give where each group begins and ends among ordered groups."""
    return list(
        zip(
            np.searchsorted(ordered, present).tolist(),
            np.searchsorted(ordered, present, side="right").tolist(),
            strict=True,
        )
    )


def unit_rows(name: str, vectors: ArrayLike) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
    """Check vectors, (n, dim), and give them with their lengths; they stay as they are, mapped from disk or not."""
    try:
        rows = np.asarray(vectors)
        rows = rows if rows.dtype.kind == "f" else rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise argument_error(name, "an array of numbers, (n, dim)", vectors) from error
    if rows.ndim != 2:
        raise argument_error(name, "of shape (n, dim)", f"shape {rows.shape}")
    norms = np.empty(len(rows))
    for start in range(0, len(rows), ROWS_AT_ONCE):
        block = rows[start : start + ROWS_AT_ONCE].astype(np.float64)
        norms[start : start + len(block)] = np.sqrt(np.einsum("ij,ij->i", block, block))
    bad = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    if len(bad):
        raise UsageError(f"{name}[{bad[0]}] must be finite and not all zero: it has no direction")
    return rows, norms


def products(rows: NDArray[np.floating], distinct: NDArray[np.int64], asked: NDArray[np.int64]) -> NDArray[np.float64]:
    """Multiply some vectors with some others, float64 (n_distinct, n_asked), a few rows at a time."""
    references = rows[asked].astype(np.float64).T
    step = max(1, ALONE // references.size)
    blocks = [rows[distinct[start : start + step]].astype(np.float64) for start in range(0, len(distinct), step)]
    return np.concatenate([block @ references for block in blocks])


def check_lists(references: PhraseLists, predictions: PhraseLists, groups: NDArray[np.int64], *, phrases: int) -> None:
    """Refuse lists that do not belong together."""
    if len(groups) != len(predictions.lengths):
        raise argument_error("groups", f"one per cell, of length {len(predictions.lengths)}", f"length {len(groups)}")
    if len(groups) and not 0 <= int(groups.min()) <= int(groups.max()) < len(references.lengths):
        raise argument_error("groups", f"between 0 and {len(references.lengths) - 1}", groups)
    if (references.lengths == 0).any():
        raise argument_error("references", "lists of at least one phrase", "an empty list")
    for name, lists in (("references", references), ("predictions", predictions)):
        numbers = lists.phrases
        if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < phrases:
            raise argument_error(f"{name}.phrases", f"between 0 and {phrases - 1}, rows of vectors", numbers)


def places_of(starts: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the places of all predictions of some cells, cell by cell."""
    lengths = starts[cells + 1] - starts[cells]
    firsts = np.cumsum(lengths) - lengths
    return np.repeat(starts[cells] - firsts, lengths) + np.arange(int(lengths.sum()))
