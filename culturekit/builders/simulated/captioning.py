"""What a simulated model says of captions: it proposes, repeats and talks, translates, and names objects."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from culturekit.builders.country_names import country_code
from culturekit.builders.simulated.manner import Manner
from culturekit.generation.linguistic_lists import lists
from culturekit.generation.simulated.scenes.captions import named_in, understood
from culturekit.generation.simulated.scenes.vocabulary import Expected, world

__all__ = ["CAPTIONING"]

Data = Mapping[str, Any]

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
    things = manner.said([*named["objects"], *named["attire"]], None, data["id"])
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
