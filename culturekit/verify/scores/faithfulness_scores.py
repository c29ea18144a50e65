"""Scores of DSG, VQAScore and quality, recomputed from what judges said of each image and scorers gave it."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.storage.manifest import read_manifest
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer, Mean, t_answer
from culturekit.verify.scores.labelled_images import asked_images
from culturekit.verify.scores.score_rows import SCORES_FILE, compare_row

__all__ = ["JudgedImages", "Place", "check_faithfulness", "judged_images"]

USED = ("ok", "repaired")
ANSWERS = {"yes": True, "no": False}
EDGE = 1e-9


@dataclass(frozen=True, slots=True)
class Place:
    """Where an image belongs."""

    model: str
    prompt: str | None
    concept: str | None
    country: str | None


@dataclass(frozen=True, slots=True)
class JudgedImages:
    """Images by id, and what each was given: (metric, judge or scorer) -> image -> value."""

    places: Mapping[str, Place]
    values: Mapping[tuple[str, str], Mapping[str, float]]


def judged_images(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> JudgedImages | None:
    """Work everything out again; None where an input is not here as it was."""
    found: dict[str, list[Path]] = {}
    paths = tree.inputs_of(stage)
    if paths is None or any(path.suffix != ".parquet" for path in paths.values()):
        return None
    for path in paths.values():
        found.setdefault(path.stem, []).append(path)
    places = {
        image: Place(row["model"], row["prompt_id"], row["concept"], row["country"])
        for image, row in asked_images(found["images"], found.get("prompts", ())).items()
        if row["status"] == "ok"
    }
    judgments = [row for path in found.get("judgments", []) for row in pl.read_parquet(path).to_dicts()]
    judgments = [row for row in judgments if row["image_id"] in places]
    values: dict[tuple[str, str], dict[str, float]] = {}
    graphs = graphs_of(found.get("questions", []))
    denominator = str(stage.manifest.options.get("denominator", "all"))
    for judge, answers in answers_by_judge(judgments).items():
        values["dsg", judge] = dsg_values(answers, places, graphs, denominator)
    for judge, rows in vqa_by_judge(judgments).items():
        values["vqascore", judge] = dict(vqa_values(rows, judge, stage, ledger))
    labelled = stage.manifest.stage == "score-faithfulness"
    for path in found.get("quality", []):
        for scorer, image, value in pl.read_parquet(path).select("scorer", "image_id", "value").iter_rows():
            if image in places and math.isfinite(value):
                values.setdefault(("quality", label_of(path, scorer) if labelled else scorer), {})[image] = value
    return JudgedImages(places, values)


def graphs_of(paths: Sequence[Path]) -> dict[str, dict[str, list[str]]]:
    """Read the questions of each prompt, and what each depends on."""
    graphs: dict[str, dict[str, list[str]]] = {}
    for path in paths:
        for prompt, question, above in pl.read_parquet(path).select("prompt_id", "question_id", "parents").iter_rows():
            graphs.setdefault(prompt, {})[question] = above
    return graphs


def answers_by_judge(judgments: Sequence[dict[str, Any]]) -> dict[str, dict[str, dict[str, bool]]]:
    """Gather answers by judge and image; one that failed, or is neither yes nor no, is none."""
    found: dict[str, dict[str, dict[str, bool]]] = {}
    for row in judgments:
        if row["task"] == "dsg":
            own = found.setdefault(row["judge"], {}).setdefault(row["image_id"], {})
            said = ANSWERS.get((row["choice"] or "").strip().lower())
            if row["outcome"] in USED and said is not None:
                own[row["item"]] = said
    return found


def dsg_values(
    answers: Mapping[str, Mapping[str, bool]],
    places: Mapping[str, Place],
    graphs: Mapping[str, Mapping[str, Sequence[str]]],
    denominator: str,
) -> dict[str, float]:
    """Score images: a question counts that was answered yes, unless a parent was answered no."""
    values = {}
    for image, said in answers.items():
        graph = graphs.get(places[image].prompt or "", {})
        if not graph or not set(graph) <= set(said):
            continue
        valid = [question for question, above in graph.items() if all(said[parent] for parent in above)]
        yes = sum(said[question] for question in valid)
        values[image] = yes / (len(valid) if denominator == "valid" else len(graph))
    return values


def vqa_by_judge(judgments: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Gather probabilities of yes by judge."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in judgments:
        if row["task"] == "vqascore":
            found.setdefault(row["judge"], []).append(row)
    return found


def vqa_values(
    rows: Sequence[dict[str, Any]], judge: str, stage: FinishedStage, ledger: Ledger
) -> Iterator[tuple[str, float]]:
    """Average the probabilities of each image; each is held against the listing that it was read from."""
    by_image: dict[str, list[float | None]] = {}
    for row in rows:
        usable = row["outcome"] in USED and row["value"] is not None
        by_image.setdefault(row["image_id"], []).append(row["value"] if usable else None)
        listed = weighed(row["raw"], whole="of=vocabulary" in judge) if usable else None
        if listed is not None and abs(listed - row["value"]) > EDGE:
            ledger.broken(
                "judgments", f"{stage.name}, image {row['image_id']}", "P(Yes) is not what the listing gives",
                expected=listed, found=row["value"],
            )  # fmt: skip
    for image, values in by_image.items():
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            yield image, math.fsum(known) / len(known)


def weighed(raw: str, *, whole: bool) -> float | None:
    """Weigh yes against no, or against everything, in a listing of tokens; None for what is no such listing."""
    try:
        tokens = [(item["token"], math.exp(min(item["logprob"], 0.0))) for item in json.loads(raw)["tokens"]]
    except (ValueError, KeyError, TypeError):
        return None
    yes, no = (math.fsum(share for token, share in tokens if letters(token) == word) for word in ("yes", "no"))
    if whole:
        return min(yes, 1.0)
    return yes / (yes + no) if yes + no else None


def letters(token: str) -> str:
    """Keep the letters of a token, in small."""
    return "".join(letter for letter in token if letter.isalpha() and letter not in "\u0120\u010a").lower()


def label_of(path: Path, scorer: str) -> str:
    """Name a scorer with the encoder that the manifest of its values names."""
    manifest = read_manifest(path.parent)
    parameters = {} if manifest is None else manifest.notes.get("parameters", {})
    name = str(parameters.get("name") or scorer)
    weights = str(parameters.get("weights", ""))[:8]
    return f"{name}:{parameters['encoder']}@{weights}" if parameters.get("encoder") else name


FEWEST = 20
"""Prompts that may speak for others."""

HOW = "worked out again from judgments, questions and quality"
Key = tuple[str, str, str, str | None, str | None]


def check_faithfulness(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Compare every row with what its judgments give, and the rows that are there with those there must be."""
    judged = judged_images(tree, stage, ledger)
    if judged is None:
        ledger.note(
            "scores", stage.name, "its inputs are not all here as tables; the means of its values are looked at"
        )
        return
    confidence = float(stage.manifest.options["means"]["confidence"])
    cells = dict(cells_of(judged, stage.manifest.options["means"]["by"]))
    there = set()
    for row in rows:
        about = row["about"]
        key = (row["metric"], about.get("judge") or about.get("scorer"), row["model"], row["concept"], row["country"])
        if row["group"] is not None:
            continue
        there.add(key)
        images = cells.get(key, {})
        if not images:
            ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a score of images that nobody judged", found=key)
            ledger.judge(stage.name, row, "wrong", HOW)
            continue
        answer = image_mean(images, judged.places, str(about["target"]), confidence)
        compare_row(stage.name, row, answer, len(images), HOW, ledger)
    for key in sorted(set(cells) - there, key=str):
        ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a score is missing", expected=key)


def cells_of(judged: JudgedImages, by: Sequence[Sequence[str]]) -> Iterator[tuple[Key, dict[str, float]]]:
    """Give the values of images by metric, judge, model, and concept and country where scores are parted by these."""
    levels = [(), *(tuple(level) for level in by if "region" not in level)]
    for (metric, judge), values in judged.values.items():
        cells: dict[Key, dict[str, float]] = {}
        for image, value in values.items():
            place = judged.places[image]
            for level in levels:
                parted = {name: getattr(place, name) for name in level}
                if None not in parted.values():
                    key = (metric, judge, place.model, parted.get("concept"), parted.get("country"))
                    cells.setdefault(key, {})[image] = value
        yield from cells.items()


def image_mean(images: Mapping[str, float], places: Mapping[str, Place], target: str, confidence: float) -> Answer:
    """Average images alike, with a t interval: over images within prompts, or over prompts."""
    prompts = [places[image].prompt for image in images]
    alone = any(prompt is None for prompt in prompts)
    groups: dict[str | None, list[float]] = {}
    for image, prompt in zip(images, prompts, strict=True):
        groups.setdefault(image if alone else prompt, []).append(images[image])
    values = list(images.values())
    value = values[0] if min(values) == max(values) else math.fsum(values) / len(values)
    variance, freedom = over_prompts(groups, value) if alone or target == "population" else within_prompts(groups)
    return t_answer(Mean(value, variance / len(values) ** 2, freedom), confidence)


def over_prompts(groups: Mapping[str | None, Sequence[float]], value: float) -> tuple[float, float]:
    """Let the totals of prompts scatter; too few say nothing."""
    count = len(groups)
    if count < FEWEST:
        return math.nan, 0.0
    totals = [math.fsum(one - value for one in own) for own in groups.values()]
    return count / (count - 1) * math.fsum(total**2 for total in totals), count - 1.0


def within_prompts(groups: Mapping[str | None, Sequence[float]]) -> tuple[float, float]:
    """Let images scatter within their prompts; a prompt of one image says nothing."""
    parts = []
    for own in groups.values():
        if len(own) < 2:
            return math.nan, 0.0
        middle = math.fsum(own) / len(own)
        squares = 0.0 if min(own) == max(own) else math.fsum((one - middle) ** 2 for one in own)
        parts.append((squares * len(own) / (len(own) - 1), len(own) - 1))
    total = math.fsum(part for part, _ in parts)
    if not total > 0:
        return 0.0, math.nan
    return total, total**2 / math.fsum(part**2 / freedom for part, freedom in parts)
