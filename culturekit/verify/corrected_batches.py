"""Corrected diversity of prompts with few images, worked out again: labels drawn for the images of each batch.

The audit's findings say what an image of a mapped label may show; the other images of its batch pull towards what they
show, as strongly as the images of a prompt are mapped alike. Draws come from the generator of the stated seed.
"""

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.verify.vendi import kernel_of, vendi_of_kernels

__all__ = ["BatchesAgain", "too_few_images"]

ENOUGH = 5
"""With so many batches' worth of images a prompt is taken for its shares."""

SETTLING = 5
"""Rounds of drawing up to the first that counts."""

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


def too_few_images(images: pl.DataFrame, size: int) -> bool:
    """Tell whether half the prompts or more lack the images to be taken for their shares."""
    return statistics.median(Counter(images["prompt_id"].to_list()).values()) < ENOUGH * size


class BatchesAgain:
    """The batches of each prompt's images: their cells, their weights in the mean, and what they are worth."""

    def __init__(self, rows: Sequence[dict[str, Any]], cell_of: dict[str, int], size: int) -> None:
        """Cut each prompt's images into batches, ordered by repeat, slot and id; `cell_of` is by mapped label."""

        def place(row: dict[str, Any]) -> tuple[tuple[bool, Any], ...]:
            return tuple((row[name] is not None, row[name]) for name in ("prompt_id", "repeat", "slot", "image_id"))

        by_prompt: dict[str | None, list[int]] = {}
        for row in sorted(rows, key=place):
            by_prompt.setdefault(row["prompt_id"], []).append(cell_of[row["label"]])
        whole = [cells[: len(cells) // size * size] for cells in by_prompt.values() if len(cells) >= size]
        if not whole:
            raise ValueError("a corrected score stands where no prompt has images for a batch")
        self.cells = np.array([cells[at : at + size] for cells in whole for at in range(0, len(cells), size)])
        self.prompts = np.repeat(np.arange(len(whole)), [len(cells) // size for cells in whole])
        self.counts = np.array([np.bincount(cells, minlength=max(cell_of.values()) + 1) for cells in whole], float)
        self.known: dict[bytes, float] = {}

    def agreement(self) -> tuple[Array, float]:
        """Say how often two images lie in one cell: of each prompt, and of different prompts."""
        images = self.counts.sum(axis=1)
        inside = (self.counts * (self.counts - 1)).sum(axis=1) / (images * (images - 1))
        if len(images) == 1:
            return inside, float(inside[0])
        total = self.counts.sum(axis=0)
        across = (total @ total - (self.counts**2).sum()) / (images.sum() ** 2 - images @ images)
        return inside, float(across)

    def pull(self, findings: Array, inside: float) -> Array:
        """Give what one image with a label adds to the odds of that label for the others of its batch."""
        cells = self.counts.sum(axis=0) / self.counts.sum()
        labels = cells @ findings
        across = self.agreement()[1]
        same = sum(
            float(((cells * findings[:, label]) ** 2).sum() / share) for label, share in enumerate(labels) if share > 0
        )
        part = min(max((inside - across) / (same - across), 0.0), 0.95) if same - across > 1e-9 else 0.0
        return np.array([part / (1 - part) / share if share > 0 else 0.0 for share in labels])

    def worth(self, labels: Labels, parents: Sequence[int], weights: Sequence[float], q: float) -> Array:
        """Give VS_q over the size of each batch, by its definition, each pattern of equal labels once."""
        outer = np.array(parents)[labels] if weights[1] > 0 else labels
        codes = np.stack([outer, labels, np.zeros_like(labels)], axis=-1)
        first = (codes[:, :, None] == codes[:, None]).argmax(axis=2).astype(np.int8)
        keys = [row.tobytes() for row in first]
        new = {key: batch for batch, key in enumerate(keys) if key not in self.known}
        if new:
            scores = vendi_of_kernels(kernel_of(codes[list(new.values())], weights), q) / labels.shape[1]
            self.known.update(zip(new, np.atleast_1d(scores).tolist(), strict=True))
        return np.array([self.known[key] for key in keys])

    def mean(self, values: Array) -> float:
        """Average over the batches of a prompt, then over prompts."""
        sums = np.bincount(self.prompts, weights=values)
        return float((sums / np.bincount(self.prompts)).mean())

    def drawn_values(
        self,
        findings: tuple[Array, Array, Array],
        alike: Array,
        about: tuple[Sequence[int], Sequence[float], float],
        rng: np.random.Generator,
    ) -> tuple[Array, Array]:
        """Draw labels round by round under plain, doubted and drawn findings: means, (draws, 3), and usual scores."""
        plain, doubted, again = findings
        inside = float(self.agreement()[0].mean())
        pulls = [self.pull(plain, inside), self.pull(doubted, inside)]
        states = [np.full(self.cells.shape, -1) for _ in range(3)]
        means, usual = np.zeros((len(again), 3)), np.zeros(len(self.cells))
        for draw, drawn in enumerate(again):
            pulled = (*pulls, self.pull(drawn, float(alike[draw])))
            ways = list(zip((plain, doubted, drawn), pulled, strict=True))
            for _ in range(1 if draw else SETTLING):
                chances = rng.random(self.cells.shape)
                for state, (found, pull) in zip(states, ways, strict=True):
                    self.relabel(state, found, pull, chances)
            for number, state in enumerate(states):
                scores = self.worth(state, *about)
                means[draw, number] = self.mean(scores)
                usual += scores / len(again) if number == 1 else 0.0
        return means, usual

    def relabel(self, state: Labels, findings: Array, pull: Array, chances: Array) -> None:
        """Draw the label of each image again, place by place, given those of the rest of its batch."""
        every = np.arange(len(pull))
        for place in range(state.shape[1]):
            state[:, place] = -1
            others = (state[:, :, None] == every).sum(axis=1)
            sums = (findings[self.cells[:, place]] * (1 + others * pull)).cumsum(axis=1)
            state[:, place] = (sums <= chances[:, place, None] * sums[:, -1:]).sum(axis=1)

    def other_images(self, scores: Array, draws: int, rng: np.random.Generator) -> Array:
        """Draw batches again: prompts with one batch among themselves, those with several within each."""
        times = np.bincount(self.prompts)
        alone = [batch for batch, prompt in enumerate(self.prompts) if times[prompt] == 1]
        total = len(alone) * resampled(scores[alone], draws, rng)
        for prompt in range(len(times)):
            if times[prompt] > 1:
                total += resampled(scores[self.prompts == prompt], draws, rng)
        return np.asarray(total / len(times))


def resampled(values: Array, draws: int, rng: np.random.Generator) -> Array:
    """Draw one value less than there are; give by how much the mean differs."""
    if len(values) < 2:
        return np.zeros(draws)
    times = rng.multinomial(len(values) - 1, [1 / len(values)] * len(values), size=draws)
    return np.asarray((times * values).sum(axis=1) / (len(values) - 1) - values.mean())
