"""Which answers of people put a judge right: the rules of audits, for items of any kind; what breaks one is refused."""

import math

import numpy as np
import polars as pl

from culturekit.errors import UsageError
from culturekit.metrics.corrected.audit_design import (
    FARTHEST,
    Design,
    check_design,
    check_response,
    distance,
    not_even,
)
from culturekit.metrics.corrected.audit_gates import FEWEST_AUDITED, refuse_disagreement
from culturekit.metrics.corrected.audit_marks import DESIGN_UNKNOWN, ONE_RATER, rest_on_one

__all__ = ["FEWEST_OTHERWISE", "MOST_GRADES", "marked_items", "marks_of_answers"]

FEWEST_OTHERWISE = 5
"""Items of which people say something else than of most: with fewer the limits of a mean are not known to hold."""

MOST_GRADES = 11
"""Grades of the finest scale that people are asked to rate on."""

LABEL = "countries asked for"


def marked_items(
    items: pl.DataFrame,
    answers: pl.DataFrame,
    *,
    sample: pl.DataFrame | None,
    design: Design = "drawn",
    step: float | None = None,
    span: float = math.inf,
) -> pl.DataFrame:
    """Put beside each item what people say of it on average, and the chance with which it was drawn for them.

    Args:
        items: image_id, prompt_id, country, and `value`, what the judge says.
        answers: image_id, annotator, value: of one pool; those about other items are not looked at.
        sample: AUDIT_SAMPLE: which items people were asked about, where that is known.
        design: `unknown` looks at no draw; what comes of it is to be marked.
        step: from one grade of the scale to the next, where it is known.
        span: from the lowest to the highest value that there can be, where there are such.

    Returns:
        The items in their order with `people` and `chance`, null where nobody was asked; without a sample all chances
        are alike.

    Raises:
        UsageError: the answers cannot put the judge right.
    """
    own = answers.join(items.select("image_id"), on="image_id", how="semi")
    said = own.group_by("image_id").agg(people=pl.col("value").sort().mean())
    if said.height < FEWEST_AUDITED:
        raise UsageError(
            "people marked too few items", expected=f"at least {FEWEST_AUDITED}, better 150", found=str(said.height)
        )
    refuse_disagreement(*agreeing_pairs(own, step, span))
    refuse_one_sided(said["people"])
    told = items.join(said, on="image_id", how="left", maintain_order="left")
    chances = None if sample is None else chances_of(items, sample)
    if sample is None or chances is None or chances["chance"].n_unique() == 1:
        check_design(items.drop("value"), own, sample, design, label=LABEL)
        if design == "drawn":
            refuse_favoured(told)
    else:
        check_response(items, own, sample)
    if chances is None:
        return told.with_columns(chance=pl.when(pl.col("people").is_not_null()).then(1.0))
    return told.join(chances, on="image_id", how="left", maintain_order="left")


def marks_of_answers(answers: pl.DataFrame, design: Design) -> list[str]:
    """Say what is to stand beside numbers that nobody can check: one rater an item, a design that is not known."""
    no_gold = pl.DataFrame(schema={"annotator": pl.String, "asked": pl.UInt32})
    return [ONE_RATER] * rest_on_one(answers, no_gold) + [DESIGN_UNKNOWN] * (design == "unknown")


def agreeing_pairs(answers: pl.DataFrame, step: float | None = None, span: float = math.inf) -> tuple[int, int]:
    """Count the pairs of answers to one item that agree, and all.

    Ratings on a scale agree where they are the same or one step apart: people who see the same differ by that much.
    What has more values than a scale, such as a share of things that are ticked, has steps of a quarter of the range
    that it can have, of that which was met where there are no ends: items that are alike are no disagreement. Without
    a known step it is the smallest that was met, and two answers are yes and no.
    """
    known = np.unique(answers["value"].to_numpy())
    if step is None:
        step = float(np.diff(known).min()) if len(known) > 2 else 0.0
        if len(known) > MOST_GRADES:
            step = (span if math.isfinite(span) else float(known[-1] - known[0])) / 4
    pairs = answers.join(answers, on="image_id", suffix="_b").filter(pl.col("annotator") < pl.col("annotator_b"))
    return int(((pairs["value"] - pairs["value_b"]).abs() <= step * (1 + 1e-9)).sum()), pairs.height


def refuse_one_sided(said: pl.Series) -> None:
    """Refuse answers that are nearly all the same: how often another would come is then not known."""
    _, counts = np.unique(said.to_numpy(), return_counts=True)
    otherwise = len(said) - int(counts.max())
    if otherwise < FEWEST_OTHERWISE:
        raise UsageError(
            "people say the same of nearly all items",
            expected=f"at least {FEWEST_OTHERWISE} of which they say something else",
            found=f"{otherwise} of {len(said)}",
            hint="Ask about more items.",
        )


def refuse_favoured(told: pl.DataFrame) -> None:
    """Refuse answers about items that the judge rates far higher, or lower, than the others."""
    away = distance(told["value"].to_numpy().astype(np.float64), told["people"].is_not_null().to_numpy())
    if abs(away) > FARTHEST:
        raise not_even(
            "what the judge says", f"items that it rates {'higher' if away > 0 else 'lower'} than the others"
        )


def chances_of(items: pl.DataFrame, sample: pl.DataFrame) -> pl.DataFrame:
    """Give the chance with which each drawn item was drawn: image_id, chance.

    Where prompts were drawn and one image of each is shown, `chance` is that of the prompt; its images share it. A
    sample tells which of both it is: what is drawn stands, each for as many as its chance says, for all prompts or
    for all items.
    """
    drawn = sample.select("image_id", "chance").join(items.select("image_id", "prompt_id"), on="image_id")
    if drawn.is_empty():
        raise UsageError("no drawn item is among the values", expected="the sample that was drawn from these items")
    sizes = items.group_by("prompt_id").agg(images=pl.len())
    stand, prompts = float((1 / drawn["chance"]).sum()), sizes.height
    of_prompts = abs(np.log(stand / prompts)) < abs(np.log(stand / items.height))
    shared = drawn.join(sizes, on="prompt_id", nulls_equal=True, maintain_order="left")
    per = pl.col("images") if of_prompts else pl.lit(1)
    return shared.select("image_id", chance=pl.col("chance") / per)
