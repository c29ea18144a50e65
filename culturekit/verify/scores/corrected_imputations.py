"""What images show, drawn again from their mapped labels and the audit of some, with the generator of the stated seed.

A state is drawn round by round: the shares of prompts given the labels of their images, how each label is mapped given
all labels, and the labels of the images that nobody looked at given both.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Audit", "Chain", "chain_of"]

ROUNDS, FIRST = 160, 60
EVEN = np.geomspace(0.05, 200, 40)
RIGHT = np.linspace(0.02, 0.99, 40)
ALIKE = np.geomspace(1.0, 300.0, 12)
STEPS = (0.05, 0.2, 0.6, 1.5)
LEAST, MOST = 0.5, 2e4
FEW = 6
"""Images a cell on average up to which they are drawn one by one."""

HALF_LOG_TURN = 0.5 * float(np.log(2 * np.pi))
SOME = 240

Array: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Audit:
    """The prompt and mapped label of each audited image, and the chance of each label to be what it shows."""

    prompts: Whole
    mapped: Whole
    shown: Array


@dataclass(frozen=True, slots=True)
class Chain:
    """Images by prompt and what they show by round, mean chances by prompt and mapped label, mean and some shares."""

    counts: Whole
    chances: Array
    shares: Array
    some: Array


def before_any(even: float, labels: int, none: int) -> Array:
    """Give what each label weighs before any is seen; that of nothing at most half an image."""
    weights = np.full(labels, even / labels)
    weights[none] = min(even / labels, 0.5)
    return weights


def chain_of(mapped: Whole, audit: Audit, parents: Whole, none: int, rng: np.random.Generator) -> Chain:
    """Draw a chain for images by prompt and mapped label."""
    prompts, labels = mapped.shape
    cells = Cells(mapped, audit)
    audited, total = cells.audited, mapped.sum(axis=0)
    mapping = Mapping(usual_errors(audited, total, parents), total, none)
    found = audited.sum(axis=1)
    chance_of_even = chances_of_even(found, none)
    base = found + 2.0 * before_any(float(np.exp(np.log(EVEN) @ chance_of_even)), labels, none)
    model, likeness = base / base.sum(), 20.0
    shares = np.tile(model, (prompts, 1))
    counts, table = np.zeros((prompts, labels), np.int64), audited
    later, each = [], (ROUNDS - FIRST) // min(max(SOME // prompts, 1), ROUNDS - FIRST)
    kept, chances, mean = [], np.zeros((len(cells.left), labels)), np.zeros((prompts, labels))
    for step in range(-1, ROUNDS):
        if step >= 0:
            before = before_any(float(rng.choice(EVEN, p=chance_of_even)), labels, none)
            if prompts == 1:
                shares = dirichlet(before + counts, rng)
            else:
                likeness = likeness_again(likeness, model, counts, rng)
                drawn = draws_from_model(counts, likeness * model, rng)
                model = dirichlet((before + drawn.sum(axis=0))[None], rng)[0]
                shares = dirichlet(likeness * model + counts, rng)
        counts, table, odds = cells.shown_again(shares, mapping.again(table, rng), rng)
        if step >= FIRST:
            kept.append(counts)
            later += [shares] if (step - FIRST + 1) % each == 0 else []
            chances += odds / (ROUNDS - FIRST)
            mean += shares / (ROUNDS - FIRST)
    full = np.zeros((prompts, labels, labels))
    full[cells.prompt, cells.label] = chances
    return Chain(np.array(kept), full, mean, np.array(later))


def chances_of_even(found: Array, none: int) -> Array:
    """Say how likely each evenness of a model is, from the labels that people named."""
    return settled(
        [
            (lgamma(before + found) - lgamma(before)).sum()
            + float(lgamma(before.sum(keepdims=True))[0] - lgamma((before.sum() + found.sum())[None])[0])
            for before in (before_any(even, len(found), none) for even in EVEN)
        ]
    )


class Cells:
    """Images by prompt and mapped label: how many nobody looked at, and what was found of the others."""

    def __init__(self, mapped: Whole, audit: Audit) -> None:
        """Count both."""
        self.audit, self.shape = audit, mapped.shape
        self.prompt, self.label = np.nonzero(mapped)
        looked, labels = np.zeros(mapped.shape, np.int64), mapped.shape[1]
        for prompt, label in zip(audit.prompts, audit.mapped, strict=True):
            looked[prompt, label] += 1
        self.left = (mapped - looked)[self.prompt, self.label]
        self.audited = np.zeros((labels, labels))
        for label, shown in zip(audit.mapped, audit.shown, strict=True):
            self.audited[:, label] += shown

    def shown_again(self, shares: Array, rows: Array, rng: np.random.Generator) -> tuple[Whole, Array, Array]:
        """Draw what all images show: by prompt, by what they are mapped to, and the odds of each cell."""
        prompts, labels = self.shape
        odds = shares[self.prompt] * rows.T[self.label]
        odds /= odds.sum(axis=1, keepdims=True)
        drawn = (
            self.few_drawn(odds, rng) if self.left.sum() <= FEW * len(self.left) else rng.multinomial(self.left, odds)
        )
        sums = self.audit.shown.cumsum(axis=1)
        seen = (sums <= rng.random(len(sums))[:, None] * sums[:, -1:]).sum(axis=1).clip(max=labels - 1)
        counts, table = np.zeros((prompts, labels), np.int64), np.zeros((labels, labels))
        np.add.at(counts, self.prompt, drawn)
        np.add.at(table.T, self.label, drawn)
        np.add.at(counts, (self.audit.prompts, seen), 1)
        np.add.at(table, (seen, self.audit.mapped), 1.0)
        return counts, table, odds

    def few_drawn(self, odds: Array, rng: np.random.Generator) -> Whole:
        """Draw few images of each cell one by one."""
        cell = np.repeat(np.arange(len(odds)), self.left)
        sums = np.cumsum(odds, axis=1)[cell]
        shown = (sums <= rng.random(len(cell))[:, None] * sums[:, -1:]).sum(axis=1).clip(max=odds.shape[1] - 1)
        drawn = np.zeros(odds.shape, np.int64)
        np.add.at(drawn, (cell, shown), 1)
        return drawn


class Mapping:
    """How each true label is mapped: rightly as often as others are, or to where errors fall."""

    def __init__(self, errors: Array, total: Whole, none: int) -> None:
        """Take where errors are expected; labels that nothing was mapped to cannot be mapped rightly."""
        self.errors, self.none = errors, none
        self.known = np.array([images > 0 and label != none for label, images in enumerate(total)])
        self.right, self.alike = 0.8, 10.0

    def again(self, table: Array, rng: np.random.Generator) -> Array:
        """Draw the rows of the mapping from images by what they show and what they are mapped to."""
        known, right = self.known, np.diagonal(table)
        wrong = table - np.diag(right)
        good, bad = right[known], wrong[known].sum(axis=1)
        some = good + bad > 0
        good, bad = good[some], bad[some]
        self.right = float(RIGHT[pick(coins(RIGHT[:, None], np.array([[self.alike]]), good, bad), rng)])
        self.alike = float(ALIKE[pick(coins(np.array([[self.right]]), ALIKE[:, None], good, bad), rng)])
        errors = wrong[known]
        there = errors > 0
        parts = ALIKE[:, None] * self.errors[known][there]
        fits = (lgamma(parts + errors[there]) - lgamma(parts)).sum(axis=1)
        starts = ALIKE[:, None]
        strength = float(ALIKE[pick(fits + (lgamma(starts) - lgamma(starts + errors.sum(axis=1))).sum(axis=1), rng)])
        rows = dirichlet(strength * self.errors + wrong, rng)
        often = np.zeros(len(table))
        often[known] = rng.beta(
            self.alike * self.right + right[known], self.alike * (1 - self.right) + errors.sum(axis=1)
        )
        anywhere = dirichlet(strength * self.errors[self.none] + table, rng)
        rows = (1 - often)[:, None] * rows + np.diag(often)
        return np.array([rows[label] if known[label] else anywhere[label] for label in range(len(rows))]) + 1e-12


def usual_errors(audited: Array, total: Whole, parents: Whole) -> Array:
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


def likeness_again(likeness: float, model: Array, counts: Whole, rng: np.random.Generator) -> float:
    """Try to move how alike prompts are, by four steps of different sizes."""
    there = counts > 0
    images = counts.sum(axis=1)

    def fit(value: float) -> float:
        prior = np.broadcast_to(value * model, counts.shape)[there]
        start = np.full(len(images), value)
        pairs = 1 / (1 + value)
        odds = float(0.5 * np.log(pairs) + np.log1p(-pairs))
        return odds + float(
            (lgamma(start) - lgamma(start + images)).sum() + (lgamma(prior + counts[there]) - lgamma(prior)).sum()
        )

    now = fit(likeness)
    for step in STEPS:
        tried = likeness * float(np.exp(step * rng.standard_normal()))
        if LEAST < tried < MOST:
            then = fit(tried)
            if np.log(rng.random()) < then - now:
                likeness, now = tried, then
    return likeness


def draws_from_model(counts: Whole, prior: Array, rng: np.random.Generator) -> Array:
    """Draw how many of the labels of a prompt come from the model's shares and not from labels drawn before."""
    found = np.minimum(counts, 1).astype(np.float64)
    several = counts > 1
    if several.any():
        times = counts[several]
        start = np.maximum(np.broadcast_to(prior, counts.shape)[several], 1e-12)
        mean = np.maximum(start * (digamma(start + times) - digamma(start)) - 1, 1e-12)
        squares = np.maximum(start**2 * (trigamma(start) - trigamma(start + times)) - 1, 1e-12)
        coins_tossed = np.maximum(np.clip(np.rint(mean**2 / squares), 1, times - 1), np.ceil(mean))
        found[several] += rng.binomial(coins_tossed.astype(np.int64), np.minimum(mean / coins_tossed, 1.0))
    return found


def coins(accuracy: Array, alike: Array, good: Array, bad: Array) -> Array:
    """Give the log chance of labels being mapped rightly and wrongly so often, for each accuracy and likeness."""
    a, b = alike * accuracy, alike * (1 - accuracy)
    joint = lgamma(a + good) + lgamma(b + bad) - lgamma(alike + good + bad)
    return np.asarray((joint - lgamma(a) - lgamma(b) + lgamma(alike)).sum(axis=1))


def pick(logs: Array, rng: np.random.Generator) -> int:
    """Draw a place by the logarithms of its odds."""
    return int(np.argmax(logs + rng.gumbel(size=len(logs))))


def settled(logs: list[float]) -> Array:
    """Turn logarithms into chances that sum to 1."""
    chances = np.exp(np.array(logs) - max(logs))
    return np.asarray(chances / chances.sum())


def dirichlet(parameters: Array, rng: np.random.Generator) -> Array:
    """Draw shares for each row of parameters."""
    gammas = rng.standard_gamma(np.maximum(parameters, 1e-12)) + 1e-290
    return np.asarray(gammas / gammas.sum(axis=1, keepdims=True))


def lgamma(at: Array) -> Array:
    """Give the logarithm of the gamma function: Stirling's series, ten steps further up."""
    far, ends = at + 10, at * (at + 9)
    product = ends * (ends + 8) * (ends + 14) * (ends + 18) * (ends + 20)  # of at, at + 1, ... at + 9, two by two
    once = 1 / far
    twice = once * once
    series = once * (1 / 12 - twice * (1 / 360 - twice * (1 / 1260 - twice / 1680)))
    return np.asarray((far - 0.5) * np.log(far) - far + HALF_LOG_TURN + series - np.log(product))


def digamma(at: Array) -> Array:
    """Give the slope of `lgamma`."""
    far = at + 10
    series = 1 / (12 * far**2) - 1 / (120 * far**4) + 1 / (252 * far**6) - 1 / (240 * far**8)
    return np.asarray(np.log(far) - 1 / (2 * far) - series - sum(1 / (at + step) for step in range(10)))


def trigamma(at: Array) -> Array:
    """Give the slope of the digamma function as closely as the correction does: four steps up, four terms."""
    far = at + 4
    series = 1 / far + 1 / (2 * far**2) + 1 / (6 * far**3) - 1 / (30 * far**5)
    return np.asarray(series + sum(1 / (at + step) ** 2 for step in range(4)))
