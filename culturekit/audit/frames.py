"""The shipped templates, turned round: from a text to the name and the place that it speaks of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from culturekit.builders.prompting.prompt_templates import templates
from culturekit.kg.countries import Country
from culturekit.records.choices import TemplateSetName

__all__ = ["Frame", "Slots", "frames", "frames_of"]

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
