"""By how much steps along the slope of diversity go too far: diversity bends down.

Where an imputation errs by e, a step along the slope ends e'He / 2 too high, H being how diversity bends. Two images
that the imputation did not see tell e'He, each by what it shows beyond what was imputed for it; one alone would tell
its own noise. Draws in which labels err together are bent already: labels drawn one by one take their place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity
from culturekit.metrics.corrected.imputed_labels import Findings
from culturekit.metrics.corrected.imputed_prompts import Imputed
from culturekit.records.arrays import Array, Counts

__all__ = ["bends"]

PAIRS = 100
"""With so many pairs of audited images of a prompt, half of what they tell is believed."""

TIMES = 100
"""How often labels are drawn one by one."""

INSIDE = 0.02
"""So much of the shares is what was imputed for the images left out: no step takes away more than there is."""


@dataclass(frozen=True, slots=True)
class Bend:
    """What is looked at of a prompt of which some images were left out of an imputation.

    Attributes:
        chain: the imputation.
        hidden: the share of the prompt's images that it did not see.
        shares: float64, (n_labels,): what all images show, as imputed.
        beyond: float64, (n, n_labels): what the images left out show beyond what was imputed for them.
        drawn: int64, (kept, n_labels): images by what they show, as imputed, and
        alone: int64, (TIMES, n_labels): each label drawn by itself.
    """

    chain: int
    hidden: float
    shares: Array
    beyond: Array
    drawn: Counts
    alone: Counts

    def steps(self) -> Array:
        """Give shares on three places of a line for all images left out together, and for each."""
        lines = np.vstack([self.beyond.mean(axis=0), self.beyond / len(self.beyond)])
        return np.asarray(self.shares + INSIDE / 2 * np.arange(3)[:, None, None] * lines).reshape(-1, len(self.shares))

    @property
    def trust(self) -> float:
        """How far the pairs of images are believed."""
        pairs = len(self.beyond) * (len(self.beyond) - 1)
        return pairs / (pairs + PAIRS)

    def told(self, steps: Array, drawn: Array, alone: Array) -> float:
        """Say what is to be added, from the diversity of the steps, of what was imputed, and of labels drawn alone."""
        first, second, third = steps.reshape(3, -1)
        whole, *each = (first - 2 * second + third) / (INSIDE / 2) ** 2
        images = len(each)
        bent = images / (images - 1) * (whole - sum(each))
        return self.trust * float(alone.mean() - drawn.mean() + self.hidden**2 * bent / 2)


def bends(
    mapped: Counts,
    found: Findings,
    imputed: Imputed,
    part: Counts,
    diversity: ExpectedDiversity,
    *,
    rng: np.random.Generator,
) -> tuple[Array, float]:
    """Give what is to be added to the value for each part of the audited images, (n_parts,), and how far to trust it.

    Args:
        mapped: int64, (n_prompts, n_labels): images by prompt and mapped label.
        found: the audited ones among them.
        imputed: a chain for each part, from the other parts.
        part: int64, (n,): the part of each audited image.
        diversity: the mean diversity of batches, as a function of shares or of images.
        rng: draws.
    """
    chains = len(imputed.counts)
    enough = np.flatnonzero(mapped.sum(axis=1) >= diversity.size)
    seen = [
        bend_of(chain, int(prompt), mapped[prompt], found, imputed, part, rng)
        for chain in range(chains)
        for prompt in enough
        if ((part == chain) & (found.prompt == prompt)).sum() > 1
    ]
    told = np.zeros(chains)
    if not seen:
        return told, 0.0
    steps = values_of(diversity, [one.steps() for one in seen])
    drawn, alone = (
        values_of(diversity.of_images, each) for each in ([one.drawn for one in seen], [one.alone for one in seen])
    )
    for one, *values in zip(seen, steps, drawn, alone, strict=True):
        told[one.chain] += one.told(*values) / len(enough)
    return told, sum(one.trust for one in seen) / len(enough) / chains


def values_of(diversity: Callable[[NDArray[Any]], Array], rows: Sequence[NDArray[Any]]) -> list[Array]:
    """Give the diversity of many rows at once, part by part."""
    return np.split(diversity(np.concatenate(rows)), np.cumsum([len(each) for each in rows])[:-1])


def bend_of(
    chain: int, prompt: int, mapped: Counts, found: Findings, imputed: Imputed, part: Counts, rng: np.random.Generator
) -> Bend:
    """Say what images of a prompt show beyond what was imputed, and draw the labels of all one by one."""
    cells = imputed.prompt == prompt
    chances, place = imputed.chances[chain, cells], np.searchsorted(imputed.mapped[cells], found.mapped)
    held, known = ((found.prompt == prompt) & which for which in (part == chain, part != chain))
    hidden = mapped[imputed.mapped[cells]] - np.bincount(place[known], minlength=len(chances))
    odds = np.vstack([chances, found.shown[known]])
    odds /= odds.sum(axis=1, keepdims=True)
    images = np.append(hidden, np.ones(known.sum(), np.int64))
    alone = rng.multinomial(images, odds, size=(TIMES, len(odds))).sum(axis=1)
    left_out = chances[place[held]]
    shares = (1 - INSIDE) * (images @ odds) / images.sum() + INSIDE * left_out.mean(axis=0)
    beyond = found.shown[held] - left_out
    return Bend(chain, hidden.sum() / images.sum(), shares, beyond, imputed.counts[chain, :, prompt], alone)
