"""What people mark and rate in images of `cultivate`, and the scores and ratings that follow from it."""

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

from culturekit.core.choices import ANSWERED
from culturekit.core.declared import staged
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files, Numbered
from culturekit.core.schemas import (
    ANNOTATIONS,
    AUDIT_SAMPLE,
    DESCRIPTORS,
    IMAGES,
    JUDGMENTS,
    PROMPTS,
    SCENE_ITEMS,
    SCORES,
    VALUES,
)
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, table_outcome, write_table
from culturekit.kg.countries import countries
from culturekit.metrics.ahead.descriptor_scores import faithfulness
from culturekit.metrics.ahead.matching import DIMENSIONS, dimension_name, normalise_phrase
from culturekit.metrics.corrected.audit_gates import refuse_disagreement
from culturekit.recipes.cultivate.cells import EXTRACT, compare_images, described_images
from culturekit.recipes.cultivate.scores import PhraseVectors, how_scored, image_scores
from culturekit.scores.answers import CARELESS, careful_answers

# Items: the phrases of a prompt that people tick.

ARTICLE = "^(?:a|an|the|some) "
"""What phrases may begin with that are the same to people, who are to tick each thing once."""


@staged("scene-items", "items", version=2)
def scene_items_stage(work: Work, samples: Files, prompts: Path, descriptors: Path, extracted: Numbered) -> Outcome:
    """List what people are to mark about each drawn image.

    These are the references of its prompt, and every phrase extracted from any image of it: what one extractor
    overlooked in an image, it or another saw elsewhere.
    """
    phrases = extracted_phrases(extracted.together(JUDGMENTS))
    extra = phrases.select("prompt_id", "dimension", token="item").unique().sort(pl.all())
    references = read_table(descriptors, DESCRIPTORS).select("prompt_id", "dimension", "token")
    table = read_table(prompts, PROMPTS).drop_nulls("country")
    activity = "activity" if "activity" in table.columns else "text"
    lists = _offered_once(references, extra).sort("prompt_id", "token", "dimension")
    lists = lists.group_by("prompt_id", maintain_order=True).agg(descriptors="token", dimensions="dimension")
    names = {code: each.name for code, each in countries().items()}
    drawn = samples.together(AUDIT_SAMPLE)
    drawn = drawn.join(table.select("prompt_id", "country", "group", activity=activity), on="prompt_id")
    rows = drawn.join(lists, on="prompt_id").with_columns(
        item_id="image_id", country_name=pl.col("country").replace_strict(names, default=pl.col("country"))
    )
    write_table(work.out, SCENE_ITEMS, rows.select(list(SCENE_ITEMS.schema)))
    return Outcome({"scene_items": rows.height, "phrases": int(rows["descriptors"].list.len().sum())})


def extracted_phrases(judgments: pl.DataFrame) -> pl.DataFrame:
    """Keep the phrases that were extracted."""
    return judgments.filter(task=EXTRACT).filter(pl.col("outcome").is_in(ANSWERED), pl.col("item") != "")


def _offered_once(references: pl.DataFrame, extra: pl.DataFrame) -> pl.DataFrame:
    """Spell each phrase of a prompt one way, in every dimension that asks for it, else in the first it was found in."""
    normalised = pl.col("token").map_elements(normalise_phrase, return_dtype=pl.String)
    references, extra = (
        each.with_columns(token=normalised).with_columns(bare=pl.col("token").str.replace(ARTICLE, ""))
        for each in (references, extra)
    )
    more = extra.join(references, on=["prompt_id", "bare"], how="anti")
    more = more.unique(["prompt_id", "bare"], keep="first", maintain_order=True)
    every = pl.concat([references, more]).with_columns(token=pl.col("token").first().over("prompt_id", "bare"))
    return every.unique(["prompt_id", "bare", "dimension"], keep="first", maintain_order=True)


# Marks: ALIGN, HAL and FAITH of each image by what people of its country tick.

MARKED = {"align": "align_marked", "hal": "hal_marked", "faith": "faith_marked"}
"""What follows from the phrases that people tick, by the metric that it corrects; their rating is a part of FAITH."""

SCALE = (1.0, 5.0)  # The ends of the form's scales, on which people rate what a metric says from 0 to 1

PEOPLE, OTHER, HALF = "people", "other", 0.5
SHOWN, RELEVANT, REQUIRED = "shown", "relevant", "faith"


@staged("scene-marks", "marks", version=4)
def marks_stage(
    work: Work, annotations: Path, items: Path, descriptors: Path, phrases: PhraseVectors, scores: Path
) -> Outcome:
    """Score ALIGN and HAL of each marked image by what each person ticks, at the threshold of scores.

    Written are people's ratings with three more criteria, from 0 to 1: those of MARKED. An image shows what most
    careful people of its country tick. Each of them stands for it, so agreement is checked here, tick by tick.
    """
    tau, aggregate = how_scored(scores)
    table, about = read_table(annotations, ANNOTATIONS), read_table(items, SCENE_ITEMS)
    at_home = table.filter("in_region")
    if at_home.is_empty():
        raise UsageError("nobody of the country of an image answered", where=str(annotations),
                         found=f"{table.height:,} answers of people of other countries")  # fmt: skip
    careful = careful_answers(at_home)
    ticked = _ticks(careful, about, SHOWN)
    refuse_disagreement(*_agreeing(ticked))
    references = read_table(descriptors, DESCRIPTORS)
    marked = about.join(ticked, on="item_id", how="semi")
    left_out = Counter({
        "answers of people of other countries": table.height - at_home.height,
        CARELESS: at_home.height - careful.height,
    })  # fmt: skip
    images = marked.select("image_id", "model", "prompt_id", "country", repeat=pl.lit(None, pl.UInt16)).sort("image_id")
    judgments = _as_judgments(ticked, marked, left_out)
    found = described_images(images, references, judgments, has=DIMENSIONS, left_out=left_out)
    vectors, ids = phrases.vectors()
    counted = compare_images(found, np.asarray(vectors), ids).counted(tau)
    unlisted = _unlisted(careful, ticked, left_out)  # predictions, too, and such that no reference asks for
    joined = counted.join(unlisted, on=["image_id", "dimension"], how="left", maintain_order="left")
    more = pl.col("others").fill_null(0)
    counted = joined.with_columns(n_pred=pl.col("n_pred") + more, wrong=pl.col("wrong") + more).drop("others")
    criteria = _criteria(careful, image_scores(counted, aggregate).rename({"image_id": "item_id"}))
    ratings = careful.filter(~pl.col("criterion").str.contains("/", literal=True))
    columns = list(ANNOTATIONS.schema)
    write_table(work.out, ANNOTATIONS, pl.concat([ratings.select(columns), criteria.select(columns)]))
    write_table(work.out, SCORES, _descriptor_accuracy(careful, about, references))
    counts = {"annotations": ratings.height + criteria.height, "images": marked.height}
    return Outcome(counts, +left_out, {"tau": tau})


def _criteria(careful: pl.DataFrame, per_image: pl.DataFrame) -> pl.DataFrame:
    """Give the criteria of MARKED as everybody who rated exaggeration has them."""
    (low, high), nothing = SCALE, pl.lit(None, pl.String)
    rated = careful.filter(criterion="exag").with_columns(exag=(pl.col("value") - low) / (high - low))
    people = rated.drop("criterion", "value").with_columns(choice=nothing, text=nothing)
    joined = per_image.join(people, on="item_id")
    faith = faithfulness(*(joined[name].to_numpy() for name in ("align", "hal", "exag")))
    return joined.with_columns(faith=np.asarray(faith)).rename(MARKED).unpivot(
        list(MARKED.values()), index=people.drop("exag").columns, variable_name="criterion", value_name="value"
    )  # fmt: skip


def _ticks(careful: pl.DataFrame, about: pl.DataFrame, question: str) -> pl.DataFrame:
    """Give item, annotator, token and value: everybody answered about everything offered, 0 where they tick nothing.

    Who ticks nothing has no answer to the question in the table; that they filled in the form shows by REQUIRED.
    """
    people = careful.filter(criterion=REQUIRED).select("item_id", "annotator")
    offered = about.select("item_id", token="descriptors").explode("token").unique(maintain_order=True)
    answers = careful.filter(pl.col("criterion").str.starts_with(f"{question}/"))
    token = pl.col("criterion").str.strip_prefix(f"{question}/")
    answers = answers.select("item_id", "annotator", token=token, value="value")
    every = people.join(offered, on="item_id").join(answers, on=["item_id", "annotator", "token"], how="left")
    return every.with_columns(pl.col("value").fill_null(0.0))


def _agreeing(ticked: pl.DataFrame) -> tuple[int, int]:
    """Count the pairs of people who agree on a phrase of an image, and all pairs."""
    per = ticked.group_by("item_id", "token").agg(yes=pl.col("value").sum(), people=pl.len())
    pairs = int((per["people"] * (per["people"] - 1) // 2).sum())
    return pairs - round(float((per["yes"] * (per["people"] - per["yes"])).sum())), pairs


def _as_judgments(ticked: pl.DataFrame, marked: pl.DataFrame, left_out: Counter[str]) -> pl.DataFrame:
    """Write the phrases that most people tick as judgments; an image without one has an empty one."""
    listed = marked.select("image_id", "prompt_id", "descriptors", "dimensions").explode("descriptors", "dimensions")
    shares = ticked.group_by(image_id="item_id", descriptors="token").agg(pl.col("value").mean())
    left_out["ticks of just half of the people, which do not count"] += shares.filter(value=HALF).height
    most = listed.join(shares.filter(pl.col("value") > HALF), on=["image_id", "descriptors"], how="semi")
    rows = pl.concat([
        most.select("image_id", "prompt_id", item="descriptors", dimension="dimensions"),
        marked.select("image_id", "prompt_id", item=pl.lit(""), dimension=pl.lit(DIMENSIONS[0])),
    ])  # fmt: skip
    return rows.select(
        "image_id", "prompt_id", "item", "dimension", judge=pl.lit(PEOPLE), task=pl.lit(EXTRACT), raw=pl.lit(""),
        value=pl.lit(None, pl.Float64), choice=pl.lit(None, pl.String), outcome=pl.lit("ok"),
    ).select(list(JUDGMENTS.schema))  # fmt: skip


def _unlisted(careful: pl.DataFrame, ticked: pl.DataFrame, left_out: Counter[str]) -> pl.DataFrame:
    """Count what most people of an image name beside the list, by dimension: no reference asks for it."""
    people = ticked.group_by("item_id").agg(people=pl.col("annotator").n_unique())
    texts = careful.filter(criterion=OTHER).drop_nulls("text").select("item_id", "annotator", "text")
    things = texts.with_columns(pl.col("text").str.strip_chars("; ").str.split(";")).explode("text")
    parts = things.select("item_id", "annotator", part=pl.col("text").str.split_exact(":", 1)).unnest("part")
    named = parts.select(
        "item_id", "annotator", dimension=pl.col("field_0").map_elements(dimension_name, return_dtype=pl.String),
        phrase=pl.col("field_1").map_elements(normalise_phrase, return_dtype=pl.String),
    )  # fmt: skip
    known = named.filter(pl.col("dimension").is_in(DIMENSIONS), pl.col("phrase").is_not_null())
    left_out["things that people name without a kind"] += named.height - known.height
    counts = known.unique().group_by("item_id", "dimension", "phrase").len().join(people, on="item_id")
    most = counts.filter(pl.col("len") > HALF * pl.col("people"))
    return most.group_by("dimension", image_id="item_id").agg(others=pl.len().cast(pl.Int64))


def _descriptor_accuracy(careful: pl.DataFrame, about: pl.DataFrame, references: pl.DataFrame) -> pl.DataFrame:
    """Score which share of the references of each country people find relevant."""
    phrases = references.select("prompt_id", token=pl.col("token").map_elements(normalise_phrase, pl.String)).unique()
    ticked = _ticks(careful, about, RELEVANT).join(about.select("item_id", "prompt_id", "country"), on="item_id")
    by_country = ticked.join(phrases, on=["prompt_id", "token"])
    every = pl.concat([by_country, by_country.with_columns(country=pl.lit(None, pl.String))])
    means = every.group_by("country").agg(pl.col("value").mean(), n=pl.len().cast(pl.UInt64))
    nothing, number = pl.lit(None, pl.String), pl.lit(None, pl.Float64)
    rows = means.with_columns(
        metric=pl.lit("descriptor_accuracy"), model=pl.lit(PEOPLE), benchmark=pl.lit("cultivate"), concept=nothing,
        group=nothing, params=pl.lit("{}"), ci_low=number, ci_high=number, unit=pl.lit("share"),
    )  # fmt: skip
    return rows.select(list(SCORES.schema))


# Ratings from 1 to 5, of vision models and of people, as values that metrics are compared with.

ANYBODY = "one person"
"""Whose ratings stand beside the metrics: those of one person an image; the other people of the image are apart."""


@staged("rater-values", "raters")
def raters_stage(work: Work, likert: Files, images: Numbered, prompts: Path, marks: Path) -> Outcome:
    """Write what vision models rate, and what one person of each image rates, as values of these images."""
    tables = [read_table(path, JUDGMENTS).select(list(JUDGMENTS.schema)) for path in likert.places]
    judgments = pl.concat([pl.DataFrame(schema=JUDGMENTS.schema), *tables])
    rated = judgments.filter(pl.col("outcome").is_in(ANSWERED))
    rated = rated.select("image_id", "value", by="judge", what="item")
    person = _ratings(marks).filter(turn=0).select("image_id", "value", by=pl.lit(ANYBODY), what="criterion")
    return table_outcome(work, VALUES, _rating_values(pl.concat([rated, person]), images, prompts))


@staged("other-values", "others")
def others_stage(work: Work, images: Numbered, prompts: Path, marks: Path) -> Outcome:
    """Write what the other people of each image rate on average, to hold one person against."""
    rest = _ratings(marks).filter(pl.col("turn") > 0)
    means = rest.group_by("image_id", what="criterion").agg(pl.col("value").sort().mean())
    return table_outcome(work, VALUES, _rating_values(means.with_columns(by=pl.lit("other people")), images, prompts))


def _ratings(marks: Path) -> pl.DataFrame:
    """Number the people who rate an image, by name."""
    table = read_table(marks, ANNOTATIONS).filter(pl.col("criterion").is_in(["faith", "hal", "exag"]))
    turn = pl.int_range(pl.len()).over("item_id", "criterion")
    ordered = table.sort("item_id", "criterion", "annotator").with_columns(turn=turn)
    return ordered.select("criterion", "value", "turn", image_id="item_id")


def _rating_values(rated: pl.DataFrame, images: Numbered, prompts: Path) -> pl.DataFrame:
    """Write ratings as values of the metric `rating`, with model, prompt and country of each image."""
    drawn = images.together(IMAGES).select("image_id", "model", "prompt_id", "repeat")
    about = drawn.join(read_table(prompts, PROMPTS).select("prompt_id", "country"), on="prompt_id")
    rows = rated.join(about, on="image_id").with_columns(
        metric=pl.lit("rating"), benchmark=pl.lit("cultivate"), concept=pl.lit(None, pl.String), item="image_id",
        group=pl.lit(None, pl.String), params=pl.struct("by", of="what").struct.json_encode(),
    )  # fmt: skip
    return rows.select(list(VALUES.schema))
