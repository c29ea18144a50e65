"""What an audit says by itself: how often the mapping is right, how much shows nothing, and which countries are shown.

Every audited image was drawn with the same chance within its model and concept, so shares of them, weighed by the
images of each concept, are shares of all images.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.choices import CONFIDENCE
from culturekit.core.declared import Seed, Typed
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files
from culturekit.core.schemas import AUDIT_SAMPLE, MATCHES
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import table_outcome
from culturekit.metrics.corrected.audit_gates import Design, audited_answers, marks_of
from culturekit.metrics.corrected.audit_sampling import Drawing, Per, audit_sample
from culturekit.metrics.corrected.audited_counts import audited_rate, audited_share
from culturekit.metrics.corrected.looks import Goal
from culturekit.metrics.diversity.labels import Weights
from culturekit.metrics.statistics.intervals import Interval
from culturekit.scores.answers import Refusals
from culturekit.scores.catalog import describe
from culturekit.scores.corrected import answers_about_others, checked_answers
from culturekit.scores.diversity import Distinct
from culturekit.scores.family import Confidence, Row, Scored, scored, scores, statistic_row
from culturekit.scores.inputs import tables_of_matches
from culturekit.scores.qvs import ONCE, answers_of, samples_of

# Each level with the column that names it, and the kernel whose rules the audit of it keeps
LEVELS: Mapping[str, tuple[str, Weights]] = {
    "continent": ("continent", (1.0, 0.0, 0.0)),
    "country": ("country", (0.0, 1.0, 0.0)),
    "artifact": ("artifact_id", (0.0, 0.0, 1.0)),
}

# How the reasons begin for which an audit says nothing of a level
REFUSED = "levels of models and concepts without a figure: "


_WILSON = "Wilson 1927; limits over concepts: Zou and Donner 2008"

# Describe a share of images; concepts are weighed by their images
_share = partial(describe, inputs=("matches", "audits"))

MAPPING_ACCURACY = _share(
    "mapping_accuracy",
    "How often the mapping is right",
    "share of audited images whose nearest artifact is, at params.level, what people saw; one that shows nothing is "
    "never right; concepts weighed by their images",
    paper=_WILSON,
    pitfalls=(
        "It speaks of this model's images: another model's may be easier, or harder.",
        "An accurate mapping can rank models wrongly, where it errs towards few countries.",
    ),
    direction="higher",
)

SHARE_WITHOUT_CULTURE = _share(
    "share_without_culture",
    "Share of images without culture",
    "share of audited images in which people saw no artifact of any culture; concepts weighed by their images",
    paper=_WILSON,
    pitfalls=("People recognise what they know: nothing recognised is not nothing shown.",),
    direction="lower",
)

SHOWN_SHARE = _share(
    "shown_share",
    "Share of images that show a country",
    "mean of (said - w mapped) over audited images + w share of all images mapped to it, w = clip(cov / var, 0, 1); "
    "concepts weighed by their images",
    paper="Angelopoulos, Duchi and Zrnic 2023 (PPI++)",
    pitfalls=("Each country is estimated by itself: the shares need not add up to 1.",),
)


@dataclass(frozen=True, slots=True)
class AuditedOptions:
    """Whose answers count, how the images were chosen, how sure intervals are, and under which name scores stand."""

    pool: Annotated[str | None, Field(description="Whose answers count, when several pools answered.")] = None
    design: Annotated[
        Design, Field(description="Audited images were drawn evenly, which is checked; unknown takes others.")
    ] = "drawn"
    confidence: Confidence = CONFIDENCE
    benchmark: str = "cube"
    distinct: Distinct = False


@scores(
    "audited", MAPPING_ACCURACY, SHARE_WITHOUT_CULTURE, SHOWN_SHARE, version=6, folder="audited",
    example="--matches matches/matches.parquet --audits audits.parquet --out audited",
)  # fmt: skip
def audited(
    matches: Annotated[Files, Field(description="Table that `index map` wrote."), ONCE],
    audits: Annotated[Files, Field(description="What people say that some of the images show."), ONCE],
    sample: Annotated[
        Files, Field(description="What `score audit-sample` drew: answers about other images are then refused.")
    ] = Files(),
    *,
    options: AuditedOptions = AuditedOptions(),
) -> Scored:
    """Say how often the mapping is right, by people.

    What share of images shows no culture, and what share shows each country.
    """
    mapped = pl.concat(tables_of_matches(matches.places))
    answers, left_out = answers_of(audits, distinct=options.distinct)
    answer = score_audited(mapped, answers, samples_of(sample), options=options)
    return replace(answer, left_out={**left_out, **answer.left_out})


def score_audited(
    matches: pl.DataFrame,
    audits: pl.DataFrame,
    sample: pl.DataFrame | None = None,
    *,
    options: AuditedOptions = AuditedOptions(),
) -> Scored:
    """Score what people saw: by model and concept, and over all concepts of a model.

    Only the nearest match of an image counts; of several answers about an image each counts its part.
    """
    rows: list[Row] = []
    reasons = Refusals()
    nearest = matches.filter(pl.col("rank") == 1).sort("model", "concept", "image_id")
    audits = checked_answers(audits, nearest)
    for images in nearest.partition_by("model", maintain_order=True):
        concepts = images.partition_by("concept", maintain_order=True)
        for level in LEVELS:
            parts = []
            for part in concepts:
                try:
                    parts.append(seen_images(part, audits, sample, level, options))
                except UsageError as error:
                    reasons.note(error, part["model"][0], part["concept"][0], level)
            for one in parts:
                rows += rows_of([one], level, options, audits, concept=one["concept"][0])
            if len(parts) == len(concepts) > 1:
                rows += rows_of(parts, level, options, audits, concept=None)
    left_out = {**reasons.left_out(REFUSED), **answers_about_others(audits, nearest)}
    if not rows:
        counted = "{} levels of models and concepts".format
        raise reasons.refusal("no audit says what images show", counted).counting(left_out)
    return scored(rows, left_out=left_out)


def seen_images(
    images: pl.DataFrame, audits: pl.DataFrame, sample: pl.DataFrame | None, level: str, options: AuditedOptions
) -> pl.DataFrame:
    """Put beside each image of a model and concept the labels that people gave it, empty where nobody looked.

    `found` is a list of what was answered, null for a picture of nothing.
    """
    column, weights = LEVELS[level]
    taken = audited_answers(images, audits, weights=weights, pool=options.pool, sample=sample, design=options.design)
    label = pl.when(~pl.col("none_of_these")).then(pl.col(column))
    nothing = pl.col("none_of_these").cast(pl.Float64).mean()
    found = taken.answers.group_by("image_id").agg(found=label, nothing=nothing)
    mapped = images.select("image_id", "model", "concept", mapped=pl.col(column))
    return mapped.join(found, on="image_id", how="left", maintain_order="left")


def rows_of(
    parts: Sequence[pl.DataFrame], level: str, options: AuditedOptions, audits: pl.DataFrame, *, concept: str | None
) -> Iterator[Row]:
    """Write what the audit of some concepts says at one level."""
    sizes = [part.height for part in parts]
    looked = [part.drop_nulls("nothing") for part in parts]
    beside = {"level": level, "audited": sum(part.height for part in looked), "confidence": options.confidence}
    how = options.pool, options.design, LEVELS[level][0]
    marks = {mark for part in parts for mark in marks_of(part, audits, *how)}
    beside |= {"marked": sorted(marks)} if marks else {}

    def row(metric: str, answer: Interval, label: str | None = None, **more: object) -> Row:
        stated = {"model": parts[0]["model"][0], "benchmark": options.benchmark, "concept": concept, "group": label}
        return statistic_row(metric, answer=answer, params={**beside, **more}, **stated)

    right = [votes(part, part["mapped"]) for part in looked]
    yield row("mapping_accuracy", audited_rate(right, sizes, confidence=options.confidence))
    if level != "country":
        return
    nothing = [part["nothing"].to_numpy() for part in looked]
    yield row("share_without_culture", audited_rate(nothing, sizes, confidence=options.confidence))
    labels = {label for part in parts for label in part["mapped"].drop_nulls()}
    labels |= {label for part in looked for label in part["found"].explode().drop_nulls()}
    for label in sorted(labels):
        answered = [votes(part, pl.Series([label] * part.height, dtype=pl.String)) for part in looked]
        seen = [(part["mapped"] == label).fill_null(value=False).cast(pl.Float64).to_numpy() for part in looked]
        everywhere = [(part["mapped"] == label).sum() / part.height for part in parts]
        answer = audited_share(answered, seen, everywhere, sizes, confidence=options.confidence)
        yield row("shown_share", answer, label, labels="corrected")


def votes(part: pl.DataFrame, labels: pl.Series) -> NDArray[np.float64]:
    """Give the part of each image's answers that name a label, float64 (n_images,)."""
    pairs = zip(part["found"].to_list(), labels.to_list(), strict=True)
    return np.array([sum(one is not None and one == label for one in found) / len(found) for found, label in pairs])


# From matches to the images that people should look at, so that their answers correct the diversity.


def _without_concepts(stage: Stage, given: Mapping[str, Any]) -> Stage:
    """Leave out what a sample of single images of each concept is known without."""
    usual = {"per": "concept", "drawing": "images", "looks": (), "goal": "order"}
    known = {name: value for name, value in stage.options.items() if name not in usual or value != usual[name]}
    return replace(stage, options=known)


@scores(
    "audit-sample", kind="audit-sample", version=3, folder="audit-sample", packages=("numpy", "polars"),
    example="--matches matches/matches.parquet --n 150 --out to-audit", seeds={"sample": "seed"},
    amend=_without_concepts,
)  # fmt: skip
def draw_audit_sample(
    work: Work,
    matches: Annotated[Files, Field(description="Table that `index map` wrote; repeatable.")],
    *,
    images: Annotated[
        int, Field(ge=10, description="Images to draw of each model; each of its concepts gets 30 or more."), Typed("n")
    ] = 150,
    per: Annotated[
        Per, Field(description="Of what so many are drawn: of a model in all, or of each concept of a model.")
    ] = "model",
    drawing: Annotated[
        Drawing,
        Field(
            description="Single images, or whole batches of 8, which correct every kernel and order with any number "
            "of prompts; each concept then gets 12 batches or more."
        ),
    ] = "images",
    looks: Annotated[
        Sequence[int],
        Field(
            description="Images of a model after which to look whether models are told apart, 50 or more; repeatable. "
            "The last look is at all images. [none: the answers are looked at once]"
        ),
        Typed("look"),
    ] = (),
    goal: Annotated[
        Goal, Field(description="What looks are for: every pair in order, or the one model that shows most.")
    ] = "order",
    seed: Seed = 0,
) -> Outcome:
    """Draw the images whose audit corrects the diversity.

    Spread evenly over what they were mapped to.
    """
    rng = np.random.default_rng(seed)
    planned = tuple(sorted({*looks, images})) if looks else ()
    sample = audit_sample(
        matches.together(MATCHES), n=images, rng=rng, per=per, drawing=drawing, looks=planned, goal=goal
    )
    return table_outcome(work, AUDIT_SAMPLE, sample)
