"""The authors' formulas on published descriptors, by a loop over pairs that shares nothing with the package."""

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
from culturekit.metrics import align, hallucination, semantic_diversity
from culturekit.recipes.cultivate.scores import AheadInput, AheadOptions, score_ahead
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


def shares(asked: Tokens, said: Tokens) -> dict[str, tuple[int, int, int, int]]:
    """Count, per dimension: references shown, references, predictions that nothing asks for, predictions."""
    counts = {}
    for dimension in FIVE:
        references, predictions = once(asked[dimension]), once(said[dimension])
        shown = sum(any(cosine(r, p) >= TAU for p in predictions) for r in references)
        wrong = sum(all(cosine(r, p) < TAU for r in references) for p in predictions)
        counts[dimension] = shown, len(references), wrong, len(predictions)
    return counts


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def by_loop(asked: Tokens, images: list[Tokens], aggregate: str) -> dict[str, list[float]]:
    """Compute ALIGN and HAL of each image, DDIV and SDIV of them together."""
    answer: dict[str, list[float]] = {"align": [], "hal": []}
    for said in images:
        counts = shares(asked, said).values()
        if aggregate == "dimension":
            answer["align"].append(mean([shown / n for shown, n, _, _ in counts]))
            answer["hal"].append(mean([wrong / m if m else 0.0 for _, _, wrong, m in counts]))
        else:
            answer["align"].append(sum(c[0] for c in counts) / sum(c[1] for c in counts))
            answer["hal"].append(sum(c[2] for c in counts) / max(1, sum(c[3] for c in counts)))
    ddiv, sdiv, together = [], [], []
    for dimension in FIVE:
        references = once(asked[dimension])
        cover = [[any(cosine(r, p) >= TAU for p in once(said[dimension])) for said in images] for r in references]
        c = [sum(row) for row in cover]
        p = [each / sum(c) for each in c if each]
        ddiv.append(-sum(each * math.log(each) for each in p) / math.log(len(references)) if p else 0.0)
        alone = mean([sum(row[i] for row in cover) / len(references) for i in range(len(images))])
        sdiv.append(sum(any(row) for row in cover) / len(references) - alone)
        together += [float(any(row)) for row in cover]
    pooled = mean(together) - mean(answer["align"])  # equation 7 with ALIGN as one share
    return {**answer, "ddiv": [mean(ddiv)], "sdiv": [mean(sdiv) if aggregate == "dimension" else pooled]}


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
        loop = by_loop(lists, said[prompt], aggregate)
        wanted[("ddiv", prompt)], wanted[("sdiv", prompt)] = loop["ddiv"][0], loop["sdiv"][0]
        for number in range(4):
            name = f"made/{prompt}/{number}"
            wanted[("align", name)], wanted[("hal", name)] = loop["align"][number], loop["hal"][number]
            wanted[("exag", name)] = exag_by_loop(asked, name)
            kinds = wanted[("align", name)], 1 - wanted[("hal", name)], 1 - wanted[("exag", name)]
            wanted[("faith", name)] = mean(list(kinds))
    assert {key for key in found if key[0] != "empty"} == wanted.keys()
    assert all(abs(found[key] - value) < 1e-9 for key, value in wanted.items())
    assert len({round(value, 3) for (metric, _), value in wanted.items() if metric == "align"}) > 5, "it varies"
    assert not any("predictions" in reason for reason in answer.scored.left_out)
    people = sum(len(once(lists.get("people", []))) for _, lists in asked.values())
    assert answer.scored.left_out["references the extractor cannot see: people"] == people > 0


def test_the_array_functions_take_published_names_too(shared_data: Path) -> None:
    """ALIGN of one image (single) and of all predictions of a prompt together (pooled over images)."""
    asked = published(shared_data)
    prompt = next(iter(asked))
    lists, images = asked[prompt][1], [extracted(asked, prompt, image) for image in range(4)]
    n_ref = {dimension: len(once(lists[dimension])) for dimension in lists}
    arrays = [
        {"background" if name == "setting" else name: similar(lists[name], image[name]) for name in FIVE}
        for image in images
    ]
    for image, array in zip(images, arrays, strict=True):
        loop = by_loop(lists, [image], "dimension")
        assert abs(align(array, n_ref, tau=TAU) - loop["align"][0]) < 1e-9
        assert abs(hallucination(array, n_ref, tau=TAU) - loop["hal"][0]) < 1e-9
    together = {name: [token for image in images for token in image[name]] for name in FIVE}
    pooled = by_loop(lists, [together], "dimension")["align"][0]
    singles = mean([align(array, n_ref, tau=TAU) for array in arrays])
    assert abs(semantic_diversity(arrays, n_ref, tau=TAU) - (pooled - singles)) < 1e-9


def similar(references: list[str], predictions: list[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    rows = [[cosine(r, p) for r in once(references)] for p in once(predictions)]
    return np.array(rows).reshape(len(rows), len(once(references)))
