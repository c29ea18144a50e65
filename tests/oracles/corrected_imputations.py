"""What images show, drawn again from their mapped labels and the audit of some, with the generator of the stated seed.

A state is drawn round by round: the shares of prompts given the labels of their images, how each label is mapped given
all labels, and the labels of the images that nobody looked at given both. Chains that leave some of the audit out are
drawn side by side, so that the generator is asked in the same order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma
from scipy.special import gammaln as lgamma

from culturekit.core.arrays import Array, Counts
from tests.oracles.audited_cells import Audit, Cells

FIRST, ROUNDS = 50, 100
EVEN = np.geomspace(0.05, 200, 40)
RIGHT = np.linspace(0.02, 0.98, 25)
ALIKE = np.geomspace(1.0, 300.0, 8)
STEPS = (0.1, 0.4, 1.5)
LEAST, MOST = 0.5, 2e4
SOME = 240


@dataclass(frozen=True, slots=True)
class Chain:
    """Images by prompt and what they show by round, mean chances by prompt and mapped label, mean and some shares."""

    counts: Counts
    chances: Array
    shares: Array
    some: Array


def trigamma(at: Array) -> Array:
    """Give the slope of the digamma function as closely as the correction does: four steps up, four terms."""
    far = at + 4
    series = 1 / far + 1 / (2 * far**2) + 1 / (6 * far**3) - 1 / (30 * far**5)
    return np.asarray(series + sum(1 / (at + step) ** 2 for step in range(4)))


def before_any(even: float, labels: int, none: int) -> Array:
    """Give what each label weighs before any is seen, nothing at most half an image; last, at most one, all others."""
    weights = np.full(labels + 1, even / labels)
    weights[none] = min(even / labels, 0.5)
    weights[labels] = min(max(even * (labels - 1) / labels, 1e-12), 1.0)
    return weights


def with_others(images: Array | Counts, none: int) -> Array:
    """Append how many images show something to those of each label."""
    return np.array([*images, images.sum() - images[none]], np.float64)


def chains_of(
    mapped: Counts, audits: Sequence[Audit], parents: Counts, none: int, rng: np.random.Generator
) -> list[Chain]:
    """Draw a chain by each audit for images by prompt and mapped label."""
    prompts, labels = mapped.shape
    cells = Cells(mapped, audits)
    total, chains = mapped.sum(axis=0), len(audits)
    mapping = Mapping([usual_errors(one, total, parents) for one in cells.audited], total, none)
    found = [one.sum(axis=1) for one in cells.audited]
    chance_of_even = np.array([chances_of_even(one, none) for one in found])
    evens = np.exp((chance_of_even * np.log(EVEN)).sum(axis=1))
    models = np.array(
        [one + 2.0 * before_any(float(even), labels, none)[:labels] for one, even in zip(found, evens, strict=True)]
    )
    models /= models.sum(axis=1)[:, None]
    likeness = np.full(chains, 20.0)
    shares = np.tile(models[:, None], (1, prompts, 1))
    counts = np.zeros((chains, prompts, labels), np.int64)
    tables: NDArray[Any] = np.array(cells.audited)
    each = (ROUNDS - FIRST) // min(max(SOME // prompts, 1), ROUNDS - FIRST)
    kept, later, chances, mean = [], [], np.zeros(1), np.zeros(1)
    for step in range(-1, ROUNDS):
        if step >= 0:
            before = np.array([before_any(float(EVEN[place]), labels, none) for place in picks(chance_of_even, rng)])
            if prompts == 1:
                shares = nothing_apart(before, counts[:, 0], none, rng)[:, None]
            else:
                likeness = likeness_again(likeness, models, counts, rng)
                times = draws_from_models(counts, likeness[:, None] * models, rng)
                models = nothing_apart(before, times, none, rng)
                shares = dirichlet((likeness[:, None] * models)[:, None] + counts, rng)
        counts, tables, odds = cells.shown_again(shares, mapping.again(tables, rng), rng)
        if step >= FIRST:
            kept.append(counts)
            later += [shares] if (step - FIRST + 1) % each == 0 else []
            chances, mean = chances + odds / (ROUNDS - FIRST), mean + shares / (ROUNDS - FIRST)
    return list(split(np.array(kept), cells.full(chances), mean, np.array(later)))


def split(counts: Counts, chances: Array, shares: Array, some: Array) -> Iterator[Chain]:
    """Part what was drawn by chain."""
    for number in range(len(shares)):
        yield Chain(counts[:, number], chances[number], shares[number], some[:, number])


def chances_of_even(found: Array, none: int) -> Array:
    """Say how likely each evenness of a model is, from the labels that people named."""
    seen, others = with_others(found, none), np.arange(len(found)) != none

    def fit(before: Array, images: Array) -> float:
        """Give the log chance of images by label, drawn from shares of a Dirichlet distribution."""
        each = (lgamma(before + images) - lgamma(before)).sum()
        return (
            float(each + np.subtract(*lgamma(np.array([before.sum(), before.sum() + images.sum()]))))
            if len(before)
            else 0.0
        )

    logs = [
        fit(before[:-1][others], found[others]) + fit(before[[none, -1]], seen[[none, -1]])
        for before in (before_any(even, len(found), none) for even in EVEN)
    ]
    return settled(np.array(logs))


class Mapping:
    """How each true label is mapped: rightly as often as others are, or to where errors fall; chain by chain."""

    def __init__(self, errors: Sequence[Array], total: Counts, none: int) -> None:
        """Take where errors are expected; labels that nothing was mapped to cannot be mapped rightly."""
        self.errors, self.none = np.array(errors), none
        self.known = np.array([images > 0 and label != none for label, images in enumerate(total)])
        self.alike = np.full(len(errors), 10.0)

    def again(self, tables: Array, rng: np.random.Generator) -> Array:
        """Draw the rows of the mapping from images by what they show and what they are mapped to."""
        known, one = self.known, np.eye(len(self.known))
        right = np.array([np.diagonal(table) for table in tables])
        wrong = np.array([table - np.diag(np.diagonal(table)) for table in tables])
        good, bad = right[:, known], wrong[:, known].sum(axis=2)
        pairs = list(zip(good, bad, strict=True))
        logs = [coins(RIGHT[:, None], alike, *pair) for alike, pair in zip(self.alike, pairs, strict=True)]
        accuracy = RIGHT[picks(np.array([settled(one) for one in logs]), rng)]
        logs = [coins(share, ALIKE[:, None], *pair) for share, pair in zip(accuracy, pairs, strict=True)]
        self.alike = ALIKE[picks(np.array([settled(one) for one in logs]), rng)]
        logs = [closeness(table[known], errors[known]) for table, errors in zip(wrong, self.errors, strict=True)]
        strength = ALIKE[picks(np.array([settled(one) for one in logs]), rng)][:, None]
        parameters = np.empty_like(self.errors)
        for label, there in enumerate(known):
            own = self.errors[:, label if there else self.none]
            parameters[:, label] = strength * own + (wrong if there else tables)[:, label]
        rows = dirichlet(parameters, rng)
        above, below = self.alike * accuracy, self.alike * (1 - accuracy)
        often = rng.beta(above[:, None] + right, below[:, None] + wrong.sum(axis=2))
        often[:, ~known] = 0.0
        return np.asarray((1 - often)[:, :, None] * rows + often[:, :, None] * one + 1e-12)


def closeness(wrong: Array, errors: Array) -> Array:
    """Give the log chance of errors for each closeness to where they are expected."""
    there = wrong > 0
    parts, starts = ALIKE[:, None] * errors[there], ALIKE[:, None]
    fits = (lgamma(parts + wrong[there]) - lgamma(parts)).sum(axis=1)
    return np.asarray(fits + (lgamma(starts) - lgamma(starts + wrong.sum(axis=1))).sum(axis=1))


def usual_errors(audited: Array, total: Counts, parents: Counts) -> Array:
    """Say where errors of each label are expected: half on its continent, half anywhere."""
    labels = len(total)
    there = total > 0
    hub = audited.sum(axis=0) - np.diagonal(audited) + 2 * total / total.sum() + 40 / max(there.sum(), 1) * there
    rows = []
    for label in range(labels):
        others = np.where(np.arange(labels) == label, 0.0, hub)
        near = np.where(parents == parents[label], others, 0.0)
        anywhere = others / others.sum() if others.sum() > 0 else np.full(labels, 1 / labels)
        rows.append(0.5 * anywhere + 0.5 * (near / near.sum() if near.sum() > 0 else anywhere))
    return np.array(rows)


def likeness_again(likeness: Array, models: Array, counts: Counts, rng: np.random.Generator) -> Array:
    """Try to move how alike prompts are, by steps of different sizes."""

    def fit(values: Array) -> Array:
        return np.array([one_fit(*each) for each in zip(values, models, counts, strict=True)])

    now = fit(likeness)
    for step in STEPS:
        tried = likeness * np.exp(step * rng.standard_normal(len(likeness)))
        then, chance = fit(tried), np.log(rng.random(len(likeness)))
        for chain, value in enumerate(tried):
            if LEAST < value < MOST and chance[chain] < then[chain] - now[chain]:
                likeness, now = (
                    np.where(np.arange(len(tried)) == chain, new, old) for new, old in ((tried, likeness), (then, now))
                )
    return likeness


def one_fit(value: float, model: Array, counts: Counts) -> float:
    """Give the log odds that the prompts of a chain are so much alike."""
    there, images = counts > 0, counts.sum(axis=1)
    prior = np.broadcast_to(value * model, counts.shape)[there]
    start = np.full(len(images), value)
    pairs = 1 / (1 + value)
    odds = float(0.5 * np.log(pairs) + np.log1p(-pairs))
    return odds + float(
        (lgamma(start) - lgamma(start + images)).sum() + (lgamma(prior + counts[there]) - lgamma(prior)).sum()
    )


def draws_from_models(counts: Counts, prior: Array, rng: np.random.Generator) -> Array:
    """Draw how many of the labels of all prompts come from a model's shares and not from labels drawn before.

    One in each prompt that shows a label, and as many heads of coins as sums of their chances and squares tell.
    """
    mean, squares = np.zeros(prior.shape), np.zeros(prior.shape)
    start = np.maximum(prior, 1e-12)
    for prompt in range(counts.shape[1]):
        times = counts[:, prompt]
        more = np.maximum(start * (digamma(start + times) - digamma(start)) - 1, 0.0)
        twice = np.maximum(start**2 * (trigamma(start) - trigamma(start + times)) - 1, 0.0)
        mean += np.where(times > 1, more, 0.0)
        squares += np.where(times > 1, twice, 0.0)
    most = np.maximum(counts - 1, 0).sum(axis=1)
    tossed = np.clip(np.rint(mean**2 / np.maximum(squares, 1e-300)), np.ceil(mean), most)
    heads = rng.binomial(tossed.astype(np.int64), np.minimum(mean / np.maximum(tossed, 1.0), 1.0))
    return np.asarray((counts > 0).sum(axis=1) + heads, np.float64)


def coins(accuracy: Array, alike: Array, good: Array, bad: Array) -> Array:
    """Give the log chance of labels being mapped rightly and wrongly so often, for each accuracy and likeness."""
    a, b = alike * accuracy, alike * (1 - accuracy)
    joint = lgamma(a + good) + lgamma(b + bad) - lgamma(alike + good + bad)
    return np.asarray((joint - lgamma(a) - lgamma(b) + lgamma(np.asarray(alike))).sum(axis=1))


def picks(chances: Array, rng: np.random.Generator) -> Counts:
    """Draw a place in each row of chances."""
    sums = chances.cumsum(axis=1)
    drawn = rng.random(len(chances)) * sums[:, -1]
    return np.array([min(int((row <= at).sum()), len(row) - 1) for row, at in zip(sums, drawn, strict=True)])


def settled(logs: Array) -> Array:
    """Turn logarithms into chances that sum to 1."""
    chances = np.exp(logs - logs.max())
    return np.asarray(chances / chances.sum())


def nothing_apart(before: Array, counts: Array | Counts, none: int, rng: np.random.Generator) -> Array:
    """Draw shares for each row: whether anything is shown first, and what is shown by itself."""
    parameters = before + np.array([with_others(one, none) for one in counts])
    gammas = rng.standard_gamma(np.maximum(parameters, 1e-12)) + 1e-290
    labels = np.arange(before.shape[1] - 1)
    both = gammas[:, none] + gammas[:, -1]
    shown = gammas[:, :-1][:, labels != none]
    shares = np.empty((len(gammas), len(labels)))
    shares[:, labels != none] = shown * (gammas[:, -1] / np.maximum(shown.sum(axis=1), 1e-290) / both)[:, None]
    shares[:, none] = gammas[:, none] / both
    return shares


def dirichlet(parameters: Array, rng: np.random.Generator) -> Array:
    """Draw shares for each row of parameters."""
    gammas = rng.standard_gamma(np.maximum(parameters, 1e-12)) + 1e-290
    return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))
