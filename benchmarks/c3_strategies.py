"""In how many simulated worlds the strategies of selection stand in their true order, by what people rate.

A world is a collection of pictures with captions in its language, translations and lists of objects that are right to
a dialled degree: those of `recipes/c3.yaml`, so that nothing is drawn and read again (its marks are read without
error). Each strategy keeps as many pairs; three people rate the relevance of every pair from 1 to 5. The true worth of
a strategy is the mean true alignment of the pairs that it keeps.
"""

import itertools
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from recording import record

from culturekit.builders.captions.pairs import SelectOptions, select_pairs
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.builders.simulated.simulated_encoder import SimulatedEncoder, things_of
from culturekit.builders.simulated.simulated_model import CAPTIONING, IMAGE_TASKS, Manner, Options
from culturekit.core.schemas import ANNOTATIONS
from culturekit.core.schemas import VALUES as VALUES_TABLE
from culturekit.generation.simulated.scenes.scenes_backend import Options as Dials
from culturekit.generation.simulated.scenes.scenes_backend import all_named, scene_of, spoken, world
from culturekit.llm.client import Image
from culturekit.recipes.c3.pairs import worth_of
from culturekit.recipes.c3.recipe import EVERY
from culturekit.recipes.c3.scores import score_c3
from culturekit.recipes.c3.world import alt_text, pair_truth, ratings_of
from culturekit.scores.inputs import LabelledVectors

WORLDS, EACH, KEPT, RATERS = 100, 56, 0.2, 3
"""Worlds, pictures of each of 36 activities in a world, the share that is kept, and people who rate a pair."""

WEB = Dials(knows="0.2", invents="0.1").knowledge
TRANSLATOR, LISTER = Options(omits="0.4", invents="0.1"), Options(omits="0.05", invents="0.05")
NAMES, WRONG, TEXT, IMAGE = 0.6, 0.2, SimulatedEncoder(0), SimulatedEncoder(3.2)
LISTED, COUNTRY, CRITERION = ("objects", "attire", "interaction"), "CN", "relevance"
PEOPLE = SimulatedPeople(scatter=0.6, careless=0)


@dataclass(frozen=True)
class Pair:
    """A pair: the caption, its translation, the objects that were listed, and the scene that is shown."""

    item: str
    source: str
    translation: str
    objects: tuple[str, ...]
    scene: Any


def pairs_of(seed: int) -> list[Pair]:
    """Draw a world."""
    translator, lister = Manner(TRANSLATOR, f"translator {seed}"), Manner(LISTER, f"lister {seed}")
    found = []
    for number, ((activity, category), _) in enumerate(itertools.product(world().activities, range(EACH))):
        item = f"{seed}-{number:05}"
        scene = scene_of(category, activity, COUNTRY, WEB, prompt="", seed=seed * 1_000_003 + number)
        source = spoken(alt_text(scene.as_data(), item, names=NAMES, wrong=WRONG, seed=seed))
        asked = {"id": item, "caption": source, "language": "en"}
        translation = str(CAPTIONING["captions.translate"](asked, translator)["translation"])
        picture = Image(b"", "image/png", item, 1, 1)
        answers = [IMAGE_TASKS["image.extract"](picture, scene, {"dimension": kind}, lister) for kind in LISTED]
        seen = [str(answer["descriptors"]) for answer in answers]
        listed = tuple(dict.fromkeys(name for said in seen for name in said.split(", ") if name))
        found.append(Pair(item, source, translation, listed, scene))
    return found


def aligned(pairs: list[Pair]) -> pl.DataFrame:
    """Score the pairs as `score c3` does; a picture is read without error, and blurred as its file would be."""
    items = [pair.item for pair in pairs]
    objects = [(f"{pair.item}#{k}", name) for pair in pairs for k, name in enumerate(pair.objects, start=1)]
    shown = [all_named(pair.scene.shown) for pair in pairs]
    told = [pair.translation for pair in pairs]
    vectors = {
        "source": LabelledVectors(TEXT.encode_texts([pair.source for pair in pairs]), items),
        "target": LabelledVectors(TEXT.encode_texts(told), items),
        "objects": LabelledVectors(TEXT.encode_texts([name for _, name in objects]), [key for key, _ in objects]),
        "image": LabelledVectors(np.array([IMAGE.vector(*one) for one in zip(shown, items, strict=True)]), items),
        "image_target": LabelledVectors(
            np.array([IMAGE.vector(things_of(text) or frozenset((text,)), f"{item} {text}")
                      for item, text in zip(items, told, strict=True)]), items,
        ),
    }  # fmt: skip
    return score_c3(vectors).scored.values


def one_world(seed: int) -> tuple[tuple[str, ...], tuple[str, ...], int, int, dict[str, float]]:
    """Give the true order, that by people, how many of 15 pairs people tell apart, how many wrongly, and the truth."""
    pairs = pairs_of(seed)
    selected = select_pairs(aligned(pairs), SelectOptions(int(KEPT * len(pairs)), EVERY, seed=seed))
    truth = {
        pair.item: 1 + 4 * pair_truth(pair.source, pair.translation, pair.scene.as_data())[CRITERION] for pair in pairs
    }
    deserved = {(item, CRITERION): value for item, value in truth.items()}
    rows = [
        {"item_id": item, "annotator": f"person-{person}", "annotator_region": "anywhere", "scheme": "c3_captions",
         "criterion": CRITERION, "flags": [], "value": float(ratings_of(
             f"person-{person}", {"item_id": item, "kind": "item"}, criteria=[CRITERION], deserved=deserved, how=PEOPLE,
             seed=seed)[CRITERION])}
        for item in truth
        for person in range(RATERS)
    ]  # fmt: skip
    answers = pl.DataFrame(rows, schema=ANNOTATIONS.schema)
    known = pl.DataFrame(
        [{"metric": "rating_mean", "model": "truth", "benchmark": "c3", "item": item, "value": value,
          "params": '{"criterion":"relevance","labels":"truth"}'} for item, value in truth.items()],
        schema=VALUES_TABLE.schema,
    )  # fmt: skip
    worth = list(worth_of(selected.filter("kept"), answers, known))
    scores, values = pl.DataFrame([row for row, _ in worth]), pl.concat(values for _, values in worth)
    means = {labels: dict(part.select("model", "value").iter_rows()) for labels, part in by_labels(scores).items()}
    people = {model: dict(part.select("item", "value").iter_rows())
              for (model,), part in by_labels(values)["people"].group_by("model")}  # fmt: skip
    apart = wrong = 0
    for a, b in itertools.combinations(EVERY, 2):
        low, high = difference(people[a], people[b])
        if low > 0 or high < 0:
            apart += 1
            wrong += (means["truth"][a] - means["truth"][b]) * (low + high) < 0
    orders = (tuple(sorted(EVERY, key=lambda name: means[labels][name])) for labels in ("truth", "people"))
    true, by_people = orders
    return true, by_people, apart, wrong, means["truth"]


def by_labels(table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Part a table by labels."""
    said = table.with_columns(labels=pl.col("params").str.json_path_match("$.labels"))
    return {str(key[0]): part for key, part in said.group_by("labels")}


def difference(a: dict[str, float], b: dict[str, float]) -> tuple[float, float]:
    """Give the limits of the difference of two means of pairs, some of which both keep, at 95 %."""
    every = sorted(a.keys() | b.keys())
    means = sum(a.values()) / len(a), sum(b.values()) / len(b)
    added = np.array([
        (a[item] - means[0]) / len(a) * (item in a) if item not in b else
        ((a[item] - means[0]) / len(a) if item in a else 0.0) - (b[item] - means[1]) / len(b)
        for item in every
    ])  # fmt: skip
    margin = 1.96 * float(np.sqrt(np.square(added).sum()))
    return means[0] - means[1] - margin, means[0] - means[1] + margin


def main() -> None:
    """Run the worlds, and record what came of them."""
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(one_world, range(WORLDS)))
    same = sum(true == people for true, people, *_ in found)
    first = sum(true[-1] == people[-1] == "c3" for true, people, *_ in found)
    clean = sum(not wrong for *_, wrong, _ in found)
    apart = sum(apart for _, _, apart, *_ in found)
    (usual, count), *_ = Counter(true for true, *_ in found).most_common(1)
    means = {name: float(np.mean([truth[name] for *_, truth in found])) for name in usual}
    table = [
        ("of 100 worlds" if WORLDS == 100 else f"of {WORLDS} worlds", "worlds"),
        ("all six strategies stand as the truth says", str(same)),
        ("c3 is first in truth and by people", str(first)),
        ("no two that people tell apart stand otherwise in truth", str(clean)),
        (f"true order {' < '.join(usual)}", str(count)),
        ("pairs of strategies told apart, of 15, on average", f"{apart / len(found):.1f}"),
        *((f"true worth of {name}, from 1 to 5, on average", f"{value:.2f}") for name, value in means.items()),
    ]
    record(
        "c3_strategies",
        title=f"Strategies of selection against the truth: worlds of {36 * EACH:,} pairs, of which {KEPT:.0%} are kept",
        command="python benchmarks/c3_strategies.py", table=table,
    )  # fmt: skip


if __name__ == "__main__":
    main()
