"""Objects in regions, once more: prompts, triplets, who is asked about what, angles to names, and what is true."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from culturekit.storage.package_data import shipped, shipped_names
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.score_rows import close

__all__ = ["AREA", "check_clip_values", "check_geographic_prompts", "check_object_items", "check_object_truth",
           "check_photographed", "check_triplets", "differing", "rows_of"]  # fmt: skip

AREA = "inclusion"
PLACES = {
    "A": (("in", 0), ("in", 8)), "B": (("real", 0), ("real", 8)), "C": (("in", 0), ("plain", 48)),
    "D": (("plain", 6), ("in", 8)), "E": (("real", 0), ("real", 8)),
}  # fmt: skip
"""Of each combination the kinds of both images, and how many are further away; 0 is the nearest."""

REFERENCES = {"A": "real", "B": "in", "C": "real", "D": "real", "E": "plain"}
SHARES = (0.02, 0.06, 0.85, 0.97, 0.98)
"""How often people name a region of which so many marks are shown."""

NEAR = 1e-6


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read a table."""
    return pl.read_parquet(path).to_dicts()


def differing(
    stage: FinishedStage, file: str, wanted: Mapping[Any, Any], found: Mapping[Any, Any], ledger: Ledger, what: str
) -> None:
    """Hold what stands in a table against what follows from what it is made of."""
    where = f"{stage.name}/{file}.parquet"
    for key in sorted(wanted.keys() ^ found.keys(), key=str):
        ledger.broken(AREA, where, f"has a row too many or too few: {key}")
    for key in sorted((key for key in wanted.keys() & found.keys() if not alike(wanted[key], found[key])), key=str):
        ledger.broken(AREA, where, f"{key} is something else", expected=wanted[key], found=found[key])
    ledger.count(what, len(found))


def alike(one: Any, other: Any) -> bool:  # noqa: ANN401 - cells
    """Compare two cells, or rows of cells; numbers by what rounding leaves."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(alike(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return bool(close(one, other)) or abs(one - other) < NEAR
    return bool(one == other)


def check_geographic_prompts(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Read the list of objects and regions again, and write the text of each prompt."""
    source = tree.source(stage, "places")
    naming = stage.manifest.options["naming"]
    if source is None or naming == "countries":
        ledger.note(AREA, stage.name, "its list is not here" if source is None else "names of countries are not read")
        return
    told = yaml.safe_load(source.read_text(encoding="utf-8"))
    wanted = {}
    for name in told["objects"]:
        if naming in {"objects", "both"}:
            wanted[name, None] = name
        if naming in {"regions", "both"}:
            wanted |= {(name, region): f"{name} in {told.get('written', {}).get(region, region)}"
                       for region in told["regions"]}  # fmt: skip
    found = {(row["concept"], row["group"]): row["text"] for row in rows_of(stage.folder / "prompts.parquet")}
    differing(stage, "prompts", wanted, found, ledger, "prompts written again")


def check_photographed(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Count the photographs of each object and region again, and keep the prompts of objects that have enough."""
    tables = [tree.source(stage, role) for role in ("listed", "regional", "photographs")]
    listed, regional, photographs = (None if path is None else rows_of(path) for path in tables)
    if listed is None or regional is None or photographs is None:
        ledger.note(AREA, stage.name, "its prompts or photographs are not here")
        return
    copies = Counter(row["sha256"] for row in photographs)
    shown = Counter(row["prompt_id"] for row in photographs if row["status"] == "ok" and copies[row["sha256"]] == 1)
    few = {row["concept"] for row in regional if shown[row["prompt_id"]] < stage.manifest.options["least"]}
    wanted = {row["prompt_id"]: row["text"] for row in listed if row["concept"] not in few}
    found = {row["prompt_id"]: row["text"] for row in rows_of(stage.folder / "prompts.parquet")}
    differing(stage, "prompts", wanted, found, ledger, "prompts with photographs counted again")


def prompted(tree: RunTree, stage: FinishedStage) -> dict[str, tuple[str | None, str | None]]:
    """Give object and region of each prompt that a stage reads."""
    tables = [path for _, path in tree.sources_of(stage, "prompts.parquet")]
    return {row["prompt_id"]: (row["concept"], row["group"]) for path in tables for row in rows_of(path)}


def images_of(tree: RunTree, stage: FinishedStage) -> list[dict[str, Any]]:
    """Give the images that a stage reads and that were made."""
    tables = [path for _, path in tree.sources_of(stage, "images.parquet")]
    return [row for path in tables for row in rows_of(path) if row["status"] == "ok"]


def vectors_of(tree: RunTree, stage: FinishedStage, *roles: str) -> dict[str, Any]:
    """Give the vectors that a stage reads, by id; roles begin so."""
    found: dict[str, Any] = {}
    for role, path in tree.sources_of(stage, "vectors.npy"):
        if role.startswith(roles):
            ids = pl.read_parquet(path.parent / "ids.parquet").sort("row")["id"].to_list()
            found |= dict(zip(ids, np.load(path, mmap_mode="r", allow_pickle=False), strict=True))
    return found


def check_triplets(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Measure the distances of each triplet again, and count who lies further away."""
    asked, vectors = prompted(tree, stage), vectors_of(tree, stage, "real", "fake")
    cells: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for row in images_of(tree, stage):
        name, region = asked.get(row["prompt_id"], (None, None))
        kind = "real" if row["model"] == "real" else "in" if region else "plain"
        cells[kind, row["model"], name, region].append(row["image_id"])
    if not vectors or not cells:
        ledger.note(AREA, stage.name, "its images or vectors are not here")
        return
    options, counts = stage.manifest.options, defaultdict[tuple[Any, ...], int](int)
    alone = cache(lambda kind: lonely({one: vectors[one] for one in cells[kind]}))
    for row in rows_of(stage.folder / "triplets.parquet"):
        where, model = f"{stage.name}/triplets.parquet", row["source"]
        model = row["reference_source"] if model == "real" else model
        place = row["object"], row["region"]
        who = {"real": ("real", "real", *place), "in": ("in", model, *place), "plain": ("plain", model, place[0], None)}
        counts[model, row["object"], row["region"], row["combo"]] += 1
        if row["reference_id"] not in cells[who[REFERENCES[row["combo"]]]]:
            ledger.broken(AREA, where, f"{row['triplet_id']} has the reference of another cell")
            continue
        apart, sign = alone(who[REFERENCES[row["combo"]]]), 1 if row["pick"] == "near" else -1
        before = sum(sign * other < sign * apart[row["reference_id"]] - NEAR for other in apart.values())
        if before >= options[row["pick"]]:
            ledger.broken(AREA, where, f"{row['triplet_id']}: its reference is none of those that are {row['pick']}")
        reference = np.asarray(vectors[row["reference_id"]], np.float64)
        for side, (kind, order) in zip(("first", "second"), PLACES[row["combo"]], strict=True):
            ids = cells[who[kind]]
            far = {one: float(np.square(np.asarray(vectors[one], np.float64) - reference).sum()) for one in ids}
            stated, distance = row[f"{side}_id"], row[f"{side}_distance"]
            if stated not in far or not alike(far[stated], distance):
                ledger.broken(AREA, where, f"{row['triplet_id']}: the {side} image is not so far away",
                              expected=far.get(stated), found=distance)  # fmt: skip
                continue
            wanted = max(1, round(order * len(ids) / 100)) if options["scaled"] and order else order
            further = sum(other > far[stated] + NEAR for other in far.values())
            nearer = sum(other < far[stated] - NEAR for other in far.values())
            if (nearer > 0) if order == 0 else not further <= wanted - 1 <= len(ids) - 1 - nearer:
                ledger.broken(AREA, where, f"{row['triplet_id']}: the {side} image stands elsewhere in the order",
                              expected=wanted, found=further + 1)  # fmt: skip
        ledger.count("triplets measured again")
    for cell, count in counts.items():
        if count != options["near"] + options["far"]:
            ledger.broken(AREA, stage.name, f"{cell} has another number of triplets", found=count)


def lonely(vectors: Mapping[str, Any]) -> dict[str, float]:
    """Give of each image how far the nearest other one is, in squares."""
    every = {name: np.asarray(vector, np.float64) for name, vector in vectors.items()}
    return {name: min(float(np.square(one - other).sum()) for own, other in every.items() if own != name)
            for name, one in every.items()}  # fmt: skip


def check_object_items(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Count what was drawn of each model and prompt, with which chance, and hold each image against its prompt."""
    asked, made = prompted(tree, stage), {row["image_id"]: row for row in images_of(tree, stage)}
    each, sizes = stage.manifest.options["each"], defaultdict[tuple[str, str], int](int)
    for row in made.values():
        sizes[row["model"], row["prompt_id"]] += 1
    rows = rows_of(stage.folder / "object_items.parquet")
    wanted, drawn = {}, defaultdict[tuple[str, str], int](int)
    for row in rows:
        image = made.get(row["item_id"])
        if image is not None:
            wanted[row["item_id"]] = (*asked[image["prompt_id"]], image["model"], image["model"], image["image_id"])
            drawn[image["model"], image["prompt_id"]] += 1
    found = {row["item_id"]: (row["object"], row["region"], row["model"], row["source"], row["img_path"])
             for row in rows}  # fmt: skip
    differing(stage, "object_items", wanted, found, ledger, "images to look at held against their prompts")
    differing(stage, "object_items", {cell: min(each, size) for cell, size in sizes.items()}, drawn, ledger,
              "cells of images to look at")  # fmt: skip
    chances = {item: min(1.0, each / sizes[made[item]["model"], made[item]["prompt_id"]]) for item in wanted}
    stated = {row["image_id"]: row["chance"] for row in rows_of(stage.folder / "audit_sample.parquet")}
    differing(stage, "audit_sample", chances, stated, ledger, "chances recomputed")


@cache
def looks() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """Read by which marks of object and background each region is known."""
    told = yaml.safe_load(shipped("generation/simulated/scenes/vocabulary.yaml").read_text(encoding="utf-8"))
    lists = [yaml.safe_load(shipped(f"generation/places/{name}.yaml").read_text(encoding="utf-8"))
             for name in shipped_names("generation/places", ".yaml")]  # fmt: skip
    regions = {name: own for each in lists for name, own in each["regions"].items()}
    return {
        name: {look: frozenset(token for country in own if country in told["countries"]
                               for token in told["countries"][country][look]) for look in ("objects", "background")}
        for name, own in regions.items()
    }  # fmt: skip


def check_object_truth(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Work out from what was drawn how often people at home see the object, and name its region."""
    asked, sight = prompted(tree, stage), stage.manifest.options["accuracy"]
    wanted = {}
    for row in images_of(tree, stage):
        name, region = asked.get(row["prompt_id"], (None, None))
        if region is None or name is None:
            continue
        scene, nothing = json.loads(row["truth_scene"]), 1.0
        there = sight if scene["object"] else 1 - sight
        for look, tokens in scene["shown"].items():
            nothing *= 1 - SHARES[sum(token in looks()[region][look] for token in tokens)]
        wanted["object_presence", row["model"], row["image_id"]] = there
        wanted["region_recognised", row["model"], row["image_id"]] = there * (1 - nothing)
    every = rows_of(stage.folder / "values.parquet")
    for part in ([row for row in every if row["group"] is None], [row for row in every if row["group"] is not None]):
        found = {(row["metric"], row["model"], row["item"]): row["value"] for row in part}
        differing(stage, "values", wanted, found, ledger, "what people truly see recomputed")


def check_clip_values(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Measure the angle of each image and its text again, and from it whether an object or a region is recognised."""
    images, texts = vectors_of(tree, stage, "vectors"), vectors_of(tree, stage, "texts")
    if not images or not texts:
        ledger.note(AREA, stage.name, "its vectors are not here")
        return
    column = {"prompt": "prompt_id", "region": "group", "country": "country", "object": "concept"}
    of, asked = column[stage.manifest.options["texts"]], prompted(tree, stage)
    wanted: dict[tuple[str, str], float] = {}
    for row in images_of(tree, stage):
        concept, group = asked.get(row["prompt_id"], (row.get("concept"), None))
        own = {"prompt_id": row["prompt_id"], "group": group, "country": row.get("country"), "concept": concept}[of]
        if own not in texts or row["image_id"] not in images:
            continue
        angles = {name: cosine(images[row["image_id"]], texts[name]) for name in texts}
        scale = 100.0 if of == "prompt" else 1.0
        names = {"prompt_id": "clip_score", "group": "region_clip_score", "country": "region_clip_score",
                 "concept": "object_clip_score"}  # fmt: skip
        wanted[names[of], row["image_id"]] = max(0.0, scale * angles[own])
        others = [angle for name, angle in angles.items() if name != own]
        if of in {"group", "country"} and others and abs(angles[own] - max(others)) > NEAR:
            wanted["region_recognised", row["image_id"]] = float(angles[own] > max(others))
    where, every = f"{stage.name}/values.parquet", rows_of(stage.folder / "values.parquet")
    for row in every:
        item, metric = row["item"], row["metric"]
        if metric == "object_presence":
            angle, limit = wanted.get(("object_clip_score", item)), json.loads(row["params"])["threshold"]
            expected = None if angle is None or abs(angle - limit) <= NEAR else float(angle >= limit)
        else:
            expected = wanted.get((metric, item))
            if expected is None and metric != "region_recognised":
                ledger.broken(AREA, where, f"{item!r} has no such image and text", found=metric)
        if expected is not None and not alike(expected, row["value"]):
            ledger.broken(AREA, where, f"{metric} of {item!r} is something else", expected=expected, found=row["value"])
    whole = {(row["metric"], row["item"]) for row in every}
    for key in sorted(wanted.keys() - whole - {key for key in wanted if key[0] == "region_recognised"}):
        ledger.broken(AREA, where, f"lacks a value: {key}")
    ledger.count("angles of images and texts measured again", len(every))


def cosine(one: Any, other: Any) -> float:  # noqa: ANN401 - vectors
    """Give the cosine of two vectors."""
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    return float((a * b).sum() / ((a * a).sum() * (b * b).sum()) ** 0.5)
