"""What a simulated model says of texts, activities and descriptors, from what it knows of the simulated world."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from culturekit.builders.country_names import country_code
from culturekit.builders.simulated.manner import Manner, plain
from culturekit.generation.simulated.scenes.vocabulary import Token, world
from culturekit.llm.untrusted.untrusted import LongText

__all__ = ["KNOWING"]

Data = Mapping[str, Any]

SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
HEARSAY = "Everybody there has heard of {}."
"""A sentence that stands on no page."""


def find_activities(data: Data, manner: Manner) -> dict[str, object]:
    """Find the activities that a text names, each with the sentence that does."""
    text, country = data["text"], country_of(data)
    written = text.text if isinstance(text, LongText) else str(text)
    found: dict[str, dict[str, str]] = {}
    for name, category in world().activities:
        if category not in data["categories"]:
            continue
        sentence = next((own for own in SENTENCE.findall(written) if named(name, own)), None)
        if sentence is None:
            if manner.yields(manner.invents, country, "hearsay", data["id"], name):
                found[name] = {"name": name, "category": category, "quote": HEARSAY.format(name)}
        elif not manner.yields(manner.omits, country, "activity", data["id"], name):
            said = named(name, sentence) or name
            found[name] = {"name": said, "category": category, "quote": sentence.strip()}
    return {"id": data["id"], "activities": list(found.values())[: data["at_most"]]}


def named(name: str, sentence: str) -> str | None:
    """Give an activity as a sentence writes it, in the singular or the plural."""
    match = re.search(rf"\b{re.escape(name)}s?\b", sentence, re.IGNORECASE)
    return match.group() if match else None


def propose_descriptors(data: Data, manner: Manner) -> dict[str, object]:
    """Propose what a picture of an activity should show in a dimension."""
    country, dimension = country_of(data), data["dimension"]
    known = {token.text: token for token in expected_of(data, country, dimension)}
    about = (data["activity"], country, dimension)
    said = manner.said(known, country, *about)
    new = manner.invented(said, dimension, country, *about)
    tokens = [known.get(text, Token(text, "traditional", "optional")) for text in dict.fromkeys([*said, *new])]
    rows = [
        {"token": manner.worded(token.text, country, *about), "style": token.style, "necessity": token.necessity}
        for token in tokens
    ]
    return {"id": data["id"], "descriptors": rows[: data["at_most"]]}


def refine_descriptors(data: Data, manner: Manner) -> dict[str, object]:
    """Choose among candidates: what belongs there is kept once, and a lenient refiner lets some of the rest pass."""
    country, at_most = country_of(data), data["at_most"]
    belongs = {token.text for token in expected_of(data, country, data["dimension"])}
    elsewhere = {token.text for tokens in all_expected(data, country).values() for token in tokens} - belongs
    kept: dict[str, dict[str, Any]] = {}
    left: list[dict[str, str]] = []
    for candidate in data["candidates"]:
        number, token = candidate["number"], plain(candidate["token"])
        about = (data["activity"], country, data["dimension"], token)
        if token in kept:
            kept[token]["merges"].append(number)
            continue
        if token in belongs:
            reason = "unrelated" if manner.yields(manner.omits, country, "refine", *about) else ""
        elif manner.yields(manner.lenient, country, "refine", *about):
            reason = ""
        else:
            reason = "other dimension" if token in elsewhere else "wrong"
        if not reason and len(kept) == at_most:
            reason = "too many"
        if reason:
            left.append({"number": number, "reason": reason})
        else:
            kept[token] = {"number": number, "merges": []}
    return {"id": data["id"], "kept": list(kept.values()), "left_out": left}


def propose_stereotypes(data: Data, manner: Manner) -> dict[str, object]:
    """Propose what pictures of a country overdo."""
    country = country_of(data)
    if country not in world().countries:
        return {"id": data["id"], "stereotypes": []}
    said = manner.said(world().stereotypes(country), country, "stereotypes", country)
    others = [token for iso in world().countries if iso != country for token in world().stereotypes(iso)]
    new = [
        others[int(manner.number("which stereotype", country, token) * len(others))]
        for token in said
        if manner.yields(manner.invents, country, "stereotype", country, token)
    ]
    return {"id": data["id"], "stereotypes": list(dict.fromkeys([*said, *new]))[: data["at_most"]]}


def country_of(data: Data) -> str:
    """Give the code of the country that a request names; nothing where no country is called that."""
    return country_code(str(data["country"])) or ""


def all_expected(data: Data, country: str) -> Mapping[str, tuple[Token, ...]]:
    """Give all that a picture should show, by dimension; nothing where the world knows nothing of it."""
    category = data["category"]
    if category not in world().categories or country not in world().countries:
        return {}
    return world().expected(category, world().activity_named(data["activity"], category), country)


def expected_of(data: Data, country: str, dimension: str) -> tuple[Token, ...]:
    """Give what a picture should show in one dimension."""
    return all_expected(data, country).get(dimension, ())


KNOWING: Mapping[str, Callable[[Data, Manner], dict[str, object]]] = {
    "activities.extract": find_activities,
    "descriptors.propose": propose_descriptors,
    "descriptors.refine": refine_descriptors,
    "stereotypes.propose": propose_stereotypes,
}
