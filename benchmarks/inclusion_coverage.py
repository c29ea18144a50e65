"""How often what people put right holds what models truly show of regions and objects, and whether each score tells.

Each run is the recipe `inclusion` from scenes on, as its file says, with its own scenes, noise and people; the pictures
are left out, because the simulated encoder reads them without an error. Intervals speak about other images like these:
the true value is the mean over many of them, of how often people at home say so, or people from elsewhere. How often
they hold that of the images of the run stands beside it: of these people saw a part, so that it is more often. The last
rows count the runs in which the demo's story holds, and of the first ten those in which each score tells a realistic
model without a region (glossy) from a regional one that is crude (rough).
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from coverage_of_runs import Told, measure
from numpy.typing import NDArray
from withheld import scored_or_none

from culturekit.builders.judging.simulated_people import is_careless, person_draws
from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.registry import parse_spec
from culturekit.core.roles import REAL_IMAGES
from culturekit.core.schemas import AUDIT_SAMPLE, TASK2, VALUES
from culturekit.metrics import prdc
from culturekit.metrics.realism.clip_scores import clip_score, nearest_own
from culturekit.people.scheme import load_scheme
from culturekit.recipes.inclusion.people import SEES_OBJECT, SEES_REGION, TASK2_SCHEME, drawn_images, seen_marks
from culturekit.recipes.inclusion.recipe import Inclusion
from culturekit.recipes.inclusion.world import (
    METRICS,
    BackendOptions,
    EncoderOptions,
    ObjectEncoder,
    ObjectsBackend,
    ObjectScene,
    known_regions,
    looks_at,
    marks_of,
    names_region,
    sees_object,
)
from culturekit.scores.judged import JudgedOptions, score_judged

RUNS, SEED, MANY, REALISTIC = 200, 20261126, 200, 10
"""Of the runs; how many images of each prompt make the true value of a model; and runs that measure realism, too."""

POOLS = {"in-region": True, "out-of-region": False}
STORY = "story"
CHECKS = 2
"""Attention checks of a sheet, each of which one who answers anything passes half of the time."""


@cache
def recipe() -> Inclusion:
    """Read the recipe: its models, its encoders, its people."""
    found = load_any_recipe(find_recipe("inclusion"))
    assert isinstance(found, Inclusion)
    return found


def drawn(backend: str, key: str, name: str, region: str) -> ObjectScene:
    """Put together what a model shows of a prompt."""
    model = ObjectsBackend(parse_spec(backend).read(BackendOptions))
    return model.scene(name, known_regions()[region], seed=int(hashlib.sha256(key.encode()).hexdigest()[:15], 16))


def seen(scene: ObjectScene, region: str, *, at_home: bool) -> dict[str, float]:
    """Say how often people see the region, and the object."""
    how = recipe().people.simulated  # type: ignore[union-attr]
    assert how is not None
    return {SEES_REGION: names_region(scene, region, how, at_home=at_home), SEES_OBJECT: sees_object(scene, how)}


@cache
def true_values(backend: str, pool: str) -> Mapping[tuple[str, str | None], float]:
    """Average over many images what people of a pool see, in all regions and in each."""
    listed = recipe().listed
    every: dict[tuple[str, str | None], list[float]] = {}
    for name in listed.objects:
        for region in listed.regions:
            for slot in range(MANY):
                found = seen(drawn(backend, f"true {name} {region} {slot}", name, region), region, at_home=POOLS[pool])
                for what, value in found.items():
                    for place in (None, region):
                        every.setdefault((what, place), []).append(value)
    return {key: float(np.mean(values)) for key, values in every.items()}


def images(seed: int) -> Iterator[tuple[dict[str, Any], ObjectScene]]:
    """Draw the images of all models, and the photographs."""
    wanted = recipe()
    sources = {model.name: (model.backend, wanted.images.slots) for model in wanted.models}
    sources[REAL_IMAGES] = (wanted.photographs.backend, wanted.photographs.each)
    for source, (backend, slots) in sources.items():
        for name in wanted.listed.objects:
            for region in wanted.listed.regions:
                for slot in range(slots):
                    key = f"{seed} {source} {name} {region} {slot}"
                    row = {"image_id": hashlib.sha256(key.encode()).hexdigest()[:16], "model": source, "slot": slot,
                           "prompt_id": f"{name} {region}", "object": name, "region": region}  # fmt: skip
                    yield row, drawn(backend, key, name, region)


def seen_by(name: str) -> ObjectEncoder:
    """Make an extractor."""
    return ObjectEncoder(
        parse_spec(next(one.encoder for one in recipe().extractors if one.name == name)).read(EncoderOptions)
    )


def vectors_of(
    part: pl.DataFrame, scenes: Mapping[str, ObjectScene], encoder: ObjectEncoder, seed: int
) -> NDArray[np.floating]:
    """Embed images as the encoder does that reads them without an error."""
    shown = {image: [mark[2:] for mark in marks_of(scenes[image])] for image in part["image_id"]}
    return encoder.stacked(encoder.weighed(marks, f"{seed} {image}") for image, marks in shown.items())


def values(made: pl.DataFrame, scenes: Mapping[str, ObjectScene], seed: int) -> pl.DataFrame:
    """Let the encoder recognise regions and objects, of each image and by region."""
    wanted, rows = recipe(), []
    encoder = seen_by(wanted.texts)
    regions, objects = list(wanted.listed.regions), list(wanted.listed.objects)
    names = {"region": encoder.encode_texts(regions), "object": encoder.encode_texts(objects)}
    for (model,), part in made.filter(pl.col("model") != REAL_IMAGES).group_by("model", maintain_order=True):
        vectors = vectors_of(part, scenes, encoder, seed)
        own = {"region": np.array([regions.index(one) for one in part["region"]]),
               "object": np.array([objects.index(one) for one in part["object"]])}  # fmt: skip
        limit = wanted.thresholds.get(str(model), wanted.threshold)
        judged = {SEES_REGION: nearest_own(vectors, names["region"], own["region"]),
                  SEES_OBJECT: clip_score(vectors, names["object"][own["object"]], scale=1.0) >= limit}  # fmt: skip
        for what, said in judged.items():
            for image, prompt, region, yes in zip(
                part["image_id"], part["prompt_id"], part["region"], said, strict=True
            ):
                place = {"metric": METRICS[what], "model": model, "benchmark": "inclusion", "item": image,
                         "params": '{"target":"these"}', "prompt_id": prompt, "value": float(yes)}  # fmt: skip
                rows += [place, place | {"group": region}]
    return pl.DataFrame(rows, schema=VALUES.schema)


def answers(items: pl.DataFrame, scenes: Mapping[str, ObjectScene], seed: int) -> Iterator[dict[str, Any]]:
    """Let one person of each region fill in each sheet of images of an object in a region, photographs among them."""
    people = recipe().people
    assert people is not None
    assert people.simulated is not None
    offered = load_scheme(TASK2_SCHEME).criterion("object_regions").fixed_values
    for (cell, *_), part in items.sort("image_id").group_by("prompt_id", maintain_order=True):
        count = -(-part.height // people.per_sheet)
        for place, number, slot in product(recipe().listed.regions, range(count), range(people.per_region)):
            person = f"{place} {cell} {number} {slot}"
            passed = person_draws(person, "checks", seed=seed).random(CHECKS) < 0.5
            if is_careless(person, people.simulated, seed=seed) and not passed.all():
                continue
            for row in part[number::count].iter_rows(named=True):
                about = {"item_id": row["image_id"], "annotator_region": place}
                said = looks_at(person, about, scenes[row["image_id"]], offered, people.simulated, seed=seed)
                yield {
                    "img_path": row["image_id"], "object": row["object"], "region": row["region"],
                    "annotator_id": person, "annotator_loc": place, "shown": said["obj"] == "ym",
                    "source": row["model"],
                    **{name: list(said.get(name, ())) for name in ("object_regions", "background_regions")},
                }  # fmt: skip


def one_run(seed: int) -> list[Told]:
    """Make a run: what the encoder says, what people make of it, what is true; then whether the story holds."""
    people = recipe().people
    assert people is not None
    rows = list(images(seed))
    scenes = {row["image_id"]: scene for row, scene in rows}
    made = pl.DataFrame([row for row, _ in rows])
    items = drawn_images(made, each=people.images, seed=seed)
    drawn_ones = items.select("image_id", "model", "prompt_id", "chance", concept="object", stratum="region")
    sample = drawn_ones.select(list(AUDIT_SAMPLE.schema))
    marks, _ = seen_marks(pl.DataFrame(list(answers(items, scenes, seed)), schema=TASK2.schema), least=people.least)
    judged = values(made, scenes, seed)
    shown = {
        (row["model"], pool, what, place, row["image_id"]): value
        for row, scene in rows if row["model"] != REAL_IMAGES for pool, home in POOLS.items()
        for what, value in seen(scene, row["region"], at_home=home).items() for place in (None, row["region"])
    }  # fmt: skip
    own: dict[tuple[Any, ...], list[float]] = {}
    for key, value in shown.items():
        own.setdefault(key[:-1], []).append(value)
    backends = {model.name: model.backend for model in recipe().models}
    told: list[Told] = []
    order: dict[str, dict[str, float]] = {}
    for what, metric in METRICS.items():
        how = JudgedOptions(what, TASK2_SCHEME, metrics=(metric,), by="in-region")
        drawn = sample.select(list(AUDIT_SAMPLE.schema))
        scores = scored_or_none(partial(score_judged, judged, marks, drawn, options=how)).scores
        about = scores.with_columns(
            pl.col("params").str.json_path_match(f"$.{name}").alias(name) for name in ("labels", "pool")
        )
        for row in about.iter_rows(named=True):
            if what == SEES_REGION and row["group"] is None:
                order.setdefault(row["pool"] or "judged", {})[row["model"]] = row["value"]
            for pool in [row["pool"]] if row["pool"] else POOLS:
                true = true_values(backends[row["model"]], pool)[what, row["group"]]
                place = [metric, row["labels"], pool, row["model"] if row["group"] is None else "by region"]
                told.append((place, row["value"], row["ci_low"], row["ci_high"], true,
                             float(np.mean(own[row["model"], pool, what, row["group"]]))))  # fmt: skip
    apart = told_apart(made, scenes, judged, own, seed) if seed < SEED + REALISTIC else ()
    return [*told, *story(order), *apart]


def story(order: Mapping[str, Mapping[str, float]]) -> Iterator[Told]:
    """Say whether the encoder and people from elsewhere rank the cliché first, and people at home and truth do not."""
    for who, first in (("judged", "postcard"), ("out-of-region", "postcard"), ("in-region", "local")):
        found = order.get(who, {})
        holds = float(len(found) == len(recipe().models) and max(found, key=lambda name: found[name]) == first)
        yield [STORY, who, "", f"{first} first"], holds, holds, holds, 1.0, 1.0


def told_apart(
    made: pl.DataFrame, scenes: Mapping[str, ObjectScene], judged: pl.DataFrame,
    own: Mapping[tuple[Any, ...], list[float]], seed: int,
) -> Iterator[Told]:  # fmt: skip
    """Say whether each score puts glossy and rough in the order that its question has."""
    precision: dict[tuple[str, str], float] = {}
    for name in ("texture", "content"):
        encoder = seen_by(name)
        parts = {source: vectors_of(made.filter(model=source), scenes, encoder, seed)
                 for source in ("glossy", "rough", REAL_IMAGES)}  # fmt: skip
        for source in ("glossy", "rough"):
            precision[name, source] = prdc(parts[REAL_IMAGES], parts[source], k=recipe().k).precision
    whole = judged.filter(pl.col("group").is_null()).group_by("metric", "model").agg(pl.col("value").mean())
    said = {(metric, model): value for metric, model, value in whole.iter_rows()}
    true = {(what, model): np.mean(own[model, "in-region", what, None])
            for what in METRICS for model in ("glossy", "rough")}  # fmt: skip
    region, further = METRICS[SEES_REGION], {
        name: precision[name, "glossy"] - precision[name, "rough"] for name in ("texture", "content")
    }  # fmt: skip
    for what, holds in {
        "precision by texture: glossy": further["texture"] > 0,
        "content sees less of it": further["texture"] > further["content"],
        "region recognised: rough": said[region, "rough"] > said[region, "glossy"],
        "region in truth: rough": true[SEES_REGION, "rough"] > true[SEES_REGION, "glossy"],
        "object in truth: glossy": true[SEES_OBJECT, "glossy"] > true[SEES_OBJECT, "rough"],
    }.items():
        yield [STORY, "told apart", "", what], float(holds), float(holds), float(holds), 1.0, 1.0


if __name__ == "__main__":
    measure("inclusion_coverage", one_run, of=("score", "labels", "people", "model"), first=SEED, runs=RUNS,
            title="What people put right in {runs} runs of simulated objects in regions")  # fmt: skip
