"""How much more alike the images of one prompt are than those of different prompts, in what they really show."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.corrected.image_batches import ImageBatches

__all__ = ["Likeness", "likeness_of"]

MOST = 0.95
"""The largest part of the images of a prompt that is taken to be of one label."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How often two images lie in one cell.

    Attributes:
        cells: float64, (n_cells,): the share of images in each cell.
        inside: float64, (n_prompts,): how often two images of a prompt lie in one cell.
        across: how often two images of different prompts do.
    """

    cells: NDArray[np.float64]
    inside: NDArray[np.float64]
    across: float

    def pull(self, findings: NDArray[np.float64], inside: float) -> NDArray[np.float64]:
        """Say how much each image of a batch that shows a label adds to the odds of that label, float64 (n_labels,).

        Prompts are taken to have shares drawn around those of all images, from a Dirichlet distribution: a part r of
        the pairs of a prompt shows one label for that reason alone. Seen through the mapping, pairs of a prompt then
        agree r times as much more often than pairs across prompts as two images of one label would.

        Args:
            findings: float64, (n_cells, n_labels): what the images of each cell show.
            inside: how often two images of a prompt lie in one cell.
        """
        both = findings * self.cells[:, None]
        labels = both.sum(axis=0)
        there = labels > 0
        one_label = float((both[:, there] ** 2 / labels[there]).sum())
        room = one_label - self.across
        part = float(np.clip((inside - self.across) / room, 0.0, MOST)) if room > 1e-9 else 0.0
        return np.asarray(np.divide(part / (1 - part), labels, out=np.zeros_like(labels), where=there))


def likeness_of(batches: ImageBatches, of_image: NDArray[np.int64]) -> Likeness:
    """Count pairs of images in one cell; `of_image`, (n_batches, size), is the cell of each image."""
    prompts, cells = int(batches.prompts[-1]) + 1, int(of_image.max()) + 1
    each = np.zeros((prompts, cells))
    np.add.at(each, (batches.prompts[:, None], of_image), 1.0)
    images, together = each.sum(axis=1), (each**2).sum(axis=1)
    total = each.sum(axis=0)
    pairs_across = images.sum() ** 2 - (images**2).sum()
    inside = (together - images) / (images * (images - 1))
    across = ((total**2).sum() - together.sum()) / pairs_across if pairs_across > 0 else float(inside.mean())
    return Likeness(total / total.sum(), inside, float(across))
