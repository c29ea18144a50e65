"""By how much diversity bends along the errors of imputed labels, prompt by prompt, from pairs of audited images."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from culturekit.core.arrays import Array, Counts
from tests.oracles.audited_cells import Audit
from tests.oracles.corrected_imputations import Chain

HALF_BELIEVED, ROUNDS, ASIDE = 100, 100, 0.02


def bends_of(
    mapped: Counts,
    audit: Audit,
    part: Counts,
    chains: Sequence[Chain],
    diversity: Callable[..., Array],
    size: int,
    rng: np.random.Generator,
) -> tuple[float, float, float]:
    """Give what bends add to the value on average over parts, the standard error of that, and how far to trust it."""
    many = [prompt for prompt, images in enumerate(mapped.sum(axis=1)) if images >= size]
    sums, trusts = [], []
    for number, chain in enumerate(chains):
        held = part == number
        some = [prompt for prompt in many if (held & (audit.prompts == prompt)).sum() >= 2]
        told = [bend(mapped[prompt], audit, held, prompt, chain, diversity, rng) for prompt in some]
        sums.append(math.fsum(trust * by for by, trust in told) / len(many))
        trusts.append(math.fsum(trust for _, trust in told) / len(many))
    error = float(np.std(sums, ddof=1)) / math.sqrt(len(sums))
    return math.fsum(sums) / len(sums), error, math.fsum(trusts) / len(trusts)


def bend(
    mapped: Counts, audit: Audit, held: NDArray[np.bool_], prompt: int, chain: Chain, diversity: Callable[..., Array],
    rng: np.random.Generator,
) -> tuple[float, float]:  # fmt: skip
    """Say what a prompt adds, and how far to trust it: labels drawn apart less those together, and half the bend."""
    of_prompt = audit.prompts == prompt
    out, kept = np.flatnonzero(of_prompt & held), np.flatnonzero(of_prompt & ~held)
    left = mapped.copy()
    for image in kept:
        left[audit.mapped[image]] -= 1
    cells = np.flatnonzero(mapped)
    kinds = np.array([*chain.chances[prompt][cells], *audit.shown[kept]])
    kinds /= kinds.sum(axis=1)[:, None]
    images = np.array([*left[cells], *[1] * len(kept)])
    apart = rng.multinomial(images, kinds, size=(ROUNDS, len(kinds))).sum(axis=1)
    imputed = chain.chances[prompt][audit.mapped[out]]
    usual = (1 - ASIDE) * (kinds * images[:, None]).sum(axis=0) / mapped.sum() + ASIDE * imputed.mean(axis=0)
    errors = audit.shown[out] - imputed
    together, *single = curves(usual, [errors.mean(axis=0), *(errors / len(out))], diversity)
    pairs = len(out) * (len(out) - 1)
    between = len(out) ** 2 * (together - math.fsum(single)) / pairs
    one, other = (diversity(rows.astype(np.float64), taken=1).mean() for rows in (apart, chain.counts[:, prompt]))
    by = float(one - other + (left.sum() / mapped.sum()) ** 2 * between / 2)
    return by, pairs / (pairs + HALF_BELIEVED)


def curves(shares: Array, lines: Sequence[Array], diversity: Callable[..., Array]) -> Iterator[float]:
    """Give the second difference of the diversity along each line, over the square of a step."""
    step = ASIDE / 2
    values = diversity(np.array([shares + times * step * line for line in lines for times in range(3)]))
    for near, middle, far in values.reshape(-1, 3):
        yield float(far - 2 * middle + near) / step**2
