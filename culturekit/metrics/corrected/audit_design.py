"""Whether the images that people answered about are an even draw of a model's images: else they speak for a part."""

import math
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.arguments import check_choice
from culturekit.storage.digests import digest

__all__ = ["FARTHEST", "Design", "check_design", "check_response", "distance", "drawing_of", "not_even"]

Design: TypeAlias = Literal["drawn", "unknown"]
"""How the audited images were chosen: drawn evenly, which is checked, or in a way that nobody knows."""

FEWEST_ANSWERED = 0.8
"""Share of the drawn images of a prompt or mapped label that is to be answered where it matters."""

MATTERS = 0.05
"""A prompt or mapped label matters if it has so much of the drawn images, and at least FEWEST_DRAWN of them; and if it
has these and not one was answered, which chance does not do."""

FEWEST_DRAWN = 5

REDRAWN = 1999
"""Even draws that an audit is held against: one that is less even than all of them was not drawn evenly."""

FARTHEST = 4.0
"""Standard errors by which the scores of audited images may lie above or below those of all images."""

LABEL = "mapped labels"
"""What the country of an image is, where nothing else is said."""

HINT = "Ask about the images that audit_sample drew, and about all of them."


def drawing_of(sample: pl.DataFrame) -> str:
    """Name a drawing by the images that were drawn; answers to it carry the name."""
    return digest(sample["image_id"].sort().to_list())[:16]


def check_drawing(answers: pl.DataFrame, sample: pl.DataFrame) -> None:
    """Refuse answers that were given to another drawing: the images of this one may not have been asked about."""
    if "drawing" not in answers.columns:
        return
    wanted = sample["drawing"].unique() if "drawing" in sample.columns else pl.Series([drawing_of(sample)])
    other = answers.filter(pl.col("drawing").is_not_null(), ~pl.col("drawing").is_in(wanted.implode()))
    if other.height:
        raise UsageError(
            "answers belong to another drawing of images than the sample",
            expected=f"drawing {', '.join(wanted.sort())}",
            found=f"{', '.join(other['drawing'].unique().sort())}: {other.height} of {answers.height} answers",
            hint="Give the sample that the form was made with.",
        )


def check_response(nearest: pl.DataFrame, answers: pl.DataFrame, sample: pl.DataFrame) -> None:
    """Refuse answers to another drawing or about images not drawn, and drawings of which a part was not answered."""
    check_drawing(answers, sample)
    answered = answers["image_id"].unique()
    drawn = sample.join(nearest.select("image_id"), on="image_id", how="semi")
    outside = answered.filter(~answered.is_in(drawn["image_id"].implode()))
    if outside.len():
        raise UsageError(
            "people answered about images that were not drawn for the audit",
            where=f"image {outside.sort()[0]!r}",
            expected="answers about drawn images only",
            found=f"{outside.len()} of {answered.len()} outside the sample",
            hint=HINT,
        )
    told = drawn.with_columns(answered=pl.col("image_id").is_in(answered.implode()))
    for column, name in (("prompt_id", "prompt"), ("stratum", "mapped label")):
        parts = told.group_by(column).agg(drawn=pl.len(), share=pl.col("answered").mean()).sort("share", column)
        much = (pl.col("drawn") >= MATTERS * drawn.height) | (pl.col("share") == 0)
        matter = parts.filter(pl.col("drawn") >= FEWEST_DRAWN, much)
        low = matter.filter(pl.col("share") < FEWEST_ANSWERED)
        if low.height or told["answered"].sum() < FEWEST_ANSWERED * drawn.height:
            share = low["share"][0] if low.height else told["answered"].sum() / drawn.height
            raise UsageError(
                "too few of the drawn images were answered",
                where=f"{name} {low[column][0]!r}" if low.height else "the whole sample",
                expected=f"at least {FEWEST_ANSWERED:.0%}",
                found=f"{float(share):.0%}",
                hint="Those without an answer are seldom like the others: ask about them too.",
            )


def check_design(
    images: pl.DataFrame, answers: pl.DataFrame, sample: pl.DataFrame | None, design: Design, *, label: str = LABEL
) -> None:
    """Refuse answers about images that are no even draw, unless nobody knows how they were chosen.

    Args:
        images: all images: image_id, prompt_id, country, and score where it is known how clear each case is.
        answers: image_id, and `drawing` where the form knew it.
        sample: AUDIT_SAMPLE: which images people were asked about.
        design: `unknown` looks at no draw; what comes of it is to be marked.
        label: what the column country holds.
    """
    check_choice("design", design, ("drawn", "unknown"))
    if design == "unknown":
        if sample is not None:
            raise UsageError("a sample is given, so the design is known", expected="a sample, or an unknown design")
        return
    if sample is not None:
        check_response(images, answers, sample)
    check_even_draw(images, answers["image_id"].unique(), label=label)


def check_even_draw(nearest: pl.DataFrame, answered: pl.Series, *, label: str = LABEL) -> None:
    """Refuse an audit that met prompts, mapped labels or clear cases far less evenly than a random draw would."""
    told = nearest.with_columns(answered=pl.col("image_id").is_in(answered.implode()))
    rng = np.random.default_rng(0)  # of the yardstick alone: the same audit is always judged alike
    for column, name in (("prompt_id", "prompts"), ("country", label)):
        parts = told.group_by(column).agg(images=pl.len(), met=pl.col("answered").sum()).sort(column)
        if uneven(parts["images"].to_numpy().astype(np.int64), parts["met"].to_numpy().astype(np.int64), rng):
            least = parts.with_columns(rate=pl.col("met") / pl.col("images")).sort("rate", column)
            raise not_even(name, f"{least[column][0]!r}: {least['met'][0]} of {least['images'][0]} images")
    if "score" not in told.columns:
        return
    away = distance(told["score"].to_numpy().astype(np.float64), told["answered"].to_numpy())
    if abs(away) > FARTHEST:
        which = "more" if away > 0 else "less"
        raise not_even("clear and unclear images", f"images that are {which} like their matches than the others")


def not_even(what: str, found: str) -> UsageError:
    """Say what an audit did not meet evenly."""
    return UsageError(
        f"the audited images are no even draw over {what}",
        expected="each image with the same chance",
        found=found,
        hint=HINT,
    )


def uneven(images: NDArray[np.int64], met: NDArray[np.int64], rng: np.random.Generator) -> bool:
    """Tell whether every one of many random draws meets the parts more evenly."""
    total, audited = int(images.sum()), int(met.sum())
    if len(images) == 1 or audited == total:
        return False
    expected = images * audited / total
    drawn = rng.multivariate_hypergeometric(images, audited, size=REDRAWN, method="marginals")
    far = ((drawn - expected) ** 2 / expected).sum(axis=1)
    return bool(((met - expected) ** 2 / expected).sum() > far.max() + 1e-9)


def distance(scores: NDArray[np.float64], answered: NDArray[np.bool_]) -> float:
    """Give by how many standard errors the ranks of audited images' scores lie above those of all images."""
    known = np.isfinite(scores)
    scores, answered = scores[known], answered[known]
    n, audited = len(scores), int(answered.sum())
    if not 0 < audited < n:
        return 0.0
    _, place, times = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(times) - (times - 1) / 2)[place]
    spread = float(ranks.std(ddof=1))
    if spread == 0:
        return 0.0
    error = spread * math.sqrt(1 / audited - 1 / n)
    return float(ranks[answered].mean() - ranks.mean()) / error
