"""What the images of each prompt show, imputed from their mapped labels and an audit of some (Gibbs sampling).

How a true label is mapped, P(mapped | true), is the same under every prompt; what prompts show differs, around the
shares of the model, by as much as the images say. Labels of images that nobody looked at are drawn, then the shares of
prompts and the rows of the mapping given these labels, and so on. Several chains, each of which sees some of the
audited images, are drawn together: the first axis of arrays is the chain.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from culturekit.core.arrays import Array, Counts
from culturekit.metrics.corrected.audit_gates import NOTHING

# The draws that imputed shares and mappings are made of, for several chains: the first axis of arrays.

ACCURACIES = np.linspace(0.02, 0.98, 25)
STRENGTHS = np.geomspace(1.0, 300.0, 8)
"""What is tried for how often labels are mapped rightly, and how alike labels are in that and in how they err."""


def drawn_shares(parameters: Array, rng: np.random.Generator) -> Array:
    """Draw from a Dirichlet distribution for each row."""
    gammas = rng.standard_gamma(np.maximum(parameters, 1e-12)) + 1e-290
    return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))


def drawn_apart(parameters: Array, none: int, rng: np.random.Generator) -> Array:
    """Draw how often labels show nothing or something, then the labels of something, for each row.

    Args:
        parameters: float64, (n, n_labels + 1): of labels, and last of something.
        none: the label of nothing.
        rng: draws.
    """
    gammas = rng.standard_gamma(np.maximum(parameters, 1e-12)) + 1e-290
    shares, nothing, something = gammas[:, :-1], gammas[:, none].copy(), gammas[:, -1]
    shares[:, none] = 0.0
    shares *= (something / np.maximum(shares.sum(axis=1), 1e-290))[:, None]
    shares[:, none] = nothing
    return np.asarray(shares / (nothing + something)[:, None])


def drawn_rows(shares: Array, rng: np.random.Generator) -> Counts:
    """Draw a label for each row of shares."""
    sums = shares.cumsum(axis=1)
    return np.asarray((sums <= rng.random(len(sums))[:, None] * sums[:, -1:]).sum(axis=1).clip(max=shares.shape[1] - 1))


def chances_of(logs: Array) -> Array:
    """Turn the logarithms of odds, (n_chains, n_tried), into chances."""
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def drawn_tables(prior: Array, label: Counts, count: Counts, often: Counts, rng: np.random.Generator) -> Array:
    """Draw of how many draws from the model's shares the labels of all prompts come, by chain and label.

    That is one in each prompt that shows a label, and a sum of coins with unequal chances; a binomial number with its
    mean and variance stands for it, exact for one and two images.

    Args:
        prior: float64, (n_chains, n_labels): of the shares of a prompt.
        label: int64, (n,): places in the prior, as if it were flat, of labels that prompts show
        count: int64, (n,): so many times each,
        often: int64, (n,): and in how many prompts.
        rng: draws.
    """
    from scipy.special import digamma

    start = np.maximum(prior.ravel()[label], 1e-12)
    mean = np.maximum(start * (digamma(start + count) - digamma(start)) - 1, 0.0) * (count > 1)
    squares = np.maximum(start**2 * (trigamma(start) - trigamma(start + count)) - 1, 0.0) * (count > 1)
    prompts, most, mean, squares = (
        np.bincount(label, often * each, prior.size) for each in (np.ones(len(count)), count - 1, mean, squares)
    )
    coins = np.clip(np.rint(mean**2 / np.maximum(squares, 1e-300)), np.ceil(mean), most)
    heads = rng.binomial(coins.astype(np.int64), np.minimum(mean / np.maximum(coins, 1.0), 1.0))
    return np.asarray((prompts + heads).reshape(prior.shape))


def trigamma(at: Array) -> Array:
    """Give the slope of the digamma function, to about 1e-6."""
    far = at + 4
    near = sum(1 / (at + step) ** 2 for step in range(4))
    return np.asarray(near + 1 / far + 1 / (2 * far**2) + 1 / (6 * far**3) - 1 / (30 * far**5))


def drawn_accuracy(right: Array, wrong: Array, strength: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw how often labels are mapped rightly, then how alike they are in that, float64 (n_chains,) each.

    Args:
        right: float64, (n_chains, n_labels): images mapped rightly,
        wrong: and wrongly.
        strength: float64, (n_chains,): how alike labels were in that.
        rng: draws.
    """
    from scipy.special import gammaln

    def logs(above: Array, below: Array) -> Array:
        """Give the log odds of right and wrong, (n_chains, n_tried), less what hangs on the sum of both alone."""
        seen = gammaln(above[:, :, None] + right[:, None]) + gammaln(below[:, :, None] + wrong[:, None])
        return np.asarray(seen.sum(axis=2) - right.shape[1] * (gammaln(above) + gammaln(below)))

    tried = logs(strength[:, None] * ACCURACIES, strength[:, None] * (1 - ACCURACIES))
    accuracy = ACCURACIES[drawn_rows(chances_of(tried), rng)]
    both = gammaln(STRENGTHS) - gammaln((right + wrong)[:, :, None] + STRENGTHS)
    tried = logs(accuracy[:, None] * STRENGTHS, (1 - accuracy)[:, None] * STRENGTHS) + both.sum(axis=1)
    return accuracy, STRENGTHS[drawn_rows(chances_of(tried), rng)]


def drawn_strength(wrong: Array, towards: Array, rng: np.random.Generator) -> Array:
    """Draw how closely the errors of labels fall where they are expected to, float64 (n_chains,)."""
    from scipy.special import gammaln

    chain, row, column = np.nonzero(wrong)
    part = towards[chain, row, column][:, None] * STRENGTHS
    fits = gammaln(part + wrong[chain, row, column][:, None]) - gammaln(part)
    logs = (np.arange(len(wrong))[:, None] == chain) @ fits
    logs += (gammaln(STRENGTHS) - gammaln(wrong.sum(axis=2)[:, :, None] + STRENGTHS)).sum(axis=1)
    return np.asarray(STRENGTHS[drawn_rows(chances_of(logs), rng)])


# What images show, drawn: of those that a chain did not see by prompt and mapped label, of those it saw by answers.

Seen = NDArray[np.bool_]

ONE_BY_ONE = 25
"""Images a column on average up to which labels are drawn image by image: of more a multinomial draw costs less."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Audited images."""

    prompt: Counts  # int64, (n,): the prompt of each
    mapped: Counts  # int64, (n,): the code of what it is mapped to
    shown: Array  # float64, (n, n_labels): what it shows, by what people say
    right: float = 1.0  # in what share of images the likeliest label is right
    doubt: float = 0.0  # the standard error of that


@dataclass(frozen=True, slots=True)
class AuditedCounts:
    """Images by what they are mapped to, and what was found of some: all that the correction looks at."""

    labels: tuple[str, ...]  # the labels that occur, mapped or found, in alphabetical order; one of them is NOTHING
    parents: Counts  # int64, (n_labels,): the continent of each
    # int64, (n_prompts, n_codes): images by prompt and what they are mapped to; with one instrument the codes
    # are the labels
    mapped: Counts
    # the audited images in the order of their ids, and what each really shows; shares of labels where raters
    # leave a doubt
    found: Findings
    adrift: Mapping[str, float] = field(default_factory=dict)  # as in TakenAnswers
    # int64, (n_instruments, n_codes): the label that each instrument gives to images of a code, taken to err
    # independently given what an image shows; without it codes are labels
    instruments: Counts | None = None

    @property
    def none(self) -> int:
        """The label of pictures that show nothing: where they are mapped says nothing about other labels."""
        return self.labels.index(NOTHING)

    @property
    def audited(self) -> int:
        """How many images were audited."""
        return len(self.found.prompt)

    @property
    def audit(self) -> Array:
        """Audited images by mapped label and what they really show, float64 (n_labels, n_labels)."""
        table = np.zeros((len(self.labels),) * 2)
        np.add.at(table, self.found.mapped, self.found.shown)
        return table


class ImageLabels:
    """Images in columns: those of a chain, prompt and mapped label that it did not see, and those of doubt one by one.

    Attributes:
        prompt: int64, (n_cells,): the prompt, and
        mapped: int64, (n_cells,): the code of the columns that each chain has of images that it did not see.
    """

    def __init__(self, audit: AuditedCounts, seen: Seen) -> None:
        """List the columns, and count the images of which it is known what they show.

        `seen`, bool (n_chains, n), says which of the audited images each chain sees.
        """
        mapped, found = audit.mapped, audit.found
        chains, (prompts, codes), labels = len(seen), mapped.shape, len(audit.parents)
        self.shape, self.codes = (chains, prompts, labels), codes
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
        self.of_label = of_chain * codes + label
        label = self.mapped if audit.instruments is None else audit.instruments[0][self.mapped]
        self.likeliest = np.append(np.tile(label, chains), self.shown.argmax(axis=0))
        chain, image = np.nonzero(seen & (found.shown.max(axis=1) == 1))
        shows = found.shown[image].argmax(axis=1)
        self.counts = self.counted(chain * prompts + found.prompt[image], shows)
        self.table = self.tabled(chain * codes + found.mapped[image], shows)

    def chances(self, shares: Array, rows: Array) -> Array:
        """Give what images show that a chain did not see, float64 (n_labels, n_chains * n_cells).

        Args:
            shares: float64, (n_chains, n_prompts, n_labels).
            rows: float64, (n_chains, n_labels, n_codes): P(mapped | true).
        """
        cells, labels = len(self.images) - self.shown.shape[1], self.shape[2]
        odds = shares.reshape(-1, labels).T[:, self.of_prompt[:cells]]
        odds = odds * np.swapaxes(rows, 0, 1).reshape(labels, -1)[:, self.of_label[:cells]]
        return np.asarray(odds / odds.sum(axis=0))

    def drawn(self, chances: Array, rng: np.random.Generator) -> tuple[Counts, Array]:
        """Draw what all images show by the chances of those that were not seen.

        Returns:
            int64, (n_chains, n_prompts, n_labels): images by prompt and what they show, and float64, (n_chains,
            n_labels, n_codes): by what they show and are mapped to.
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
        table = np.bincount(of_label * labels + shows, times, chains * self.codes * labels)
        table = table.reshape(chains, self.codes, labels)
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


SETTLING, KEPT = 50, 50  # Rounds until the first that counts, and those that count

DRAWN = 240  # Rows of shares kept, at least those of one round

STEPS = (0.1, 0.4, 1.5)
"""How far the likeness of prompts is tried to move, on the scale of logarithms; alike and unlike it mixes in turn."""

LIKENESS = (0.5, 2e4)  # The least and the most alike that prompts are taken to be

TIED = np.append(np.linspace(0.0, 0.95, 20), 0.99)
"""What is tried for the correlation between errors of two instruments, and for how often these go the same way."""

EVENNESS = np.geomspace(0.05, 200, 40)  # What is tried for how even the shares of a model are


@dataclass(frozen=True, slots=True)
class Imputed:
    """What was drawn."""

    counts: Counts  # int64, (n_chains, kept, n_prompts, n_labels): the images by what they show
    shares: Array  # float64, (n_chains, n_prompts, n_labels): the mean of the shares of prompts
    drawn: Array  # float64, (n_chains, some, n_prompts, n_labels): shares of some rounds
    prompt: Counts  # int64, (n_cells,): prompts
    mapped: Counts  # int64, (n_cells,): codes that images have
    chances: Array  # float64, (n_chains, n_cells, n_labels): what these show


def impute(audit: AuditedCounts, seen: Seen, *, rng: np.random.Generator) -> Imputed:
    """Impute what all images show; `seen`, bool (n_chains, n), says which audited images each chain sees."""
    sampler = ImputedPrompts(audit, seen, rng)
    every = max(KEPT // min(max(DRAWN // len(audit.mapped), 1), KEPT), 1)
    counts, drawn = [], []
    shares, chances = np.zeros_like(sampler.shares), np.zeros_like(sampler.chances)
    for round_ in range(1 - SETTLING, KEPT + 1):
        sampler.draw()
        if round_ > 0:
            counts.append(sampler.counts)
            shares += sampler.shares / KEPT
            chances += sampler.chances / KEPT
            if round_ % every == 0:
                drawn.append(sampler.shares)
    images, of_cells = sampler.images, chances.T.reshape(len(seen), -1, len(audit.parents))
    return Imputed(np.stack(counts, axis=1), shares, np.stack(drawn, axis=1), images.prompt, images.mapped, of_cells)


class ImputedPrompts:
    """The state of the sampler: labels of images, shares of prompts, rows of the mapping, and what these come from."""

    def __init__(self, audit: AuditedCounts, seen: Seen, rng: np.random.Generator) -> None:
        """Begin with what the audit found."""
        mapped, found, parents, none = audit.mapped, audit.found, audit.parents, audit.none
        labels, codes = len(parents), mapped.shape[1]
        self.rng, self.none = rng, none
        self.given = np.arange(labels)[None] if audit.instruments is None else audit.instruments
        self.images = ImageLabels(audit, seen)
        self.sizes = np.unique(mapped.sum(axis=1), return_counts=True)
        self.table = (seen[:, None, :] * found.shown.T) @ np.eye(codes)[found.mapped]
        self.instruments = []
        for label in self.given:
            images = np.bincount(label, mapped.sum(axis=0), labels).astype(np.int64)
            known = (images > 0) & (np.arange(labels) != none)
            self.instruments.append(Instrument(known, leanings(self.table @ np.eye(labels)[label], images, parents)))
        self.both_known = np.logical_and.reduce([one.known for one in self.instruments])
        audited = self.table.sum(axis=2)
        self.evenness = evenness_of(audited, none)
        self.even = np.exp(self.evenness @ np.log(EVENNESS))
        self.model = audited + 2.0 * expected_labels(self.even, len(parents), none)[:, :-1]
        self.model /= self.model.sum(axis=1, keepdims=True)
        self.likeness = np.full(len(seen), 20.0)
        self.strengths = [np.full(len(seen), 10.0) for _ in self.given]
        self.shares = np.repeat(self.model[:, None], len(mapped), axis=1)
        self.draw_mapping()
        self.draw_labels()

    def draw(self) -> None:
        """Draw everything once, each given the rest."""
        self.draw_shares()
        self.draw_mapping()
        self.draw_labels()

    def draw_labels(self) -> None:
        """Draw what the images of each prompt and mapped label show."""
        self.chances = self.images.chances(self.shares, self.rows)
        self.counts, self.table = self.images.drawn(self.chances, self.rng)

    def draw_shares(self) -> None:
        """Draw the shares of the model and of prompts."""
        self.even = EVENNESS[drawn_rows(self.evenness, self.rng)]
        if self.counts.shape[1] == 1:
            self.shares = self.drawn_model(self.counts[:, 0])[:, None]
            return
        labels = self.labels_of_prompts()
        self.draw_likeness(*labels)
        tables = drawn_tables(self.likeness[:, None] * self.model, *labels, self.rng)
        self.model = self.drawn_model(tables)
        self.shares = drawn_shares((self.likeness[:, None] * self.model)[:, None] + self.counts, self.rng)

    def drawn_model(self, counts: Array | Counts) -> Array:
        """Draw the shares of the model given how often labels are drawn from it, (n_chains, n_labels)."""
        expected = expected_labels(self.even, counts.shape[1], self.none)
        return drawn_apart(expected + with_something(counts, self.none), self.none, self.rng)

    def labels_of_prompts(self) -> tuple[Counts, Counts, Counts]:
        """Count the prompts that show a label so many times: places of labels in all chains, times, and prompts."""
        _, prompts, labels = self.counts.shape
        most = int(self.counts.max()) + 1
        there = np.flatnonzero(self.counts)
        label = there // (prompts * labels) * labels + there % labels
        key, often = np.unique(label * most + self.counts.ravel()[there], return_counts=True)
        return key // most, key % most, often

    def draw_likeness(self, label: Counts, count: Counts, often: Counts) -> None:
        """Draw how alike prompts are, by trying steps; the shares of prompts are integrated out."""
        now = self.fit(self.likeness, label, count, often)
        for step in STEPS:
            tried = self.likeness * np.exp(step * self.rng.standard_normal(len(now)))
            then = self.fit(tried, label, count, often)
            taken = (np.log(self.rng.random(len(now))) < then - now) & (LIKENESS[0] < tried) & (tried < LIKENESS[1])
            self.likeness, now = np.where(taken, tried, self.likeness), np.where(taken, then, now)

    def fit(self, likeness: Array, label: Counts, count: Counts, often: Counts) -> Array:
        """Give the log odds that prompts are so much alike, by the labels of all, float64 (n_chains,).

        Before any label is seen the part of the pairs below has odds of one over its square root: flat odds of the
        logarithm lean to prompts that are alike where images are few.
        """
        from scipy.special import gammaln

        part = 1 / (1 + likeness)  # of the pairs of a prompt that show one label for being of one prompt
        prior = (likeness[:, None] * self.model).ravel()[label]
        odds = often * (gammaln(prior + count) - gammaln(prior))
        sizes, prompts = self.sizes
        alone = (gammaln(likeness)[:, None] - gammaln(likeness[:, None] + sizes)) @ prompts
        chain = label // self.model.shape[1]
        return np.asarray(0.5 * np.log(part) + np.log1p(-part) + alone + np.bincount(chain, odds, len(likeness)))

    def draw_mapping(self) -> None:
        """Draw how each true label is mapped by each instrument; they err independently given the label."""
        given, rights = list[Array](), list[Array]()
        for number, (instrument, label) in enumerate(zip(self.instruments, self.given, strict=True)):
            table = self.table if len(self.given) == 1 else self.table @ np.eye(len(instrument.known))[label]
            rows, self.strengths[number] = instrument.drawn(table, self.strengths[number], self.none, self.rng)
            given.append(rows[:, :, label])
            rights.append(np.diagonal(rows, axis1=1, axis2=2))
        self.rows, self.rights = given[0], np.array(rights)
        if len(given) == 2:
            self.rows = given[0] * given[1] * self.drawn_dependence(*given)

    def drawn_dependence(self, first: Array, second: Array) -> Array:
        """Draw how far two instruments err on the same images and to the same labels; change chances of codes by that.

        Given the label, their errors correlate, and where both err the second gives the wrong label of the first in a
        part of the cases; so it is for labels that both know, and apart from those for all others.

        Args:
            first: float64, (n_chains, n_labels, n_codes): the chance of what the first instrument gives, and
            second: the second.

        Returns:
            float64, like both: by what the product of both is to be multiplied.
        """
        labels = np.arange(first.shape[1])[:, None]
        right = self.given[:, None] == labels
        both = np.clip(self.rights, 1e-6, 1 - 1e-6)[:, :, :, None]
        scale, chain = np.sqrt((both * (1 - both)).prod(axis=0)), np.arange(len(first))
        logs, parts = np.zeros((len(first), len(TIED))), []
        for a, b in ((True, True), (True, False), (False, True), (False, False)):
            alone = (both[0] if a else 1 - both[0]) * (both[1] if b else 1 - both[1])
            times = np.maximum(1 + (1 if a == b else -1) * TIED * scale / alone, 1e-3)
            where = (right[0] == a) & (right[1] == b) & self.both_known[:, None]
            logs += ((self.table * where).sum(axis=2)[:, :, None] * np.log(times)).sum(axis=1)
            parts.append((where, times))
        tied = drawn_rows(chances_of(logs), self.rng)
        factor = sum(where * times[chain, :, tied][:, :, None] for where, times in parts) + ~self.both_known[:, None]
        wrong, same = ~right.any(axis=0), self.given[0] == self.given[1]
        beside = same / np.maximum(second / (1 - both[1]), 1e-9)
        for some in (self.both_known, ~self.both_known):
            where = wrong & some[:, None]
            at = np.nonzero(self.table * where)
            odds = np.log1p(TIED * (beside[at][:, None] - 1)) * self.table[at][:, None]
            alike = drawn_rows(chances_of((chain[:, None] == at[0]) @ odds), self.rng)
            factor = np.where(where, factor * (1 + TIED[alike][:, None, None] * (beside - 1)), factor)
        return np.asarray(factor)


@dataclass(frozen=True, slots=True)
class Instrument:
    """A mapping of images to labels."""

    known: NDArray[np.bool_]  # bool, (n_labels,): the labels that it gives, but for nothing
    towards: Array  # float64, (n_chains, n_labels, n_labels): where errors of each true label are expected to fall

    def drawn(self, table: Array, strength: Array, none: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw how each true label is mapped: as often rightly as others are, else to where errors usually fall.

        Args:
            table: float64, (n_chains, n_labels, n_labels): images by what they show and are mapped to.
            strength: float64, (n_chains,): how alike labels were in how often they are mapped rightly.
            none: the label of nothing.
            rng: draws.

        Returns:
            P(mapped | true), like the table, and the strength drawn anew.
        """
        known = self.known
        right = np.diagonal(table, axis1=1, axis2=2)
        wrong = table - right[:, :, None] * np.eye(len(known))
        missed = wrong.sum(axis=2)
        accuracy, strength = drawn_accuracy(right[:, known], missed[:, known], strength, rng)
        weight = drawn_strength(wrong[:, known], self.towards[:, known], rng)[:, None, None]
        anywhere = weight * self.towards[:, [none]] + table
        rows = drawn_shares(np.where(known[:, None], weight * self.towards + wrong, anywhere), rng)
        mean, alike = accuracy[:, None], strength[:, None]
        often = np.where(known, rng.beta(alike * mean + right, alike * (1 - mean) + missed), 0.0)
        return (1 - often[:, :, None]) * rows + often[:, :, None] * np.eye(len(known)) + 1e-12, strength


def expected_labels(even: Array, labels: int, none: int) -> Array:
    """Give how many images of each label are expected before any is seen, by evenness: float64 (n_even, n_labels + 1).

    The last column are pictures of something. That a model shows all countries evenly says nothing about how often it
    shows none: of both together one or two images are expected at most.
    """
    expected = np.repeat(even[:, None] / labels, labels + 1, axis=1)
    expected[:, none] = np.minimum(expected[:, none], 0.5)
    expected[:, -1] = np.clip(even * (labels - 1) / labels, 1e-12, 1.0)
    return expected


def with_something(counts: Array | Counts, none: int) -> Array:
    """Append the images that show something to those of each label, (n, n_labels)."""
    return np.column_stack([counts, counts.sum(axis=1) - counts[:, none]])


def evenness_of(found: Array, none: int) -> Array:
    """Give the chance of each evenness from the audited labels alone: imputed ones would feed themselves.

    Args:
        found: float64, (n_chains, n_labels): audited images by what they show.
        none: the label of nothing.
    """
    from scipy.special import gammaln

    part, found = expected_labels(EVENNESS, found.shape[1], none), with_something(found, none)[:, None]
    logs = (gammaln(part + found) - gammaln(part)).sum(axis=2)
    for both in np.delete(np.arange(part.shape[1] - 1), none), [none, -1]:  # labels of something; nothing and something
        sums = np.maximum(part[:, both].sum(axis=1), 1e-12)
        logs += gammaln(sums) - gammaln(sums + found[:, :, both].sum(axis=2))
    return chances_of(logs)


def leanings(audit: Array, mapped: Counts, parents: Counts) -> Array:
    """Say where errors of each true label are expected to fall, float64 (n_chains, n_labels, n_labels).

    Half of them go to the same continent, and half to where errors of all labels fall. Rows sum to 1.

    Args:
        audit: float64, (n_chains, n_labels, n_labels): audited images by what they show and are mapped to.
        mapped: int64, (n_labels,): all images by mapped label.
        parents: int64, (n_labels,): the continent of each label.
    """
    labels = len(mapped)
    there, others = mapped > 0, 1 - np.eye(labels)
    errors = (audit * others).sum(axis=1)
    hub = errors + 2 * mapped / mapped.sum() + 40 / max(there.sum(), 1) * there
    rows = hub[:, None] * others
    near = np.where(parents[:, None] == parents, rows, 0.0)
    sums = rows.sum(axis=2, keepdims=True), near.sum(axis=2, keepdims=True)
    rows = np.divide(rows, sums[0], out=np.full_like(rows, 1 / labels), where=sums[0] > 0)
    near = np.divide(near, sums[1], out=rows.copy(), where=sums[1] > 0)
    return np.asarray(0.5 * rows + 0.5 * near)
