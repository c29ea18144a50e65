"""How often a corrected VQAScore holds what models truly show of captions, with a judge that a rich show carries away.

Each run is the part of the recipe `c3` from captions on, as its file says, with its own captions, scenes, judge and
people; the pictures are left out, because the simulated judge reads them without an error. Intervals speak about other
captions like these: the true value is the mean over many of them. How often they hold that of the images of the run
stands beside it: of these people saw a part, so that it is more often.
"""

import hashlib
import math
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import orjson
import polars as pl
from coverage_of_runs import Told, measure
from withheld import scored_or_none

from culturekit.builders.judging.image_judge import vqa_request
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.builders.simulated import simulated_model
from culturekit.builders.simulated.simulated_model import Manner, Options, composed, make
from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.registry import parse_spec
from culturekit.core.schemas import ANNOTATIONS, IMAGES, PROMPTS, VALUES
from culturekit.generation.simulated.scenes.scenes_backend import Options as Dials
from culturekit.generation.simulated.scenes.scenes_backend import Scene, named_in, scene_of
from culturekit.llm.client import Image
from culturekit.people.rated_sample import rated_sample
from culturekit.recipes.c3.recipe import C3, PRESENCE, VQASCORE
from culturekit.recipes.c3.world import image_truth, ratings_of
from culturekit.scores.judged import JudgedOptions, score_judged

RUNS, SEED, MANY, COUNTRY = 200, 20261124, 4000, "CN"
"""Of the runs; and how many captions make the true value of a model."""


def recipe() -> C3:
    """Read the recipe: its models, its judge, its sample, its people."""
    found = load_any_recipe(find_recipe("c3"))
    assert isinstance(found, C3)
    return found


def captions(seed: int, count: int) -> list[str]:
    """Propose captions as the simulated proposer does."""
    manner = Manner(Options(), f"proposer {seed}")
    return [composed(COUNTRY, manner, seed, number) for number in range(count)]


def drawn(spec: str, text: str, seed: int) -> Scene:
    """Put together what a model shows of a caption."""
    how = parse_spec(spec).read(Dials).knowledge
    return scene_of("", None, COUNTRY, how, prompt=text, seed=seed, named=named_in(text))


def shown(text: str, scene: Scene) -> float:
    """Give the share of what a caption names that a picture shows."""
    return image_truth(text, orjson.loads(orjson.dumps(scene.as_data())))[PRESENCE]


@cache
def true_value(spec: str) -> float:
    """Average over many captions what a model shows of them."""
    texts = captions(SEED - 1, MANY)
    return math.fsum(shown(text, drawn(spec, text, number)) for number, text in enumerate(texts)) / MANY


def one_run(seed: int) -> list[Told]:
    """Make a run; give of each model, judged and corrected, value, limits, truth and what these images show."""
    wanted = recipe()
    texts, people = captions(seed, wanted.captions.sample), wanted.people
    assert people is not None
    assert people.simulated is not None
    prompts = pl.DataFrame(
        [{"prompt_id": f"c-{number:04}", "text": text, "benchmark": "c3", "kind": "caption", "concept": f"{number % 5}",
          "country": COUNTRY, "language": "en", "template_id": "caption"} for number, text in enumerate(texts)],
        schema=PROMPTS.schema,
    )  # fmt: skip
    judge = make(parse_spec(f"{wanted.judge}&seed={seed}"))
    images, values, deserved = [], [], {}
    for model in wanted.models:
        for number, text in enumerate(texts):
            key = hashlib.sha256(f"{seed} {model.name} {number}".encode()).hexdigest()
            scene = drawn(model.backend, text, int(key[:8], 16))
            simulated_model.READ[key] = scene
            (_, yes), _ = judge.ask(vqa_request(Image(b"", "image/png", key, 1, 1), text, instructions="")).tokens
            simulated_model.READ.pop(key)
            deserved[key[:16]] = shown(text, scene)
            place = {"model": model.name, "prompt_id": f"c-{number:04}", "repeat": 0}
            images.append({"image_id": key[:16], "path": "p", "slot": 0, "rewriter": "off", "provider_params": "{}",
                           "status": "ok", "sha256": key, "width": 1, "height": 1} | place)  # fmt: skip
            values.append({"metric": VQASCORE, "benchmark": "questions", "params": '{"target":"population"}',
                           "item": key[:16], "value": math.exp(yes)} | place)  # fmt: skip
    made = pl.DataFrame(images, schema=IMAGES.schema)
    sample = rated_sample(made, prompts, count=people.prompts, rng=np.random.default_rng([seed, 2]))
    answers = pl.DataFrame(list(said(sample, deserved, people.simulated, seed)), schema=ANNOTATIONS.schema)
    how = JudgedOptions(PRESENCE, None, None, 1.0, 5.0, (VQASCORE,), by="in-region")
    found = scored_or_none(
        partial(score_judged, pl.DataFrame(values, schema=VALUES.schema), answers, sample, options=how)
    )
    own = {model: np.mean([deserved[item] for item in part["image_id"]]) for (model,), part in made.group_by("model")}
    true = {model.name: true_value(model.backend) for model in wanted.models}
    return [
        ([row["model"], str(orjson.loads(row["params"])["labels"])], row["value"], row["ci_low"], row["ci_high"],
         true[row["model"]], float(own[row["model"]]))
        for row in found.scores.iter_rows(named=True)
    ]  # fmt: skip


def said(
    sample: pl.DataFrame, deserved: dict[str, float], how: SimulatedPeople, seed: int, raters: int = 3
) -> Iterator[dict[str, Any]]:
    """Let people rate how many of the things of its caption each drawn image shows."""
    for item in sample["image_id"]:
        for person in (f"person-{number}" for number in range(raters)):
            rated = ratings_of(person, {"item_id": item, "kind": "item"}, criteria=[PRESENCE],
                               deserved={(item, PRESENCE): 1 + 4 * deserved[item]}, how=how, seed=seed)  # fmt: skip
            about = {"item_id": item, "annotator": person, "annotator_region": COUNTRY, "in_region": True}
            yield about | {"scheme": "c3_images", "criterion": PRESENCE, "value": float(rated[PRESENCE]), "flags": []}


if __name__ == "__main__":
    measure("caption_coverage", one_run, of=("model", "labels"), first=SEED, runs=RUNS,
            title="Corrected VQAScore in {runs} runs of simulated captions")  # fmt: skip
