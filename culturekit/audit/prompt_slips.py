"""The shipped templates turned round, and what is wrong with a prompt whose name, country and concept are known."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Literal, TypeAlias

from culturekit.audit.folding import fold, squeeze, tidy
from culturekit.builders.prompt_templates import templates
from culturekit.kg.countries import Country, countries
from culturekit.records.choices import TemplateSetName

__all__ = ["Frame", "Slip", "Slots", "frames", "frames_of", "slips_of"]

LONGEST_READ = 2_000
"""Characters of a text that a frame is held against; a prompt is far shorter."""

NOUN_AFTER = re.compile(r"\{name\} (\w+)")
SLOT = re.compile(r"\{(name|country|adjective)\}")


@dataclass(frozen=True, slots=True)
class Slots:
    """What a text says where a template leaves a gap."""

    name: str
    place: str


@dataclass(frozen=True, slots=True)
class Frame:
    """A template of one concept, or of one subconcept of it."""

    set_name: TemplateSetName
    key: str
    template: str
    strict: re.Pattern[str]
    loose: re.Pattern[str]

    @property
    def concept(self) -> str:
        """The concept that the template is for."""
        return self.key.partition("/")[0]

    @property
    def noun(self) -> str | None:
        """The noun that the template puts after the name, such as painting."""
        match = NOUN_AFTER.search(self.template)
        return match[1] if match and match[1] not in {"from", "in"} else None

    @property
    def key_words(self) -> set[str]:
        """The words of the subconcept that the template speaks, which tell it from its neighbours."""
        return set(self.key.partition("/")[2].split()) & set(re.findall(r"\w+", SLOT.sub(" ", self.template)))

    def place(self, country: Country) -> str:
        """Give the word for a country that the template wants: its adjective or its name."""
        return country.adjective if "{adjective}" in self.template else country.name

    def text(self, name: str, country: Country) -> str:
        """Fill the gaps."""
        return self.template.format(name=name, country=country.name, adjective=country.adjective)

    def read(self, text: str, *, loose: bool = False) -> Slots | None:
        """Read name and place from a text of this template; loosely, a space may lack around the name."""
        if len(text) > LONGEST_READ:
            return None
        match = (self.loose if loose else self.strict).fullmatch(text)
        return None if match is None else Slots(match["name"].strip(), match["place"].strip())


@cache
def frames() -> tuple[Frame, ...]:
    """List all templates that name an artifact, the released ones first."""
    sets = templates().artifact
    return tuple(
        Frame(name, key, template, pattern(template, space=" "), pattern(template, space=r"\s*"))
        for name in sorted(sets, key=lambda name: name != "released")
        for key, template in sets[name].templates.items()
    )


def frames_of(concept: str) -> Iterator[Frame]:
    """List the templates of a concept, the released ones first."""
    return (frame for frame in frames() if frame.concept == concept)


def pattern(template: str, *, space: str) -> re.Pattern[str]:
    """Write a template as a pattern; `space` is what stands beside the name."""
    before, _, after = template.partition("{name}")
    rest = SLOT.sub("\0", after.removeprefix(" "))
    head = re.escape(before.removesuffix(" ")) + (space if before.endswith(" ") else "")
    tail = (space if after.startswith(" ") else "") + re.escape(rest).replace(re.escape("\0"), "(?P<place>.+?)")
    return re.compile(f"{head}(?P<name>.+?){tail}")


SlipKind: TypeAlias = Literal[
    "space-missing",
    "space-in-name",
    "space-extra",
    "noun-in-name",
    "noun-twice",
    "name",
    "place",
    "other-concept",
    "none",
]
LEAST_ALIKE = 0.6
"""How alike a text must be to a template's to be taken for a slip of it."""


@dataclass(frozen=True, slots=True)
class Slip:
    """One way in which a prompt departs: what it says, what the template wants, and the prompt as it should be."""

    kind: SlipKind
    said: str
    wanted: str
    frame: Frame | None
    rebuilt: str | None


def slips_of(text: str, name: str, country: Country, concept: str) -> Iterator[Slip]:
    """Hold a prompt against the templates of its concept; nothing comes where it fits one.

    `name` is the row's as it stands: where it ends in a space that the prompt lacks, the template may have lacked it.
    """
    bare, said = tidy(name), tidy(text)
    own = list(frames_of(concept))
    for frame in own:
        if frame.text(bare, country) == said:
            yield from fits(frame, text, name, bare)
            return
    for frame in own:
        expected = frame.text(bare, country)
        if squeeze(expected) == squeeze(said):
            kind: SlipKind = "space-missing" if len(said.split()) < len(expected.split()) else "space-extra"
            yield Slip(kind, *difference(said, expected), frame, expected)
            return
        shorter = without_noun(bare, frame)
        if shorter is not None and frame.text(shorter, country) == said:
            yield Slip("noun-in-name", bare, shorter, frame, said)
            return
    yield from departures(said, bare, country, own)


def fits(frame: Frame, text: str, name: str, bare: str) -> Iterator[Slip]:
    """Say what is odd about a prompt that fits: a noun said twice, a space that only the name has."""
    if frame.set_name == "released" and without_noun(bare, frame):
        yield Slip("noun-twice", f"{bare} {frame.noun}", bare, frame, None)
    end = frame.template.partition("{name}")[2]
    if name.endswith(" ") and f"{bare} " in text and f"{bare}  " not in text and end.startswith(" "):
        joined = f"{{name}}{end[1:].split()[0]}"
        yield Slip("space-in-name", joined, f"{{name}} {end[1:].split()[0]}", frame, None)


def without_noun(name: str, frame: Frame) -> str | None:
    """Give a name without the noun that the template adds; None where it does not end in it."""
    noun = frame.noun
    if noun is None or not name.casefold().endswith(f" {noun}"):
        return None
    return name[: -len(noun)].strip() or None


def departures(said: str, name: str, country: Country, own: list[Frame]) -> Iterator[Slip]:
    """Say how a prompt departs that is not merely spaced otherwise."""
    read = [(frame, slots) for frame in own if (slots := frame.read(said))]
    if read:
        frame, slots = max(
            read, key=lambda pair: (pair[1].place == pair[0].place(country), fold(pair[1].name) == fold(name))
        )
        wanted = frame.text(name, country)
        if slots.place != frame.place(country):
            yield Slip("place", slots.place, frame.place(country), frame, wanted)
        if slots.name != name:
            yield Slip("name", slots.name, name, frame, wanted)
        return
    other = next((frame for frame in frames() if frame not in own and frame.read(said)), None)
    nearest = nearest_frame(said, name, country, own)
    rebuilt = None if nearest is None else nearest.text(name, country)
    if other is not None:
        yield Slip("other-concept", other.key, " or ".join(dict.fromkeys(f.key for f in own)), other, rebuilt)
    elif nearest is None or rebuilt is None:
        yield Slip("none", said, "", None, None)
    else:
        found, wanted = difference(said, rebuilt)
        place = place_among(found, wanted, nearest, country)
        if place is None:
            yield Slip("none", found, wanted, nearest, rebuilt)
        else:
            yield Slip("place", place, nearest.place(country), nearest, rebuilt)


def nearest_frame(said: str, name: str, country: Country, own: Iterable[Frame]) -> Frame | None:
    """Find the template that a text was most likely meant to follow; the only one of a concept is always meant."""
    released = [frame for frame in own if frame.set_name == "released"]
    if len(released) == 1:
        return released[0]
    if len(said) > LONGEST_READ:
        return None
    words = bare_words(said)

    def likeness(frame: Frame) -> tuple[bool, float]:
        own_words = frame.key_words & (set(words) - set(bare_words(name)))
        return bool(own_words), SequenceMatcher(None, words, bare_words(frame.text(name, country)), False).ratio()

    rated = [(likeness(frame), -place, frame) for place, frame in enumerate(released)]
    best = max(rated, default=None, key=lambda each: each[:2])
    return best[2] if best is not None and best[0][1] >= LEAST_ALIKE else None


def bare_words(text: str) -> list[str]:
    """List words without marks, in small letters."""
    return fold(text).replace(",", " ").replace(".", " ").split()


def difference(said: str, wanted: str) -> tuple[str, str]:
    """Give the words in which two texts differ."""
    found, expected = said.split(), wanted.split()
    if len(found) > LONGEST_READ:
        return said, wanted
    blocks = SequenceMatcher(None, found, expected, False).get_opcodes()
    changed = [each for each in blocks if each[0] != "equal"]
    return (
        " ".join(word for _, begin, end, _, _ in changed for word in found[begin:end]),
        " ".join(word for _, _, _, begin, end in changed for word in expected[begin:end]),
    )


def place_among(found: str, wanted: str, frame: Frame, country: Country) -> str | None:
    """Give the word for a country that stands where the template wants another one; None where none does."""
    if frame.place(country) not in wanted:
        return None
    words = sorted({word for each in countries().values() for word in (each.name, each.adjective)}, key=len)
    padded = f" {' '.join(bare_words(found))} "
    return next((word for word in reversed(words) if f" {fold(word)} " in padded), None)
