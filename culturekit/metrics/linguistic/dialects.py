"""Two dialects of the same prompts: how much better pictures of the one fit than those of the other."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from culturekit.defaults import CONFIDENCE, PERMUTATIONS
from culturekit.metrics.arguments import argument_error, finite_vector
from culturekit.metrics.statistics.comparisons import Comparison, compare

__all__ = ["dialect_gap"]


def dialect_gap(
    scores: Mapping[str, ArrayLike],
    prompts: Mapping[str, ArrayLike],
    *,
    standard: str = "SAE",
    other: str = "AAE",
    confidence: float = CONFIDENCE,
    resamples: int = PERMUTATIONS,
    rng: np.random.Generator,
) -> Comparison:
    """Compare the scores of pictures of two dialects, paired by prompt: the standard minus the other.

    Values of a prompt are averaged first, then the differences of common prompts: a prompt and its counterpart have
    the same name on both sides. The interval is t over prompts; p is that of a sign-flip permutation test. With
    CLIPScores, the score belongs to the encoder too: CLIP itself has read far more of the one dialect.

    Args:
        scores: dialect -> float, (n_images,): such as CLIPScores at scale 1, or 1 and 0 for right and wrong pictures.
        prompts: dialect -> (n_images,): the pair that each picture's prompt belongs to.
        standard: which dialect stands first.
        other: which is subtracted.
        confidence: of the interval.
        resamples: of the permutation test.
        rng: where the permutations come from.

    Raises:
        UsageError: an argument breaks its rule, or no prompt is common.
    """
    for dialect in (standard, other):
        if dialect not in scores or dialect not in prompts:
            raise argument_error("scores", f"given for {standard!r} and {other!r}, like prompts", sorted(scores))
    first, second = (finite_vector(f"scores[{name!r}]", scores[name]) for name in (standard, other))
    pairs = np.asarray(prompts[standard]), np.asarray(prompts[other])
    return compare(first, second, clusters=pairs, confidence=confidence, resamples=resamples, rng=rng)
