"""People who rate simulated images: they know what was drawn, and err, doubt and lose interest as they are told to."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

Share = Annotated[float, Field(ge=0, le=1)]

# What faithfulness a picture deserves that shows the artifact asked for, another of its country, and so on.
DESERVED = {"artifact": 4.6, "country": 3.2, "continent": 2.3, "elsewhere": 1.5, "nothing": 1.1}
REAL, NOTHING_REAL = 3.9, 1.8  # how real a drawing of a thing looks, and one of nothing
LENIENCE, LOOKS = 0.3, 0.5  # standard deviations: what people call good, and how well pictures came out


@dataclass(frozen=True, slots=True)
class SimulatedPeople:
    """How simulated people answer.

    Attributes:
        accuracy: how often one can tell whether what is shown is at home in their country.
        doubt: how often one who cannot tell says maybe; else the answer is wrong.
        scatter: how far a rating lies from what the picture deserves: a standard deviation.
        careless: the share of people who answer anything, and fail attention checks.
    """

    accuracy: Share = 0.9
    doubt: Share = 0.6
    scatter: Annotated[float, Field(ge=0, le=4)] = 0.6
    careless: Share = 0.05


@dataclass(frozen=True, slots=True)
class Shown:
    """What a picture truly shows; nothing known is a picture of nothing."""

    artifact_id: str | None
    country: str | None
    continent: str | None


@dataclass(frozen=True, slots=True)
class AskedFor:
    """What a picture was meant to show."""

    artifact_id: str | None
    country: str | None
    continent: str | None


def answers_of(
    person: str,
    home: str,
    item: str,
    shown: Shown,
    asked: AskedFor,
    how: SimulatedPeople,
    *,
    seed: int,
    again: bool = False,
) -> Mapping[str, str]:
    """Fill in the scheme `cube` as one person would, by question; asked `again`, only the scatter is new.

    A lenient person is lenient with every picture, and how well a picture came out is the same for everybody; an answer
    does not depend on which others are given.
    """
    draws = person_draws(person, item, "again" if again else "first", seed=seed)
    if is_careless(person, how, seed=seed):
        careless = ("yes", "no", "maybe")[int(draws.integers(3))]
        asked_then = ("realism",) if careless == "no" else ("faithfulness", "realism")
        return {"belongs": careless, **{name: str(draws.integers(1, 6)) for name in asked_then}}
    belongs = at_home(shown, home, how, person_draws(person, item, "belongs", seed=seed))
    lenience = person_draws(person, seed=seed).normal(0, LENIENCE)
    looks = person_draws(item, "looks", seed=seed).normal(0, LOOKS)
    answers = {"belongs": belongs}
    if belongs != "no":
        answers["faithfulness"] = step(DESERVED[nearness(shown, asked)] + lenience + draws.normal(0, how.scatter))
    real = NOTHING_REAL if shown.artifact_id is None else REAL
    answers["realism"] = step(real + looks + lenience + draws.normal(0, how.scatter))
    return answers


def at_home(shown: Shown, home: str, how: SimulatedPeople, numbers: np.random.Generator) -> str:
    """Say whether what is shown belongs to somebody's country."""
    right = "yes" if shown.country == home else "no"
    if numbers.random() < how.accuracy:
        return right
    return "maybe" if numbers.random() < how.doubt else "no" if right == "yes" else "yes"


def nearness(shown: Shown, asked: AskedFor) -> str:
    """Name how near what is shown comes to what was asked for."""
    if shown.artifact_id is None:
        return "nothing"
    if shown.artifact_id == asked.artifact_id or (asked.artifact_id is None and shown.country == asked.country):
        return "artifact"
    if shown.country == asked.country:
        return "country"
    return "continent" if shown.continent == asked.continent else "elsewhere"


def is_careless(person: str, how: SimulatedPeople, *, seed: int) -> bool:
    """Tell whether somebody answers anything."""
    return bool(person_draws(person, "careless", seed=seed).random() < how.careless)


def step(value: float) -> str:
    """Round to a step of the scale from 1 to 5."""
    return str(int(np.clip(np.floor(value + 0.5), 1, 5)))


def person_draws(*key: str, seed: int) -> np.random.Generator:
    """Make the random numbers of one decision; they depend on nothing else."""
    content = "\0".join([str(seed), *key]).encode()
    return np.random.default_rng(int.from_bytes(hashlib.sha256(content).digest()[:16], "big"))
