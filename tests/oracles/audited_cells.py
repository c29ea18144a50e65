"""Images by prompt and what they are mapped to, and what people found of some: what the others show is drawn again."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from culturekit.core.arrays import Array, Counts

FEW = 25  # Images a cell on average up to which they are drawn one by one


@dataclass(frozen=True, slots=True)
class Audit:
    """The prompt and mapped label of each audited image, and the chance of each label to be what it shows."""

    prompts: Counts
    mapped: Counts
    shown: Array


class Cells:
    """Images by chain, prompt and mapped label: how many nobody looked at, and what was found of the others.

    Images of which people are in doubt are cells of one image, after the others.
    """

    def __init__(self, mapped: Counts, audits: Sequence[Audit]) -> None:
        """Count all that is known, and list the rest cell by cell: chain, prompt, label, likeliest label, images."""
        prompts, labels = mapped.shape
        self.places = [(int(prompt), int(label)) for prompt, label in zip(*np.nonzero(mapped), strict=True)]
        self.counts = np.zeros((len(audits), prompts, labels), np.int64)
        self.tables = np.zeros((len(audits), labels, labels), np.int64)
        self.audited = [np.zeros((labels, labels)) for _ in audits]
        cells, doubted, odds = [], [], []
        for chain, audit in enumerate(audits):
            left = mapped.copy()
            for prompt, label, shown in zip(audit.prompts, audit.mapped, audit.shown, strict=True):
                left[prompt, label] -= 1
                self.audited[chain][:, label] += shown
                likeliest = int(shown.argmax())
                if shown[likeliest] == 1:
                    self.counts[chain, prompt, likeliest] += 1
                    self.tables[chain, likeliest, label] += 1
                else:
                    doubted.append((chain, prompt, label, likeliest, 1))
                    odds.append(shown)
            cells += [(chain, prompt, label, label, left[prompt, label]) for prompt, label in self.places]
        self.chain, self.prompt, self.label, self.first, self.images = np.array(cells + doubted).T
        self.odds = np.array(odds).reshape(-1, labels)

    def full(self, odds: Array) -> Array:
        """Write the odds of cells down by chain, prompt and mapped label."""
        chances = np.zeros((*self.counts.shape, odds.shape[1]))
        chances[self.chain[: len(odds)], self.prompt[: len(odds)], self.label[: len(odds)]] = odds
        return chances

    def shown_again(self, shares: Array, rows: Array, rng: np.random.Generator) -> tuple[Counts, Counts, Array]:
        """Draw what all images show: by prompt, by what they are mapped to, and the odds of cells nobody looked at."""
        unseen = slice(len(self.images) - len(self.odds))
        odds = shares[self.chain[unseen], self.prompt[unseen]] * rows[self.chain[unseen], :, self.label[unseen]]
        odds /= odds.sum(axis=1, keepdims=True)
        every = np.concatenate([odds, self.odds])
        if self.images.sum() <= FEW * len(self.images):
            cell, shown, times = *self.one_by_one(every, rng), np.ones(1, np.int64)
        else:
            drawn = rng.multinomial(self.images, every / every.sum(axis=1, keepdims=True))
            cell, shown = np.nonzero(drawn)
            times = drawn[cell, shown]
        counts, tables = self.counts.copy(), self.tables.copy()
        np.add.at(counts, (self.chain[cell], self.prompt[cell], shown), times)
        np.add.at(tables, (self.chain[cell], shown, self.label[cell]), times)
        return counts, tables, odds

    def one_by_one(self, odds: Array, rng: np.random.Generator) -> tuple[Counts, Counts]:
        """Draw few images of each cell one by one: the first label, or what lies beyond it label by label."""
        cell = np.repeat(np.arange(len(odds)), self.images)
        first = odds[np.arange(len(odds)), self.first]
        rest = odds.copy()
        rest[np.arange(len(odds)), self.first] = 0.0
        beyond = rng.random(len(cell)) * odds.sum(axis=1)[cell] - first[cell]
        below = (rest.cumsum(axis=1)[cell, :-1] <= beyond[:, None]).sum(axis=1)
        return cell, np.where(beyond < 0, self.first[cell], below)
