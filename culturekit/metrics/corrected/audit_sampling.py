"""Which images people should look at: an even draw over prompts and what the images were mapped to."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error, check_choice
from culturekit.metrics.corrected.audit_gates import FEWEST_AUDITED
from culturekit.records.schemas import AUDIT_SAMPLE

__all__ = ["Per", "audit_sample"]

Per: TypeAlias = Literal["model", "concept"]
"""Of what so many images are drawn: of a model, shared among its concepts, or of each of its concepts."""


def audit_sample(
    matches: pl.DataFrame, *, n: int, rng: np.random.Generator, stratum: str = "country", per: Per = "concept"
) -> pl.DataFrame:
    """Draw n images of each model and concept, or of each model, for an audit.

    Images are put in order by prompt and mapped label, both in random order, and at random within; the order is cut
    into n parts, and one image at random is taken from each. Each image has the same chance, n over the number of
    images, whatever the sizes of prompts. With more prompts than images to draw the order is by mapped label first.

    Args:
        matches: MATCHES; the nearest match of an image counts.
        n: how many images; all of them where there are fewer.
        rng: draws.
        stratum: the mapped label to spread over: `country` or `continent`.
        per: `concept` draws n of each concept of a model. `model` shares n among its concepts by their images, and
            gives none less than a correction needs, 30 or all there are.

    Returns:
        AUDIT_SAMPLE: the images, their stratum and the chance with which each was drawn.

    Raises:
        UsageError: an argument breaks its rule.
    """
    if n < 1:
        raise argument_error("n", "at least 1", n)
    if stratum not in {"country", "continent"}:
        raise argument_error("stratum", "'country' or 'continent'", stratum)
    check_choice("per", per, ("model", "concept"))
    nearest = matches.filter(pl.col("rank") == 1)
    if nearest.is_empty():
        raise UsageError("there are no matches to draw from", expected="at least one image")
    groups = nearest.sort("model", "concept", "image_id").partition_by("model", "concept", maintain_order=True)
    wanted = [min(n, images.height) for images in groups] if per == "concept" else shared_by_model(groups, n)
    drawn = pl.concat(
        [draw(images, n=count, rng=rng, stratum=stratum) for images, count in zip(groups, wanted, strict=True)]
    )
    return drawn.select(list(AUDIT_SAMPLE.columns)).sort(AUDIT_SAMPLE.key)


def shared_by_model(groups: Sequence[pl.DataFrame], n: int) -> list[int]:
    """Share n images of each model among its concepts, which follow one another."""
    sizes: dict[str, list[int]] = {}
    for images in groups:
        sizes.setdefault(images["model"][0], []).append(images.height)
    return [count for each in sizes.values() for count in shared(n, np.array(each)).tolist()]


def shared(n: int, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Share n among parts by their sizes; none gets less than an audit needs, nor more than it has."""
    given = np.minimum(sizes, FEWEST_AUDITED)
    while given.sum() < min(n, sizes.sum()):
        given[np.argmax(np.where(given < sizes, sizes / (given + 0.5), 0.0))] += 1
    return given


def draw(images: pl.DataFrame, *, n: int, rng: np.random.Generator, stratum: str) -> pl.DataFrame:
    """Draw n images of one model and concept, spread over prompts and mapped labels.

    The order begins at a random place, as a circle does, so that no image is more often in a small part than another.
    """
    labelled = images.with_columns(stratum=pl.col(stratum).fill_null("(none)"))
    prompt, label = (shuffled_codes(labelled[column], rng) for column in ("prompt_id", "stratum"))
    first, second = (prompt, label) if n > prompt.max() else (label, prompt)
    order = np.roll(np.lexsort((rng.random(images.height), second, first)), int(rng.integers(images.height)))
    ends = np.arange(n + 1) * images.height // n
    return labelled[order[rng.integers(ends[:-1], ends[1:])]].with_columns(chance=pl.lit(n / images.height))


def shuffled_codes(labels: pl.Series, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Number the labels from 0 in a random order."""
    codes = np.unique(labels.fill_null("").to_numpy(), return_inverse=True)[1]
    return np.asarray(rng.permutation(int(codes.max()) + 1)[codes])
