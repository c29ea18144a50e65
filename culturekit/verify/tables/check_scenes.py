"""Scenes of activities: what a judge's replies say of them, what they truly show, and what people mark, read again."""

import itertools
import json
import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer, of_these, t_answer
from culturekit.verify.scores.score_rows import SCORES_FILE, close, compare_row
from culturekit.verify.scores.value_means import CONFIDENCE
from culturekit.verify.tables.check_judged import check_judged
from culturekit.verify.tables.stored_replies import ANSWERED, answer_in, chance_of_yes

__all__ = ["check_breakdown", "check_gaps_of_scores", "check_scene_replies", "check_scene_truth"]

TABLE = "judgments.parquet"
NOTHING = frozenset(("", "none", "nothing", "n/a"))
MOST_PHRASES = 8
QUESTIONS = {
    "judge-extract": {"background", "objects", "attire", "interaction", "spatial"},
    "judge-likert": {"alignment", "hallucination", "exaggeration"},
}
"""What is asked about every image."""


def check_scene_replies(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Read every reply about a scene again: its phrases, its rating, or how probable yes is."""
    check_judged(tree, stage, ledger)
    asked: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    of_image: dict[str, set[str]] = defaultdict(set)
    for row in pl.read_parquet(stage.folder / TABLE).to_dicts():
        question = row["dimension"] if row["task"] == "extract" else row["item"]
        of_image[row["image_id"]].add(question)
        if row["outcome"] in ANSWERED:
            asked[row["image_id"], question].append(row)
    some = stage.manifest.options.get("dimensions")
    every = QUESTIONS.get(stage.manifest.stage) if some is None else set(some)
    for image, questions in of_image.items():
        if every is not None and questions != every:
            ledger.broken(
                "replies", f"{stage.name}/{TABLE} ({image})", "other questions were asked than those of its kind",
                expected=sorted(every), found=sorted(questions),
            )  # fmt: skip
    for (image, question), answers in asked.items():
        ledger.count("replies about scenes read again")
        raw = {row["raw"] for row in answers}
        said = sorted((row["item"], row["value"], row["choice"]) for row in answers) if len(raw) == 1 else []
        found = sorted(said_in(stage.manifest.stage, str(question), next(iter(raw))))
        if len(said) != len(found) or not all(map(alike, said, found)):
            ledger.broken(
                "replies", f"{stage.name}/{TABLE} ({image}, {question})", "is not what its reply says",
                expected=found, found=said,
            )  # fmt: skip


def alike(stated: tuple[Any, ...], found: tuple[Any, ...]) -> bool:
    """Tell whether two answers are the same but for rounding."""
    return (stated[0], stated[2]) == (found[0], found[2]) and close(stated[1], found[1])


def said_in(kind: str, question: str, raw: str) -> Iterator[tuple[str, float | None, str | None]]:
    """Give item, number and choice of what a reply says."""
    answer = answer_in(raw, fenced=True) or {}
    if kind == "judge-extract":
        parts = [bare(part) for part in str(answer.get("descriptors", "")).split(",")]
        phrases = [part for part in dict.fromkeys(parts) if part not in NOTHING][:MOST_PHRASES]
        yield from ((phrase, None, None) for phrase in phrases or [""])
    elif kind == "judge-likert":
        said = str(answer.get("answer", ""))
        yield question, float(said[-1:] or "nan"), said
    else:
        yield question, chance_of_yes(answer), None


def bare(phrase: str) -> str:
    """Write a phrase as tables do: small letters, single spaces, no stop at its end, nothing that nobody sees."""
    seen = "".join(letter for letter in phrase if unicodedata.category(letter) != "Cf")
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", seen.strip(" .")).casefold())
    return " ".join(folded.split())


def check_scene_truth(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hold what scenes are said to show in truth against what their images say was drawn."""
    source = tree.source(stage, "images")
    if source is None:
        ledger.note("truth", stage.name, "its images are not here")
        return
    said: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for row in pl.read_parquet(stage.folder / TABLE).to_dicts():
        said[row["image_id"]].add((row["task"], row["dimension"], row["item"], row["value"]))
    for image in pl.read_parquet(source).filter(pl.col("truth_scene").is_not_null()).to_dicts():
        scene, rows = json.loads(image["truth_scene"]), said.pop(image["image_id"], set())
        shown = {("extract", kind, token, None) for kind, tokens in scene["shown"].items() for token in tokens or [""]}
        strengths = {
            (*row[:3], scene["stereotypes"].get(row[2].casefold(), 0.0)) for row in rows if row[0] != "extract"
        }
        ledger.count("scenes held against what was drawn")
        if rows != shown | strengths:
            ledger.broken(
                "truth", f"{stage.name}/{TABLE} ({image['image_id']})", "is not what was drawn",
                expected=sorted(map(str, (shown | strengths) - rows)), found=sorted(map(str, rows - shown - strengths)),
            )  # fmt: skip
    for image_id in sorted(said):
        ledger.broken("truth", f"{stage.name}/{TABLE} ({image_id})", "is no image of those")


def check_breakdown(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Average ALIGN by country and dimension, and FAITH by category, once more: each prompt alike."""
    paths = [tree.source(stage, role) for role in ("values", "matches", "prompts")]
    if None in paths:
        ledger.not_verifiable(stage.name, rows, "the values or matches are not here")
        return
    values, matches, prompts = (pl.read_parquet(path).to_dicts() for path in paths if path is not None)
    about = {prompt["prompt_id"]: (prompt["concept"], prompt["country"]) for prompt in prompts}
    of_prompt: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for one in matches:
        if one["side"] == "reference":
            of_prompt["align", one["model"], one["prompt_id"], one["dimension"]].append(float(one["covered"]))
    for one in values:
        if one["metric"] == "faith":
            of_prompt["faith", one["model"], one["prompt_id"], None].append(one["value"])
    cells: dict[tuple[Any, ...], list[list[float]]] = defaultdict(list)
    for (metric, model, prompt, dimension), own in of_prompt.items():
        if model in stage.manifest.options["models"] and prompt in about:
            concept, country = about[prompt]
            places = [(None, country)] if metric == "align" else [(concept, None), (concept, country)]
            for who in (model, "all"):
                for place in places:
                    cells[metric, who, *place, dimension].append([math.fsum(own) / len(own)] if dimension else own)
    for row in rows:
        key = (row["metric"], row["model"], row["concept"], row["country"], row["about"].get("dimension"))
        found = cells.pop(key, [])
        answer = t_answer(of_these(found), CONFIDENCE) if found else Answer(math.nan, math.nan, math.nan)
        said = {} if row["metric"] == "align" else {"confidence": CONFIDENCE}
        compare_row(stage.name, row, answer, len(found), EACH_PROMPT, ledger, said=said)
    for key in cells:
        ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a score is missing", expected=str(key))


EACH_PROMPT = "from the values and matches: means of the means of prompts"


def check_gaps_of_scores(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Recompute every gap from the scores of its two groups, and which gaps there must be."""
    scores = scores_behind(tree, stage)
    if scores is None:
        ledger.not_verifiable(stage.name, rows, "the scores that were subtracted are not here")
        return
    groups = {key[1] for key in scores if key[1] is not None}
    expected = {(key[0], a, b, *key[2:]): (scores[key], scores[key[0], b, *key[2:]])
                for key in scores for a, b in itertools.combinations(sorted(groups), 2)
                if key[1] == a and (key[0], b, *key[2:]) in scores}  # fmt: skip
    for row in rows:
        about = row["about"]
        key = (
            about["metric"],
            about["a"],
            about["b"],
            row["model"],
            row["benchmark"],
            row["concept"],
            about["labels"],
            about["pool"],
        )
        sides = expected.pop(key, None)
        if sides is None or row["metric"] != "group_gap":
            ledger.broken("scores", f"{stage.name}/{SCORES_FILE} row {row['row']}", "is no gap of the scores")
            ledger.judge(stage.name, row, "wrong", HOW)
        else:
            compare_row(stage.name, row, difference(*sides), sides[0]["n"] + sides[1]["n"], HOW, ledger)
    for key in expected:
        ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a gap is missing", expected=str(key))


HOW = "from the scores of the two groups: their difference, and limits whose distances add in squares"


def scores_behind(tree: RunTree, stage: FinishedStage) -> dict[tuple[Any, ...], dict[str, Any]] | None:
    """Read the scores that were subtracted, by what they are; the truth of what nobody judged is not among them."""
    scores: dict[tuple[Any, ...], dict[str, Any]] = {}
    paths = tree.inputs_of(stage)
    if paths is None:
        return None
    for role, path in paths.items():
        for one in pl.read_parquet(path).to_dicts():
            about = json.loads(one["params"])
            labels = "truth" if role == "truth" else about.get("labels", "judged")
            place = (one["model"], one["benchmark"], one["concept"], labels, about.get("pool"))
            scores[one["metric"], one["group"], *place] = one
    judged = {key[0] for key in scores if key[-2] != "truth"}
    return {key: one for key, one in scores.items() if key[0] in judged}


def difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> Answer:
    """Subtract a score from another."""
    value = one["value"] - other["value"]
    ends = [row[end] for row in (one, other) for end in ("ci_low", "ci_high")]
    if any(end is None or not math.isfinite(end) for end in ends):
        return Answer(value, math.nan, math.nan)
    low, high, other_low, other_high = ends
    below = math.sqrt((one["value"] - low) ** 2 + (other_high - other["value"]) ** 2)
    above = math.sqrt((high - one["value"]) ** 2 + (other["value"] - other_low) ** 2)
    return Answer(value, value - below, value + above)
