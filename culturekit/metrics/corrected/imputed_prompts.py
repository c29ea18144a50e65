"""What the images of each prompt show, imputed from their mapped labels and an audit of some (Gibbs sampling).

How a true label is mapped, P(mapped | true), is the same under every prompt; what prompts show differs, around the
shares of the model, by as much as the images say. Labels of images that nobody looked at are drawn, then the shares of
prompts and the rows of the mapping given these labels, and so on.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.corrected.imputed_draws import (
    drawn_accuracy,
    drawn_counts,
    drawn_rows,
    drawn_shares,
    drawn_strength,
    tables,
)

__all__ = ["Findings", "Imputed", "ImputedPrompts", "impute"]

SETTLING, KEPT = 60, 100
"""Rounds until the first that counts, and those that count."""

DRAWN = 240
"""Rows of shares kept, at least those of one round."""

STEPS = np.array([0.05, 0.2, 0.6, 1.5])
"""How far the likeness of prompts is tried to move, on the scale of logarithms; alike and unlike it mixes in turn."""

LIKENESS = (0.5, 2e4)
"""The least and the most alike that prompts are taken to be."""

EVENNESS = np.geomspace(0.05, 200, 40)
"""What is tried for how even the shares of a model are."""

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


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

    def of(self, rows: NDArray[np.bool_]) -> "Findings":
        """Take some of them."""
        return replace(self, prompt=self.prompt[rows], mapped=self.mapped[rows], shown=self.shown[rows])


@dataclass(frozen=True, slots=True)
class Imputed:
    """What was drawn.

    Attributes:
        counts: int64, (kept, n_prompts, n_labels): the images by what they show.
        chances: float64, (n_prompts, n_labels, n_labels): what an image of a prompt and mapped label shows.
        shares: float64, (n_prompts, n_labels): the mean of the shares of prompts.
        drawn: float64, (some, n_prompts, n_labels): shares of some rounds.
    """

    counts: Counts
    chances: Array
    shares: Array
    drawn: Array


def impute(mapped: Counts, found: Findings, parents: Counts, none: int, *, rng: np.random.Generator) -> Imputed:
    """Impute what all images show.

    Args:
        mapped: int64, (n_prompts, n_labels): all images by mapped label.
        found: the audited ones among them.
        parents: int64, (n_labels,): the continent of each label.
        none: the label of pictures that show no artifact: where they are mapped says nothing about other labels.
        rng: draws.
    """
    sampler = ImputedPrompts(mapped, found, parents, none, rng)
    counts = np.empty((KEPT, *mapped.shape), np.int64)
    shares, drawn = np.zeros(mapped.shape), []
    every = max(KEPT // min(max(DRAWN // len(mapped), 1), KEPT), 1)
    chances = np.zeros((len(sampler.prompt), mapped.shape[1]))
    for round_ in range(SETTLING + KEPT):
        sampler.draw()
        if round_ >= SETTLING:
            counts[round_ - SETTLING] = sampler.counts
            shares += sampler.shares / KEPT
            chances += sampler.chances / KEPT
            if (round_ - SETTLING + 1) % every == 0:
                drawn.append(sampler.shares)
    full = np.zeros((*mapped.shape, mapped.shape[1]))
    full[sampler.prompt, sampler.mapped] = chances
    return Imputed(counts, full, shares, np.stack(drawn))


class ImputedPrompts:
    """The state of the sampler: labels of images, shares of prompts, rows of the mapping, and what these come from."""

    def __init__(self, mapped: Counts, found: Findings, parents: Counts, none: int, rng: np.random.Generator) -> None:
        """Begin with what the audit found."""
        self.rng, self.found, self.none = rng, found, none
        self.prompt, self.mapped = np.nonzero(mapped)
        seen = np.zeros_like(mapped)
        np.add.at(seen, (found.prompt, found.mapped), 1)
        self.unseen = (mapped - seen)[self.prompt, self.mapped]
        self.starts = np.flatnonzero(np.diff(self.prompt, prepend=-1))
        self.into = np.eye(mapped.shape[1])[self.mapped]
        self.audit = np.zeros((mapped.shape[1],) * 2)
        np.add.at(self.audit.T, found.mapped, found.shown)
        self.known = (mapped.sum(axis=0) > 0) & (np.arange(len(parents)) != none)
        self.towards = leanings(self.audit, mapped.sum(axis=0), parents)
        self.evenness = evenness_of(self.audit.sum(axis=1), none)
        self.even = float(np.exp(np.log(EVENNESS) @ self.evenness))
        self.model = self.audit.sum(axis=1) + 2.0 * self.expected()
        self.model /= self.model.sum()
        self.likeness, self.accuracy = 20.0, (0.8, 10.0)
        self.shares = np.tile(self.model, (len(mapped), 1))
        self.table = self.audit
        self.draw_mapping()
        self.draw_labels()

    def draw(self) -> None:
        """Draw everything once, each given the rest."""
        self.draw_shares()
        self.draw_mapping()
        self.draw_labels()

    def draw_labels(self) -> None:
        """Draw what the images of each prompt and mapped label show."""
        odds = self.shares[self.prompt] * self.rows[:, self.mapped].T
        self.chances = odds / odds.sum(axis=1, keepdims=True)
        labels = drawn_counts(self.unseen, self.chances, self.rng)
        seen = drawn_rows(self.found.shown, self.rng)
        self.counts = np.zeros(self.shares.shape, np.int64)
        self.counts[self.prompt[self.starts]] = np.add.reduceat(labels, self.starts, axis=0)
        np.add.at(self.counts, (self.found.prompt, seen), 1)
        self.table = labels.T @ self.into
        np.add.at(self.table, (seen, self.found.mapped), 1.0)

    def expected(self) -> Array:
        """Give how many images of each label are expected before any is seen."""
        return np.asarray(expected_labels(np.array([self.even]), len(self.found.shown[0]), self.none)[0])

    def draw_shares(self) -> None:
        """Draw the shares of the model and of prompts."""
        self.even = float(self.rng.choice(EVENNESS, p=self.evenness))
        if len(self.counts) == 1:
            self.shares = drawn_shares(self.expected() + self.counts, self.rng)
            return
        self.draw_likeness()
        base = self.expected() + tables(self.counts, self.likeness * self.model, self.rng).sum(axis=0)
        self.model = drawn_shares(np.array([base], np.float64), self.rng)[0]
        self.shares = drawn_shares(self.likeness * self.model + self.counts, self.rng)

    def draw_likeness(self) -> None:
        """Draw how alike prompts are, by trying steps; the shares of prompts are integrated out."""
        of_prompts = np.unique(self.counts.sum(axis=1), return_counts=True)
        label = np.nonzero(self.counts)[1]
        _, first, times = np.unique(
            label * (1 + self.counts.max()) + self.counts[self.counts > 0], return_index=True, return_counts=True
        )
        of_labels = label[first], self.counts[self.counts > 0][first], times
        now = self.fit(self.likeness, of_prompts, of_labels)
        for step in STEPS:
            tried = self.likeness * float(np.exp(step * self.rng.standard_normal()))
            if LIKENESS[0] < tried < LIKENESS[1]:
                then = self.fit(tried, of_prompts, of_labels)
                if np.log(self.rng.random()) < then - now:
                    self.likeness, now = tried, then

    def fit(
        self, likeness: float, of_prompts: tuple[Counts, Counts], of_labels: tuple[Counts, Counts, Counts]
    ) -> float:
        """Give the log odds that prompts are so much alike, by the labels of all.

        Before any label is seen the part of the pairs below has odds of one over its square root: flat odds of the
        logarithm lean to prompts that are alike where images are few.

        Args:
            likeness: of prompts.
            of_prompts: numbers of images, and how many prompts have so many.
            of_labels: labels, numbers of images, and how many prompts have so many of the label.
        """
        from scipy.special import gammaln

        part = 1 / (1 + likeness)  # of the pairs of a prompt that show one label for being of one prompt
        (images, prompts), (label, count, times) = of_prompts, of_labels
        prior = likeness * self.model[label]
        return float(
            0.5 * np.log(part)
            + np.log1p(-part)
            + prompts @ (gammaln(likeness) - gammaln(likeness + images))
            + times @ (gammaln(prior + count) - gammaln(prior))
        )

    def draw_mapping(self) -> None:
        """Draw how each true label is mapped: as often rightly as others are, else to where errors usually fall."""
        rng, labels = self.rng, len(self.model)
        right = np.diagonal(self.table)
        wrong = self.table - np.diag(right)
        known = self.known
        self.accuracy = drawn_accuracy(right[known], wrong[known].sum(axis=1), self.accuracy, rng)
        accuracy, strength = self.accuracy
        weight = drawn_strength(wrong[known], self.towards[known], rng)
        rows = drawn_shares(weight * self.towards + wrong, rng)
        often = np.zeros(labels)
        often[known] = rng.beta(
            strength * accuracy + right[known], strength * (1 - accuracy) + wrong[known].sum(axis=1)
        )
        hub = drawn_shares(weight * self.towards[self.none] + self.table, rng)
        rows = (1 - often[:, None]) * rows + np.diag(often)
        self.rows = np.where(known[:, None], rows, hub) + 1e-12


def expected_labels(even: Array, labels: int, none: int) -> Array:
    """Give how many images of each label are expected before any is seen, by evenness: float64 (n_even, n_labels).

    That a model shows all countries evenly says nothing about pictures of nothing.
    """
    expected = np.repeat(even[:, None] / labels, labels, axis=1)
    expected[:, none] = np.minimum(expected[:, none], 0.5)
    return expected


def evenness_of(found: Array, none: int) -> Array:
    """Give the chance of each evenness from the audited labels alone: imputed ones would feed themselves."""
    from scipy.special import gammaln

    part = expected_labels(EVENNESS, len(found), none)
    logs = (gammaln(part + found) - gammaln(part)).sum(axis=1)
    logs += gammaln(part.sum(axis=1)) - gammaln(part.sum(axis=1) + found.sum())
    chances = np.exp(logs - logs.max())
    return np.asarray(chances / chances.sum())


def leanings(audit: Array, mapped: Counts, parents: Counts) -> Array:
    """Say where errors of each true label are expected to fall, float64 (n_labels, n_labels), rows that sum to 1.

    Half of them go to the same continent, and half to where errors of all labels fall.
    """
    labels = len(mapped)
    there = mapped > 0
    errors = (audit - np.diag(np.diagonal(audit))).sum(axis=0)
    hub = errors + 2 * mapped / mapped.sum() + 40 / max(there.sum(), 1) * there
    rows = np.tile(hub, (labels, 1))
    near = np.where(parents[:, None] == parents[None, :], hub, 0.0)
    for row in (rows, near):
        np.fill_diagonal(row, 0.0)
    sums = rows.sum(axis=1, keepdims=True), near.sum(axis=1, keepdims=True)
    rows = np.divide(rows, sums[0], out=np.full_like(rows, 1 / labels), where=sums[0] > 0)
    near = np.divide(near, sums[1], out=rows.copy(), where=sums[1] > 0)
    return np.asarray(0.5 * rows + 0.5 * near)
