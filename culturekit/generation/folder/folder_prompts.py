"""Which prompt a file answers, by what its name or its row in a list says."""

import difflib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from culturekit.generation.folder.folder_patterns import Fields, bare, folded, spaced
from culturekit.records.artifact_ids import without_prefix

__all__ = ["IDENTIFYING", "Hit", "KnownPrompts", "Names", "Prompt"]

IDENTIFYING = ("prompt_id", "prompt", "artifact_id", "artifact", "concept", "group", "country")
"""The fields that say which prompt is meant."""

SHORTEST_BEGINNING = 8
"""Bytes that the beginning of a cut text has at least; shorter ones begin too many."""

SHOWN = 3


class Prompt(NamedTuple):
    """A prompt, as far as its images need it."""

    prompt_id: str
    text: str
    concept: str | None
    country: str | None
    artifact_id: str | None
    group: str | None


@dataclass(frozen=True, slots=True)
class Names:
    """What countries and artifacts are called, by code and by id."""

    countries: Mapping[str, Sequence[str]] = field(default_factory=dict)
    artifacts: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Hit(NamedTuple):
    """The place of a prompt, or why there is none; `several` are the prompts that all fit."""

    place: int | None
    reason: str = ""
    several: tuple[int, ...] = ()


class Texts:
    """Prompts by a folded form of their text, also by its beginning."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Order the keys; prompts are counted from 0."""
        self.places: dict[str, list[int]] = defaultdict(list)
        for place, key in enumerate(keys):
            if key:
                self.places[key].append(place)
        self.ordered = sorted(self.places)

    def with_text(self, key: str) -> Sequence[int]:
        """Find the prompts with this text."""
        return self.places.get(key, ())

    def begun(self, key: str) -> Sequence[int]:
        """Find the prompts whose text begins like this, as a name that was cut does."""
        if len(key.encode()) < SHORTEST_BEGINNING:
            return ()
        found: list[int] = []
        for other in self.ordered[bisect_left(self.ordered, key) :]:
            if not other.startswith(key) or len(found) > SHOWN:
                break
            found += self.places[other]
        return found


class KnownPrompts:
    """The prompts of a table, to be found by id, by text, and by what they are about."""

    def __init__(self, prompts: pl.DataFrame, names: Names | None = None) -> None:
        """Take a prompts table; rows stand in the order of their ids."""
        rows = prompts.sort("prompt_id").select(Prompt._fields).iter_rows()
        self.prompts = [Prompt._make(row) for row in rows]
        self.names = names or Names()
        self.ids = {prompt.prompt_id: place for place, prompt in enumerate(self.prompts)}
        self.folded_ids = Texts(folded(prompt.prompt_id) for prompt in self.prompts)
        self.texts = Texts(folded(prompt.text) for prompt in self.prompts)
        self.bare_texts = Texts(bare(prompt.text) for prompt in self.prompts)
        self.about: dict[tuple[str, str], frozenset[int]] = self.index_of_attributes()
        self.mentions = self.index_of_words()

    def index_of_attributes(self) -> dict[tuple[str, str], frozenset[int]]:
        """Note which prompts are about a concept, a country or an artifact, under each of its names."""
        found: dict[tuple[str, str], set[int]] = defaultdict(set)
        for place, prompt in enumerate(self.prompts):
            for what, name in self.attributes(prompt):
                found[what, folded(name)].add(place)
                found[what, bare(name)].add(place)
        return {key: frozenset(places) for key, places in found.items()}

    def index_of_words(self) -> dict[str, frozenset[int]]:
        """Note which prompts have a word in their text."""
        found: dict[str, set[int]] = defaultdict(set)
        for place, prompt in enumerate(self.prompts):
            for word in spaced(prompt.text).split():
                found[word].add(place)
        return {word: frozenset(places) for word, places in found.items()}

    def attributes(self, prompt: Prompt) -> Iterable[tuple[str, str]]:
        """Give what a prompt is about, by field."""
        if prompt.concept:
            yield "concept", prompt.concept
        if prompt.group:
            yield "group", prompt.group
        for name in (prompt.country, *self.names.countries.get(prompt.country or "", ())):
            if name:
                yield "country", name
        if prompt.artifact_id:
            yield "artifact_id", prompt.artifact_id
            yield "artifact", without_prefix(prompt.artifact_id)
            for name in self.names.artifacts.get(prompt.artifact_id, ()):
                yield "artifact", name

    def find(self, fields: Fields) -> Hit:
        """Find the one prompt that everything said fits."""
        said = {what: text for what in IDENTIFYING if (text := fields.get(what))}
        if not said:
            return Hit(None, "the name says nothing of a prompt")
        places: Sequence[int] | frozenset[int] | None = None
        if "prompt_id" in said:
            places = self.by_id(said["prompt_id"])
            if not places:
                return Hit(None, f"no prompt has the id {cut(said['prompt_id'])!r}")
        elif "prompt" in said:
            places = self.by_text(said["prompt"])
            if not places:
                return Hit(None, f"no prompt reads {cut(said['prompt'])!r}")
        for what in ("artifact_id", "artifact", "concept", "group", "country"):
            if what in said and (places is None or len(places) > 1):
                places = self.narrowed(places, what, said[what])
                if not places:
                    return Hit(None, f"no such prompt is about the {what.removesuffix('_id')} {cut(said[what])!r}")
        assert places is not None
        if len(places) == 1:
            return Hit(next(iter(places)))
        several = tuple(sorted(places))
        ids = ", ".join(self.prompts[place].prompt_id for place in several[:SHOWN])
        more = ", ..." if len(several) > SHOWN else ""
        return Hit(None, f"fits more than one prompt: {ids}{more}", several)

    def by_id(self, prompt_id: str) -> Sequence[int]:
        """Find a prompt by its id, also where a file name could not hold it as it is."""
        exact = self.ids.get(prompt_id)
        return self.folded_ids.with_text(folded(prompt_id)) if exact is None else (exact,)

    def by_text(self, text: str) -> Sequence[int]:
        """Find prompts by their text: whole, without accents, or the beginning."""
        key, plain = folded(text), bare(text)
        return (
            self.texts.with_text(key)
            or self.bare_texts.with_text(plain)
            or self.texts.begun(key)
            or self.bare_texts.begun(plain)
        )

    def narrowed(self, places: Iterable[int] | None, what: str, text: str) -> frozenset[int]:
        """Keep the prompts that are about something; what no name tells is looked for in the texts."""
        found = self.about.get((what, folded(text))) or self.about.get((what, bare(text))) or frozenset()
        if not found and what == "artifact":
            found = self.mentioning(text)
        return found if places is None else found & frozenset(places)

    def mentioning(self, name: str) -> frozenset[int]:
        """Find the prompts whose text has these words in a row."""
        words = spaced(name).split()
        sets = sorted((self.mentions.get(word, frozenset()) for word in words), key=len)
        if not sets:
            return frozenset()
        places = sets[0].intersection(*sets[1:])
        return frozenset(place for place in places if f" {' '.join(words)} " in f" {spaced(self.prompts[place].text)} ")

    def nearest(self, fields: Fields) -> list[str]:
        """Name prompts that a name may have meant, the nearest first."""
        by_id = fields.get("prompt_id")
        if by_id:
            return difflib.get_close_matches(by_id, self.ids, n=SHOWN, cutoff=0.5)
        said = bare(fields.get("prompt") or fields.get("artifact") or "")[:200]
        keys = difflib.get_close_matches(said, self.bare_texts.ordered, n=SHOWN, cutoff=0.4)
        return [self.prompts[self.bare_texts.places[key][0]].text for key in keys]


def cut(text: str) -> str:
    """Keep a message readable."""
    return text if len(text) <= 60 else f"{text[:57]}..."
