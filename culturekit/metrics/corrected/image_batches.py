"""The batches that the images of each prompt make, as mapped labels: what few images of a prompt are corrected by."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.corrected.audited_counts import NONE, AuditedCounts, label_column
from culturekit.metrics.diversity.batch_diversity import Batches, cut_batches, scorer_of_batches
from culturekit.metrics.diversity.kernels import Weights

__all__ = ["ENOUGH", "ImageBatches", "few_images", "image_batches"]

ENOUGH = 5
"""A prompt with so many batches' worth of images may be taken for its shares."""


@dataclass(frozen=True, slots=True)
class ImageBatches:
    """Batches of images of one prompt each.

    Attributes:
        mapped: int64, (n_batches, size): the number of each image's mapped label.
        prompts: int64, (n_batches,) and sorted: the prompt of each batch, from 0; each has a batch.
        parents: int64, (n_labels,): the continent of each label.
        weights: of the same continent, the same country, the same artifact.
        q: the order.
    """

    mapped: NDArray[np.int64]
    prompts: NDArray[np.int64]
    parents: NDArray[np.int64]
    weights: Weights
    q: float

    @property
    def size(self) -> int:
        """How many images make a batch."""
        return int(self.mapped.shape[1])

    def scores(self, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give VS_q/size of batches with the given labels, (..., size): float64 (...)."""
        rows = np.arange(labels.size).reshape(-1, self.size)
        codes = {0: self.parents[labels.ravel()] if self.weights[1] > 0 else labels.ravel(), 1: labels.ravel()}
        counting = {level: codes[level] for level in codes if self.weights[level] > 0}
        score = scorer_of_batches(counting, Batches(rows, np.ones(rows.shape, np.bool_)))
        return score(self.weights, self.q).reshape(labels.shape[:-1])

    def over_prompts(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average values of batches, (..., n_batches), over the batches of a prompt, then over prompts."""
        return np.asarray(values @ self.shares())

    def shares(self) -> NDArray[np.float64]:
        """Give the weight of each batch in the mean, float64 (n_batches,): prompts count alike."""
        of_prompt = np.bincount(self.prompts)
        return np.asarray(1 / (of_prompt[self.prompts] * len(of_prompt)))


def few_images(matches: pl.DataFrame, size: int) -> bool:
    """Tell whether the usual prompt of a model and concept has too few images to be taken for its shares."""
    each = matches.filter(pl.col("rank") == 1).group_by("prompt_id").len()["len"].median()
    return each is not None and float(str(each)) < ENOUGH * size


def image_batches(
    matches: pl.DataFrame, counts: AuditedCounts, *, weights: Weights, q: float, size: int
) -> ImageBatches:
    """Cut the images of each prompt, in the order of repeats and slots, into batches; a rest is left out.

    Raises:
        UsageError: no prompt has images for a batch.
    """
    column = pl.col(label_column(weights)).fill_null(NONE).cast(pl.Enum(counts.labels)).to_physical()
    nearest = matches.filter(pl.col("rank") == 1).sort("prompt_id", "repeat", "slot", "image_id")
    labels = nearest.select(column).to_series().to_numpy().astype(np.int64)
    runs = nearest["prompt_id"].rle_id().to_numpy().astype(np.int64)
    rows = cut_batches(runs, size, "drop").rows
    if len(rows) == 0:
        raise UsageError("no prompt has as many images as a batch", expected=f"{size} images of some prompt")
    prompts = np.unique(runs[rows[:, 0]], return_inverse=True)[1]
    return ImageBatches(labels[rows], prompts, counts.parents, weights, q)
