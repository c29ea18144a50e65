"""The simulated language and vision model: it knows the simulated world, and errs as its dials say."""

import hashlib
import importlib
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from culturekit.builders.country_names import country_code
from culturekit.core.errors import UsageError
from culturekit.core.registry import Spec
from culturekit.generation.simulated.scenes.scenes_backend import (
    DIMENSIONS,
    STEREOTYPE_MARKS,
    Dial,
    Expected,
    Scene,
    Token,
    all_named,
    named_in,
    read_dial,
    understood,
    world,
)
from culturekit.llm.client import Image, Reply, Request
from culturekit.llm.untrusted import LongText

# In what manner a simulated model answers: what it leaves out, adds, lets pass, and says in other words.

OTHER_WORDS = ("a {}", "the {}", "some {}")  # how a thing is called by somebody who does not use its usual name


@dataclass(frozen=True, slots=True)
class Options:
    """How a simulated model errs.

    All but `seed` are dials: a share, then exceptions by group (GN, GS) or ISO code, such as `0.1,GS:0.35`.

    Attributes:
        omits: How much of what it knows, or sees, it does not say.
        invents: How often it adds something of another country, or a sentence that stands nowhere.
        lenient: How much of what belongs there it says it sees although it is not there, how many wrong candidates it
            lets pass as a refiner, and how much too good its ratings are.
        halo: How much more lenient it is with a picture full of stereotypes.
        rewords: How often it says something in other words.
        repeats: How often it proposes a caption again that it was shown, in its words or nearly so.
        prose: How often it talks about its task in place of a caption.
        seed: Models that differ in nothing else err in other places by it.
    """

    omits: str = "0"
    invents: str = "0"
    lenient: str = "0"
    halo: str = "0"
    rewords: str = "0"
    repeats: str = "0"
    prose: str = "0"
    seed: int = 0


class Manner:
    """Decides what is left out, added, let pass and reworded: by what it is about, the same for ever."""

    def __init__(self, options: Options, name: str) -> None:
        """Read the dials; a name of its own makes a model err in its own places."""
        self.key = f"{name} {options.seed}"
        dials = ("omits", "invents", "lenient", "halo", "rewords", "repeats", "prose")
        self.omits, self.invents, self.lenient, self.halo, self.rewords, self.repeats, self.prose = (
            read_dial(dial, getattr(options, dial)) for dial in dials
        )

    def number(self, *about: object) -> float:
        """Draw a number in [0, 1) that belongs to what is decided."""
        key = "\0".join(map(str, (self.key, *about))).encode()
        return int.from_bytes(hashlib.sha256(key).digest()[:6], "big") / 2**48

    def yields(self, dial: Dial, country: str | None, *about: object) -> bool:
        """Decide one thing by a dial."""
        return self.number(*about) < dial.of_country(country)

    def not_omitted(self, tokens: Iterable[str], country: str | None, *about: object) -> list[str]:
        """Keep what is not omitted."""
        return [token for token in tokens if not self.yields(self.omits, country, "omits", *about, token)]

    def invented(self, tokens: Iterable[str], dimension: str, country: str, *about: object) -> list[str]:
        """Invent beside what is said: things of other countries."""
        foreign = world().foreign(dimension, country)
        return [
            foreign[int(self.number("which", *about, token) * len(foreign))]
            for token in tokens
            if self.yields(self.invents, country, "invents", *about, token)
        ]

    def worded(self, token: str, country: str | None, *about: object) -> str:
        """Say something in its usual words or in others."""
        if not self.yields(self.rewords, country, "rewords", *about, token):
            return token
        return OTHER_WORDS[int(self.number("words", *about, token) * len(OTHER_WORDS))].format(token)


def plain(token: str) -> str:
    """Give the usual words for what is said in these or in others."""
    text = " ".join(token.casefold().split())
    for words in OTHER_WORDS:
        text = text.removeprefix(words.removesuffix("{}"))
    return text


# What a simulated model says of texts, captions, activities and descriptors, from what it knows of its world.

Data = Mapping[str, Any]

SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
HEARSAY = "Everybody there has heard of {}."  # stands on no page


def find_activities(data: Data, manner: Manner) -> dict[str, object]:
    """Find the activities that a text names, each with the sentence that does."""
    text, country = data["text"], country_of(data)
    written = text.text if isinstance(text, LongText) else str(text)
    found: dict[str, dict[str, str]] = {}
    for name, category in world().activities:
        if category not in data["categories"]:
            continue
        sentence = next((line for line in SENTENCE.findall(written) if named(name, line)), None)
        if sentence is None:
            if manner.yields(manner.invents, country, "hearsay", data["id"], name):
                found[name] = {"name": name, "category": category, "quote": HEARSAY.format(name)}
        elif not manner.yields(manner.omits, country, "activity", data["id"], name):
            activity = named(name, sentence) or name
            found[name] = {"name": activity, "category": category, "quote": sentence.strip()}
    return {"id": data["id"], "activities": list(found.values())[: data["at_most"]]}


def named(name: str, sentence: str) -> str | None:
    """Give an activity as a sentence writes it, in the singular or the plural."""
    match = re.search(rf"\b{re.escape(name)}s?\b", sentence, re.IGNORECASE)
    return match.group() if match else None


def propose_descriptors(data: Data, manner: Manner) -> dict[str, object]:
    """Propose what a picture of an activity should show in a dimension."""
    country, dimension = country_of(data), data["dimension"]
    known = {token.text: token for token in all_expected(data, country).get(dimension, ())}
    about = (data["activity"], country, dimension)
    proposed = manner.not_omitted(known, country, *about)
    new = manner.invented(proposed, dimension, country, *about)
    tokens = [known.get(text, Token(text, "traditional", "optional")) for text in dict.fromkeys([*proposed, *new])]
    rows = [
        {"token": manner.worded(token.text, country, *about), "style": token.style, "necessity": token.necessity}
        for token in tokens
    ]
    return {"id": data["id"], "descriptors": rows[: data["at_most"]]}


def refine_descriptors(data: Data, manner: Manner) -> dict[str, object]:
    """Choose among candidates: what belongs there is kept once, and a lenient refiner lets some of the rest pass."""
    country, at_most = country_of(data), data["at_most"]
    expected = all_expected(data, country)
    belongs = {token.text for token in expected.get(data["dimension"], ())}
    elsewhere = {token.text for tokens in expected.values() for token in tokens} - belongs
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
    proposed = manner.not_omitted(world().stereotypes(country), country, "stereotypes", country)
    others = [token for iso in world().countries if iso != country for token in world().stereotypes(iso)]
    new = [
        others[int(manner.number("which stereotype", country, token) * len(others))]
        for token in proposed
        if manner.yields(manner.invents, country, "stereotype", country, token)
    ]
    return {"id": data["id"], "stereotypes": list(dict.fromkeys([*proposed, *new]))[: data["at_most"]]}


def country_of(data: Data) -> str:
    """Give the code of the country that a request names; nothing where no country is called that."""
    return country_code(str(data["country"])) or ""


def all_expected(data: Data, country: str) -> Mapping[str, tuple[Token, ...]]:
    """Give all that a picture should show, by dimension; nothing where the world knows nothing of it."""
    category = data["category"]
    if category not in world().categories or country not in world().countries:
        return {}
    return world().expected(category, world().activity_named(data["activity"], category), country)


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
AGAIN = ("{}", "{} once more")  # how a caption is repeated: in its words, or in nearly these


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
    land = country if country in world().countries else chosen(list(world().countries), manner, "country", *about)
    activity, category = chosen(world().activities, manner, "activity", *about)
    known = world().expected(category, activity, str(land))
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


CAPTIONING: Mapping[str, Callable[[Data, Manner], dict[str, object]]] = {
    "captions.expand": lambda data, manner: {  # new ones, some of the examples again, and talk
        "id": data["id"],
        "captions": [caption(data, manner, position) for position in range(data["wanted"])],
    },
    "captions.translate": translate,
    "captions.objects": name_objects,
}


MOST_PHRASES = 8
ASKED = re.compile(r'show "(.+)"\?')
SCATTER = 0.5  # how far a rating lies from what the model thinks, at most, and P(Yes) on a scale ten times as fine
DOUBT = 0.05  # how probable the other answer is where the model is sure
PICTURES_KEPT = 32_768
# What pictures show, by hash: each is asked about many times, and reading one takes a thirtieth of a second.
READ: OrderedDict[str, Scene | None] = OrderedDict()


def seen(image: Image) -> Scene | None:
    """Read a picture, once; None where it is no scene."""
    from culturekit.builders.simulated.simulated_encoder import read_scene
    from culturekit.core.pictures.picture_files import NoPicture
    from culturekit.core.pictures.picture_reading import picture_from

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


def describe(image: Image, scene: Scene | None, data: Data, manner: Manner) -> dict[str, object]:
    """Name what a picture shows in a dimension: most of what is there, and some that is only expected or invented."""
    if scene is None:
        return {"descriptors": ""}
    dimension, about = data["dimension"], (image.sha256, data["dimension"])
    shown, level = scene.shown[dimension], lenience(scene, manner)
    mentioned = manner.not_omitted(shown, scene.country, *about)
    belongs = world().expected(scene.category, scene.activity, scene.country) if scene.category else {}
    missing = [token.text for token in belongs.get(dimension, ()) if token.text not in shown]
    believed = [token for token in missing if manner.number("believes", *about, token) < level]
    new = manner.invented(shown, dimension, scene.country, *about)
    phrases = [manner.worded(token, scene.country, *about) for token in dict.fromkeys([*mentioned, *believed, *new])]
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


IMAGE_TASKS: Mapping[str, Callable[[Image, Scene | None, Data, Manner], dict[str, object]]] = {
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
        named = asked.group(1).casefold()  # a stereotype, a thing, or an activity in a country
        if named in scene.strengths:
            strength = scene.strengths[named]
        elif any(named in tokens for tokens in scene.shown.values()):
            strength = 1.0
        else:
            strength = agreement(scene, {"prompt": named, "country": named.rpartition(" in ")[2].strip(". ")})[0]
        noticed = strength * (1 - manner.omits.of_country(scene.country))
        strength = noticed + lenience(scene, manner) * (1 - noticed)
    scatter = SCATTER / 10 * (2 * manner.number("yes", question, request.images[0].sha256) - 1)
    yes = min(1 - DOUBT / 2, max(DOUBT / 2, DOUBT + (1 - 2 * DOUBT) * strength + scatter))
    return (("Yes", math.log(yes)), ("No", math.log(1 - yes)))


TEXT_TASKS = {**KNOWING, **CAPTIONING}

# What answers the questions of one recipe alone; it is imported when they are asked.
OF_RECIPES = {"dialects.propose": "culturekit.recipes.linguistic.dialects:propose_pairs"}


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
        if request.task in IMAGE_TASKS:
            image = request.images[0]
            answer = IMAGE_TASKS[request.task](image, seen(image), request.data, self.manner)
        elif request.task in TEXT_TASKS:
            answer = TEXT_TASKS[request.task](request.data, self.manner)
        elif request.task in OF_RECIPES:
            module, _, name = OF_RECIPES[request.task].partition(":")
            answer = getattr(importlib.import_module(module), name)(request.data, self.manner)
        else:
            raise UsageError(
                f"the simulated model was never told of {request.task}",
                expected=" or ".join(sorted([*TEXT_TASKS, *OF_RECIPES, *IMAGE_TASKS, WEIGHED])),
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
