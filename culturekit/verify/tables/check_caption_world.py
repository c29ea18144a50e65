"""Captions that models draw, pairs that strategies keep: what is true of them and what they are worth, once more."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from math import fsum
from typing import Any

import polars as pl
import yaml

from culturekit.storage.package_data import shipped
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.score_rows import close

__all__ = ["check_captioned", "check_pair_items", "check_ranked_values", "check_truth_of_captions", "check_worth"]

WORLD = "generation/simulated/scenes/vocabulary.yaml"
DIMENSIONS = ("background", "objects", "attire", "interaction", "spatial")
CRAFT = 0.75
"""What ratings deserve that nothing in the simulated world differs in."""

Values = dict[tuple[str, str, str], float]
"""By metric, criterion and item."""


@cache
def known() -> tuple[frozenset[str], Mapping[str, frozenset[str]]]:
    """Give everything that the simulated world shows, and what each country alone shows."""
    told = yaml.safe_load(shipped(WORLD).read_text(encoding="utf-8"))
    places = {str(name): frozenset(token for kind in DIMENSIONS for token in each[kind])
              for name, each in told["countries"].items()}  # fmt: skip
    every = {token for each in told["categories"].values() for kind in DIMENSIONS for token in each[kind]}
    every |= {token for each in told["categories"].values() for pair in each["activities"].values() for token in pair}
    return frozenset(every).union(*places.values()), places


def named(text: str) -> frozenset[str]:
    """Find the things that a text names: whole words, and of two that begin together the longer."""
    words = re.findall(r"\w+|[^\w\s]", text.casefold())
    found, place = set(), 0
    things = {tuple(re.findall(r"\w+|[^\w\s]", thing)): thing for thing in known()[0]}
    longest = max(map(len, things))
    while place < len(words):
        size = next((n for n in range(longest, 0, -1) if tuple(words[place : place + n]) in things), 0)
        if size:
            found.add(things[tuple(words[place : place + size])])
        place += max(size, 1)
    return frozenset(found)


def alike(a: frozenset[str], b: frozenset[str]) -> float:
    """Give twice what two sets share by what both have."""
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0


def at_home(things: frozenset[str], country: str) -> float:
    """Give the share of things that not only other countries show."""
    elsewhere = frozenset().union(*(own for place, own in known()[1].items() if place != country))
    return 1 - len(things & elsewhere) / len(things) if things else 1.0


def values_in(path: Any) -> Values:  # noqa: ANN401 - a path
    """Read values by metric, criterion and item."""
    return {
        (row["metric"], str(json.loads(row["params"]).get("criterion")), row["item"]): row["value"]
        for row in pl.read_parquet(path).iter_rows(named=True)
    }


def compare(stage: FinishedStage, stated: Mapping[Any, float], found: Mapping[Any, float], ledger: Ledger) -> None:
    """Hold values against what they follow from."""
    where = f"{stage.name}/values.parquet"
    for key in sorted(stated.keys() ^ found.keys()):
        ledger.broken("captions", where, f"has a value too many or too few: {', '.join(map(str, key))}")
    for key in sorted(key for key in stated.keys() & found.keys() if not close(stated[key], found[key])):
        ledger.broken("captions", where, f"{', '.join(map(str, key))} is another value", expected=found[key],
                      found=stated[key])  # fmt: skip
    ledger.count("values of captions recomputed", len(stated))


def check_truth_of_captions(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Work out from what was drawn and what was said which ratings pictures and translations deserve."""
    pairs, prompts = tree.source(stage, "translations"), tree.source(stage, "prompts")
    texts = pairs or prompts
    tables = [pl.read_parquet(path) for role, path in tree.sources_of(stage, "images.parquet")]
    if texts is None or not tables:
        ledger.note("captions", stage.name, "its images or captions are not here")
        return
    said = {row.get("id") or row.get("prompt_id"): row for row in pl.read_parquet(texts).to_dicts()}
    found: Values = {}
    for image in pl.concat(
        [table.select("image_id", "prompt_id", "truth_scene", "status") for table in tables]
    ).to_dicts():
        row = said.get(image["image_id"] if pairs else image["prompt_id"])
        if row is None or image["status"] != "ok":
            continue
        scene, item = json.loads(image["truth_scene"]), image["image_id"]
        deserved = of_pair(row, scene) if pairs else of_image(row["text"], scene)
        found |= {("rating_mean", name, item): 1 + 4 * value for name, value in deserved.items()}
        if not pairs:
            found["vqascore", "object_presence", item] = deserved["object_presence"]
    compare(stage, values_in(stage.folder / "values.parquet"), found, ledger)


def of_image(caption: str, scene: Mapping[str, Any]) -> dict[str, float]:
    """Say what a picture of a caption deserves."""
    asked, shown = named(caption), frozenset(token for tokens in scene["shown"].values() for token in tokens)
    there = len(asked & shown) / len(asked) if asked else 0.0
    cliche = 1 - min(1.0, sum(scene["stereotypes"].values()) / 2) / 2
    return {
        "object_presence": there, "object_localization": there, "visual_aesthetics": CRAFT, "cohesion": CRAFT,
        "semantic_consistency": alike(asked, shown),
        "cultural_appropriateness": at_home(shown - asked, scene["country"]) * cliche,
    }  # fmt: skip


def of_pair(row: Mapping[str, Any], scene: Mapping[str, Any]) -> dict[str, float]:
    """Say what a translated caption deserves; its original is in the language of the simulated world."""
    original = named(re.sub(r"\w+", lambda word: word[0][::-1], row["source"]))
    told, shown = named(row["text"]), frozenset(token for tokens in scene["shown"].values() for token in tokens)
    return {
        "adequacy": alike(original, told), "fluency": CRAFT, "consistency": CRAFT, "relevance": alike(told, shown),
        "context": len(told & shown) / len(shown) if shown else 0.0,
        "cultural_appropriateness": at_home(told, scene["country"]),
    }  # fmt: skip


def check_captioned(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hold the caption of each image against its prompt."""
    images, prompts = tree.source(stage, "images"), tree.source(stage, "prompts")
    if images is None or prompts is None:
        return
    texts = dict(pl.read_parquet(prompts).select("prompt_id", "text").iter_rows())
    made = pl.read_parquet(images).filter(status="ok").select("image_id", "prompt_id")
    wanted = {image: texts.get(prompt) for image, prompt in made.iter_rows()}
    same_texts(stage, "captions", "id", "text", wanted, ledger)


def check_pair_items(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hold pairs that people rate against the translations."""
    source = tree.source(stage, "translations")
    if source is not None:
        known_texts = dict(pl.read_parquet(source).select("id", "text").iter_rows())
        drawn = pl.read_parquet(stage.folder / "pair_items.parquet")["item_id"]
        wanted = {item: known_texts.get(item) for item in drawn}
        same_texts(stage, "pair_items", "item_id", "translation", wanted, ledger)
        if len(drawn) != min(stage.manifest.options["count"], len(known_texts)):
            ledger.broken("captions", f"{stage.name}/pair_items.parquet", "are not as many as were to be drawn")


def same_texts(
    stage: FinishedStage, table: str, key: str, column: str, wanted: Mapping[str, str | None], ledger: Ledger
) -> None:
    """Hold the texts of a table against those that they are."""
    found = dict(pl.read_parquet(stage.folder / f"{table}.parquet").select(key, column).iter_rows())
    for item in sorted(item for item in found.keys() | wanted.keys() if found.get(item) != wanted.get(item)):
        ledger.broken("captions", f"{stage.name}/{table}.parquet", f"{item!r} has another text",
                      expected=wanted.get(item), found=found.get(item))  # fmt: skip
    ledger.count("captions held against their sources", len(found))


def check_ranked_values(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hold what strategies rank by against the selection."""
    source = tree.source(stage, "selected")
    if source is not None:
        ranked = pl.read_parquet(source).drop_nulls("value").select("strategy", "item", "value").iter_rows()
        table = pl.read_parquet(stage.folder / "values.parquet").drop_nulls("value")
        stated = {(json.loads(row["params"])["strategy"], row["item"]): row["value"] for row in table.to_dicts()}
        compare(stage, stated, {(strategy, item): value for strategy, item, value in ranked}, ledger)


def check_worth(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Collect what people rate, and what is true, of the pairs that each strategy keeps."""
    source = tree.source(stage, "selected")
    if source is None:
        ledger.note("captions", stage.name, "the selection is not here")
        return
    kept = defaultdict(list)
    for row in pl.read_parquet(source).filter("kept").iter_rows(named=True):
        kept[row["item"]].append(row["strategy"])
    found = {(strategy, *rest): value for rest, value in rated(tree, stage) for strategy in kept[rest[-1]]}
    stated = {
        (row["model"], about["labels"], about["criterion"], row["item"]): row["value"]
        for row in pl.read_parquet(stage.folder / "values.parquet").iter_rows(named=True)
        for about in [json.loads(row["params"])]
    }
    compare(stage, stated, found, ledger)


def rated(tree: RunTree, stage: FinishedStage) -> Iterator[tuple[tuple[str, str, str], float]]:
    """Give the mean rating of each pair by people, and what it deserves, by labels, criterion and item."""
    answers, truth = tree.source(stage, "answers"), tree.source(stage, "truth")
    if answers is not None:
        said: dict[tuple[str, str], list[float]] = defaultdict(list)
        for row in pl.read_parquet(answers).drop_nulls("value").iter_rows(named=True):
            if not row["flags"]:
                said[row["criterion"], row["item_id"]].append(row["value"])
        yield from ((("people", *key), fsum(numbers) / len(numbers)) for key, numbers in said.items())
    if truth is not None:
        yield from (
            (("truth", criterion, item), value)
            for (metric, criterion, item), value in values_in(truth).items()
            if metric == "rating_mean"
        )
