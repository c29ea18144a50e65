"""Captions against what was proposed, samples against what they are drawn from, objects and translations read again."""

import unicodedata
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import yaml

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree

__all__ = ["check_expansion", "check_objects", "check_sample", "check_translations"]

KEPT, SAME, ALIKE, NEAR = "kept", "same as an earlier caption", "like an earlier caption", 1e-6


def words(text: str) -> str:
    """Keep letters, digits and marks, in small letters, with one space between words."""
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join("".join(one if unicodedata.category(one)[0] in "LNM" else " " for one in plain).split())


def check_expansion(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Follow each caption to its proposal or its seed, and hold each proposal against the captions before it."""
    where, options = f"{stage.name}/captions.parquet", stage.manifest.options
    captions = {row["id"]: row for row in pl.read_parquet(stage.folder / "captions.parquet").iter_rows(named=True)}
    source = tree.source(stage, "culture")
    seeds = [row["text"] for row in captions.values() if row["round"] == 0]
    if source is None:
        ledger.note("captions", stage.name, "its culture is not here")
    elif seeds != [seed["caption"] for seed in yaml.safe_load(source.read_text(encoding="utf-8"))["seeds"]]:
        ledger.broken("captions", where, "begins with other seeds than its culture", found=seeds)
    for text, count in Counter(words(row["text"]) for row in captions.values()).items():
        if count > 1:
            ledger.broken("captions", where, "a caption stands twice", found=text)
    told: dict[str, tuple[str, str, int]] = {}
    shown: dict[int, list[str]] = defaultdict(list)
    for row in pl.read_parquet(stage.folder / "caption_proposals.parquet").iter_rows(named=True):
        place = f"{stage.name}/caption_proposals.parquet ({row['round']}/{row['request']}/{row['position']})"
        if row["outcome"] == KEPT:
            told[row["caption_id"]] = (row["text"], row["category"], row["round"])
        if not true_outcome(row, captions, options["similarity"]):
            ledger.broken(
                "captions", place, f"is not {row['outcome']!r}", found=f"{row['nearest']} {row['similarity']}"
            )
        if any(each not in captions or captions[each]["round"] >= row["round"] for each in row["examples"]):
            ledger.broken("captions", place, "was shown captions that were not there yet", found=row["examples"])
        if row["position"] == 1:
            shown[row["round"]] += row["examples"]
    for number, examples in shown.items():
        if len(set(examples)) < len(examples):
            ledger.broken("captions", stage.name, f"round {number} shows a caption twice")
    stated = {own: (row["text"], row["category"], row["round"]) for own, row in captions.items() if row["round"]}
    for own in sorted(stated.keys() | told.keys()):
        said, found = told.get(own), stated.get(own)
        if said != found:
            ledger.broken("captions", where, f"{own} is not what was proposed", expected=said, found=found)
        ledger.count("captions followed to their proposals")


def true_outcome(row: dict[str, Any], captions: dict[str, dict[str, Any]], threshold: float) -> bool:
    """Say whether what became of a proposal follows from the earlier caption that it is said to be most like."""
    near, alike = captions.get(row["nearest"]), row["similarity"]
    if row["outcome"] == SAME:
        return near is not None and words(near["text"]) == words(row["text"])
    if row["outcome"] == ALIKE:
        return near is not None and alike >= threshold - NEAR
    return row["outcome"] != KEPT or alike is None or alike < threshold + NEAR


def check_sample(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Draw the sample once more, category by category, and hold prompts against it."""
    where, source = f"{stage.name}/captions.parquet", tree.source(stage, "captions")
    drawn = {row["id"]: row for row in pl.read_parquet(stage.folder / "captions.parquet").iter_rows(named=True)}
    asked = dict(pl.read_parquet(stage.folder / "prompts.parquet").select("prompt_id", "text").iter_rows())
    if asked != {own: row["text"] for own, row in drawn.items()}:
        ledger.broken("captions", f"{stage.name}/prompts.parquet", "does not ask for the captions of the sample")
    if source is None:
        ledger.note("captions", stage.name, "the captions that it is drawn from are not here")
        return
    every = sorted(pl.read_parquet(source).iter_rows(named=True), key=lambda row: str(row["id"]))
    given = shared_out(Counter(row["category"] for row in every), stage.manifest.options["size"])
    wanted: dict[str, dict[str, Any]] = {}
    for place in np.random.default_rng(stage.manifest.seeds["seed"]).permutation(len(every)).tolist():
        if given[every[place]["category"]]:
            given[every[place]["category"]] -= 1
            wanted[every[place]["id"]] = every[place]
    if drawn != wanted:
        expected, found = sorted(wanted.keys() - drawn.keys())[:5], sorted(drawn.keys() - wanted.keys())[:5]
        ledger.broken("captions", where, "is another sample than its seed draws", expected=expected, found=found)
    ledger.count("captions drawn anew", len(drawn))


def shared_out(sizes: Counter[str], size: int) -> dict[str, int]:
    """Give each category a place, and each further one to that which lacks most of its share."""
    given = {name: int(position < size) for position, name in enumerate(sorted(sizes))}
    while sum(given.values()) < size:
        lacks = {name: Fraction(size * sizes[name], sizes.total()) - count for name, count in given.items()}
        given[max((name for name in lacks if given[name] < sizes[name]), key=lambda name: lacks[name])] += 1
    return given


def check_translations(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hold each translation against its caption: it says something else than that, and the caption is as it was."""
    where, source = f"{stage.name}/translations.parquet", tree.source(stage, "captions")
    texts: dict[str, str] = {}
    if source is not None and source.suffix == ".parquet":
        table = pl.read_parquet(source)
        texts = dict(table.select("id", "text").iter_rows()) if {"id", "text"} <= set(table.columns) else {}
    for row in pl.read_parquet(stage.folder / "translations.parquet").iter_rows(named=True):
        if not words(row["text"]) or words(row["text"]) == words(row["source"]):
            ledger.broken("captions", where, f"{row['id']} has no translation", found=row["text"])
        if texts and texts.get(row["id"]) != row["source"]:
            ledger.broken("captions", where, f"{row['id']} is another caption", expected=texts.get(row["id"]))
        ledger.count("translations held against their captions")


def check_objects(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Count the objects of each item anew: each once, above the threshold."""
    del tree
    where, threshold = f"{stage.name}/objects.parquet", stage.manifest.options["threshold"]
    of_items: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in pl.read_parquet(stage.folder / "objects.parquet").iter_rows(named=True):
        of_items[row["item"]].append(row)
        if row["probability"] is not None and row["probability"] <= threshold:
            ledger.broken("captions", where, f"{row['id']} is not above {threshold}", found=row["probability"])
        ledger.count("objects counted anew")
    for item, rows in of_items.items():
        if {row["id"] for row in rows} != {f"{item}#{number}" for number in range(1, len(rows) + 1)}:
            ledger.broken("captions", where, f"the objects of {item!r} are not numbered from 1")
        if len({words(row["text"]) for row in rows}) < len(rows):
            ledger.broken("captions", where, f"an object of {item!r} stands twice")
