"""The draws that imputed shares and mappings are made of, for several chains: the first axis of arrays."""

import numpy as np

from culturekit.records.arrays import Array, Counts

__all__ = [
    "chances_of",
    "drawn_accuracy",
    "drawn_apart",
    "drawn_rows",
    "drawn_shares",
    "drawn_strength",
    "drawn_tables",
]

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
