"""The stages of the simulated world: pages about it, and what scenes of it truly show."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import orjson
import polars as pl

from culturekit.builders.judging.image_judge import ChooseOptions, ChooseReads, choose_references
from culturekit.builders.judging.scene_judge import (
    MOST_STEREOTYPES,
    DescribedScenes,
    ExtractReads,
    RatedScenes,
    RateReads,
    SceneOptions,
    StereotypedScenes,
    StereotypeReads,
    scenes_of,
    wording_digest_of,
)
from culturekit.builders.judging.shown_images import AskedImages, ShownImages, prompted_images
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.builders.simulated.form_answers import scene_answers
from culturekit.builders.simulated.simulated_pages import write_pages
from culturekit.core.choices import ANSWERED
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.digests import canonical_json
from culturekit.core.errors import UsageError
from culturekit.core.inputs import roles, roles_of
from culturekit.core.package_data import shipped
from culturekit.core.schemas import (
    ANNOTATIONS,
    AUDIT_SAMPLE,
    DESCRIPTOR_MATCHES,
    DESCRIPTORS,
    IMAGES,
    JUDGMENTS,
    PROMPTS,
    SCENE_ITEMS,
    SCORES,
    VALUES,
)
from culturekit.core.schemas import STEREOTYPES as STEREOTYPES_TABLE
from culturekit.core.stage import Stage
from culturekit.core.stage_command import AskingCommand, StageCommand
from culturekit.core.tables import read_table, read_together, table_outcome, write_table
from culturekit.core.work import Outcome, Work
from culturekit.generation.simulated.scenes.scenes_backend import DIMENSIONS as WORLD_DIMENSIONS
from culturekit.generation.simulated.scenes.scenes_backend import VOCABULARY, world
from culturekit.kg.countries import countries
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.models import quoted
from culturekit.metrics.ahead.descriptor_scores import Aggregate, faithfulness
from culturekit.metrics.ahead.matching import DIMENSIONS, dimension_name, normalise_phrase
from culturekit.metrics.corrected.audit_gates import refuse_disagreement
from culturekit.metrics.statistics.intervals import simple_mean
from culturekit.people.rated_sample import Answering
from culturekit.people.scheme import Scheme
from culturekit.people.stages import filled_in_stage
from culturekit.recipes.steps.asking_stage import asking_images, usual_picture
from culturekit.scores.ahead import PhraseVectors, how_scored, image_scores
from culturekit.scores.ahead_cells import EXTRACT as EXTRACT_TASK
from culturekit.scores.ahead_cells import compare_images, described_images
from culturekit.scores.answers import CARELESS, careful_answers
from culturekit.scores.image_levels import country_groups
from culturekit.scores.inputs import asked
from culturekit.scores.meta import ALL
from culturekit.scores.score_rows import Row, equal_means, scored, statistic_row

# The stages from images of scenes to what a vision model says of them, and to the best of real ones.


def choose_stage(given: ChooseReads, options: ChooseOptions) -> Stage:
    """Keep the real images that show each prompt best.

    The others are listed with the reason.
    """
    return Stage(
        "real",
        "choose-references",
        1,
        lambda work: choose_references(work, given, options),
        roles_of(given),
        asdict(options),
        packages=("polars",),
    )


CHOOSE = StageCommand(
    choose_stage,
    "--images candidates/images.parquet --prompts prompts/prompts.parquet --scores quality/quality.parquet --out real",
)


USUAL, USUAL_PROMPT = "usual", "A photorealistic photo of a usual custom in the United States."
USUAL_STEREOTYPE = "a usual stereotype"


def questions_of_one(given: ExtractReads | RateReads | StereotypeReads) -> list[Request]:
    """Give the requests about one image of a usual prompt, for a plan before there are any."""
    row, prompts = {"prompt_id": USUAL}, {USUAL: (USUAL_PROMPT, "US")}
    shown = ShownImages(Path(), "judge")
    asked: AskedImages[str] = DescribedScenes(shown, "")
    if isinstance(given, ExtractReads):
        asked = DescribedScenes(shown, "", dimensions=given.dimensions)
    elif isinstance(given, RateReads):
        asked = RatedScenes(shown, "", prompts=prompts)
    elif isinstance(given, StereotypeReads):
        asked = StereotypedScenes(shown, "", prompts=prompts, tokens={"US": (USUAL_STEREOTYPE,) * MOST_STEREOTYPES})
    picture = usual_picture()
    return [asked.request(picture, row, question) for question in asked.questions(row)]


def scene_stage(
    kind: str, given: ExtractReads | RateReads | StereotypeReads, options: SceneOptions, llm: LlmOptions, name: str
) -> Stage:
    """Make the stage of one kind of question."""
    return asking_images(
        kind,
        1,
        given,
        options.judge,
        images=lambda: prompted_images(given.images, options.per_prompt),
        asked=lambda model, _: scenes_of(given, model),
        options={"wording": wording_digest_of(given), "per_prompt": options.per_prompt, **some_dimensions(given)},
        llm=llm,
        name=name,
        usual=lambda: questions_of_one(given),
    )


def some_dimensions(given: ExtractReads | RateReads | StereotypeReads) -> dict[str, list[str]]:
    """Say in which dimensions images are described, where these are not all."""
    asked = given.dimensions if isinstance(given, ExtractReads) else DIMENSIONS
    return {} if asked == DIMENSIONS else {"dimensions": list(asked)}


def extract_stage(given: ExtractReads, options: SceneOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask a vision model what each image shows, in phrases.

    They are sorted by dimension; `score ahead` compares them.
    """
    return scene_stage("judge-extract", given, options, llm, "extracted")


EXTRACT = AskingCommand(
    extract_stage, f"--images images/images.parquet --llm {quoted('vision')} --out extracted --budget 20"
)


def likert_stage(given: RateReads, options: SceneOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask a vision model to rate each image from 1 to 5.

    It rates alignment, hallucination and exaggeration.
    """
    return scene_stage("judge-likert", given, options, llm, "likert")


LIKERT = AskingCommand(
    likert_stage,
    f"--images images/images.parquet --prompts prompts/prompts.parquet --llm {quoted('vision')} --out likert "
    "--budget 20",
)


def stereotype_scores_stage(given: StereotypeReads, options: SceneOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask whether each image shows what its country overdoes.

    The score is the probability of yes (EXAG).
    """
    return scene_stage("judge-stereotypes", given, options, llm, "stereotyped")


STEREOTYPES = AskingCommand(
    stereotype_scores_stage,
    "--images images/images.parquet --prompts prompts/prompts.parquet --stereotypes stereotypes/stereotypes.parquet "
    f"--llm {quoted('weighing')} --out stereotyped --budget 20",
)


# The stages of activities with people in the loop: what they are to mark, and what follows from their marks.

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
    return judgments.filter(task=EXTRACT_TASK).filter(pl.col("outcome").is_in(ANSWERED), pl.col("item") != "")


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
        judge=pl.lit(PEOPLE),
        task=pl.lit(EXTRACT_TASK),
        value=number,
        choice=words,
        raw=pl.lit(""),
        outcome=pl.lit("ok"),
    )
    return told.select(list(JUDGMENTS.schema))


# The stages beside AHEaD: gaps between groups of countries, judged, corrected and true; parts of scores; raters.

ANYBODY = "one person"
"""Whose ratings stand beside the metrics: those of one person an image; the other people of the image are apart."""

TRUTH = "truth"


def grouped_values_stage(values: Path, scheme: str, metrics: Sequence[str]) -> Stage:
    """Put values that stand under countries under groups of these as well, so that people can put groups right."""

    def run(work: Work) -> Outcome:
        own = read_table(values, VALUES).filter(pl.col("metric").is_in(list(metrics)))
        side = pl.col("country").replace_strict(dict(country_groups(scheme)), default=None, return_dtype=pl.String)
        grouped = own.with_columns(group=side, country=pl.lit(None, pl.String)).drop_nulls("group")
        return table_outcome(work, VALUES, pl.concat([own, grouped]).select(list(VALUES.schema)))

    return Stage("by-group", "grouped-values", 1, run, {"values": values}, {"scheme": scheme, "metrics": list(metrics)})


def gaps_of_scores_stage(judged: Mapping[str, Path], truth: Path | None, scheme: str) -> Stage:
    """Subtract scores of groups of countries: as a judge has them, put right by people, and, where known, true."""

    def run(work: Work) -> Outcome:
        tables = [(read_table(path, SCORES), "") for path in judged.values()]
        known = {metric for table, _ in tables for metric in table["metric"]}
        tables += [] if truth is None else [(read_table(truth, SCORES).filter(pl.col("metric").is_in(known)), TRUTH)]
        rows = [row for table, labels in tables for row in gaps_in(table, labels, scheme)]
        return table_outcome(work, SCORES, scored(rows, left_out={}).scores)

    inputs = {**roles("judged", list(judged.values())), **({} if truth is None else {"truth": truth})}
    return Stage("corrected-gaps", "gaps-of-scores", 2, run, inputs, {"scheme": scheme})


def gaps_in(table: pl.DataFrame, labels: str, scheme: str) -> Iterator[Row]:
    """Subtract each group of a scheme from those before it, for each score that both have."""
    known = sorted(set(country_groups(scheme).values()))
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table.filter(pl.col("group").is_in(known)).iter_rows(named=True):
        about = orjson.loads(row["params"])
        kind = labels or str(about.get("labels", "judged"))
        key = (row["metric"], row["model"], row["benchmark"], row["concept"], kind, about.get("pool"))
        found.setdefault(key, {})[row["group"]] = (row, about)
    pairs = [(key, sides, *pair) for key, sides in found.items() for pair in itertools.combinations(sorted(sides), 2)]
    for (metric, model, benchmark, concept, kind, pool), sides, a, b in pairs:
        (first, about), (second, _) = sides[a], sides[b]
        value = first["value"] - second["value"]
        low, high = limits(first, second)
        params = {"metric": metric, "labels": kind, "pool": pool, "scheme": scheme, "a": a, "b": b,
                  "target": about.get("target"), "confidence": about.get("confidence")}  # fmt: skip
        yield {
            "metric": "group_gap", "model": model, "benchmark": benchmark, "concept": concept, "country": None,
            "group": f"{a} - {b}", "params": canonical_json(params).decode(), "value": value, "ci_low": low,
            "ci_high": high, "n": first["n"] + second["n"], "unit": first["unit"],
        }  # fmt: skip


def limits(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Give the limits of a difference of scores of other images: their distances from the values add in squares."""
    ends = [row[end] for row in (first, second) for end in ("ci_low", "ci_high")]
    if any(end is None or not math.isfinite(end) for end in ends):
        return None, None
    value = first["value"] - second["value"]
    below = math.hypot(first["value"] - first["ci_low"], second["ci_high"] - second["value"])
    above = math.hypot(first["ci_high"] - first["value"], second["value"] - second["ci_low"])
    return value - below, value + above


def breakdown_stage(values: Path, matches: Path, prompts: Path, models: Sequence[str]) -> Stage:
    """Average ALIGN by country and dimension, and FAITH by category: of each model and of all, each prompt alike."""

    def run(work: Work) -> Outcome:
        about = read_table(prompts, PROMPTS).select("prompt_id", "concept", "country")
        met = read_table(matches, DESCRIPTOR_MATCHES).filter(pl.col("side") == "reference")
        shown = met.group_by("model", "prompt_id", "dimension").agg(value=pl.col("covered").sort().mean())
        shown = shown.with_columns(pl.concat_list("value"))
        rows = [*averaged(shown.join(about, on="prompt_id"), models, ("country", "dimension"), "align")]
        faith = read_table(values, VALUES).filter(metric="faith").drop("concept", "country")
        own = faith.group_by("model", "prompt_id").agg(pl.col("value").sort()).join(about, on="prompt_id")
        rows += [row for by in (("concept",), ("country", "concept")) for row in averaged(own, models, by, "faith")]
        return table_outcome(work, SCORES, scored(rows, left_out={}).scores)

    inputs = {"values": values, "matches": matches, "prompts": prompts}
    return Stage("breakdown", "scene-breakdown", 2, run, inputs, {"models": list(models)})


def averaged(images: pl.DataFrame, models: Sequence[str], by: tuple[str, ...], metric: str) -> Iterator[Row]:
    """Average the values of each prompt, then prompts over each model, and over all."""
    own = images.filter(pl.col("model").is_in(list(models)))
    both = pl.concat([own, own.with_columns(model=pl.lit(ALL))]).sort("prompt_id", "model", *by, "value")
    for (model, *key), part in both.group_by("model", *by, maintain_order=True):
        means = [simple_mean(values.to_numpy()) for values in part["value"]]
        place = {"concept": None, "country": None, "group": None, **dict(zip(by, key, strict=True))}
        params = {"dimension": place.pop("dimension")} if "dimension" in by else {"confidence": CONFIDENCE}
        answer = equal_means(means, n=len(means), confidence=CONFIDENCE)
        yield statistic_row(metric, model=str(model), benchmark="cultivate", answer=answer, params=params, **place)


def raters_stage(likert: Mapping[str, Path], images: Sequence[Path], prompts: Path, marks: Path) -> Stage:
    """Write what vision models rate, and what one person of each image rates, as values of these images."""

    def run(work: Work) -> Outcome:
        about = placed(images, prompts)
        nothing = pl.DataFrame(schema=JUDGMENTS.schema)
        each = (read_table(path, JUDGMENTS).select(list(JUDGMENTS.schema)) for path in likert.values())
        said = pl.concat([nothing, *each])
        rated = said.filter(pl.col("outcome").is_in(ANSWERED)).select("image_id", "value", by="judge", what="item")
        first = ratings_of(marks).filter(pl.col("turn") == 0)
        person = first.select("image_id", "value", by=pl.lit(ANYBODY), what="criterion")
        return table_outcome(work, VALUES, as_values(pl.concat([rated, person]), about))

    inputs = {"prompts": prompts, "marks": marks, **dict(likert), **roles("images", list(images))}
    return Stage("raters", "rater-values", 1, run, inputs)


def others_stage(images: Sequence[Path], prompts: Path, marks: Path) -> Stage:
    """Write what the other people of each image rate on average, to hold one person against."""

    def run(work: Work) -> Outcome:
        rest = ratings_of(marks).filter(pl.col("turn") > 0)
        means = rest.group_by("image_id", what="criterion").agg(pl.col("value").sort().mean())
        others = means.with_columns(by=pl.lit("other people"))
        return table_outcome(work, VALUES, as_values(others, placed(images, prompts)))

    return Stage(
        "others", "other-values", 1, run, {"prompts": prompts, "marks": marks, **roles("images", list(images))}
    )


def placed(images: Sequence[Path], prompts: Path) -> pl.DataFrame:
    """Say of each image which model made it, for which prompt and country."""
    made = pl.concat([read_table(path, IMAGES).select("image_id", "model", "prompt_id", "repeat") for path in images])
    return made.join(read_table(prompts, PROMPTS).select("prompt_id", "country"), on="prompt_id")


def ratings_of(marks: Path) -> pl.DataFrame:
    """Number the people who rate an image, by name."""
    table = read_table(marks, ANNOTATIONS).filter(pl.col("criterion").is_in(["faith", "hal", "exag"]))
    turn = pl.int_range(pl.len()).over("item_id", "criterion")
    ordered = table.sort("item_id", "criterion", "annotator").with_columns(turn=turn)
    return ordered.select("criterion", "value", "turn", image_id="item_id")


def as_values(rated: pl.DataFrame, about: pl.DataFrame) -> pl.DataFrame:
    """Write ratings as values of the metric `rating`."""
    params = pl.struct("by", of="what").struct.json_encode()
    rows = rated.join(about, on="image_id").with_columns(
        metric=pl.lit("rating"), benchmark=pl.lit("cultivate"), concept=pl.lit(None, pl.String),
        group=pl.lit(None, pl.String), params=params, item="image_id",
    )  # fmt: skip
    return rows.select(list(VALUES.schema))


CAVEAT = "The pages are about a made-up world; nobody wrote them, and no culture is as they say."


def simulated_pages_stage(countries: Sequence[str]) -> Stage:
    """Write pages about the activities of countries of the simulated world, and the list `pages.yaml` of them."""

    def run(work: Work) -> Outcome:
        return Outcome({"pages": write_pages(work.out, countries)}, notes={"caveat": CAVEAT})

    return Stage("pages", "simulated-pages", 1, run, {"world": shipped(VOCABULARY)}, {"countries": list(countries)})


def scene_truth_stage(images: Path, prompts: Path, stereotypes: Path | None = None) -> Stage:
    """Write down what simulated scenes really show, as a judge that never errs would say it.

    With a table of stereotypes each of those of the prompt's country has a row, else those that the world knows.
    """
    inputs = {"images": images, "prompts": prompts}
    if stereotypes is not None:
        inputs["stereotypes"] = stereotypes

    def run(work: Work) -> Outcome:
        made = read_table(images, IMAGES).filter(pl.col("status") == "ok")
        if "truth_scene" not in made.columns:
            raise UsageError(
                "these images do not come with the truth", where=str(images), expected="images of simulated-scenes"
            )
        countries = dict(asked(prompts, work.scratch).select("prompt_id", "country").iter_rows())
        known = candidates(None if stereotypes is None else read_table(stereotypes, STEREOTYPES_TABLE))
        work.progress.begin(made.height, "images")
        rows = [
            row
            for image in made.drop_nulls("truth_scene").sort("image_id").iter_rows(named=True)
            for row in said_of(image, known.get(countries.get(image["prompt_id"], ""), ()))
        ]
        write_table(work.out, JUDGMENTS, pl.DataFrame(rows, schema=JUDGMENTS.schema, orient="row"))
        work.progress.advance(made.height)
        return Outcome({"judgments": len(rows), "images": made.height})

    return Stage("truth", "scene-truth", 1, run, inputs, packages=("msgspec", "polars"))


def candidates(table: pl.DataFrame | None) -> Mapping[str, tuple[str, ...]]:
    """Give the stereotypes of each country."""
    if table is None:
        return {country: world().stereotypes(country) for country in world().countries}
    by_country = table.sort(STEREOTYPES_TABLE.key).group_by("country", maintain_order=True).agg("token").iter_rows()
    return {country: tuple(tokens) for country, tokens in by_country}


def said_of(image: Mapping[str, Any], stereotypes: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
    """Give the rows about one image: what it shows in each dimension, and how strongly each stereotype."""
    scene = msgspec.json.decode(image["truth_scene"])
    place = (image["image_id"], image["prompt_id"], TRUTH)
    for dimension in WORLD_DIMENSIONS:
        for token in scene["shown"][dimension] or [""]:
            yield *place, "extract", token, dimension, None, None, "", "ok"
    for token in stereotypes:
        strength = scene["stereotypes"].get(token.casefold(), 0.0)
        yield *place, "stereotype", token, None, strength, None, "", "ok"
