"""Reference images that weigh the same from every cell, such as an object in a region, drawn with a seed."""

from collections.abc import Sequence

import numpy as np

from culturekit.errors import UsageError
from culturekit.metrics.realism.distances import Numbers

__all__ = ["balanced_sample"]


def balanced_sample(cells: Sequence[str], *, size: int | None = None, rng: np.random.Generator) -> Numbers:
    """Draw equally many rows of each cell, without replacement.

    Neighbourhoods shrink where references are many: shares of two regions compare only if both have equally many
    references, and of each object equally many.

    Args:
        cells: (n,): the cell of each row.
        size: how many of each cell; without, as many as the smallest has.
        rng: where the draws come from; cells are drawn from in alphabetical order, and rows in the order given.

    Returns:
        int64, (cells x size,): the numbers of the drawn rows, ascending.

    Raises:
        UsageError: a cell has fewer rows than `size`.
    """
    names, code = np.unique(np.asarray(cells, dtype=np.str_), return_inverse=True)
    counts = np.bincount(code, minlength=len(names))
    if len(names) == 0:
        return np.empty(0, np.int64)
    wanted = int(counts.min()) if size is None else size
    if wanted < 1 or wanted > counts.min():
        raise UsageError(
            "every cell must have the references that are drawn from it",
            expected=f"{size} of each",
            found=f"{counts.min()} of {str(names[int(counts.argmin())])!r}",
        )
    drawn = [rng.choice(np.flatnonzero(code == cell), wanted, replace=False) for cell in range(len(names))]
    return np.sort(np.concatenate(drawn)).astype(np.int64)
