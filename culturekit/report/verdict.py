"""The answer on the first screen, in words, from the figures below it."""

import math
from collections.abc import Sequence

from culturekit.report.data import Figure, ModelLine, Verdict

__all__ = ["verdict_on"]

NOTICEABLE = 0.1
"""A model whose diversity is overstated by less is not called out."""


def verdict_on(models: Sequence[ModelLine]) -> Verdict:
    """Say which model is not what its mapped diversity says, or that nobody can know yet."""
    if any(math.isnan(line.mapped.value) for line in models):
        return Verdict(None, (UNSCORED,))
    known = [line for line in models if reality(line) is not None]
    if not known:
        return Verdict(None, (UNKNOWN,))
    worst = max(known, key=overstated)
    if overstated(worst) < NOTICEABLE:
        return Verdict(None, ("Every model is as diverse as its nearest artifacts say.",))
    rank = sorted(models, key=lambda line: -line.mapped.value).index(worst) + 1
    sentences = [
        f"Its mapped diversity is {worst.mapped.value:.2f}, rank {rank} of {len(models)}. {shows(worst)}",
        distance(worst, [line for line in models if line is not worst]),
        "Nearest-artifact mapping always finds something nearest, and scatter looks like diversity.",
    ]
    return Verdict(worst.model, tuple(filter(None, sentences)))


UNSCORED = "The diversity of some model could not be scored: no batch of its images is complete."

UNKNOWN = (
    "What these images really show is not known here. The scores are mapped diversity: they err where the mapping "
    "errs, and an audit of some images by people would say by how much."
)


def reality(line: ModelLine) -> Figure | None:
    """Give the diversity of what images really show: known, or found out by an audit."""
    return line.truth or line.corrected


def overstated(line: ModelLine) -> float:
    """By how much the mapped diversity of a model exceeds the real one.

    An audit leaves some doubt, and the model has the benefit of it.
    """
    real = reality(line)
    if real is None:
        return 0.0
    highest = real.value if line.truth is not None or real.high is None else real.high
    return line.mapped.value - highest


def shows(line: ModelLine) -> str:
    """Say what the images of a model really show."""
    real = reality(line)
    if not line.culture_free or line.truth is None:
        found = "By the audit, the" if line.truth is None else "The"
        return f"{found} diversity of what its images really show is {real.value if real else 0.0:.2f}."
    share = "None" if line.culture_free == line.images else f"Only {line.images - line.culture_free:,}"
    return f"{share} of its {line.images:,} images show{'s' if share == 'None' else ''} any artifact at all."


def distance(line: ModelLine, others: Sequence[ModelLine]) -> str:
    """Compare how near the nearest artifact is; empty when the model is no farther than the others."""
    lowest = min((other.similarity["median"] for other in others), default=0.0)
    if line.similarity["median"] >= lowest - 0.05:
        return ""
    return (
        f"Its images are far from everything they are mapped to: median similarity "
        f"{line.similarity['median']:.2f}, where the other models have at least {lowest:.2f}."
    )
