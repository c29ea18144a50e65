"""Which group is taken as neutral, by pictures of a neutral prompt; and which of two captions fits a picture better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.errors import argument_error
from culturekit.metrics.arguments import unit_rows
from culturekit.metrics.linguistic.tone_histograms import Spread, spread_of

LOGIT_SCALE = 100.0  # What CLIP multiplies cosines by: the exponential of its learned logit scale, held at 100


@dataclass(frozen=True, slots=True)
class NeutralSpread:
    """How unevenly a model's neutral pictures resemble those of the groups.

    Attributes:
        heat: (n_groups,): the mean similarity of each group over prompts, in the order of the groups: the heat map.
        std: the mean over prompts of the standard deviation over groups.
        mad: the mean over prompts of the mean absolute deviation over groups.
        of_means: STD and MAD of the heat map itself; never larger than the means above.
        per_prompt: the spread of each prompt.
        ranking: prompts from the lowest STD to the highest; equals in alphabetical order.
    """

    heat: NDArray[np.float64]
    std: float
    mad: float
    of_means: Spread
    per_prompt: Mapping[str, Spread]
    ranking: tuple[str, ...]


def neutral_similarity(neutral: ArrayLike, group: ArrayLike) -> float:
    """Average the cosines of all pairs of a neutral picture and a group's picture, in [-1, 1].

    Args:
        neutral: float, (n, dim): vectors of pictures of the neutral prompt; they need not have length one.
        group: float, (m, dim): the same of the group's prompt.

    Raises:
        UsageError: an argument is not vectors, or widths differ.
    """
    first, second = unit_vectors("neutral", neutral), unit_vectors("group", group)
    if first.shape[1] != second.shape[1]:
        raise argument_error("group", f"vectors of width {first.shape[1]}, like neutral's", f"width {second.shape[1]}")
    # The mean of all cosines is the product of the mean vectors. Columns are sorted, so that order does not matter.
    means = [np.sort(vectors, axis=0).sum(axis=0) / len(vectors) for vectors in (first, second)]
    return float(np.clip((means[0] * means[1]).sum(), -1, 1))


def neutral_spread(similarities: ArrayLike, prompts: Sequence[str]) -> NeutralSpread:
    """Measure how unevenly neutral pictures resemble the groups: per prompt first, then the mean over prompts.

    The paper's STD column is of this kind. Its MAD column cannot come from the same numbers: over g values MAD is at
    least sqrt(2/g) of STD, 0.577 of it over six, and the paper prints 0.27 to 0.41 of it.

    Args:
        similarities: float, (n_prompts, n_groups), as `neutral_similarity` gives them.
        prompts: (n_prompts,): their names, all different.
    """
    table = np.asarray(similarities, dtype=np.float64)
    if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
        raise argument_error("similarities", "finite numbers, (n_prompts, n_groups)", similarities)
    if len(prompts) != len(table) or len(set(prompts)) != len(table):
        raise argument_error("prompts", f"{len(table)} different names", list(prompts))
    order = sorted(range(len(table)), key=lambda row: prompts[row])
    spreads = {prompts[row]: spread_of(table[row]) for row in order}
    heat = table[order].mean(axis=0)
    return NeutralSpread(
        heat=heat,
        std=float(np.mean([spread.std for spread in spreads.values()])),
        mad=float(np.mean([spread.mad for spread in spreads.values()])),
        of_means=spread_of(heat),
        per_prompt=spreads,
        ranking=tuple(sorted(spreads, key=lambda prompt: (spreads[prompt].std, prompt))),
    )


def unit_vectors(name: str, vectors: ArrayLike) -> NDArray[np.float64]:
    """Read vectors, (n, dim), and give them length one; there is at least one, and each has a direction."""
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0 or not np.isfinite(rows).all():
        raise argument_error(name, "finite vectors, (n, dim), at least one", f"shape {rows.shape}")
    return unit_rows(name, rows)


def question_pair(
    images: ArrayLike, first: ArrayLike, second: ArrayLike, *, logit_scale: float = LOGIT_SCALE
) -> NDArray[np.float64]:
    """Give the share that each of two captions gets by softmax, float64 (n_images, 2); rows sum to 1.

    Args:
        images: float, (n_images, dim): vectors of pictures; they need not have length one.
        first: float, (dim,): the vector of the one caption, such as "a traditional environment".
        second: float, (dim,): that of the other.
        logit_scale: what cosines are multiplied by; it belongs to the encoder.

    Raises:
        UsageError: an argument is not of its shape, or the scale is not above 0.
    """
    pictures = unit_vectors("images", images)
    captions = []
    for name, caption in (("first", first), ("second", second)):
        captions.append(unit_vectors(name, np.asarray(caption)[None])[0])
        if len(captions[-1]) != pictures.shape[1]:
            raise argument_error(name, f"as wide as the images, {pictures.shape[1]}", f"width {len(captions[-1])}")
    if not 0 < logit_scale < np.inf:
        raise argument_error("logit_scale", "a number above 0", logit_scale)
    # The cosines are sums of single products: a picture's answer does not depend on who stands beside it.
    cosines = np.stack([(pictures * caption).sum(axis=1) for caption in captions], axis=1)
    logits = logit_scale * (cosines - cosines.max(axis=1, keepdims=True))
    shares = np.exp(logits)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
