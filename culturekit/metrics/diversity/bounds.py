"""How low and how high a diversity can be when some of the images show nobody knows what."""

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.arguments import argument_error, check_order
from culturekit.metrics.diversity.kernels import Kernel, Weights, check_weights
from culturekit.metrics.diversity.labels import LEVELS, Labels, Missing, code_labels
from culturekit.metrics.diversity.spectra import effective_number

__all__ = ["bounds_of_codes", "vendi_bounds"]


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

    Raises:
        UsageError: an argument breaks its rule.
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
    return min(repeated(kernel, int(place), unknown, q=q) for place in shown), float(most)


def repeated(kernel: NDArray[np.float64], place: int, times: int, *, q: float) -> float:
    """Score a kernel (n, n) with one of its items there so many times more.

    Items that are alike are one of greater weight: its row and column grow with the root of how many there are.
    """
    scale = np.ones(len(kernel))
    scale[place] = np.sqrt(1 + times)
    eigenvalues = np.linalg.eigvalsh(kernel * np.outer(scale, scale)) / (len(kernel) + times)
    return float(effective_number(eigenvalues, q=q))
