"""What an image shows when several people say different things: the model of Dawid and Skene, one coin each.

Rater r is right with probability a_r; a wrong answer falls on the other labels as often as those occur. EM
turns answers into a share of the image per label, and tells how good each rater is. The agreement of raters
is measured first: below a level, no model of their errors is worth trusting.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error

__all__ = ["LOWEST_AGREEMENT", "RaterModel", "check_agreement", "majority_shares", "rater_model"]

LOWEST_AGREEMENT = 0.75
"""Share of pairs of answers to one image that agree, below which an audit is refused.

Raters who are right 90 times in 100 agree on about 0.81 of pairs, those who are right 85 times on 0.73; with these
and worse ones the corrected intervals cover less than they promise (see docs/corrected-diversity.md)."""

ROUNDS = 200
SETTLED = 1e-9


@dataclass(frozen=True, slots=True)
class RaterModel:
    """What the answers say together.

    Attributes:
        shares: float64, (n_images, n_labels): the probability of each label, in the order of the image ids.
        accuracy: float64, (n_raters,): how often each rater is right.
        agreement: share of pairs of answers to one image that agree; NaN when no image has two answers.
    """

    shares: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    agreement: float


def rater_model(
    images: NDArray[np.int64], raters: NDArray[np.int64], answers: NDArray[np.int64], *, labels: int
) -> RaterModel:
    """Model the answers of raters.

    Args:
        images: int64, (n,): which image an answer is about, from 0.
        raters: int64, (n,): who answered, from 0.
        answers: int64, (n,): the label, from 0.
        labels: how many labels there are.

    Returns:
        The probability of each label of each image, and the accuracy of each rater.

    Raises:
        UsageError: an argument breaks its rule.
    """
    if not len(images) == len(raters) == len(answers) or len(answers) == 0:
        raise argument_error("answers", "of the length of images and raters, and not empty", len(answers))
    if labels < 1 or answers.min() < 0 or answers.max() >= labels:
        raise argument_error("labels", "more than the largest answer", labels)
    count = int(images.max()) + 1
    votes = np.zeros((count, labels))
    np.add.at(votes, (images, answers), 1.0)
    agreement = pairs_that_agree(votes)
    shares = votes / votes.sum(axis=1, keepdims=True)
    accuracy = np.full(int(raters.max()) + 1, 0.9)
    if labels == 1 or not np.any(votes.sum(axis=1) > 1):
        return RaterModel(shares, np.ones_like(accuracy), agreement)
    for _ in range(ROUNDS):
        before = shares
        accuracy = accuracy_of(shares, images, raters, answers, len(accuracy))
        shares = posterior(shares.mean(axis=0), accuracy, images, raters, answers, count)
        if np.abs(shares - before).max() < SETTLED:
            break
    return RaterModel(shares, accuracy, agreement)


def accuracy_of(
    shares: NDArray[np.float64],
    images: NDArray[np.int64],
    raters: NDArray[np.int64],
    answers: NDArray[np.int64],
    count: int,
) -> NDArray[np.float64]:
    """Estimate how often each rater is right, leaning a little towards 0.9 where little is known."""
    right = np.bincount(raters, weights=shares[images, answers], minlength=count)
    return np.asarray((right + 1.8) / (np.bincount(raters, minlength=count) + 2.0))


def posterior(
    prior: NDArray[np.float64],
    accuracy: NDArray[np.float64],
    images: NDArray[np.int64],
    raters: NDArray[np.int64],
    answers: NDArray[np.int64],
    count: int,
) -> NDArray[np.float64]:
    """Give the probability of each label of each image from the answers to it."""
    frequent = np.maximum(prior, 1e-6)
    right = np.log(accuracy[raters])
    # A wrong answer falls on label a with the frequency of a among the labels that are not the true one.
    wrong = np.log1p(-np.minimum(accuracy[raters], 1 - 1e-9)) + np.log(frequent[answers])
    logs = np.tile(np.log(frequent), (count, 1))
    np.add.at(logs, images, wrong[:, None] - np.log(np.maximum(1 - frequent, 1e-6))[None, :])
    np.add.at(logs, (images, answers), right - wrong + np.log(np.maximum(1 - frequent[answers], 1e-6)))
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def pairs_that_agree(votes: NDArray[np.float64]) -> float:
    """Give the share of pairs of answers to one image that agree."""
    answers = votes.sum(axis=1)
    pairs = float((answers * (answers - 1)).sum())
    return float((votes * (votes - 1)).sum()) / pairs if pairs else float("nan")


def majority_shares(found: pl.DataFrame, *, labels: int) -> pl.DataFrame:
    """Turn answers (image_id, annotator, label) into shares (image_id, label, share) of each image.

    One answer per image is taken as it is: a single rater's errors cannot be seen.
    """
    table = found.sort("image_id", "annotator")
    images = table["image_id"].rle_id().to_numpy().astype(np.int64)
    raters = table["annotator"].rank("dense").to_numpy().astype(np.int64) - 1
    model = rater_model(images, raters, table["label"].to_numpy().astype(np.int64), labels=labels)
    refuse_below(model.agreement)
    image, label = np.nonzero(model.shares > SETTLED)
    ids = table["image_id"].unique(maintain_order=True)
    return pl.DataFrame({"image_id": ids.gather(image), "label": label, "share": model.shares[image, label]}).cast(
        {"label": table.schema["label"]}
    )


def check_agreement(images: pl.Series, times: pl.Series) -> None:
    """Refuse raters who disagree too often: `times` is how many gave one of the answers to an image."""
    table = pl.DataFrame({"image": images, "times": times.cast(pl.Float64)})
    pairs = table.group_by("image").agg(same=(pl.col("times") * (pl.col("times") - 1)).sum(), all=pl.col("times").sum())
    asked = float((pairs["all"] * (pairs["all"] - 1)).sum())
    if asked:
        refuse_below(float(pairs["same"].sum()) / asked)


def refuse_below(agreement: float) -> None:
    """Refuse an audit by how often two raters of an image agree; NaN is not known."""
    if agreement < LOWEST_AGREEMENT:
        raise UsageError(
            "the raters disagree too often for their audit to correct anything",
            expected=f"at least {LOWEST_AGREEMENT:.2f} of pairs of answers that agree",
            found=f"{agreement:.2f}",
            hint="Brief the raters again, or ask only about what they can tell.",
        )
