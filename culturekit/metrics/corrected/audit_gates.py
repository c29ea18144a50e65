"""Which audits carry a correction: one set of rules for all kernels. What breaks one is refused, with the reason."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.choices import NO_CULTURE, NONE_MEANS, NOT_IN_LIST
from culturekit.core.digests import digest
from culturekit.core.errors import UsageError, check_choice
from culturekit.metrics.diversity.labels import Weights

# Whether the images that people answered about are an even draw of a model's images: else they speak for a part.

Design: TypeAlias = Literal["drawn", "unknown"]
"""How the audited images were chosen: drawn evenly, which is checked, or in a way that nobody knows."""

FEWEST_ANSWERED = 0.8  # Share of the drawn images of a prompt or mapped label that is to be answered where it matters

MATTERS = 0.05
"""A prompt or mapped label matters if it has so much of the drawn images, and at least FEWEST_DRAWN of them; and if it
has these and not one was answered, which chance does not do."""

FEWEST_DRAWN = 5

REDRAWN = 1999  # Even draws that an audit is held against: one that is less even than all of them was not drawn evenly

FARTHEST = 4.0  # Standard errors by which the scores of audited images may lie above or below those of all images

LABEL = "mapped labels"  # What the country of an image is, where nothing else is said

HINT = "Ask about the images that audit_sample drew, and about all of them."


def drawing_of(sample: pl.DataFrame) -> str:
    """Name a drawing by the images that were drawn; answers to it carry the name."""
    return digest(sample["image_id"].sort().to_list())[:16]


def of_batches(sample: pl.DataFrame | None) -> bool:
    """Tell whether whole batches were drawn, not single images."""
    return sample is not None and "batch" in sample.columns and sample["batch"].count() > 0


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
    marked = drawn.with_columns(answered=pl.col("image_id").is_in(answered.implode()))
    for column, name in (("prompt_id", "prompt"), ("stratum", "mapped label")):
        parts = marked.group_by(column).agg(drawn=pl.len(), share=pl.col("answered").mean()).sort("share", column)
        much = (pl.col("drawn") >= MATTERS * drawn.height) | (pl.col("share") == 0)
        matter = parts.filter(pl.col("drawn") >= FEWEST_DRAWN, much)
        low = matter.filter(pl.col("share") < FEWEST_ANSWERED)
        if low.height or marked["answered"].sum() < FEWEST_ANSWERED * drawn.height:
            share = low["share"][0] if low.height else marked["answered"].sum() / drawn.height
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

    Images have a score where it is known how clear each case is, answers a `drawing` where the form knew it. The design
    `unknown` looks at no draw; what comes of it is to be marked.
    """
    check_choice("design", design, ("drawn", "unknown"))
    if design == "unknown":
        if sample is not None:
            raise UsageError("a sample is given, so the design is known", expected="a sample, or an unknown design")
        return
    if sample is not None:
        check_response(images, answers, sample)
        if of_batches(sample):
            return
    check_even_draw(images, answers["image_id"].unique(), label=label)


def check_even_draw(nearest: pl.DataFrame, answered: pl.Series, *, label: str = LABEL) -> None:
    """Refuse an audit that met prompts, mapped labels or clear cases far less evenly than a random draw would."""
    marked = nearest.with_columns(answered=pl.col("image_id").is_in(answered.implode()))
    rng = np.random.default_rng(0)  # of the yardstick alone: the same audit is always judged alike
    for column, name in (("prompt_id", "prompts"), ("country", label)):
        parts = marked.group_by(column).agg(images=pl.len(), met=pl.col("answered").sum()).sort(column)
        if uneven(parts["images"].to_numpy().astype(np.int64), parts["met"].to_numpy().astype(np.int64), rng):
            least = parts.with_columns(rate=pl.col("met") / pl.col("images")).sort("rate", column)
            raise not_even(name, f"{least[column][0]!r}: {least['met'][0]} of {least['images'][0]} images")
    if "score" not in marked.columns:
        return
    away = distance(marked["score"].to_numpy().astype(np.float64), marked["answered"].to_numpy())
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
    _, group, times = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(times) - (times - 1) / 2)[group]
    spread = float(ranks.std(ddof=1))
    if spread == 0:
        return 0.0
    error = spread * math.sqrt(1 / audited - 1 / n)
    return float(ranks[answered].mean() - ranks.mean()) / error


# Where things lie that people named: an answer may leave out the country of an artifact, or its continent.

WIDER = ("continent", "country")


def lone_continent(country: pl.Expr) -> pl.Expr:
    """Name the continent of a country whose continent nobody knows: none that has another country."""
    return pl.format("(the continent of {})", country)


def in_places(answers: pl.DataFrame, nearest: pl.DataFrame) -> pl.DataFrame:
    """Let answers that name an artifact or a country alone name the country and the continent of it in the matches."""
    for column, wider in (("artifact_id", "country"), ("country", "continent")):
        known = nearest.select(column, wider).drop_nulls().unique().sort(pl.all())
        lies_in = pl.col(column).replace_strict(dict(known.iter_rows()), default=None, return_dtype=pl.String)
        answers = answers.with_columns(pl.coalesce(wider, lies_in).alias(wider))
    return answers


def said_adrift(answers: pl.DataFrame) -> Mapping[str, float]:
    """Give the share of images of which an answer does not say the country, or the continent, of what it names."""
    named, images = answers.filter(~pl.col("none_of_these")), answers["image_id"].n_unique()
    return {level: named.filter(pl.col(level).is_null())["image_id"].n_unique() / images for level in WIDER}


FEWEST_AUDITED = 30  # With fewer audited images the intervals are not known to hold

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

NOTHING = "(none of these)"  # The label of a picture that shows no artifact; all such pictures are alike in that

ANCHORED_CHANCE = 0.2
"""How often raters whom nothing anchors are taken to be anchored: to leave out half of the answers costs width alone.

Raters who take over three in ten wrong labels that stand first are seen in 73 to 82 of 100 audits of four models; at a
chance of .05 in 43 to 51."""

FEWEST_COMPARED = 15  # Images of each half below which nobody can see whether raters keep to what the form lists first

LEVELS = (("artifact", "artifact_id"), ("country", "country"), ("continent", "continent"))


@dataclass(frozen=True, slots=True)
class TakenAnswers:
    """Answers that carry a correction."""

    # rows of AUDITS about a model's images, with the `label` of each on the closest level of a kernel
    answers: pl.DataFrame
    gold: pl.DataFrame  # what the raters answered to gold items on that level: annotator, asked, right

    @property
    def adrift(self) -> Mapping[str, float]:
        """Give the share of images of which an answer does not say the country, and the continent, of what it names."""
        return said_adrift(self.answers)


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

    A pool is needed only when several answered. The design `unknown` looks at no draw; what comes of it is marked.

    Raises:
        UsageError: the audit cannot carry a correction of this kernel.
    """
    in_pool = in_places(one_pool(audit, pool), nearest)
    answers = told_apart(in_pool)
    refuse_contradictions(in_pool.join(nearest.select("image_id"), on="image_id", how="semi"), nearest)
    anchored = anchoring_seen(answers)
    found = answers.join(nearest.select("image_id"), on="image_id", how="semi")
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
    gold = gold_answers(answers, placed["annotator"], closest_level(weights)[1])
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
    shown = audit.drop_nulls(["offered_first", "as_mapped"])
    each = shown.group_by("image_id", "offered_first").agg(pl.col("as_mapped").cast(pl.Float64).mean())
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
    about_images = audit.join(images.select("image_id"), on="image_id", how="semi")
    return about_images if pool is None else about_images.filter(pool=pool)


def gold_answers(answers: pl.DataFrame, raters: pl.Series, column: str) -> pl.DataFrame:
    """Count what raters answered to gold items at a level, and how often that was right: annotator, asked, right."""
    labelled_gold = labelled(gold_of(answers, column), column).filter(
        pl.col("annotator").is_in(raters.unique().implode())
    )
    known = pl.col(f"known_{column}").fill_null(NOTHING) if labelled_gold.height else pl.lit(NOTHING)
    rates = (
        labelled_gold.group_by("annotator")
        .agg(asked=pl.len(), right=(pl.col("label") == known).sum())
        .sort("annotator")
    )
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
    marked = answers.with_columns(none_means=means if len(means) == answers.height else pl.lit(None, pl.String))
    return marked.with_columns(pl.col("none_of_these") & pl.col("none_means").fill_null(NO_CULTURE).eq(NO_CULTURE))


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


# What is said beside numbers that an audit corrected, and that nobody can check.

MOST_UNHELD = 0.1
"""Share of answers above which it is marked that nobody knows how good their raters are, or what their forms listed
first: where a quarter of a tenth is wrong, 2.5 labels in 100 are, which moves a diversity by .01 at most."""

ANCHORED = "anchored answers left out"
"""What is said beside numbers of raters who keep to the mapped label where the form lists it first."""

UNSEEN_LISTS = "anchoring not known"
"""What is said beside numbers of people of whom nobody knows whether what an image was mapped to stood first."""

SIMULATED = "simulated"  # The pool of raters who know what was drawn, and see no list

ONE_RATER, DESIGN_UNKNOWN = "one rater", "design unknown"
"""What is said beside every number that an audit corrected which allows no look at its raters, or at its draw."""

NONE_UNDIVIDED = "none not told apart"
"""What is said where people could only say none of these: what shows no culture and what is not in the list are then
taken to be alike."""

FEW_RATED = "quality of a part"  # What is said beside products with a quality that is known of some images

MARKS = {
    ANCHORED: "Raters named what an image was mapped to more often where the form listed it first: answers about these "
    "images are left out of corrected scores.",
    UNSEEN_LISTS: "Nobody knows whether people were shown what images were mapped to: raters who keep to that let the "
    "mapping look too good. The form audit tells (offered_first).",
    ONE_RATER: "Corrected scores rest on one rater per image, or over a tenth of them do, whom neither ten gold items "
    "nor others' answers hold: errors cannot be seen, and no interval has them.",
    FEW_RATED: "Corrected qVS takes images without a known quality, over a fifth, to be like the others.",
    DESIGN_UNKNOWN: "Nobody knows how the audited images were chosen: intervals of corrected scores promise nothing.",
    NONE_UNDIVIDED: "People could only say none of these: corrected scores take images of no culture, of cultures that "
    "are not in the list, and those nobody could place to be alike. The form audit tells them apart.",
}
"""What marks of corrected scores (`params.marked`) mean."""


def marks_of(images: pl.DataFrame, audit: pl.DataFrame, pool: str | None, design: Design, column: str) -> list[str]:
    """Say what is to stand beside numbers that the audit of some images corrects at a level, if nobody can check it.

    That is a design that is not known, raters of whom hardly an answer can be held against another's or a gold item, or
    forms of which nobody knows what they listed first.
    """
    marked = told_apart(audit if pool is None else audit.filter(pool=pool))
    answers = marked.join(images.select("image_id"), on="image_id", how="semi")
    kept = unanchored(answers) if anchoring_seen(marked) else answers
    gold = labelled(gold_of(marked, column), column).group_by("annotator").len("asked")
    undivided = (answers["none_of_these"] & answers["none_means"].is_null()).any()
    return (
        [ANCHORED] * (kept.height < answers.height)
        + [UNSEEN_LISTS] * lists_unseen(kept, marked)
        + [ONE_RATER] * rest_on_one(labelled(kept, column), gold)
        + [DESIGN_UNKNOWN] * (design == "unknown")
        + [NONE_UNDIVIDED] * undivided
    )


def rest_on_one(answers: pl.DataFrame, gold: pl.DataFrame) -> bool:
    """Tell whether over MOST_UNHELD of answers are by raters with fewer than FEWEST_GOLD answers that others check.

    Args:
        answers: image_id, annotator.
        gold: annotator, asked: how many gold items each answered.
    """
    together = answers.with_columns(together=pl.col("annotator").n_unique().over("image_id") > 1)
    raters = together.group_by("annotator").agg(answered=pl.len(), held=pl.col("together").sum())
    held = pl.col("held") + pl.col("asked").fill_null(0)
    alone = raters.join(gold, on="annotator", how="left").filter(held < FEWEST_GOLD)["answered"].sum()
    return bool(alone > MOST_UNHELD * answers.height)


def lists_unseen(answers: pl.DataFrame, audit: pl.DataFrame) -> bool:
    """Tell whether of over MOST_UNHELD of people's answers nobody knows if a list anchored them.

    That is where nobody knows what stood first, or it was the mapped label and there is too little to compare with.
    """
    people = answers.filter(pl.col("pool") != SIMULATED)
    if people.is_empty() or "offered_first" not in people.columns:
        return people.height > 0
    unseen = pl.col("offered_first").is_null() | (pl.col("offered_first") & (compared_halves(audit) is None))
    return bool(people.select(unseen.mean() > MOST_UNHELD).item())


# What nobody could tell: the answers as they would be if all such images were like most, or all different.

Supposed: TypeAlias = Literal["if_alike", "if_different"]
SUPPOSED: tuple[Supposed, ...] = ("if_alike", "if_different")
"""The two ends between which the images lie that nobody could tell."""

MOST_LABELS = 20
"""With so many labels of their own images are different enough: two of them hardly ever meet in a batch."""

LABELS = ("artifact_id", "country", "continent")  # What somebody named of such an image stays


def answers_if(supposed: Supposed, answers: pl.DataFrame, weights: Weights) -> pl.DataFrame | None:
    """Let images of which no answer names the level that a kernel looks at show what most show, or each a thing apart.

    None where all images are placed.
    """
    column = closest_level(weights)[1]
    marked = told_apart(answers).with_columns(placed=pl.col("none_of_these") | pl.col(column).is_not_null())
    untold, placed = marked.filter(~pl.col("placed").any().over("image_id")), marked.filter("placed")
    if untold.is_empty() or placed.is_empty():
        return None
    if supposed == "if_alike":
        levels = ("none_of_these", *LABELS[LABELS.index(column) :])
        most = placed.group_by(levels).len().sort("len", *levels, descending=[True] + [False] * len(levels)).row(0)
        labels = dict.fromkeys(LABELS) | dict(zip(levels, most, strict=False))
        named = untold.with_columns(pl.lit(label, marked.schema[level]).alias(level) for level, label in labels.items())
    else:
        known = {level: pl.col(level).max().over("image_id") for level in LABELS}
        known["continent"] = pl.coalesce(known["continent"], lone_continent(known["country"]))
        number = pl.col("image_id").rank("dense") % MOST_LABELS
        unclear = pl.format("(cannot tell {}) {}", number, known["continent"].fill_null(""))
        apart = (known[level].fill_null(unclear).alias(level) for level in LABELS)
        named = untold.with_columns(*apart, none_of_these=pl.lit(value=False))
    return pl.concat([placed, named]).with_columns(none_means=pl.lit(None, pl.String)).drop("placed")
