"""The stages of activities with people in the loop: what they are to mark, and what follows from their marks."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from culturekit.annotate.rated_sample import Answering
from culturekit.annotate.scheme import Scheme
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.builders.simulated.form_answers import scene_answers
from culturekit.errors import UsageError
from culturekit.families.ahead import PhraseVectors, how_scored, image_scores
from culturekit.families.handles.public_files import roles
from culturekit.kg.countries import countries
from culturekit.metrics.ahead.composite import faithfulness
from culturekit.metrics.ahead.descriptor_scores import Aggregate
from culturekit.metrics.ahead.dimensions import DIMENSIONS, dimension_name
from culturekit.metrics.ahead.matching import normalise_phrase
from culturekit.metrics.corrected.audit_gates import refuse_disagreement
from culturekit.metrics.scoring.ahead_cells import compare_images
from culturekit.metrics.scoring.ahead_tables import EXTRACT, described_images
from culturekit.metrics.scoring.careful_answers import CARELESS, careful_answers
from culturekit.pipeline.steps.annotate_stages import filled_in_stage
from culturekit.records.choices import ANSWERED
from culturekit.records.schemas import (
    ANNOTATIONS,
    AUDIT_SAMPLE,
    DESCRIPTORS,
    JUDGMENTS,
    PROMPTS,
    SCENE_ITEMS,
    SCORES,
    VALUES,
)
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table, read_together, write_table

__all__ = ["MARKED", "SCALE", "marks_stage", "scene_items_stage", "simulated_marks_stage"]

MARKED = {"align": "align_marked", "hal": "hal_marked", "faith": "faith_marked"}
"""What follows from the phrases that people tick, by the metric that it puts right; of FAITH their rating is a part."""

SCALE = (1.0, 5.0)
"""The ends of the form's scales: where people rate what a metric says from 0 to 1."""

ARTICLE = "^(?:a|an|the|some) "
"""What phrases may begin with that are the same to people, who are to tick each thing once."""

PEOPLE, OTHER, HALF = "people", "other", 0.5
SHOWN, RELEVANT, REQUIRED = "shown", "relevant", "faith"


def scene_items_stage(sample: Path, prompts: Path, descriptors: Path, extracted: Sequence[Path]) -> Stage:
    """List what people are to mark about each drawn image.

    These are the references of its prompt, and whatever a model was said to show of it: what one extractor overlooked
    in an image, it or another saw elsewhere.
    """

    def run(work: Work) -> Outcome:
        extra = (
            answers_of(read_together(extracted, JUDGMENTS))
            .select("prompt_id", "dimension", token="item")
            .unique()
            .sort(pl.all())
        )
        asked = read_table(descriptors, DESCRIPTORS).select("prompt_id", "dimension", "token")
        table = read_table(prompts, PROMPTS).drop_nulls("country")
        activity = pl.col("activity") if "activity" in table.columns else pl.col("text")
        about = table.select("prompt_id", "country", "group", activity=activity)
        lists = offered_once(asked, extra).sort("prompt_id", "token", "dimension")
        lists = lists.group_by("prompt_id", maintain_order=True).agg(descriptors="token", dimensions="dimension")
        drawn = read_table(sample, AUDIT_SAMPLE).join(about, on="prompt_id")
        named = {code: one.name for code, one in countries().items()}
        rows = drawn.join(lists, on="prompt_id").with_columns(
            item_id="image_id", country_name=pl.col("country").replace_strict(named, default=pl.col("country"))
        )
        write_table(work.out, SCENE_ITEMS, rows.select(list(SCENE_ITEMS.schema)))
        return Outcome({"scene_items": rows.height, "phrases": int(rows["descriptors"].list.len().sum())})

    inputs = {"sample": sample, "prompts": prompts, "descriptors": descriptors, **roles("extracted", extracted)}
    return Stage("items", "scene-items", 2, run, inputs)


def offered_once(asked: pl.DataFrame, extra: pl.DataFrame) -> pl.DataFrame:
    """Write each phrase of a prompt one way, in each dimension that asks for it; where none does, in the first said."""
    written = pl.col("token").map_elements(normalise_phrase, return_dtype=pl.String)
    asked, extra = (
        each.with_columns(token=written).with_columns(bare=pl.col("token").str.replace(ARTICLE, ""))
        for each in (asked, extra)
    )
    more = extra.join(asked, on=["prompt_id", "bare"], how="anti").unique(
        ["prompt_id", "bare"], keep="first", maintain_order=True
    )
    every = pl.concat([asked, more]).with_columns(token=pl.col("token").first().over("prompt_id", "bare"))
    return every.unique(["prompt_id", "bare", "dimension"], keep="first", maintain_order=True)


def answers_of(judgments: pl.DataFrame) -> pl.DataFrame:
    """Keep the phrases that were extracted."""
    return judgments.filter(task=EXTRACT).filter(pl.col("outcome").is_in(ANSWERED), pl.col("item") != "")


def simulated_marks_stage(
    project: Path,
    items: Path,
    truth: Sequence[Path],
    values: Path,
    how: SimulatedPeople,
    *,
    seed: int,
) -> Stage:
    """Let simulated people fill in the form `cultivate`, who know what simulated scenes show."""

    def answering(_: Scheme) -> Answering:
        said = read_together(truth, JUDGMENTS)
        shown: dict[str, list[tuple[str, str]]] = {}
        for image, dimension, token in answers_of(said).select("image_id", "dimension", "item").iter_rows():
            shown.setdefault(image, []).append((dimension, token))
        own = read_table(values, VALUES).filter(pl.col("metric").is_in(["faith", "hal", "exag"]))
        scores = {(metric, item): value for metric, item, value in own.select("metric", "item", "value").iter_rows()}
        about = {row["item_id"]: row for row in read_table(items, SCENE_ITEMS).iter_rows(named=True)}
        return partial(scene_answers, shown=shown, scores=scores, about=about, how=how, seed=seed)

    inputs = {"items": items, "values": values, **roles("truth", truth)}
    return filled_in_stage("simulated-marks", project, inputs, answering, how, seed=seed)


def marks_stage(annotations: Path, items: Path, descriptors: Path, phrases: Path, scores: Path) -> Stage:
    """Score ALIGN and HAL of each marked image by what each person says that it shows, at the threshold of scores."""
    inputs = {"annotations": annotations, "items": items, "descriptors": descriptors, "scores": scores}
    vectors = PhraseVectors(phrases)

    def run(work: Work) -> Outcome:
        return write_marks(work, annotations, items, descriptors, vectors, *how_scored(scores))

    return Stage("marks", "scene-marks", 4, run, {**inputs, **vectors.files("phrases")})


def write_marks(
    work: Work,
    annotations: Path,
    items: Path,
    descriptors: Path,
    phrases: PhraseVectors,
    tau: float,
    aggregate: Aggregate,
) -> Outcome:
    """Write people's ratings with three criteria more, from 0 to 1: what MARKED names.

    What an image shows is what most of those say who read along, of the pool that the form asks: people of its
    country. Each of them stands for it, so that whether people agree is looked at here, tick by tick.
    """
    table, about = read_table(annotations, ANNOTATIONS), read_table(items, SCENE_ITEMS)
    at_home = table.filter(pl.col("in_region"))
    if at_home.is_empty():
        raise UsageError("nobody of the country of an image answered", where=str(annotations),
                         found=f"{table.height:,} answers of people of other countries")  # fmt: skip
    careful = careful_answers(at_home)
    ticked = ticks(careful, about, SHOWN)
    refuse_disagreement(*agreeing(ticked))
    references = read_table(descriptors, DESCRIPTORS)
    placed = about.join(ticked, on="item_id", how="semi")
    images = placed.select("image_id", "model", "prompt_id", "country", repeat=pl.lit(None, pl.UInt16)).sort("image_id")
    left_out = Counter({
        "answers of people of other countries": table.height - at_home.height,
        CARELESS: at_home.height - careful.height,
    })  # fmt: skip
    shown = said_by_people(ticked, placed, left_out)
    found = described_images(images, references, shown, has=DIMENSIONS, left_out=left_out)
    vectors, ids = phrases.vectors()
    counted = with_others(
        compare_images(found, np.asarray(vectors), ids).counted(tau), others_of(careful, ticked, left_out)
    )
    per_image = image_scores(counted, aggregate).rename({"image_id": "item_id"})
    (low, high), nothing = SCALE, pl.lit(None, pl.String)
    rated = careful.filter(criterion="exag").with_columns(exag=(pl.col("value") - low) / (high - low))
    people = rated.drop("criterion", "value").with_columns(choice=nothing, text=nothing)
    said = per_image.join(people, on="item_id")
    faith = faithfulness(*(said[name].to_numpy() for name in ("align", "hal", "exag")))
    own = said.with_columns(faith=np.asarray(faith)).rename(MARKED).unpivot(
        list(MARKED.values()), index=people.drop("exag").columns, variable_name="criterion", value_name="value"
    )  # fmt: skip
    ratings = careful.filter(~pl.col("criterion").str.contains("/", literal=True))
    columns = list(ANNOTATIONS.schema)
    write_table(work.out, ANNOTATIONS, pl.concat([ratings.select(columns), own.select(columns)]))
    write_table(work.out, SCORES, accuracy(careful, about, references))
    counts = {"annotations": ratings.height + own.height, "images": placed.height}
    return Outcome(counts, +left_out, {"tau": tau})


def ticks(careful: pl.DataFrame, about: pl.DataFrame, question: str) -> pl.DataFrame:
    """Give item, annotator, token and value: everybody answered about everything offered, who ticks nothing with 0.

    Such a person's answer to the question is in no table; that they filled in the form shows where they had to answer.
    """
    people = careful.filter(criterion=REQUIRED).select("item_id", "annotator")
    offered = about.select("item_id", token="descriptors").explode("token").unique(maintain_order=True)
    token = pl.col("criterion").str.strip_prefix(f"{question}/")
    said = careful.filter(pl.col("criterion").str.starts_with(f"{question}/"))
    given = said.select("item_id", "annotator", token=token, value="value")
    every = people.join(offered, on="item_id").join(given, on=["item_id", "annotator", "token"], how="left")
    return every.with_columns(pl.col("value").fill_null(0.0))


def others_of(careful: pl.DataFrame, ticked: pl.DataFrame, left_out: Counter[str]) -> pl.DataFrame:
    """Count what most people of an image name besides the list, by kind: what is not listed is asked for by nothing."""
    people = ticked.group_by("item_id").agg(people=pl.col("annotator").n_unique())
    said = careful.filter(pl.col("criterion") == OTHER).drop_nulls("text").select("item_id", "annotator", "text")
    things = said.with_columns(pl.col("text").str.strip_chars("; ").str.split(";")).explode("text")
    parts = things.select("item_id", "annotator", part=pl.col("text").str.split_exact(":", 1)).unnest("part")
    written = [pl.col(name).map_elements(function, return_dtype=pl.String)
               for name, function in (("field_0", dimension_name), ("field_1", normalise_phrase))]  # fmt: skip
    named = parts.with_columns(dimension=written[0], phrase=written[1])
    known = named.filter(pl.col("dimension").is_in(DIMENSIONS), pl.col("phrase").is_not_null())
    left_out["things that people name without a kind"] += named.height - known.height
    most = (
        known.select("item_id", "annotator", "dimension", "phrase")
        .unique()
        .group_by("item_id", "dimension", "phrase")
        .len()
        .join(people, on="item_id")
    )
    taken = most.filter(pl.col("len") > HALF * pl.col("people"))
    return taken.group_by("dimension", image_id="item_id").agg(others=pl.len().cast(pl.Int64))


def with_others(counted: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Add what is not listed to what nothing asks for."""
    joined = counted.join(others, on=["image_id", "dimension"], how="left", maintain_order="left")
    more = pl.col("others").fill_null(0)
    return joined.with_columns(n_pred=pl.col("n_pred") + more, wrong=pl.col("wrong") + more).drop("others")


def agreeing(ticked: pl.DataFrame) -> tuple[int, int]:
    """Count the pairs of people who agree on a phrase of an image, and all."""
    per = ticked.group_by("item_id", "token").agg(yes=pl.col("value").sum(), people=pl.len())
    pairs = int((per["people"] * (per["people"] - 1) // 2).sum())
    return pairs - round(float(per.select((pl.col("yes") * (pl.col("people") - pl.col("yes"))).sum()).item())), pairs


def accuracy(careful: pl.DataFrame, about: pl.DataFrame, references: pl.DataFrame) -> pl.DataFrame:
    """Score which share of the references of each country people find relevant."""
    named = pl.col("token").map_elements(normalise_phrase, return_dtype=pl.String)
    asked = references.select("prompt_id", token=named).unique()
    known = ticks(careful, about, RELEVANT).join(about.select("item_id", "prompt_id", "country"), on="item_id")
    own = known.join(asked, on=["prompt_id", "token"])
    every = own.with_columns(country=pl.lit(None, pl.String))
    means = pl.concat([own, every]).group_by("country").agg(pl.col("value").mean(), n=pl.len().cast(pl.UInt64))
    nothing, number = pl.lit(None, pl.String), pl.lit(None, pl.Float64)
    rows = means.with_columns(
        metric=pl.lit("descriptor_accuracy"), model=pl.lit(PEOPLE), benchmark=pl.lit("cultivate"), concept=nothing,
        group=nothing, params=pl.lit("{}"), ci_low=number, ci_high=number, unit=pl.lit("share"),
    )  # fmt: skip
    return rows.select(list(SCORES.schema))


def said_by_people(ticked: pl.DataFrame, placed: pl.DataFrame, left_out: Counter[str]) -> pl.DataFrame:
    """Write the phrases that most people tick as judgments; an image of which they tick none says so."""
    listed = placed.select("image_id", "prompt_id", "descriptors", "dimensions").explode("descriptors", "dimensions")
    most = ticked.group_by(image_id="item_id", descriptors="token").agg(pl.col("value").mean())
    left_out["ticks of just half of the people, which do not count"] += most.filter(value=HALF).height
    said = listed.join(most.filter(pl.col("value") > HALF), on=["image_id", "descriptors"], how="semi")
    rows = pl.concat(
        [
            said.select("image_id", "prompt_id", item="descriptors", dimension="dimensions"),
            placed.select("image_id", "prompt_id", item=pl.lit(""), dimension=pl.lit(DIMENSIONS[0])),
        ]
    )
    number, words = pl.lit(None, pl.Float64), pl.lit(None, pl.String)
    told = rows.with_columns(
        judge=pl.lit(PEOPLE), task=pl.lit(EXTRACT), value=number, choice=words, raw=pl.lit(""), outcome=pl.lit("ok")
    )
    return told.select(list(JUDGMENTS.schema))
