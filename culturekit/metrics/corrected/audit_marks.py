"""What is said beside numbers that an audit corrected, and that nobody can check."""

import polars as pl

from culturekit.metrics.corrected.audit_design import Design
from culturekit.metrics.corrected.audit_gates import (
    FEWEST_GOLD,
    anchoring_seen,
    compared_halves,
    gold_of,
    labelled,
    told_apart,
    unanchored,
)

__all__ = [
    "ANCHORED",
    "DESIGN_UNKNOWN",
    "FEW_RATED",
    "MARKS",
    "NONE_UNDIVIDED",
    "ONE_RATER",
    "UNSEEN_LISTS",
    "marks_of",
    "rest_on_one",
]

MOST_UNHELD = 0.1
"""Share of answers above which it is marked that nobody knows how good their raters are, or what their forms listed
first: where a quarter of a tenth is wrong, 2.5 labels in 100 are, which moves a diversity by .01 at most."""

ANCHORED = "anchored answers left out"
"""What is said beside numbers of raters who keep to the mapped label where the form lists it first."""

UNSEEN_LISTS = "anchoring not known"
"""What is said beside numbers of people of whom nobody knows whether what an image was mapped to stood first."""

SIMULATED = "simulated"
"""The pool of raters who know what was drawn, and see no list."""

ONE_RATER, DESIGN_UNKNOWN = "one rater", "design unknown"
"""What is said beside every number that an audit corrected which allows no look at its raters, or at its draw."""

NONE_UNDIVIDED = "none not told apart"
"""What is said where people could only say none of these: what shows no culture and what is not in the list are then
taken to be alike."""

FEW_RATED = "quality of a part"
"""What is said beside products with a quality that is known of some images."""

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
    told = told_apart(audit if pool is None else audit.filter(pool=pool))
    answers = told.join(images.select("image_id"), on="image_id", how="semi")
    kept = unanchored(answers) if anchoring_seen(told) else answers
    gold = labelled(gold_of(told, column), column).group_by("annotator").len("asked")
    undivided = (answers["none_of_these"] & answers["none_means"].is_null()).any()
    return (
        [ANCHORED] * (kept.height < answers.height)
        + [UNSEEN_LISTS] * lists_unseen(kept, told)
        + [ONE_RATER] * rest_on_one(labelled(kept, column), gold)
        + [DESIGN_UNKNOWN] * (design == "unknown")
        + [NONE_UNDIVIDED] * undivided
    )


def rest_on_one(answers: pl.DataFrame, gold: pl.DataFrame) -> bool:
    """Tell whether over MOST_UNHELD of answers are of raters of whom fewer than FEWEST_GOLD can be held against others.

    Args:
        answers: image_id, annotator.
        gold: annotator, asked: how many gold items each answered.
    """
    together = answers.with_columns(together=pl.col("annotator").n_unique().over("image_id") > 1)
    raters = together.group_by("annotator").agg(said=pl.len(), held=pl.col("together").sum())
    held = pl.col("held") + pl.col("asked").fill_null(0)
    alone = raters.join(gold, on="annotator", how="left").filter(held < FEWEST_GOLD)["said"].sum()
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
