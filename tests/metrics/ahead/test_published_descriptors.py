"""The authors' formulas on published descriptors: tables scored against loops over pairs."""

import json
import math
import random
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest

from culturekit.core.schemas import DESCRIPTORS, IMAGES, JUDGMENTS, PROMPTS
from culturekit.recipes.cultivate.scores import AheadInput, AheadOptions, score_ahead
from tests.metrics.ahead.descriptor_oracle import align_by_pairs, ddiv_by_pairs, hal_by_pairs
from tests.recipes.cultivate.ahead_world import image_row, judgment_row

TAU = 0.52
FIVE = ("setting", "objects", "attire", "interaction", "spatial")
Tokens = dict[str, list[str]]


def published(folder: Path) -> dict[str, tuple[str, Tokens]]:
    """Read country and tokens of each published sub-activity."""
    found = {}
    for activities in json.loads((folder / "ahead/iran_descriptors.json").read_text(encoding="utf-8")).values():
        for name, lists in activities.items():
            found[f"ir-{name}"] = "IR", {dim: [each["token"] for each in rows] for dim, rows in lists.items()}
    for name, lists in json.loads((folder / "ahead/nepal_tokens.json").read_text(encoding="utf-8")).items():
        found[f"np-{name}"] = "NP", lists
    return found


@cache
def vector(phrase: str) -> list[float]:
    """Add up a direction per word, so that phrases which share words are alike."""
    total = [0.0] * 24
    for word in phrase.casefold().split():
        drawn = random.Random(word)
        total = [number + drawn.gauss(0, 1) for number in total]
    return total


@cache
def cosine(one: str, other: str) -> float:
    a, b = vector(one.casefold()), vector(other.casefold())
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def once(tokens: list[str]) -> list[str]:
    return list(dict.fromkeys(" ".join(token.casefold().split()) for token in tokens))


def extracted(asked: dict[str, tuple[str, Tokens]], prompt: str, image: int) -> Tokens:
    """Draw what an extractor says: tokens of this activity, of others, some shortened; sometimes nothing."""
    drawn = random.Random(f"{prompt} {image}")
    said: Tokens = {}
    for dimension in FIVE:
        own = asked[prompt][1][dimension]
        others = [token for name, (_, lists) in asked.items() if name != prompt for token in lists[dimension]]
        chosen = drawn.sample(own, 3) + drawn.sample(others, 2)
        said[dimension] = [] if drawn.random() < 0.1 else [drawn.choice((token, token.split()[0])) for token in chosen]
    return said


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def tables(asked: dict[str, tuple[str, Tokens]], said: dict[str, list[Tokens]]) -> AheadInput:
    """Write it all as tables: references under the published names, predictions under `background`."""
    descriptors, images, rows, stereotypes = [], [], [], []
    for prompt, (_, lists) in asked.items():
        descriptors += [
            {"prompt_id": prompt, "dimension": dimension, "token": token, "style": "traditional|modern",
             "necessity": "optional", "proposers": ["published"]}
            for dimension, tokens in lists.items() for token in dict.fromkeys(tokens)
        ]  # fmt: skip
        for model in ("made", "real"):
            for number, lists_said in enumerate(said[prompt]):
                name = f"{model}/{prompt}/{number}"
                images.append(image_row(name, model=model, prompt_id=prompt, repeat=number))
                for dimension, tokens in lists_said.items():
                    ours = "background" if dimension == "setting" else dimension
                    rows += [
                        judgment_row(name, token, task="extract", dimension=ours)
                        for token in list(dict.fromkeys(tokens)) or [""]
                    ]
                stereotypes += [
                    judgment_row(name, token, task="stereotype", judge="vqa", value=score(name, token))
                    for token in ("rug", "mountain", "veil")
                ]
    prompts = [
        {"prompt_id": prompt, "text": prompt, "benchmark": "cultivate", "kind": "activity", "country": country,
         "language": "en", "template_id": "t"}
        for prompt, (country, _) in asked.items()
    ]  # fmt: skip
    phrases = sorted({*(row["token"] for row in descriptors), *(row["item"] for row in rows)} - {""})
    return AheadInput(
        pl.DataFrame(images, schema=IMAGES.schema),
        pl.DataFrame(prompts, schema=PROMPTS.schema),
        pl.DataFrame(descriptors, schema=DESCRIPTORS.schema),
        pl.DataFrame(rows, schema=JUDGMENTS.schema),
        np.array([vector(phrase) for phrase in phrases]),
        phrases,
        pl.DataFrame(stereotypes, schema=JUDGMENTS.schema),
    )


def score(image: str, token: str) -> float:
    return random.Random(f"{image} {token}").random()


def exag_by_loop(asked: dict[str, tuple[str, Tokens]], image: str) -> float:
    country = asked[image.split("/")[1]][0]
    real = [f"real/{prompt}/{number}" for prompt in asked if asked[prompt][0] == country for number in range(4)]
    tokens = ("rug", "mountain", "veil")
    return mean([max(0.0, score(image, token) - mean([score(name, token) for name in real])) for token in tokens])


@pytest.mark.parametrize("aggregate", ["dimension", "pooled"])
def test_scores_on_published_descriptors_are_those_of_a_loop(
    shared_data: Path, aggregate: Literal["dimension", "pooled"]
) -> None:
    asked = published(shared_data)
    said = {prompt: [extracted(asked, prompt, image) for image in range(4)] for prompt in asked}
    answer = score_ahead(tables(asked, said), options=AheadOptions(tau=TAU, real="real", aggregate=aggregate))
    found: dict[tuple[str, str], float] = {
        (row["metric"], row["item"]): row["value"] for row in answer.scored.values.filter(model="made").to_dicts()
    }
    wanted: dict[tuple[str, str], Any] = {}
    for prompt, (_, lists) in asked.items():
        n_ref, pooled = {name: len(once(lists[name])) for name in FIVE}, aggregate == "pooled"
        arrays = [{name: similar(lists[name], image[name]) for name in FIVE} for image in said[prompt]]
        aligned = [align_by_pairs(array, n_ref, TAU, pooled=pooled) for array in arrays]
        together = {name: np.concatenate([array[name] for array in arrays]) for name in FIVE}
        wanted[("ddiv", prompt)] = ddiv_by_pairs(arrays, n_ref, TAU)
        wanted[("sdiv", prompt)] = align_by_pairs(together, n_ref, TAU, pooled=pooled) - mean(aligned)
        for number, array in enumerate(arrays):
            name = f"made/{prompt}/{number}"
            wanted[("align", name)] = aligned[number]
            wanted[("hal", name)] = hal_by_pairs(array, n_ref, TAU, pooled=pooled)
            wanted[("exag", name)] = exag_by_loop(asked, name)
            kinds = wanted[("align", name)], 1 - wanted[("hal", name)], 1 - wanted[("exag", name)]
            wanted[("faith", name)] = mean(list(kinds))
    assert {key for key in found if key[0] != "empty"} == wanted.keys()
    assert all(abs(found[key] - value) < 1e-9 for key, value in wanted.items())
    assert len({round(value, 3) for (metric, _), value in wanted.items() if metric == "align"}) > 5, "it varies"
    assert not any("predictions" in reason for reason in answer.scored.left_out)
    people = sum(len(once(lists.get("people", []))) for _, lists in asked.values())
    assert answer.scored.left_out["references the extractor cannot see: people"] == people > 0


def similar(references: list[str], predictions: list[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    rows = [[cosine(r, p) for r in once(references)] for p in once(predictions)]
    return np.array(rows).reshape(len(rows), len(once(references)))
