"""From human ratings and choices to tables per group, criterion and pool."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import Field

from culturekit.core.choices import CONFIDENCE
from culturekit.core.declared import Typed
from culturekit.core.errors import NothingScored, UsageError, check_choice
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import IMAGES
from culturekit.core.stage import Stage, Work
from culturekit.metrics.linguistic.human_tables import item_scores, likert_table
from culturekit.scores.answers import Ends, careful_answers, check_ends, check_on_scale, read_answers, whose
from culturekit.scores.catalog import describe
from culturekit.scores.diversity import Distinct
from culturekit.scores.family import (
    Confidence,
    Row,
    Scope,
    Scored,
    mean_rows,
    plain_row,
    prompted_images,
    scored,
    scores,
)
from culturekit.scores.inputs import asked

NO_MODEL = "items"  # What stands in the column model where nothing says which model made an item


_PAPER = "Linguistic and Cultural Biases in Text-to-Image Generative Models (Cheung, Couture and Zhou 2023)"
_INPUTS = (
    "annotations: item_id, annotator, annotator_region, scheme, criterion, value, choice",
    "images: image_id, path, prompt_id, model",
    "prompts: prompt_id, group, and the columns that pair prompts",
)
_BY_PROMPT = (
    "The interval is t over prompts where there are at least 20, and speaks about other prompts; with fewer it holds "
    "the prompts fixed and is t over the images of each (params.target)."
)

RATING_MEAN = describe(
    "rating_mean",
    "Mean human rating",
    "mean over prompts, of their items' mean, of the mean of an item's annotators in one pool (params.pool), per "
    "criterion (params.criterion); where each prompt has as many items it is the mean over items",
    paper=f"{_PAPER}, equation 4 and table 4",
    inputs=_INPUTS,
    pitfalls=(
        "Pools are never merged. rating_sd is the deviation over items; rating_within, that of annotators of one "
        "item, stands apart.",
        "Which direction is better, the criterion says.",
        _BY_PROMPT,
    ),
    low=float("-inf"),
    high=float("inf"),
    unit="rating",
)

RATING_SD = describe(
    "rating_sd",
    "Deviation of human ratings over items",
    "sample standard deviation (ddof = 1) over items of the mean of their annotators in one pool",
    paper=f"{_PAPER}, equation 4 and table 4",
    inputs=RATING_MEAN.inputs,
    pitfalls=("It says how far items lie apart, not how certain their mean is.",),
    high=float("inf"),
    unit="rating",
)

RATING_WITHIN = describe(
    "rating_within",
    "Deviation of human ratings within items",
    "mean over items with two annotators or more of the sample standard deviation of their ratings in one pool",
    paper=f"{_PAPER}, section 3.4.1 (it has one annotator per picture, and so none of these)",
    inputs=RATING_MEAN.inputs,
    pitfalls=("It mixes what annotators disagree on with how they use the scale.",),
    high=float("inf"),
    unit="rating",
)

CHOICE_RATE = describe(
    "choice_rate",
    "Share of an answer among human choices",
    "mean over prompts, of their items' mean, of the share of an item's annotators in one pool that choose "
    "params.choice",
    paper=f"{_PAPER}, section 3.1.2 (images correct)",
    inputs=_INPUTS,
    pitfalls=("Pools are never merged.", _BY_PROMPT),
)


@dataclass(frozen=True, slots=True)
class RatingOptions:
    """What to score, and how."""

    scheme: Annotated[str | None, Field(description="Only answers to this form. [all]")] = None
    confidence: Confidence = CONFIDENCE
    lowest: Annotated[
        float | None, Field(description="The lowest rating that people could give: others are refused. [the form's]")
    ] = None
    highest: Annotated[
        float | None, Field(description="The highest rating that they could give: others are refused. [the form's]")
    ] = None

    def __post_init__(self) -> None:
        """Refuse a scale with one end, and one that is upside down."""
        check_ends(self.ends)

    @property
    def ends(self) -> Ends:
        """The stated scale."""
        return self.lowest, self.highest


def _without_scale(stage: Stage, given: Mapping[str, Any]) -> Stage:
    """Leave out a scale that nobody stated: finished scores are known without it."""
    unstated = ("lowest", "highest") if given["options"].lowest is None else ()
    return replace(stage, options={name: value for name, value in stage.options.items() if name not in unstated})


@scores(
    "ratings", CHOICE_RATE, RATING_MEAN, RATING_SD, RATING_WITHIN, version=5, amend=_without_scale,
    example="--annotations annotations/annotations.parquet --out scores",
)  # fmt: skip
def ratings(
    work: Work,
    annotations: Annotated[Path, Field(description="What people answered.")],
    images: Annotated[
        Numbered, Field(description="Table of the images rated: the model of each; repeatable.")
    ] = Numbered(),
    prompts: Annotated[Path | None, Field(description="Their prompts: the group of each."), Typed(needs="images")] = (
        None
    ),
    *,
    distinct: Distinct = False,
    options: RatingOptions = RatingOptions(),
) -> Scored:
    """Score human ratings and choices.

    Means with deviations over items, per pool, criterion and group.
    """
    return score_ratings(
        read_answers(annotations, stated=options.ends, distinct=distinct),
        images.together(IMAGES) if images else None,
        None if prompts is None else asked(prompts, work.scratch),
        options=options,
    )


def score_ratings(
    annotations: pl.DataFrame,
    images: pl.DataFrame | None = None,
    prompts: pl.DataFrame | None = None,
    *,
    options: RatingOptions,
) -> Scored:
    """Score mean ratings, and the shares of choices, per criterion and pool; pools are never merged.

    Without images items have no model, and without prompts no group.
    """
    left_out: Counter[str] = Counter()
    table = careful_answers(annotations, left_out)
    if prompts is not None and images is None:
        raise UsageError("prompts say nothing without the images of them", expected="--images, beside --prompts")
    if options.scheme is not None:
        check_choice("scheme", options.scheme, table["scheme"].unique().sort().to_list() or [options.scheme])
        table = table.filter(scheme=options.scheme)
    check_on_scale(table, options.ends)
    named = labelled(table, images, prompts, left_out)
    rated = named.filter(pl.col("value").is_finite().fill_null(value=False))
    chosen = named.filter(pl.col("value").is_null() & pl.col("choice").is_not_null())
    left_out["answers with neither a value nor a choice"] += named.height - rated.height - chosen.height
    if not rated.height and not chosen.height:
        raise NothingScored(
            "nobody answered anything",
            expected="values or choices" + ("" if images is None else ", of items among the images"),
            found=", ".join(
                [f"{annotations.height:,} annotations", *(f"{n:,} {why}" for why, n in left_out.items() if n)]
            ),
        ).counting(left_out)
    rows, values = [], []
    for row, below in [*rating_rows(rated, options), *choice_rows(chosen, options)]:
        rows.append(row)
        values += below
    return scored(rows, values, left_out=left_out)


def labelled(
    table: pl.DataFrame, images: pl.DataFrame | None, prompts: pl.DataFrame | None, left_out: Counter[str]
) -> pl.DataFrame:
    """Add model, group and prompt_id to annotations; items that are no known image are left out."""
    if images is None:
        nothing = pl.lit(None, pl.String)
        return table.with_columns(model=pl.lit(NO_MODEL), group=nothing, prompt_id=nothing)
    known = prompted_images(images, prompts, left_out)
    found = table.join(known, left_on="item_id", right_on="image_id", how="inner")
    left_out["annotations of no known image"] += table.height - found.height
    return found


def rating_rows(rated: pl.DataFrame, options: RatingOptions) -> Iterator[tuple[Row, list[pl.DataFrame]]]:
    """Make the mean rating of each cell of the table, and its deviations over items and within them."""
    if not rated.height:
        return
    keys, items = item_scores(rated)
    prompts = rated.select("item_id", "prompt_id").unique()
    for cell in likert_table(rated).iter_rows(named=True):
        part = items.filter([pl.col(key).eq_missing(cell[key]) for key in keys]).join(prompts, on="item_id")
        params = {"criterion": cell["criterion"], **whose(cell["pool"])}
        scope = Scope("rating_mean", cell["model"], cell["scheme"], cell["group"])
        scores = part.select("prompt_id", item="item_id", value="score")
        yield mean_rows(scores, scope, params, confidence=options.confidence)
        for name, metric in (("sd", "rating_sd"), ("within", "rating_within")):
            if cell[name] is not None:
                yield plain_row(replace(scope, metric=metric), cell[name], cell["items"], params), []


def choice_rows(chosen: pl.DataFrame, options: RatingOptions) -> Iterator[tuple[Row, list[pl.DataFrame]]]:
    """Make the rate of each choice: of an item's annotators first, then over items."""
    keys = ["scheme", "criterion", "annotator_region", "model", "group"]
    for cell in chosen.sort(*keys, "item_id", nulls_last=True).partition_by(keys, maintain_order=True):
        head = cell.row(0, named=True)
        for choice in sorted(cell["choice"].unique()):
            share = (pl.col("choice") == choice).cast(pl.Float64).mean()
            items = cell.group_by("item_id", "prompt_id").agg(value=share).rename({"item_id": "item"})
            yield mean_rows(
                items,
                Scope("choice_rate", head["model"], head["scheme"], head["group"]),
                {"criterion": head["criterion"], **whose(head["annotator_region"]), "choice": choice},
                confidence=options.confidence,
            )
