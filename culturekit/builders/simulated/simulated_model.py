"""The simulated language and vision model: it knows the simulated world, and errs as its dials say."""

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from culturekit.builders.country_names import country_code
from culturekit.builders.simulated.knowing import CAPTIONING, KNOWING
from culturekit.builders.simulated.manner import Manner, Options
from culturekit.builders.simulated.scene_reader import read_scene
from culturekit.errors import UsageError
from culturekit.generation.simulated.scenes.captions import all_named, named_in
from culturekit.generation.simulated.scenes.scene import STEREOTYPE_MARKS, Scene
from culturekit.generation.simulated.scenes.vocabulary import DIMENSIONS, Expected, world
from culturekit.llm.client import Image, Reply, Request
from culturekit.registry import Spec
from culturekit.storage.picture_reading import NoPicture, picture_from

__all__ = ["LOOKING", "SimulatedModel", "make", "seen"]

Data = Mapping[str, Any]

MOST_PHRASES = 8
ASKED = re.compile(r'show "(.+)"\?')
SCATTER = 0.5
"""How far a rating lies from what the model thinks, at most, and a probability of yes on a scale ten times as fine."""

DOUBT = 0.05
"""How probable the other answer is where the model is sure."""

PICTURES_KEPT = 32_768
READ: OrderedDict[str, Scene | None] = OrderedDict()
"""What pictures show, by hash: each is asked about many times, and reading one takes a thirtieth of a second."""


def seen(image: Image) -> Scene | None:
    """Read a picture, once; None where it is no scene."""
    if image.sha256 not in READ:
        picture = picture_from(image.content)
        READ[image.sha256] = None if isinstance(picture, NoPicture) else read_scene(picture.pixels)
        if len(READ) > PICTURES_KEPT:
            READ.popitem(last=False)
    return READ[image.sha256]


def lenience(scene: Scene, manner: Manner) -> float:
    """Say how much of what is missing from a picture the model believes to see all the same."""
    fullness = len(scene.stereotypes) / STEREOTYPE_MARKS
    return min(1.0, manner.lenient.of_country(scene.country) + manner.halo.of_country(scene.country) * fullness)


def belonging(scene: Scene) -> Expected:
    """Give what belongs into a scene, as far as the world knows."""
    if not scene.category:
        return {}
    return world().expected(scene.category, scene.activity, scene.country)


def describe(image: Image, scene: Scene | None, data: Data, manner: Manner) -> dict[str, object]:
    """Name what a picture shows in a dimension: most of what is there, and some that is only expected or invented."""
    if scene is None:
        return {"descriptors": ""}
    dimension, about = data["dimension"], (image.sha256, data["dimension"])
    shown, level = scene.shown[dimension], lenience(scene, manner)
    said = manner.not_omitted(shown, scene.country, *about)
    missing = [token.text for token in belonging(scene).get(dimension, ()) if token.text not in shown]
    believed = [token for token in missing if manner.number("believes", *about, token) < level]
    new = manner.invented(shown, dimension, scene.country, *about)
    phrases = [manner.worded(token, scene.country, *about) for token in dict.fromkeys([*said, *believed, *new])]
    return {"descriptors": ", ".join(phrases[:MOST_PHRASES])}


def rate(image: Image, scene: Scene | None, data: Data, manner: Manner) -> dict[str, object]:
    """Rate a picture on a scale from 1 to 5."""
    criterion = data["criterion"]
    if scene is None:
        return {"answer": "score is 1"}
    level = lenience(scene, manner)
    share, wrong = agreement(scene, data)
    if criterion == "alignment":
        noticed = share * (1 - manner.omits.of_country(scene.country))
        value = noticed + level * (1 - noticed)
    else:
        value = wrong if criterion == "hallucination" else len(scene.stereotypes) / STEREOTYPE_MARKS
        value *= 1 - level
    value = 4 * value + SCATTER * (2 * manner.number("rates", criterion, image.sha256) - 1)
    return {"answer": f"score is {min(5, max(1, 1 + math.floor(value + 0.5)))}"}


def agreement(scene: Scene, data: Data) -> tuple[float, float]:
    """Give how much of what was asked for a picture shows, and how much of what it shows was not."""
    if caption := all_named(named_in(str(data["prompt"]))):
        everything = all_named(scene.shown)
        return len(caption & everything) / len(caption), len(everything - caption) / max(1, len(everything))
    prompt = str(data["prompt"]).casefold()
    named = [(name, category) for name, category in world().activities if name in prompt]
    country = country_code(str(data["country"])) if named else None
    if country not in world().countries:
        return 0.0, 1.0
    activity, category = max(named, key=lambda pair: len(pair[0]))
    expected = world().expected(category, activity, str(country))
    shares, wrong = [], []
    for dimension in DIMENSIONS:
        asked, shown = {token.text for token in expected[dimension]}, set(scene.shown[dimension])
        shares.append(len(asked & shown) / len(asked))
        wrong.append(len(shown - asked) / max(1, len(shown)))
    return sum(shares) / len(shares), sum(wrong) / len(wrong)


LOOKING: Mapping[str, Callable[[Image, Scene | None, Data, Manner], dict[str, object]]] = {
    "image.extract": describe,
    "image.likert": rate,
}

WEIGHED = "image.vqascore"


def weigh_yes(request: Request, manner: Manner) -> tuple[tuple[str, float], ...]:
    """Say how probable yes and no are as answers to whether a picture shows something."""
    scene, question = seen(request.images[0]), str(request.data["question"])
    asked = ASKED.search(question)
    strength = 0.0
    if scene is not None and asked is not None:
        strength = shown_strength(scene, asked.group(1).casefold())
        noticed = strength * (1 - manner.omits.of_country(scene.country))
        strength = noticed + lenience(scene, manner) * (1 - noticed)
    scatter = SCATTER / 10 * (2 * manner.number("yes", question, request.images[0].sha256) - 1)
    yes = min(1 - DOUBT / 2, max(DOUBT / 2, DOUBT + (1 - 2 * DOUBT) * strength + scatter))
    return (("Yes", math.log(yes)), ("No", math.log(1 - yes)))


def shown_strength(scene: Scene, asked: str) -> float:
    """Say how strongly a scene shows something that is named: a stereotype, a thing, or an activity in a country."""
    if asked in scene.strengths:
        return scene.strengths[asked]
    if any(asked in tokens for tokens in scene.shown.values()):
        return 1.0
    return agreement(scene, {"prompt": asked, "country": asked.rpartition(" in ")[2].strip(". ")})[0]


TOLD = {**KNOWING, **CAPTIONING}


class SimulatedModel:
    """Answers the questions of the recipes about activities, descriptors, captions and pictures."""

    caveat = "The simulated model knows a made-up world only, and errs in it as it is told to: it stands for no model."

    def __init__(self, manner: Manner, model: str) -> None:
        """Take how it answers, and its name."""
        self.manner = manner
        self.model = model

    def ask(self, request: Request) -> Reply:
        """Answer from what it knows or sees."""
        if request.task == WEIGHED:
            return Reply("", tokens=weigh_yes(request, self.manner))
        if request.task in LOOKING:
            image = request.images[0]
            answer = LOOKING[request.task](image, seen(image), request.data, self.manner)
        elif request.task in TOLD:
            answer = TOLD[request.task](request.data, self.manner)
        else:
            raise UsageError(
                f"the simulated model was never told of {request.task}",
                expected=" or ".join(sorted([*TOLD, *LOOKING, WEIGHED])),
                hint="Name a real model instead, or rules where they suffice.",
            )
        return Reply(msgspec.json.encode(answer).decode())


def make(spec: Spec) -> SimulatedModel:
    """Make the model that a SPEC describes; several of one kind have names of their own."""
    if not spec.target.replace("-", "x").isalnum() and spec.target:
        raise UsageError(
            "a simulated model has a plain name", expected="simulated or simulated:WORD", found=spec.target
        )
    name = f"simulated-{spec.target}" if spec.target else "simulated"
    return SimulatedModel(Manner(spec.read(Options), name), name)
