"""What a simulated model puts into a scene: some of what belongs there, by its dials, and some that does not."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from culturekit.generation.simulated.scenes.captions import Named
from culturekit.generation.simulated.scenes.dials import Dial
from culturekit.generation.simulated.scenes.vocabulary import DIMENSIONS, world

__all__ = ["MARKS", "STEREOTYPE_MARKS", "Knowledge", "Scene", "scene_of"]

MARKS = 6
"""How many things of one dimension a picture has room for."""

STEREOTYPE_MARKS = MARKS - 1
"""Room for stereotypes; what is left of their row shows the activity."""

FULL_STRENGTH = 2
"""A stereotype that is shown so often is shown as strongly as can be."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """How a model draws scenes; the backend's options say what the fields mean."""

    knows: Dial
    invents: Dial
    exaggerates: Dial
    elsewhere: Dial
    varies: Dial


@dataclass(frozen=True, slots=True)
class Scene:
    """What a picture shows: at most MARKS tokens a dimension, and stereotypes, each as often as it is drawn."""

    country: str
    category: str
    activity: str | None
    shown: Mapping[str, tuple[str, ...]]
    stereotypes: tuple[str, ...] = ()

    @property
    def strengths(self) -> Mapping[str, float]:
        """Say how strongly stereotypes are shown, from 0 to 1; those that are not shown have no entry."""
        return strengths_of(self.stereotypes)

    def as_data(self) -> dict[str, object]:
        """Give the truth about a picture, as it stands in tables."""
        shown = {dimension: list(tokens) for dimension, tokens in self.shown.items()}
        return {
            "country": self.country,
            "category": self.category,
            "activity": self.activity,
            "shown": shown,
            "stereotypes": dict(self.strengths),
        }


def strengths_of(stereotypes: tuple[str, ...]) -> dict[str, float]:
    """Turn how often stereotypes are drawn into how strongly they are shown."""
    return {token: min(1.0, count / FULL_STRENGTH) for token, count in sorted(Counter(stereotypes).items())}


def scene_of(
    category: str,
    activity: str | None,
    country: str,
    how: Knowledge,
    *,
    prompt: str,
    seed: int,
    named: Named | None = None,
) -> Scene:
    """Put a scene together for a prompt, by the picture's seed or, where the model varies little, by the prompt.

    It shows what is expected of an activity, or what a caption has `named`.
    """
    rng = np.random.default_rng(seed % 2**64)
    if rng.random() >= how.varies.of_country(country):
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(f"scene {prompt}".encode()).digest()[:8], "big"))
    shown_country = country
    if rng.random() < how.elsewhere.of_country(country):
        others = sorted(set(world().countries) - {country})
        shown_country = others[int(rng.integers(len(others)))]
    knows, invents = how.knows.of_country(country), how.invents.of_country(country)
    asked = named
    if asked is None:
        expected = world().expected(category, activity, shown_country)
        asked = {dimension: tuple(token.text for token in expected[dimension]) for dimension in DIMENSIONS}
    shown = {}
    for dimension in DIMENSIONS:
        tokens = [text for text in asked[dimension][:MARKS] if rng.random() < knows]
        foreign = world().foreign(dimension, shown_country)
        swapped = [foreign[int(rng.integers(len(foreign)))] if rng.random() < invents else text for text in tokens]
        shown[dimension] = tuple(dict.fromkeys(swapped))
    overdone = world().stereotypes(shown_country)
    room = [overdone[int(rng.integers(len(overdone)))] for _ in range(STEREOTYPE_MARKS)]
    strength = how.exaggerates.of_country(country)
    return Scene(shown_country, category, activity, shown, tuple(token for token in room if rng.random() < strength))
