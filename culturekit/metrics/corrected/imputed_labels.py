"""What images show, drawn: of those that a chain did not see by prompt and mapped label, of those it saw by answers."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.records.arrays import Array, Counts

__all__ = ["Findings", "ImageLabels"]

ONE_BY_ONE = 25
"""Images a column on average up to which labels are drawn image by image: of more a multinomial draw costs less."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Audited images.

    Attributes:
        prompt: int64, (n,): the prompt of each.
        mapped: int64, (n,): its mapped label.
        shown: float64, (n, n_labels): what it shows, by what people say.
        right: in what share of images the likeliest label is right.
        doubt: the standard error of that.
    """

    prompt: Counts
    mapped: Counts
    shown: Array
    right: float = 1.0
    doubt: float = 0.0


class ImageLabels:
    """Images in columns: those of a chain, prompt and mapped label that it did not see, and those of doubt one by one.

    Attributes:
        prompt: int64, (n_cells,): the prompt, and
        mapped: int64, (n_cells,): the mapped label of the columns that each chain has of images that it did not see.
    """

    def __init__(self, mapped: Counts, found: Findings, seen: NDArray[np.bool_]) -> None:
        """List the columns, and count the images of which it is known what they show.

        Args:
            mapped: int64, (n_prompts, n_labels): all images by mapped label.
            found: the audited ones among them.
            seen: bool, (n_chains, n): which of these each chain sees.
        """
        chains, (prompts, labels) = len(seen), mapped.shape
        self.shape = (chains, prompts, labels)
        self.prompt, self.mapped = np.nonzero(mapped)
        unseen = np.repeat(mapped[None], chains, axis=0)
        for chain, image in zip(*np.nonzero(seen), strict=True):
            unseen[chain, found.prompt[image], found.mapped[image]] -= 1
        chain, image = np.nonzero(seen & (found.shown.max(axis=1) < 1))
        self.shown = found.shown[image].T
        self.images = np.append(unseen[:, self.prompt, self.mapped].ravel(), np.ones_like(image))
        of_chain = np.append(np.arange(chains).repeat(len(self.prompt)), chain)
        label = np.append(np.tile(self.mapped, chains), found.mapped[image])
        self.of_prompt = of_chain * prompts + np.append(np.tile(self.prompt, chains), found.prompt[image])
        self.of_label = of_chain * labels + label
        self.likeliest = np.append(np.tile(self.mapped, chains), self.shown.argmax(axis=0))
        chain, image = np.nonzero(seen & (found.shown.max(axis=1) == 1))
        shows = found.shown[image].argmax(axis=1)
        self.counts = self.counted(chain * prompts + found.prompt[image], shows)
        self.table = self.tabled(chain * labels + found.mapped[image], shows)

    def chances(self, shares: Array, rows: Array) -> Array:
        """Give what images show that a chain did not see, float64 (n_labels, n_chains * n_cells).

        Args:
            shares: float64, (n_chains, n_prompts, n_labels).
            rows: float64, (n_chains, n_labels, n_labels): P(mapped | true).
        """
        cells, labels = len(self.images) - self.shown.shape[1], self.shape[2]
        odds = shares.reshape(-1, labels).T[:, self.of_prompt[:cells]]
        odds = odds * np.swapaxes(rows, 0, 1).reshape(labels, -1)[:, self.of_label[:cells]]
        return np.asarray(odds / odds.sum(axis=0))

    def drawn(self, chances: Array, rng: np.random.Generator) -> tuple[Counts, Array]:
        """Draw what all images show by the chances of those that were not seen.

        Returns:
            int64, (n_chains, n_prompts, n_labels): images by prompt and what they show, and float64, (n_chains,
            n_labels, n_labels): by what they show and are mapped to.
        """
        column, shows, times = drawn_labels(np.hstack([chances, self.shown]), self.likeliest, self.images, rng)
        counts = self.counts + self.counted(self.of_prompt[column], shows, times)
        return counts, self.table + self.tabled(self.of_label[column], shows, times)

    def counted(self, of_prompt: Counts, shows: Counts, times: Counts | None = None) -> Counts:
        """Count images by prompt and what they show."""
        counts = np.bincount(of_prompt * self.shape[2] + shows, times, math.prod(self.shape))
        return counts.reshape(self.shape).astype(np.int64)

    def tabled(self, of_label: Counts, shows: Counts, times: Counts | None = None) -> Array:
        """Count images by what they show and are mapped to, as numbers that mappings are computed with."""
        chains, _, labels = self.shape
        table = np.bincount(of_label * labels + shows, times, chains * labels**2).reshape(chains, labels, labels)
        return np.swapaxes(table, 1, 2).astype(np.float64)


def drawn_labels(
    odds: Array, likeliest: Counts, images: Counts, rng: np.random.Generator
) -> tuple[Counts, Counts, Counts | None]:
    """Draw what images show.

    Args:
        odds: float64, (n_labels, n_columns): of each label, for images that share a column.
        likeliest: int64, (n_columns,): the label that is tried first: so few images want a second look.
        images: int64, (n_columns,): how many images are of each column.
        rng: draws.

    Returns:
        Columns, labels and how many images are of both: where that is None, one each.
    """
    labels, columns = odds.shape
    totals, first = odds.sum(axis=0), odds[likeliest, np.arange(columns)]
    if images.sum() > ONE_BY_ONE * columns:
        times = rng.multinomial(images, (odds / totals).T)
        return np.arange(columns).repeat(labels), np.tile(np.arange(labels), columns), times.ravel()
    column = np.arange(columns).repeat(images)
    left = rng.random(len(column)) * totals[column] - first[column]
    label = likeliest[column]
    again = np.flatnonzero(left >= 0)
    others = odds.copy()
    others[likeliest, np.arange(columns)] = 0.0
    sums, left, of_again = others.cumsum(axis=0), left[again], column[again]
    label[again] = sum(part[of_again] <= left for part in sums[:-1])
    return column, label, None
