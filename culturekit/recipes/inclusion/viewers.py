"""People of the simulated world: what they see in pictures of objects, how they fill in the forms, and what is true."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
import polars as pl

from culturekit.builders.judging.simulated_people import SimulatedPeople, is_careless, person_draws
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files, Numbered
from culturekit.core.schemas import IMAGES
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table
from culturekit.core.work import Outcome, Work
from culturekit.metrics.inclusion.region_rates import TARGETS, region_code
from culturekit.people.rated_sample import Answering
from culturekit.people.scheme import Scheme
from culturekit.people.stages import filled_in_stage
from culturekit.recipes.inclusion.people import SEES_OBJECT, SEES_REGION, TASK1_SCHEME, TASK2_SCHEME, asked_images
from culturekit.recipes.inclusion.prompts import BENCHMARK
from culturekit.recipes.inclusion.world import FLAWS, LOOKS, MARKS, ObjectScene, cliches_of, known_regions, look_of
from culturekit.scores.family import write_scored
from culturekit.scores.image_collections import Place, mean_rows
from culturekit.scores.inputs import ImageTables
from culturekit.scores.score_rows import scored

Answers: TypeAlias = Mapping[str, str | Sequence[str]]

CONVINCED = (0.02, 0.06, 0.85, 0.97, 0.98)  # how often somebody names a region of which a picture shows 0 to 4 marks

# How many marks a cliché, and a mark of a look, are worth to people of elsewhere; those at home go by looks alone.
CLICHES_AS_MARKS, LOOKS_AS_MARKS = 1.0, 0.3

TASTE = 0.15  # how much clichés please people of elsewhere, and displease those at home
MANY = 2  # so many clichés please, or displease, as much as clichés can
EYE = 0.08  # how far two looks at a picture differ
NONE = "none"  # what the form of Task 1 calls none of its pictures
METRICS = {SEES_REGION: "region_recognised", SEES_OBJECT: "object_presence"}


def sees_object(scene: ObjectScene, how: SimulatedPeople) -> float:
    """Compute how often people see the object."""
    return how.accuracy if scene.thing else 1 - how.accuracy


def names_look(scene: ObjectScene, region: str, look: str, *, at_home: bool) -> float:
    """Compute how often people who see the object name a region for its look, or for that of the background."""
    marks = float(sum(token in look_of(region, look) for token in scene.looks[look]))
    if not at_home:
        shown = sum(token in cliches_of(region) for token in scene.cliches)
        marks = min(MARKS, LOOKS_AS_MARKS * marks + CLICHES_AS_MARKS * shown)
    return float(np.interp(marks, range(MARKS + 1), CONVINCED))


def names_region(scene: ObjectScene, region: str, how: SimulatedPeople, *, at_home: bool = True) -> float:
    """Compute how often people name a region for the object or for the background."""
    neither = np.prod([1 - names_look(scene, region, look, at_home=at_home) for look in LOOKS])
    return sees_object(scene, how) * float(1 - neither)


def looks_at(
    person: str, row: Mapping[str, Any], scene: ObjectScene, offered: Sequence[str], how: SimulatedPeople, *, seed: int
) -> Answers:
    """Fill in the form of Task 2: whether the object is there, and where it and the background could be from."""
    rng = person_draws(person, row["item_id"], seed=seed)
    if is_careless(person, how, seed=seed):
        if rng.random() >= 0.5:
            return {"obj": "nm"}
        return {"obj": "ym", **{question: [offered[int(rng.integers(len(offered)))]] for question in TARGETS.values()}}
    if rng.random() >= sees_object(scene, how):
        return {"obj": "nm"}
    found: dict[str, str | Sequence[str]] = {"obj": "ym"}
    regions = {region_code(region): region for region in known_regions()}
    home = region_code(row["annotator_region"])
    for look, question in zip(LOOKS, TARGETS.values(), strict=True):
        named = [
            code for code in offered if code in regions
            and rng.random() < names_look(scene, regions[code], look, at_home=code == home)
        ]  # fmt: skip
        found[question] = named or ["na"]
    return found


def compares(
    person: str, row: Mapping[str, Any], scenes: Mapping[str, ObjectScene], how: SimulatedPeople, *, seed: int
) -> Answers:
    """Fill in the form of Task 1: which of two pictures is more like the first, and which is more appealing."""
    rng = person_draws(person, row["item_id"], "compares", seed=seed)
    shown = {name: scenes[image] for name, image in zip(row["places"], row["pictures"], strict=True)}
    codes = {name: str(number) for number, name in enumerate(row["places"], start=1)}
    others = [name for name in row["places"] if name != "reference"]
    if is_careless(person, how, seed=seed):
        chosen = [others[int(rng.integers(2))] for _ in range(2)]
        return {"shown": [NONE], "similar": codes[chosen[0]], "confidence": "high", "appealing": codes[chosen[1]]}
    at_home = bool(row["in_region"])
    alike = {name: likeness(shown["reference"], shown[name]) + rng.normal(0, EYE) for name in others}
    pleasing = {name: appeal(shown[name], at_home=at_home) + rng.normal(0, EYE) for name in others}
    apart = abs(alike[others[0]] - alike[others[1]])
    seen = [codes[name] for name in row["places"] if rng.random() < sees_object(shown[name], how)]
    return {
        "shown": seen or [NONE],
        "similar": codes[max(others, key=lambda name: alike[name])],
        "confidence": "high" if apart > 2 * EYE else "medium" if apart > EYE else "low",
        "appealing": codes[max(others, key=lambda name: pleasing[name])],
    }


def likeness(one: ObjectScene, other: ObjectScene) -> float:
    """Compute which share of what two pictures show they share."""
    a, b = Counter(one.things), Counter(other.things)
    return (a & b).total() / max(1, (a | b).total())


def appeal(scene: ObjectScene, *, at_home: bool) -> float:
    """Compute how much a picture pleases: flaws spoil it, and clichés please or displease."""
    things = scene.things
    spoilt = sum(thing in FLAWS for thing in things) / max(1, len(things))
    return -spoilt + (-TASTE if at_home else TASTE) * min(1.0, len(scene.cliches) / MANY)


def object_viewers_stage(project: Path, images: Sequence[Path], how: SimulatedPeople, *, seed: int) -> Stage:
    """Let simulated people of each region fill in the forms of Task 1 or Task 2: they see what was drawn."""

    def answering(scheme: Scheme) -> Answering:
        scenes = _scenes_of(images)
        if scheme.name == TASK1_SCHEME:
            return partial(compares, scenes=scenes, how=how, seed=seed)
        if scheme.name != TASK2_SCHEME:
            raise UsageError("simulated people fill in two forms only", expected=f"{TASK1_SCHEME} or {TASK2_SCHEME}",
                             found=scheme.name)  # fmt: skip
        offered = scheme.criterion("object_regions").fixed_values
        return lambda person, row: looks_at(person, row, scenes[row["item_id"]], offered, how, seed=seed)

    inputs = Numbered(images).files("images")
    stage = filled_in_stage("simulated-viewers", project, inputs, answering, how, seed=seed)
    return replace(stage, version=3, packages=("msgspec",))


def _scenes_of(images: Sequence[Path]) -> dict[str, ObjectScene]:
    tables = [read_table(path, IMAGES).filter(status="ok").select("image_id", "truth_scene") for path in images]
    return {image: ObjectScene.from_data(msgspec.json.decode(scene)) for image, scene in pl.concat(tables).iter_rows()}


def object_truth_stage(images: ImageTables, prompts: Files, how: SimulatedPeople) -> Stage:
    """Write down how often people at home in the region of an image truly see that region, and its object, in it."""

    def run(work: Work) -> Outcome:
        scenes, rows = _scenes_of(images.places), []
        for row in asked_images(images, prompts).drop_nulls("region").sort("image_id").iter_rows(named=True):
            scene = scenes[row["image_id"]]
            true = {SEES_REGION: names_region(scene, row["region"], how), SEES_OBJECT: sees_object(scene, how)}
            rows += [(row["model"], METRICS[what], row["image_id"], row["prompt_id"], row["region"], value)
                     for what, value in true.items()]  # fmt: skip
        values = pl.DataFrame(rows, schema=["model", "metric", "item", "prompt_id", "region", "value"], orient="row")
        scores, below = [], []
        for keys in (["metric", "model"], ["metric", "model", "region"]):
            for cell in values.sort(*keys, "item").partition_by(keys, maintain_order=True):
                region = cell["region"][0] if "region" in keys else None
                place = Place(cell["metric"][0], cell["model"][0], BENCHMARK, region)
                row, values_below = mean_rows(cell, place, {"labels": "truth"}, confidence=CONFIDENCE)
                scores.append(row)
                below += values_below
        return write_scored(work, scored(scores, below, left_out={}))

    inputs = {**Numbered(images.places).files("images"), **Numbered(prompts.places).files("prompts")}
    return Stage("truth", "object-truth", 1, run, inputs, asdict(how), packages=("msgspec", "polars"))
