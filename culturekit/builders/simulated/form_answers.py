"""What people of the simulated world answer on forms about objects in their region or not."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from culturekit.builders.judging.simulated_people import SimulatedPeople, is_careless, person_draws
from culturekit.generation.simulated.scenes.objects import (
    FLAWS,
    LOOKS,
    PLACES,
    ObjectScene,
    cliches_of,
    known_regions,
    look_of,
)
from culturekit.metrics.inclusion.region_rates import region_code

Answers: TypeAlias = Mapping[str, str | Sequence[str]]

CONVINCED = (0.02, 0.06, 0.85, 0.97, 0.98)
"""How often somebody names a region of which a picture shows so many marks."""

CLICHES_AS_MARKS, LOOKS_AS_MARKS = 1.0, 0.3
"""How many marks a cliché, and a mark of a look, are worth to people of elsewhere; those at home go by looks alone."""

NOTHING = "na"
TASTE, EYE, MANY = 0.15, 0.08, 2
"""How much clichés please people of elsewhere, and displease those at home; how far two looks at a picture differ; and
how many clichés please, or displease, as much as clichés can."""


def sees_object(scene: ObjectScene, how: SimulatedPeople) -> float:
    """Say how often people see the object."""
    return how.accuracy if scene.thing else 1 - how.accuracy


def names_the_look(scene: ObjectScene, region: str, look: str, *, at_home: bool) -> float:
    """Say how often people who see the object name a region for its look, or for that of the background."""
    marks = float(sum(token in look_of(region, look) for token in scene.looks[look]))
    if not at_home:
        shown = sum(token in cliches_of(region) for token in scene.cliches)
        marks = min(PLACES, LOOKS_AS_MARKS * marks + CLICHES_AS_MARKS * shown)
    return float(np.interp(marks, range(PLACES + 1), CONVINCED))


def names_region(scene: ObjectScene, region: str, how: SimulatedPeople, *, at_home: bool = True) -> float:
    """Say how often people name a region for the object or for the background."""
    nothing = np.prod([1 - names_the_look(scene, region, look, at_home=at_home) for look in LOOKS])
    return sees_object(scene, how) * float(1 - nothing)


def looks_at(
    person: str, row: Mapping[str, Any], scene: ObjectScene, offered: Sequence[str], how: SimulatedPeople, *, seed: int
) -> Answers:
    """Fill in the form of Task 2: whether the object is there, and where it and the background could be from."""
    rng = person_draws(person, row["item_id"], seed=seed)
    if is_careless(person, how, seed=seed):
        return {"obj": "ym", **careless(rng, offered)} if rng.random() < 0.5 else {"obj": "nm"}
    if rng.random() >= sees_object(scene, how):
        return {"obj": "nm"}
    found: dict[str, str | Sequence[str]] = {"obj": "ym"}
    home = region_code(row["annotator_region"])
    for look, question in zip(LOOKS, ("object_regions", "background_regions"), strict=True):
        named = [
            code
            for region, code in regions_among(offered)
            if rng.random() < names_the_look(scene, region, look, at_home=code == home)
        ]
        found[question] = named or [NOTHING]
    return found


def careless(rng: np.random.Generator, offered: Sequence[str]) -> Answers:
    """Tick anything; people who see no object are not asked."""
    return {name: [offered[int(rng.integers(len(offered)))]] for name in ("object_regions", "background_regions")}


def regions_among(offered: Sequence[str]) -> list[tuple[str, str]]:
    """List the regions that a form offers, each with its code."""
    codes = {region_code(region): region for region in known_regions()}
    return [(codes[code], code) for code in offered if code in codes]


def compares(
    person: str, row: Mapping[str, Any], scenes: Mapping[str, ObjectScene], how: SimulatedPeople, *, seed: int
) -> Answers:
    """Fill in the form of Task 1: which of two pictures is more like the first, and which is more appealing."""
    rng = person_draws(person, row["item_id"], "compares", seed=seed)
    shown = {name: scenes[image] for name, image in zip(row["places"], row["pictures"], strict=True)}
    codes = {name: str(place) for place, name in enumerate(row["places"], start=1)}
    others = [name for name in row["places"] if name != "reference"]
    if is_careless(person, how, seed=seed):
        chosen = [others[int(rng.integers(2))] for _ in range(2)]
        return {"similar": codes[chosen[0]], "confidence": "high", "appealing": codes[chosen[1]]}
    at_home = bool(row["in_region"])
    alike = {name: likeness(shown["reference"], shown[name]) + rng.normal(0, EYE) for name in others}
    pleasing = {name: appeal(shown[name], at_home=at_home) + rng.normal(0, EYE) for name in others}
    apart = abs(alike[others[0]] - alike[others[1]])
    seen = [codes[name] for name in row["places"] if rng.random() < sees_object(shown[name], how)]
    answers: dict[str, str | Sequence[str]] = {
        "similar": codes[max(others, key=lambda name: alike[name])],
        "confidence": "high" if apart > 2 * EYE else "medium" if apart > EYE else "low",
        "appealing": codes[max(others, key=lambda name: pleasing[name])],
    }
    return {**answers, "shown": seen} if seen else answers


def likeness(one: ObjectScene, other: ObjectScene) -> float:
    """Say which share of what two pictures show they share."""
    a, b = Counter(one.things), Counter(other.things)
    return (a & b).total() / max(1, (a | b).total())


def appeal(scene: ObjectScene, *, at_home: bool) -> float:
    """Say how much a picture pleases: flaws spoil it, and clichés please or displease."""
    things = scene.things
    spoilt = sum(thing in FLAWS for thing in things) / max(1, len(things))
    return -spoilt + (-TASTE if at_home else TASTE) * min(1.0, len(scene.cliches) / MANY)
