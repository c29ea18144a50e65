"""The Vendi score of labelled images, weighted by quality (CUBE, section 5), and of kernels and feature vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.choices import CONFIDENCE
from culturekit.core.errors import UsageError, argument_error, check_choice
from culturekit.metrics.arguments import check_order, finite_vector, float_array, unit_rows
from culturekit.metrics.diversity.label_spectra import effective_number, effective_numbers
from culturekit.metrics.diversity.labels import (
    LEVELS,
    Kernel,
    Labels,
    Missing,
    Weights,
    check_weights,
    classes_of_labels,
    code_labels,
    columns_of,
    counting_levels,
    distinct,
    kernel_name,
    several_weights,
    spell,
)
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS

if TYPE_CHECKING:
    import polars as pl


# How low and how high a diversity can be when some of the images show nobody knows what.


def vendi_bounds(
    labels: Labels,
    *,
    unknown: int,
    weights: Kernel,
    q: float = 1.0,
    missing: Missing = "distinct",
    normalize_labels: bool = True,
) -> tuple[float, float]:
    """Bound VS of a collection of which some items have no label: refused, missing, or not to be told.

    At most each of them is unlike everything. That bound is exact: leaving out what two groups of items have in common
    never lowers a Rényi entropy of the kernel. At least all of them are one of the things that are shown, whichever
    lowers the score most; with a single level of labels nothing can be lower.

    Args:
        labels: of the known items, as for `vendi`; may be empty.
        unknown: how many items there are besides.
        weights: of the same continent, the same country, the same artifact, or a name, as for `vendi`.
        q: the order, above 0.
        missing: what None means, as for `vendi`.
        normalize_labels: whether spelling differences of labels are ignored.

    Returns:
        The lowest and the highest VS, each between 1 and the number of all items; both are VS where all are known.
    """
    check_order(q)
    if unknown < 0:
        raise argument_error("unknown", "0 or more", unknown)
    empty = len(labels) == 0
    if empty and unknown == 0:
        raise argument_error("labels", "at least one item, known or unknown", labels)
    nothing = np.zeros((0, len(LEVELS)), np.int64)
    codes = nothing if empty else code_labels(labels, missing=missing, normalize=normalize_labels)
    return bounds_of_codes(codes, unknown, weights=check_weights(weights), q=q)


def bounds_of_codes(codes: NDArray[np.int64], unknown: int, *, weights: Weights, q: float) -> tuple[float, float]:
    """Bound VS from coded labels of the known items, int64 (n, 3)."""
    known = len(codes)
    if known == 0:
        return 1.0, float(unknown)
    alike = (codes[:, None, :] == codes[None, :, :]).astype(np.float64)
    kernel = alike @ (np.array(weights) / sum(weights))
    spectrum = np.linalg.eigvalsh(kernel)
    most = effective_number(np.append(spectrum, np.ones(unknown)) / (known + unknown), q=q)
    if unknown == 0:
        return float(most), float(most)
    shown = np.unique(codes, axis=0, return_index=True)[1]
    return min(repeated(kernel, int(index), unknown, q=q) for index in shown), float(most)


def repeated(kernel: NDArray[np.float64], index: int, times: int, *, q: float) -> float:
    """Score a kernel (n, n) with one of its items there so many times more.

    Items that are alike are one of greater weight: its row and column grow with the root of how many there are.
    """
    scale = np.ones(len(kernel))
    scale[index] = np.sqrt(1 + times)
    eigenvalues = np.linalg.eigvalsh(kernel * np.outer(scale, scale)) / (len(kernel) + times)
    return float(effective_number(eigenvalues, q=q))


# The columns of `vendi_table`
TABLE = {
    "kernel": str,
    "w_continent": float,
    "w_country": float,
    "w_artifact": float,
    "q": float,
    "value": float,
    "n": int,
}


@dataclass(frozen=True, slots=True)
class QVS:
    """Quality and diversity of a collection, and their product.

    `quality` is the mean over the items, `diversity` is VS/N, between 1/N and 1.
    """

    quality: float
    diversity: float

    @property
    def value(self) -> float:
        """The quality-weighted Vendi score: mean quality times VS/N."""
        return self.quality * self.diversity


def vendi(
    labels: "Labels | pl.LazyFrame",
    *,
    weights: Kernel = (0.0, 0.0, 1.0),
    q: float = 1.0,
    missing: Missing = "distinct",
    normalize_labels: bool = True,
) -> float:
    """Count how many different items a collection is worth: its Vendi score.

    Two items are as similar as the sum of the weights of the levels on which their labels are equal.

    Args:
        labels: N triples (continent, country, artifact), or a frame of polars or pandas with those columns. Equal
            labels are equal wherever they are: levels need not nest. A plain label for each item counts on all three
            levels. The rows of a lazy frame are counted as they are read.
        weights: a kernel by its name, such as `country`, or of the same continent, the same country, the same
            artifact: at least 0, summing to 1.
        q: the order, above 0. Low orders count rare labels more; `float("inf")` is an order.
        missing: `distinct` takes each None as unlike every other label, `equal` takes None as equal to None.
        normalize_labels: whether labels are stripped, Unicode-normalised (NFC) and case-folded first.

    Returns:
        The score, between 1 (all items alike) and N (all items different).

    Example:
        >>> labels = [("Asia", "JP", "obi"), ("Asia", "JP", "obi"), ("Europe", "IT", "tarantella")]
        >>> round(ck.vendi(labels, weights=(0, 1, 0)), 2), ck.vendi(["a", "b"])
        (1.89, 2.0)
    """
    check_order(q)
    checked = check_weights(weights)
    levels = counting_levels(checked)
    classes = classes_of_labels(labels, levels=levels, missing=missing, normalize=normalize_labels)
    return effective_numbers(classes, [checked[level] for level in levels], [q])[0]


def qvs(
    labels: Labels,
    quality: ArrayLike,
    *,
    weights: Kernel,
    q: float = 1.0,
    missing: Missing = "distinct",
    normalize_labels: bool = True,
) -> QVS:
    """Weight the diversity of a collection by its quality: mean(quality) · VS/N.

    Args:
        labels: N triples, as for `vendi`.
        quality: float, (N,), finite: how good each item is.
        weights: of the same continent, the same country, the same artifact, or a name, as for `vendi`.
        q: the order, above 0.
        missing: what None means, as for `vendi`.
        normalize_labels: whether spelling differences of labels are ignored.

    Returns:
        The quality, the diversity and their product.

    Example:
        >>> labels = [("Asia", "JP", "obi"), ("Asia", "JP", "obi"), ("Europe", "IT", "tarantella")]
        >>> score = ck.qvs(labels, [0.5, 0.7, 0.9], weights=(0, 1, 0))
        >>> round(score.quality, 2), round(score.diversity, 2)
        (0.7, 0.63)
    """
    score = vendi(labels, weights=weights, q=q, missing=missing, normalize_labels=normalize_labels)
    items = len(labels)
    goodness = finite_vector("quality", quality, length=items)
    return QVS(quality=float(goodness.mean()), diversity=score / items)


def vendi_table(
    labels: "Labels | pl.LazyFrame",
    *,
    weights: Kernel | Sequence[Kernel],
    q: float | Sequence[float],
    missing: Missing = "distinct",
    normalize_labels: bool = True,
) -> "pl.DataFrame":
    """Compute the Vendi score for many kernels and orders in one pass over the labels.

    Labels that are whole numbers of a narrow range are counted as they stand: ten million take about a second. Those
    of a lazy frame are counted as they are read: a hundred million in a Parquet file take five, and half a GB.

    Args:
        labels: N triples (continent, country, artifact), an integer array of them, (N, 3), or a frame of polars or
            pandas with those columns, also a lazy one, as `pl.scan_parquet` makes.
        weights: one triple, or several.
        q: one order, or several.
        missing: what None means, as for `vendi`.
        normalize_labels: whether spelling differences of labels are ignored.

    Returns:
        One row per kernel and order, in the order given: `kernel` (the name, where it is a standard one),
        `w_continent`, `w_country`, `w_artifact`, `q`, `value` (the score, between 1 and N) and `n`.
    """
    import polars as pl

    orders = [float(order) for order in np.atleast_1d(np.asarray(q, np.float64))]
    for order in orders:
        check_order(order)
    kernels = several_weights(weights)
    levels = sorted({level for kernel in kernels for level in counting_levels(kernel)})
    classes = classes_of_labels(labels, levels=levels, missing=missing, normalize=normalize_labels)
    rows = []
    for kernel in kernels:
        counting = counting_levels(kernel)
        part = classes.on([levels.index(level) for level in counting])
        values = effective_numbers(part, [kernel[level] for level in counting], orders)
        name = kernel_name(kernel)
        rows += [(name, *kernel, order, value, classes.items) for order, value in zip(orders, values, strict=True)]
    return pl.DataFrame(rows, schema=TABLE, orient="row")


# How often each label occurs: the distribution that a Vendi score sums up, and limits for its shares.


def distribution(labels: Labels, *, level: str, normalize_labels: bool = True) -> "pl.DataFrame":
    """Count the labels of one level.

    Args:
        labels: N triples (continent, country, artifact), or a polars frame with those columns.
        level: `continent`, `country` or `artifact`.
        normalize_labels: whether spelling differences of labels are ignored; of several spellings the first in
            alphabetical order is shown.

    Returns:
        One row per label, the most frequent first: `label` (null for the missing ones), `n`, and the share `p`; the
        shares sum to 1.
    """
    import polars as pl

    check_choice("level", level, LEVELS)
    column = columns_of(labels)[LEVELS.index(level)]
    if len(column) == 0:
        raise argument_error("labels", "at least one (continent, country, artifact)", labels)
    if not isinstance(column, pl.Series):
        column = series_of(list(column), level)
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    counts = column.alias("label").value_counts(name="n")
    if normalize_labels and counts["label"].dtype == pl.String:
        spelled = [None if label is None else str(spell(label)) for label in counts["label"]]
        merged = counts.with_columns(spelled=pl.Series(spelled, dtype=pl.String)).group_by("spelled")
        counts = merged.agg(pl.col("label").min(), pl.col("n").sum()).drop("spelled")
    shares = counts.with_columns(pl.col("n").cast(pl.Int64), p=pl.col("n") / len(column))
    return shares.sort(["n", "label"], descending=[True, False], nulls_last=True)


def series_of(labels: list[Any], level: str) -> "pl.Series":
    """Make a column of whole numbers where all labels are, and else one of texts."""
    import polars as pl

    if any(isinstance(label, str) for label in distinct(labels, name=level)):
        return pl.Series([None if label is None else str(label) for label in labels], dtype=pl.String)
    return pl.Series([None if label is None else int(label) for label in labels], dtype=pl.Int64)


def share_limits(images: "pl.DataFrame", *, confidence: float = CONFIDENCE) -> "pl.DataFrame":
    """Say between which limits the share of each label lies.

    Images of a batch are made together and need not be independent, so it is batches that are taken as a sample: a
    share counts as that of as many independent images as would scatter as it does. With few batches there are no
    limits.

    Args:
        images: a row per image: its `batch` and its `label`, which may be null.
        confidence: how often such limits are to hold the true share.

    Returns:
        One row per label: `label`, `low`, `high`; both null where there are too few batches.
    """
    import polars as pl
    from scipy.special import stdtrit

    n, sizes = images.height, images.group_by("batch").len("size")
    batches = sizes.height
    counts = images.group_by("batch", "label").len("shown").join(sizes, on="batch")
    sums = counts.group_by("label").agg(
        pl.col("shown").sum(),
        squares=(pl.col("shown").cast(pl.Float64) ** 2).sum(),
        products=(pl.col("shown").cast(pl.Float64) * pl.col("size")).sum(),
    )
    if batches < FEWEST_PROMPTS:
        return sums.select("label", low=pl.lit(None, pl.Float64), high=pl.lit(None, pl.Float64))
    share = pl.col("shown") / n
    spread = pl.col("squares") - 2 * share * pl.col("products") + share**2 * float((sizes["size"] ** 2).sum())
    variance = batches / (batches - 1) * spread / n**2
    binomial = share * (1 - share)
    worth = (
        pl.when((variance > 0) & (binomial > 0)).then(binomial / variance).otherwise(float(batches)).clip(upper_bound=n)
    )
    t = float(stdtrit(batches - 1, (1 + confidence) / 2)) ** 2
    centre = (share + t / (2 * worth)) / (1 + t / worth)
    half = (t * (binomial / worth + t / (4 * worth**2))).sqrt() / (1 + t / worth)
    return sums.select("label", low=(centre - half).clip(lower_bound=0.0), high=(centre + half).clip(upper_bound=1.0))


# The same of similarities of any kind and of feature vectors.

TOLERANCE = 1e-6  # What rounding may do to a kernel: cosines of float32 vectors are off by a few times 1e-7

BLOCK = 65_536  # Vectors worked on at a time


def vendi_kernel(K: ArrayLike, *, q: float = 1.0) -> float:  # noqa: N803 - the name is part of the contract
    """Compute the Vendi score of a kernel.

    Args:
        K: float, (n, n): similarities, symmetric and positive semi-definite, with ones on the diagonal.
            For q < 1 they should have been computed in float64: the rounding of float32 looks like rank.
        q: the order, above 0; infinity is allowed.

    Returns:
        The score, between 1 and n.

    Raises:
        UsageError: K is no such kernel, or q no order.
    """
    check_order(q)
    kernel = matrix("K", K)
    if kernel.shape[0] != kernel.shape[1]:
        raise argument_error("K", "square", f"shape {kernel.shape}")
    check_similarities(kernel)
    eigenvalues = spectrum(kernel, items=len(kernel))
    if eigenvalues[0] < -TOLERANCE:
        raise argument_error("K", "positive semi-definite", f"an eigenvalue of {eigenvalues[0] * len(kernel):.3g}")
    return float(effective_number(eigenvalues, q=q))


def vendi_features(X: ArrayLike, *, q: float = 1.0) -> float:  # noqa: N803 - the name is part of the contract
    """Compute the Vendi score of feature vectors under cosine similarity.

    Args:
        X: float, (n, dim): one vector per item, not all zero. Rows are normalised here. The spectrum comes
            from X Xᵀ/n or XᵀX/n, whichever is smaller: their eigenvalues are the same but for zeros.
        q: the order, above 0; infinity is allowed.

    Returns:
        The score, between 1 and n.

    Raises:
        UsageError: X holds no such vectors, or q is no order.
    """
    check_order(q)
    features = matrix("X", X)
    largest = np.abs(features).max(axis=1)
    if not largest.all():
        row = int(np.argmin(largest))
        raise argument_error(f"X[{row}]", "a vector other than zero", features[row])
    # Squares of huge or tiny numbers leave the range; a power of two takes no digit from any number.
    moderate = np.ldexp(features, -np.frexp(largest)[1][:, None])
    unit = moderate / np.linalg.norm(moderate, axis=1)[:, None]
    gram = unit @ unit.T if unit.shape[0] <= unit.shape[1] else unit.T @ unit
    return float(effective_number(spectrum(gram, items=len(unit)), q=q))


def spectrum(gram: NDArray[np.float64], *, items: int) -> NDArray[np.float64]:
    """Give the eigenvalues of a symmetric matrix over the number of items, smallest first."""
    return np.asarray(np.linalg.eigvalsh(gram / items), np.float64)


def matrix(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Read a matrix of finite numbers with at least one cell."""
    cells = float_array(name, "a matrix of numbers", values)
    if cells.ndim != 2 or cells.size == 0:
        raise argument_error(name, "a matrix with at least one cell", f"shape {cells.shape}")
    if not np.isfinite(cells).all():
        raise argument_error(
            name, "finite in every cell", f"{np.count_nonzero(~np.isfinite(cells))} cells that are not"
        )
    return cells


def check_similarities(kernel: NDArray[np.float64]) -> None:
    """Refuse a square matrix, (n, n), that is not symmetric or does not give each item similarity 1 with itself."""
    asymmetry = float(np.abs(kernel - kernel.T).max())
    if asymmetry > TOLERANCE:
        raise argument_error("K", "symmetric", f"cells that differ by {asymmetry:.3g}")
    diagonal = np.diagonal(kernel)
    worst = int(np.argmax(np.abs(diagonal - 1)))
    if abs(diagonal[worst] - 1) > TOLERANCE:
        raise argument_error(f"K[{worst}, {worst}]", "1, like the whole diagonal", float(diagonal[worst]))


def mean_cosine(vectors: ArrayLike) -> float:
    """Average the cosines of all pairs of vectors, those with themselves included: (1/N²) Σ over i and j.

    This is the squared length of the mean of the unit vectors, so no pair is looked at. Slides on CUBE call it
    coverage; it has nothing to do with the coverage of `prdc`, and low values mean varied images.

    Args:
        vectors: float, (n, dim): one per image, not all zero; rows are normalised here, in float64.

    Returns:
        The mean, between 0 (they cancel out) and 1 (all alike).

    Raises:
        UsageError: there are no such vectors.
    """
    try:
        table = np.asarray(vectors)
        total = np.zeros(table.shape[1] if table.ndim == 2 else 0)
        if table.ndim != 2 or table.size == 0:
            raise argument_error("vectors", "a matrix with at least one cell", f"shape {table.shape}")
        for start in range(0, len(table), BLOCK):
            total += unit_rows("vectors", table[start : start + BLOCK], start).sum(axis=0)
    except UsageError:
        raise
    except (TypeError, ValueError) as error:
        raise argument_error("vectors", "a matrix of numbers", vectors) from error
    mean = total / len(table)
    return min(float(mean @ mean), 1.0)
