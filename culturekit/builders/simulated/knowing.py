"""What a simulated model says of texts, captions, activities and descriptors, from what it knows of its world."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from culturekit.builders.country_names import country_code
from culturekit.builders.simulated.manner import Manner, plain
from culturekit.generation.linguistic_lists import lists
from culturekit.generation.simulated.scenes.captions import named_in, understood
from culturekit.generation.simulated.scenes.vocabulary import Expected, Token, world
from culturekit.llm.untrusted.untrusted import LongText

__all__ = ["CAPTIONING", "KNOWING"]

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
    said = manner.not_omitted(known, country, *about)
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
    said = manner.not_omitted(world().stereotypes(country), country, "stereotypes", country)
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


PEOPLE = (
    "Three neighbours", "An old couple", "Schoolchildren", "A young family", "Two sisters", "Village elders",
    "Market traders", "Students", "A grandmother and her grandson", "Newly arrived guests", "Farm workers", "Musicians",
)  # fmt: skip
OCCASIONS = (
    "on a rainy morning", "at dusk", "in the first snow", "under a midday sun", "late at night", "in spring wind",
    "before a storm", "at sunrise", "on a foggy day", "in autumn light", "after the harvest", "by candlelight",
)  # fmt: skip
TALK = "Here are some captions that a model may find hard:"
AGAIN = ("{}", "{} once more")
"""How a caption is repeated: in its words, or in nearly these."""


def expand_captions(data: Data, manner: Manner) -> dict[str, object]:
    """Propose captions: new ones, some of the examples again, and talk."""
    captions = [caption(data, manner, position) for position in range(data["wanted"])]
    return {"id": data["id"], "captions": captions}


def caption(data: Data, manner: Manner, position: int) -> dict[str, str]:
    """Propose one caption."""
    about = (data["id"], position)
    country = country_code(data["culture"])
    if manner.yields(manner.repeats, country, "repeats", *about):
        example = chosen(data["examples"], manner, "example", *about)
        text = chosen(AGAIN, manner, "again", *about).format(example["caption"])
        return {"caption": text, "category": example["category"]}
    text = TALK if manner.yields(manner.prose, country, "prose", *about) else composed(country, manner, *about)
    return {"caption": text, "category": chosen(list(data["categories"]), manner, "category", *about)}


def composed(country: str | None, manner: Manner, *about: object) -> str:
    """Compose a caption of what the world shows in a country; of a culture that it does not know, of any."""
    place = country if country in world().countries else chosen(list(world().countries), manner, "country", *about)
    activity, category = chosen(world().activities, manner, "activity", *about)
    known = world().expected(category, activity, str(place))
    things = drawn(known, "objects", 3, manner, *about)
    attire, doing, where, placed = (
        drawn(known, dimension, 1, manner, *about)[0]
        for dimension in ("attire", "interaction", "background", "spatial")
    )
    people, occasion = chosen(PEOPLE, manner, "people", *about), chosen(OCCASIONS, manner, "occasion", *about)
    listed = f"{', '.join(things[:-1])} and {things[-1]}"
    return f"{people} in {attire}, {doing} at {activity} with {listed}, {placed} before {where}, {occasion}"


def chosen(among: Sequence[Any], manner: Manner, *about: object) -> Any:  # noqa: ANN401 - one of what is given
    """Choose one of several."""
    return among[int(manner.number(*about) * len(among))]


def drawn(known: Expected, dimension: str, count: int, manner: Manner, *about: object) -> list[str]:
    """Draw some of what is shown in a dimension, none twice."""
    tokens = [token.text for token in known[dimension]]
    return sorted(tokens, key=lambda token: manner.number("drawn", dimension, *about, token))[:count]


def translate(data: Data, manner: Manner) -> dict[str, object]:
    """Translate a caption; things of it may be lost, or become those of another country."""
    text = understood(data["caption"])
    for dimension, tokens in named_in(text).items():
        for token in tokens:
            other = ""
            if manner.yields(manner.invents, None, "renders", data["id"], token):
                other = chosen(world().tokens(dimension), manner, "which", data["id"], token)
            elif not manner.yields(manner.omits, None, "omits", data["id"], token):
                continue
            text = re.sub(rf"(?<!\w){re.escape(token)}(?!\w)", other, text, flags=re.IGNORECASE)
    return {"id": data["id"], "translation": " ".join(text.split())}


def name_objects(data: Data, manner: Manner) -> dict[str, object]:
    """Name the objects that a caption names, and what people in it wear."""
    named = named_in(data["caption"])
    things = manner.not_omitted([*named["objects"], *named["attire"]], None, data["id"])
    return {"id": data["id"], "objects": things}


def propose_pairs(data: Data, manner: Manner) -> dict[str, object]:
    """Propose pairs of dialects: those that the world knows, some turned round, some with talk for a sentence."""
    pairs = []
    for pair in lists().pairs:
        standard, other, frames = pair.standard, pair.other, list(pair.frames)
        if manner.yields(manner.omits, None, "omits", data["batch"], other):
            continue
        if manner.yields(manner.invents, None, "invents", data["batch"], other):
            standard, other = other, standard
        if manner.yields(manner.prose, None, "prose", data["batch"], other):
            frames = [TALK]
        pairs.append({"standard": standard, "other": other, "frames": frames})
    start = (data["batch"] - 1) * data["wanted"] % max(1, len(pairs))
    return {"id": data["id"], "pairs": [*pairs[start:], *pairs[:start]][: data["wanted"]]}


CAPTIONING: Mapping[str, Callable[[Data, Manner], dict[str, object]]] = {
    "captions.expand": expand_captions,
    "captions.translate": translate,
    "captions.objects": name_objects,
    "dialects.propose": propose_pairs,
}
