"""Which audits carry a correction: one set of rules for all kernels. What breaks one is refused, with the reason."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.corrected.audit_design import Design, check_design
from culturekit.metrics.corrected.audited_places import in_places, said_adrift
from culturekit.metrics.diversity.kernels import Weights
from culturekit.records.none_of_these import NO_CULTURE, NONE_MEANS, NOT_IN_LIST

__all__ = [
    "FEWEST_AUDITED",
    "FEWEST_GOLD",
    "LOWEST_AGREEMENT",
    "MOST_UNPLACED",
    "NOTHING",
    "TakenAnswers",
    "anchoring_seen",
    "answers_about",
    "audited_answers",
    "closest_level",
    "compared_halves",
    "gold_of",
    "labelled",
    "refuse_disagreement",
    "told_apart",
    "unanchored",
    "unplaced_answers",
]

FEWEST_AUDITED = 30
"""With fewer audited images the intervals are not known to hold."""

MOST_UNPLACED = 0.1
"""Of the audited images at most this share may be without any answer that names what a kernel looks at.

Images of which nobody can tell the country or the artifact are not like the others: they show least. Left out in
numbers, they would make the rest look more certain, and more at home, than the images are."""

LOWEST_AGREEMENT = 0.75
"""Share of pairs of answers to one image that agree, and of answers to gold items that are right, below which an audit
is refused: no model of so many errors is worth trusting.

Raters who are right 90 times in 100 agree on about 0.81 of pairs, those who are right 85 times on 0.73."""

FEWEST_GOLD = 10
"""Answers of each rater to gold items or to images that others saw: with fewer nobody knows how good they are."""

NOTHING = "(none of these)"
"""The label of a picture that shows no artifact; all such pictures are alike in that."""

ANCHORED_CHANCE = 0.2
"""How often raters whom nothing anchors are taken to be anchored: to leave out half of the answers costs width alone.

Raters who take over three in ten wrong labels that stand first are seen in 73 to 82 of 100 audits of four models; at a
chance of .05 in 43 to 51."""

FEWEST_COMPARED = 15
"""Images of each half below which nobody can see whether raters keep to what the form lists first."""

LEVELS = (("artifact", "artifact_id"), ("country", "country"), ("continent", "continent"))


@dataclass(frozen=True, slots=True)
class TakenAnswers:
    """Answers that carry a correction.

    Attributes:
        said: rows of AUDITS about a model's images, each with its `label` on the closest level that a kernel looks at.
        gold: what the raters answered to gold items on that level: annotator, asked, right.
    """

    said: pl.DataFrame
    gold: pl.DataFrame

    @property
    def adrift(self) -> Mapping[str, float]:
        """Give the share of images of which an answer does not say the country, and the continent, of what it names."""
        return said_adrift(self.said)


def audited_answers(
    nearest: pl.DataFrame,
    audit: pl.DataFrame,
    *,
    weights: Weights,
    pool: str | None,
    sample: pl.DataFrame | None,
    design: Design = "drawn",
) -> TakenAnswers:
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
    own = in_places(one_pool(audit, pool), nearest)
    told = told_apart(own)
    refuse_contradictions(own.join(nearest.select("image_id"), on="image_id", how="semi"), nearest)
    anchored = anchoring_seen(told)
    found = told.join(nearest.select("image_id"), on="image_id", how="semi")
    if found.is_empty():
        raise UsageError("no audited image is among the matches", expected="audits of images of this model")
    placed = placed_answers(found, weights)
    placed = unanchored(placed) if anchored else placed
    audited = placed["image_id"].unique()
    if audited.len() < FEWEST_AUDITED:
        raise UsageError(
            "too few images were audited", expected=f"at least {FEWEST_AUDITED}, better 150", found=str(audited.len())
        )
    check_agreement(placed)
    gold = gold_answers(told, placed["annotator"], closest_level(weights)[1])
    check_design(nearest, found, sample, design)
    return TakenAnswers(placed, gold)


def refuse_contradictions(answers: pl.DataFrame, nearest: pl.DataFrame) -> None:
    """Refuse answers that name a place and say that there is none, and countries that lie in several continents."""
    means = pl.col("none_means") if "none_means" in answers.columns else pl.lit(None, pl.String)
    named = pl.any_horizontal(pl.col("artifact_id", "country").is_not_null())
    named |= pl.col("continent").is_not_null() & means.ne_missing(NOT_IN_LIST)
    both = answers.filter("none_of_these", named)
    if both.height:
        raise UsageError(
            "answers name a place and say none of these",
            where=f"image {both['image_id'].sort()[0]!r}",
            expected="one of the two",
            found=f"{both.height} of {answers.height} answers with both",
        )
    places = pl.concat([table.select("country", "continent") for table in (nearest, answers)]).unique()
    of_country = places.drop_nulls("country").group_by("country").agg(pl.col("continent").sort()).sort("country")
    several = of_country.filter(pl.col("continent").list.len() > 1)
    if several.height:
        raise UsageError(
            "a country lies in several continents, in the matches or in the audit",
            expected="one continent for each",
            found=f"{several['country'][0]} in {', '.join(one or '(none)' for one in several['continent'][0])}",
        )


def anchoring_seen(audit: pl.DataFrame) -> bool:
    """Tell whether people name what an image was mapped to more often where the form lists it first.

    Chance put it first for half of the images; an image counts as the mean of the answers to it.
    """
    from scipy.special import ndtr

    halves = compared_halves(audit)
    if halves is None:
        return False
    more = float(halves[1].mean() - halves[0].mean())
    error = sum(float(half.var(ddof=1)) / len(half) for half in halves) ** 0.5
    return more > 0 and float(ndtr(-more / max(error, 1e-9))) < ANCHORED_CHANCE


def compared_halves(audit: pl.DataFrame) -> list[NDArray[np.float64]] | None:
    """Give how often people name what each image was mapped to, where that was listed and where it stood first.

    None where the halves are too small to compare.
    """
    if not {"offered_first", "as_mapped"} <= set(audit.columns):
        return None
    told = audit.drop_nulls(["offered_first", "as_mapped"])
    each = told.group_by("image_id", "offered_first").agg(pl.col("as_mapped").cast(pl.Float64).mean())
    halves = [each.filter(offered_first=first)["as_mapped"].to_numpy() for first in (False, True)]
    return None if min(map(len, halves)) < FEWEST_COMPARED else halves


def unanchored(answers: pl.DataFrame) -> pl.DataFrame:
    """Leave out the answers about images of which the form listed first what they were mapped to."""
    return answers.filter(~pl.col("offered_first").fill_null(value=False))


def gold_of(audit: pl.DataFrame, column: str) -> pl.DataFrame:
    """Take the answers about gold items of which a level is known, or that they show nothing."""
    if "gold" not in audit.columns:
        return audit.clear()
    nothing = pl.all_horizontal(pl.col(f"known_{name}").is_null() for _, name in LEVELS)
    return audit.filter(pl.col("gold").fill_null(value=False), pl.col(f"known_{column}").is_not_null() | nothing)


def answers_about(images: pl.DataFrame, audit: pl.DataFrame, pool: str | None) -> pl.DataFrame:
    """Take the answers of a pool about some images."""
    own = audit.join(images.select("image_id"), on="image_id", how="semi")
    return own if pool is None else own.filter(pool=pool)


def gold_answers(told: pl.DataFrame, raters: pl.Series, column: str) -> pl.DataFrame:
    """Count what raters answered to gold items at a level, and how often that was right: annotator, asked, right."""
    own = labelled(gold_of(told, column), column).filter(pl.col("annotator").is_in(raters.unique().implode()))
    known = pl.col(f"known_{column}").fill_null(NOTHING) if own.height else pl.lit(NOTHING)
    rates = own.group_by("annotator").agg(asked=pl.len(), right=(pl.col("label") == known).sum()).sort("annotator")
    asked, right = int(rates["asked"].sum()), int(rates["right"].sum())
    if asked >= FEWEST_GOLD and right < LOWEST_AGREEMENT * asked:
        raise UsageError(
            "the raters are wrong too often of pictures that are known",
            expected=f"at least {LOWEST_AGREEMENT:.2f} of answers to gold items right",
            found=f"{right} of {asked}",
            hint="Brief the raters again, or ask only about what they can tell.",
        )
    return rates


def check_agreement(placed: pl.DataFrame) -> None:
    """Refuse raters of whose answers to one image too few pairs agree."""
    times = placed.group_by("image_id", "label").len()
    pairs = times.group_by("image_id").agg(same=(pl.col("len") * (pl.col("len") - 1)).sum(), people=pl.col("len").sum())
    refuse_disagreement(int(pairs["same"].sum()), int((pairs["people"] * (pairs["people"] - 1)).sum()))


def refuse_disagreement(same: int, asked: int) -> None:
    """Refuse raters of so many pairs of answers to one item, of which too few agree."""
    if same < LOWEST_AGREEMENT * asked:
        raise UsageError(
            "the raters disagree too often for their audit to correct anything",
            expected=f"at least {LOWEST_AGREEMENT:.2f} of pairs of answers that agree",
            found=f"{same / asked:.2f}",
            hint="Brief the raters again, or ask only about what they can tell.",
        )


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
    if pool is not None and pool not in pools:
        raise UsageError("no answers are of this pool of people", expected=" or ".join(pools), found=repr(pool))
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


def labelled(answers: pl.DataFrame, column: str) -> pl.DataFrame:
    """Keep the answers that say where an image belongs at a level, with the `label` they give it."""
    label = pl.when("none_of_these").then(pl.lit(NOTHING)).otherwise(column)
    return answers.with_columns(label=label).drop_nulls("label")


def placed_answers(answers: pl.DataFrame, weights: Weights) -> pl.DataFrame:
    """Keep the answers that say where an image belongs, as closely as a kernel looks."""
    level, column = closest_level(weights)
    placed = labelled(answers, column)
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
