"""Which images people should look at: an even draw over prompts and what the images were mapped to."""

import numpy as np
import polars as pl

from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error
from culturekit.records.schemas import AUDIT_SAMPLE

__all__ = ["audit_sample"]


def audit_sample(matches: pl.DataFrame, *, n: int, rng: np.random.Generator, stratum: str = "country") -> pl.DataFrame:
    """Draw n images of each model and concept for an audit.

    Images are put in order by prompt and mapped label, both in random order, and at random within; the order is cut
    into n parts, and one image at random is taken from each. Each image has the same chance, n over the number of
    images, whatever the sizes of prompts. With more prompts than images to draw the order is by mapped label first.

    Args:
        matches: MATCHES; the nearest match of an image counts.
        n: images per model and concept; all of them where there are fewer.
        rng: draws.
        stratum: the mapped label to spread over: `country` or `continent`.

    Returns:
        AUDIT_SAMPLE: the images, their stratum and the chance with which each was drawn.

    Raises:
        UsageError: an argument breaks its rule.
    """
    if n < 1:
        raise argument_error("n", "at least 1", n)
    if stratum not in {"country", "continent"}:
        raise argument_error("stratum", "'country' or 'continent'", stratum)
    nearest = matches.filter(pl.col("rank") == 1)
    if nearest.is_empty():
        raise UsageError("there are no matches to draw from", expected="at least one image")
    groups = nearest.sort("model", "concept", "image_id").partition_by("model", "concept", maintain_order=True)
    drawn = pl.concat([draw(images, n=min(n, images.height), rng=rng, stratum=stratum) for images in groups])
    return drawn.select(list(AUDIT_SAMPLE.columns)).sort(AUDIT_SAMPLE.key)


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
