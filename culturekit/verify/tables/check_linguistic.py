"""Prompts of dialects, nouns and groups against their lists, samples drawn anew, and what simulated pictures show."""

import json
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import yaml

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree

__all__ = ["check_built", "check_even_sample", "check_joined", "check_known", "check_questions"]

AREA = "linguistic"


def check_built(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Write the prompts of a list or of pairs once more."""
    kind, source = stage.manifest.stage, tree.source(stage, "lists")
    told: dict[str, Any] = {} if source is None else yaml.safe_load(source.read_text(encoding="utf-8"))
    table = pl.read_parquet(stage.folder / "prompts.parquet")
    found = Counter((row["group"], row["text"]) for row in table.to_dicts())
    wanted: Counter[tuple[str | None, str]] = Counter()
    if kind == "build-dialects":
        wanted = check_pairs(stage, ledger)
    elif kind == "build-specific" and "specific" in told:
        wanted.update((group["group"], text) for group in told["specific"] for text in group["prompts"])
        printed = {text for group in told["specific"] for text in group.get("printed", ())}
        for row in table.filter(
            (pl.col("template_id") == "printed in the paper") != pl.col("text").is_in(printed)
        ).to_dicts():
            ledger.broken(AREA, f"{stage.name}/prompts.parquet", "a prompt is from elsewhere", found=row["text"])
    elif kind == "build-neutral" and {"nouns", "groups"} <= told.keys() and "review" not in stage.manifest.inputs:
        groups = {None: "typical", **{group["name"]: group["adjective"] for group in told["groups"]}}
        wanted.update(
            (group, f"{'an' if word[0] in 'AEIOUaeiou' and word[:2] != 'Eu' else 'a'} {word} {noun}")
            for noun in told["nouns"][: stage.manifest.options["nouns"]] for group, word in groups.items()
        )  # fmt: skip
    else:
        ledger.note(AREA, stage.name, "the list or the sheet that its prompts are of is not looked at")
        return
    for group, text in sorted((wanted - found).keys() | (found - wanted).keys(), key=str):
        ledger.broken(AREA, f"{stage.name}/prompts.parquet", "a prompt too many or too few", found=f"{text} ({group})")
    ledger.count("prompts written anew", found.total())


def check_pairs(stage: FinishedStage, ledger: Ledger) -> Counter[tuple[str | None, str]]:
    """Hold pairs against one another, and give the prompts of those that are kept."""
    where, options = f"{stage.name}/dialect_pairs.parquet", stage.manifest.options
    wanted: Counter[tuple[str | None, str]] = Counter()
    kept: set[tuple[str, str]] = set()
    for row in pl.read_parquet(stage.folder / "dialect_pairs.parquet").to_dicts():
        pair = row["standard"].casefold(), row["other"].casefold()
        if (row["outcome"] == "repeated" and pair not in kept) or (row["outcome"] == "kept" and pair in kept):
            ledger.broken(AREA, where, f"pair {row['position']} is not {row['outcome']!r}", found=" / ".join(pair))
        if (row["outcome"] == "kept") != (row["detail"] is None):
            ledger.broken(AREA, where, f"pair {row['position']} has no reason, or one too many", found=row["detail"])
        if row["outcome"] != "kept":
            continue
        kept.add(pair)
        if any(frame.split("{}") != frame.replace("{", "").replace("}", "\0").split("\0") for frame in row["frames"]):
            ledger.broken(AREA, where, f"pair {row['position']} has a sentence without one place for its noun")
            continue
        for frame in row["frames"]:
            for side in ("standard", "other"):
                wanted[options[side], frame.replace("{}", row[side])] += 1
    return wanted


def check_joined(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hold all prompts against those of their kinds."""
    parts = [path for _, path in tree.sources_of(stage, "prompts.parquet")]
    if len(parts) < len(stage.manifest.inputs):
        ledger.note(AREA, stage.name, "a table of prompts is not here")
        return
    whole = sorted(map(str, pl.read_parquet(stage.folder / "prompts.parquet").to_dicts()))
    if whole != sorted(str(row) for path in parts for row in pl.read_parquet(path).select(
        pl.read_parquet(stage.folder / "prompts.parquet").columns).to_dicts()):  # fmt: skip
        ledger.broken(AREA, f"{stage.name}/prompts.parquet", "is not what its parts hold")
    ledger.count("prompts held against their parts", len(whole))


def check_questions(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hold the captions that pictures are asked about against what was to be asked."""
    del tree
    asked = sorted({caption for pair in stage.manifest.options["pairs"] for caption in pair})
    table = pl.read_parquet(stage.folder / "captions.parquet")
    if sorted(table["text"]) != asked or table["id"].to_list() != table["text"].to_list():
        ledger.broken(AREA, f"{stage.name}/captions.parquet", "asks something else", expected=asked)
    ledger.count("captions held against the questions", table.height)


def check_even_sample(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Draw the sample once more, model by model."""
    where, prompts = f"{stage.name}/audit_sample.parquet", tree.source(stage, "prompts")
    images = tree.sources_of(stage, "images.parquet")
    if prompts is None or not images:
        ledger.note(AREA, stage.name, "what it is drawn from is not here")
        return
    asked = set(pl.read_parquet(prompts)["prompt_id"])
    wanted: dict[str, float] = {}
    for _, path in images:
        rows = pl.read_parquet(path).select("image_id", "prompt_id", "status").to_dicts()
        every = sorted(row["image_id"] for row in rows if row["status"] == "ok" and row["prompt_id"] in asked)
        order = np.random.default_rng(stage.manifest.seeds["sample"]).permutation(len(every))
        drawn = [every[place] for place in order[: stage.manifest.options["count"]]]
        wanted |= dict.fromkeys(drawn, len(drawn) / len(every))
    found = dict(pl.read_parquet(stage.folder / "audit_sample.parquet").select("image_id", "chance").iter_rows())
    if found != wanted:
        differ = sorted(key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key))
        ledger.broken(AREA, where, "is another sample than its seed draws", found=", ".join(differ[:5]))
    ledger.count("images drawn anew", len(found))


def check_known(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Read from every picture's truth what an answer without error says of it."""
    wanted: dict[tuple[str, str], tuple[float | None, str | None]] = {}
    for _, path in tree.sources_of(stage, "images.parquet"):
        for image, scene, status in pl.read_parquet(path).select("image_id", "truth_scene", "status").iter_rows():
            if status == "ok":
                wanted |= {(image, name): answer for name, answer in answers(json.loads(scene)).items()}
    stated = {(row["item_id"], row["criterion"]): (row["value"], row["choice"])
              for row in pl.read_parquet(stage.folder / "annotations.parquet").to_dicts()}  # fmt: skip
    for key in sorted(key for key in stated.keys() | wanted.keys() if stated.get(key) != wanted.get(key)):
        ledger.broken(AREA, f"{stage.name}/annotations.parquet", f"{', '.join(key)} is another answer",
                      expected=wanted.get(key), found=stated.get(key))  # fmt: skip
    ledger.count("answers read from the truth", len(stated))


def answers(scene: dict[str, Any]) -> dict[str, tuple[float | None, str | None]]:
    """Say what is true of one picture, by question."""
    if "looks" in scene:
        return {name: (1 + 4 * share, None) for name, share in scene["looks"].items()}
    tone = scene["tone"]
    return {"correct": (None, "yes" if scene["correct"] else "no"),
            "monk_tone": (tone, "none" if tone is None else str(tone))}  # fmt: skip
