"""Which audits carry a correction: one set of rules for all kernels. What breaks one is refused, with the reason."""

import polars as pl

from culturekit.errors import UsageError
from culturekit.metrics.corrected.audit_design import Design, check_design
from culturekit.metrics.diversity.kernels import Weights
from culturekit.records.none_of_these import NO_CULTURE, NONE_MEANS

__all__ = [
    "DESIGN_UNKNOWN",
    "FEWEST_AUDITED",
    "MOST_UNPLACED",
    "NONE_UNDIVIDED",
    "ONE_RATER",
    "audited_answers",
    "marks_of",
    "told_apart",
    "unplaced_answers",
]

FEWEST_AUDITED = 30
"""With fewer audited images the intervals are not known to hold."""

MOST_UNPLACED = 0.1
"""Of the audited images at most this share may be without any answer that names what a kernel looks at.

Images of which nobody can tell the country or the artifact are not like the others: they show least. Left out in
numbers, they would make the rest look more certain, and more at home, than the images are."""

ONE_RATER, DESIGN_UNKNOWN = "one rater", "design unknown"
"""What is said beside every number that an audit corrected which allows no look at its raters, or at its draw."""

NONE_UNDIVIDED = "none not told apart"
"""What is said where people could only say none of these: what shows no culture and what is not in the list are then
taken to be alike."""

LEVELS = (("artifact", "artifact_id"), ("country", "country"), ("continent", "continent"))


def audited_answers(
    nearest: pl.DataFrame,
    audit: pl.DataFrame,
    *,
    weights: Weights,
    pool: str | None,
    sample: pl.DataFrame | None,
    design: Design = "drawn",
) -> pl.DataFrame:
    """Take the answers about some images that correct a kernel, or refuse the audit.

    Args:
        nearest: the nearest matches of one model and concept.
        audit: AUDITS; rows of other images are not looked at.
        weights: of the same continent, the same country, the same artifact.
        pool: whose answers count; needed only when several pools answered.
        sample: AUDIT_SAMPLE: which images people were asked about.
        design: `unknown` looks at no draw; what comes of it is marked.

    Raises:
        UsageError: the audit cannot carry a correction of this kernel.
    """
    found = told_apart(one_pool(audit, pool)).join(nearest.select("image_id"), on="image_id", how="semi")
    if found.is_empty():
        raise UsageError("no audited image is among the matches", expected="audits of images of this model")
    placed = placed_answers(found, weights)
    audited = placed["image_id"].unique()
    if audited.len() < FEWEST_AUDITED:
        raise UsageError(
            "too few images were audited", expected=f"at least {FEWEST_AUDITED}, better 150", found=str(audited.len())
        )
    check_design(nearest, found, sample, design)
    return placed


def marks_of(answers: pl.DataFrame, design: Design) -> list[str]:
    """Say what is to stand beside numbers that some answers correct: a design, or raters, that nobody can check."""
    twice = answers.group_by("image_id").agg(people=pl.col("annotator").n_unique())["people"]
    alone = answers.height > 0 and not (twice > 1).any()
    undivided = (told_apart(answers)["none_of_these"] & told_apart(answers)["none_means"].is_null()).any()
    return [ONE_RATER] * alone + [DESIGN_UNKNOWN] * (design == "unknown") + [NONE_UNDIVIDED] * undivided


def told_apart(answers: pl.DataFrame) -> pl.DataFrame:
    """Let `none_of_these` hold only of what shows no culture, or may: who cannot tell says nothing of an image."""
    means = answers["none_means"] if "none_means" in answers.columns else pl.Series([None], dtype=pl.String)
    unknown = means.filter(means.is_not_null() & ~means.is_in(NONE_MEANS))
    if unknown.len():
        raise UsageError("audits have an unknown none_means", expected=", ".join(NONE_MEANS), found=repr(unknown[0]))
    told = answers.with_columns(none_means=means if len(means) == answers.height else pl.lit(None, pl.String))
    return told.with_columns(pl.col("none_of_these") & pl.col("none_means").fill_null(NO_CULTURE).eq(NO_CULTURE))


def one_pool(audit: pl.DataFrame, pool: str | None) -> pl.DataFrame:
    """Take the answers of one pool; pools are never mixed without being asked for."""
    pools = audit["pool"].unique().sort().to_list()
    if pool is None and len(pools) > 1:
        raise UsageError("several pools of people answered", expected="pool= with one of them", found=", ".join(pools))
    return audit if pool is None else audit.filter(pl.col("pool") == pool)


def closest_level(weights: Weights) -> tuple[str, str]:
    """Give the closest level that a kernel looks at, and the column of answers that names it."""
    return next(level for level, weight in zip(LEVELS, reversed(weights), strict=True) if weight > 0)


def unplaced_answers(answers: pl.DataFrame, weights: Weights) -> dict[str, int]:
    """Count the answers that a kernel leaves out, by the wider level that they name, or as `cannot_tell`."""
    level, column = closest_level(weights)
    left_out = told_apart(answers).filter(~pl.col("none_of_these"), pl.col(column).is_null())
    name = {"artifact": "country_only", "country": "continent_only"}.get(level, "no_continent")
    untold = left_out.filter(pl.col("none_means").is_not_null()).height
    return {key: count for key, count in ((name, left_out.height - untold), ("cannot_tell", untold)) if count}


def placed_answers(answers: pl.DataFrame, weights: Weights) -> pl.DataFrame:
    """Keep the answers that say where an image belongs, as closely as a kernel looks."""
    level, column = closest_level(weights)
    placed = answers.filter(pl.col("none_of_these") | pl.col(column).is_not_null())
    images, left = answers["image_id"].n_unique(), placed["image_id"].n_unique()
    if images - left > MOST_UNPLACED * images:
        article = "an" if level == "artifact" else "a"
        raise UsageError(
            f"an audit says neither {article} {level} nor none of these",
            where=f"{images - left} of {images} audited images",
            expected=f"{article} {level} for all but {MOST_UNPLACED:.0%} of them",
            found="wider answers only, or that nobody can tell",
        )
    return placed
