"""What people of the simulated world answer on the form about scenes."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from culturekit.builders.judging.simulated_people import SimulatedPeople, is_careless, person_draws, step
from culturekit.generation.simulated.scenes.scenes_backend import world
from culturekit.metrics.ahead.matching import normalise_phrase


def scene_answers(
    person: str,
    row: Mapping[str, Any],
    *,
    shown: Mapping[str, Sequence[tuple[str, str]]],
    scores: Mapping[tuple[str, str], float],
    about: Mapping[str, Mapping[str, Any]],
    how: SimulatedPeople,
    seed: int,
) -> Mapping[str, str | Sequence[str]]:
    """Answer the form as one person would: ratings scatter around the truth, and few marks are wrong."""
    item = row["item_id"]
    own = person_draws(person, item, "again" if row["kind"] != "item" else "first", seed=seed)
    careless = is_careless(person, how, seed=seed)
    offered = orjson.loads(row["options"])["descriptors"]
    answers: dict[str, str | Sequence[str]] = {}
    for name in ("faith", "hal", "exag"):
        deserved = 1 + 4 * scores.get((name, item), 0.5)
        scatter = 0.0 if name == "exag" else own.normal(0, how.scatter)
        between = own.uniform(-0.5, 0.5)  # what lies between two steps is rated as either, so that means are right
        answers[name] = step(float(own.integers(1, 6)) if careless else deserved + between + scatter)
    if answers["hal"] != "1":
        answers["hal_comment"] = "This does not belong here."
    answers["realism"] = step(3.5 + own.normal(0, how.scatter))
    seen = shown.get(item, ())
    unlisted = [
        f"{dimension}: {token}"
        for dimension, token in sorted(seen)
        if not any(any_of({token}, offer["choice"]) for offer in offered.values()) and own.random() < how.accuracy
    ]
    if unlisted and not careless:
        answers["other"] = "; ".join(unlisted)
    there, expected = {token for _, token in seen}, expected_of(about.get(item, {}))
    for name, right in (("shown", there), ("relevant", expected)):
        draws = dict(zip(sorted(offered), own.random(len(offered)), strict=True))
        marks = [
            code
            for code, draw in draws.items()
            if (draw < 0.5 if careless else any_of(right, offered[code]["choice"]) == (draw < how.accuracy))
        ]
        if marks:
            answers[name] = marks
    return answers


def any_of(tokens: set[str], phrase: str) -> bool:
    """Tell whether a phrase names one of some things, perhaps in a few more words."""
    said = spaced(phrase)
    return any(spaced(token) in said for token in tokens)


@lru_cache(maxsize=65_536)
def spaced(phrase: str) -> str:
    """Write a phrase so that it is found where it stands in another as whole words."""
    return f" {normalise_phrase(phrase)} "


def expected_of(item: Mapping[str, Any]) -> set[str]:
    """Give what belongs to the activity of an item in its country, as far as the simulated world knows."""
    if not item or item["country"] not in world().countries:
        return set()
    kind, activity = item["concept"], world().activity_named(item["activity"], item["concept"])
    return {token.text for tokens in world().expected(kind, activity, item["country"]).values() for token in tokens}
