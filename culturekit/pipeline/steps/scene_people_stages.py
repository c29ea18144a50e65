"""The stages of activities with people in the loop: what they are to mark, and what follows from their marks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl

from culturekit.annotate.rated_sample import Answering
from culturekit.annotate.scheme import Scheme
from culturekit.builders.judging.simulated_people import SimulatedPeople, person_draws, step
from culturekit.families.ahead import PhraseVectors, image_scores
from culturekit.families.handles.value_files import roles
from culturekit.generation.simulated.scenes.vocabulary import world
from culturekit.kg.countries import countries
from culturekit.metrics.ahead.dimensions import DIMENSIONS
from culturekit.metrics.ahead.matching import normalise_phrase
from culturekit.metrics.scoring.ahead_cells import compare_images
from culturekit.metrics.scoring.ahead_tables import ANSWERED, EXTRACT, described_images
from culturekit.pipeline.steps.annotate_stages import filled_in
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
from culturekit.storage.tables import read_table, write_table

__all__ = ["MARKED", "marks_stage", "scene_items_stage", "simulated_marks_stage"]

MARKED = {"align": "align_marked", "hal": "hal_marked"}
"""What follows from the phrases that people tick, by the metric that it puts right."""

PEOPLE = "people"

SHOWN, RELEVANT = "shown/", "relevant/"


def scene_items_stage(
    sample: Path, prompts: Path, descriptors: Path, extracted: Sequence[Path], *, name: str = "items"
) -> Stage:
    """List what people are to mark about each drawn image.

    These are the references of its prompt, and whatever a model was said to show of it: what one extractor overlooked
    in an image, it or another saw elsewhere.
    """

    def run(work: Work) -> Outcome:
        said = pl.concat([read_table(path, JUDGMENTS).select(list(JUDGMENTS.schema)) for path in extracted])
        offered = pl.concat(
            [
                read_table(descriptors, DESCRIPTORS).select("prompt_id", "token", "dimension"),
                answers_of(said).select("prompt_id", "dimension", token="item").unique().sort(pl.all()),
            ],
            how="diagonal",
        )
        table = read_table(prompts, PROMPTS).drop_nulls("country")
        activity = pl.col("activity") if "activity" in table.columns else pl.col("text")
        about = table.select("prompt_id", "country", "group", activity=activity)
        lists = offered.with_columns(pl.col("token").map_elements(normalise_phrase, return_dtype=pl.String))
        lists = lists.unique(["prompt_id", "token"], keep="first", maintain_order=True).sort("prompt_id", "token")
        lists = lists.group_by("prompt_id", maintain_order=True).agg(descriptors="token", dimensions="dimension")
        drawn = read_table(sample, AUDIT_SAMPLE).join(about, on="prompt_id")
        named = {code: one.name for code, one in countries().items()}
        rows = drawn.join(lists, on="prompt_id").with_columns(
            item_id="image_id", country_name=pl.col("country").replace_strict(named, default=pl.col("country"))
        )
        write_table(work.out, SCENE_ITEMS, rows.select(list(SCENE_ITEMS.schema)))
        return Outcome({"scene_items": rows.height, "phrases": int(rows["descriptors"].list.len().sum())})

    inputs = {"sample": sample, "prompts": prompts, "descriptors": descriptors, **roles("extracted", extracted)}
    return Stage(name, "scene-items", 1, run, inputs)


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
    name: str = "simulated-answers",
) -> Stage:
    """Let simulated people fill in the form `cultivate`, who know what simulated scenes show."""

    def answering(_: Scheme) -> Answering:
        said = pl.concat([read_table(path, JUDGMENTS).select(list(JUDGMENTS.schema)) for path in truth])
        shown = dict(answers_of(said).group_by("image_id").agg("item").iter_rows())
        own = read_table(values, VALUES).filter(pl.col("metric").is_in(["faith", "hal", "exag"]))
        scores = {(metric, item): value for metric, item, value in own.select("metric", "item", "value").iter_rows()}
        about = {row["item_id"]: row for row in read_table(items, SCENE_ITEMS).iter_rows(named=True)}
        return partial(scene_answers, shown=shown, scores=scores, about=about, how=how, seed=seed)

    inputs = {"project": project, "items": items, "values": values, **roles("truth", truth)}
    run = partial(filled_in, project=project, answering=answering, how=how, seed=seed)
    return Stage(name, "simulated-marks", 1, run, inputs, asdict(how), {"answers": seed})


def scene_answers(
    person: str,
    row: Mapping[str, Any],
    *,
    shown: Mapping[str, Sequence[str]],
    scores: Mapping[tuple[str, str], float],
    about: Mapping[str, Mapping[str, Any]],
    how: SimulatedPeople,
    seed: int,
) -> Mapping[str, str | Sequence[str]]:
    """Answer the form as one person would: ratings scatter around the truth, and few marks are wrong."""
    item = row["item_id"]
    own = person_draws(person, item, "again" if row["kind"] != "item" else "first", seed=seed)
    careless = bool(person_draws(person, "careless", seed=seed).random() < how.careless)
    offered = orjson.loads(row["options"])["descriptors"]
    answers: dict[str, str | Sequence[str]] = {}
    for name in ("faith", "hal", "exag"):
        true = scores.get((name, item), 0.5)
        answers[name] = step(float(own.integers(1, 6)) if careless else 1 + 4 * true + own.normal(0, how.scatter))
    if answers["hal"] != "1":
        answers["hal_comment"] = "This does not belong here."
    answers["realism"] = step(3.5 + own.normal(0, how.scatter))
    there, expected = set(shown.get(item, ())), expected_of(about.get(item, {}))
    for name, right in (("shown", there), ("relevant", expected)):
        draws = dict(zip(sorted(offered), own.random(len(offered)), strict=True))
        marks = [
            code
            for code, draw in draws.items()
            if (draw < 0.5 if careless else any_of(right, offered[code]["choice"]) == (draw < how.accuracy))
        ]
        if marks:
            answers[name] = marks
    return answers


def any_of(tokens: set[str], phrase: str) -> bool:
    """Tell whether a phrase names one of some things, perhaps in a few more words."""
    said = f" {normalise_phrase(phrase)} "
    return any(f" {normalise_phrase(token)} " in said for token in tokens)


def expected_of(item: Mapping[str, Any]) -> set[str]:
    """Give what belongs to the activity of an item in its country, as far as the simulated world knows."""
    if not item or item["country"] not in world().countries:
        return set()
    expected = world().expected(
        item["concept"], world().activity_named(item["activity"], item["concept"]), item["country"]
    )
    return {token.text for tokens in expected.values() for token in tokens}


def marks_stage(
    annotations: Path, items: Path, descriptors: Path, phrases: Path, scores: Path, *, name: str = "marks"
) -> Stage:
    """Score ALIGN and HAL of each marked image by what each person says that it shows, at the threshold of scores."""
    inputs = {"annotations": annotations, "items": items, "descriptors": descriptors, "scores": scores}
    vectors = PhraseVectors(phrases)

    def run(work: Work) -> Outcome:
        return write_marks(work, annotations, items, descriptors, vectors, tau_of(scores))

    return Stage(name, "scene-marks", 1, run, {**inputs, **vectors.files("phrases")})


def tau_of(scores: Path) -> float:
    """Read the threshold that scores were made at."""
    params = read_table(scores, SCORES).filter(metric="align")["params"][0]
    return float(orjson.loads(params)["tau"])


def write_marks(
    work: Work, annotations: Path, items: Path, descriptors: Path, phrases: PhraseVectors, tau: float
) -> Outcome:
    """Write people's answers with two criteria more, `align` and `hal`, from 0 to 1."""
    table = read_table(annotations, ANNOTATIONS)
    about = read_table(items, SCENE_ITEMS)
    ticked = table.filter(pl.col("criterion").str.starts_with(SHOWN))
    forms = ticked.select("item_id", "annotator").unique().sort("item_id", "annotator").with_row_index("form")
    forms = forms.with_columns(image_id=pl.col("form").cast(pl.String))
    placed = forms.join(about.drop("image_id"), on="item_id")
    images = placed.select("image_id", "model", "prompt_id", "country", repeat=pl.lit(None, pl.UInt16)).sort("image_id")
    references = read_table(descriptors, DESCRIPTORS)
    left_out: Counter[str] = Counter()
    found = described_images(images, references, said_by_people(ticked, placed), has=None, left_out=left_out)
    vectors, ids = phrases.vectors()
    per_image = image_scores(compare_images(found, np.asarray(vectors), ids).counted(tau), "dimension")
    values = per_image.rename(MARKED).unpivot(
        list(MARKED.values()), index="image_id", variable_name="criterion", value_name="value"
    )
    person = table.unique(["item_id", "annotator"], keep="first", maintain_order=True).drop("criterion", "value")
    rows = values.join(forms, on="image_id").join(person, on=["item_id", "annotator"])
    own = rows.with_columns(choice=pl.lit(None, pl.String), text=pl.lit(None, pl.String))
    columns = list(ANNOTATIONS.schema)
    write_table(work.out, ANNOTATIONS, pl.concat([table.select(columns), own.select(columns)]))
    counts = {"annotations": table.height + own.height, "forms": forms.height}
    return Outcome(counts, {why: n for why, n in sorted(left_out.items()) if n}, {"tau": tau})


def said_by_people(ticked: pl.DataFrame, placed: pl.DataFrame) -> pl.DataFrame:
    """Write the phrases that each form ticks as judgments of its own; a form that ticks none says so."""
    listed = placed.select("image_id", "item_id", "annotator", "prompt_id", "descriptors", "dimensions")
    listed = listed.explode("descriptors", "dimensions")
    token = pl.col("criterion").str.strip_prefix(SHOWN).map_elements(normalise_phrase, return_dtype=pl.String)
    chosen = ticked.filter(pl.col("value") == 1).select("item_id", "annotator", descriptors=token).unique()
    said = listed.join(chosen, on=["item_id", "annotator", "descriptors"], how="semi")
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
