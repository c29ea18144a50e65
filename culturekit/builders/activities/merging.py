"""Mentions become the activities of each country: near-duplicates are merged, and none is in two categories."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.activities.activity_prompts import FIXED, LOOKED_FOR, PER_CATEGORY, form_of
from culturekit.builders.folded_names import folded, without_accents
from culturekit.index.embedding.embedding_encoders import text_encoder_of
from culturekit.kg.countries import Country, country
from culturekit.records.schemas import ACTIVITIES, MENTIONS, PAGES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.tables import read_table, write_drops, write_table

__all__ = ["MergeOptions", "Named", "merge_activities", "name_key"]

GENERIC = {
    "a",
    "an",
    "and",
    "at",
    "by",
    "during",
    "folk",
    "for",
    "in",
    "national",
    "of",
    "on",
    "the",
    "traditional",
    "with",
}
GENERIC |= {
    "ceremony",
    "celebration",
    "custom",
    "dance",
    "dancing",
    "day",
    "festival",
    "game",
    "greeting",
    "holiday",
    "ritual",
}
"""Words that do not tell two activities of one category apart."""


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """Which countries, how many activities of each kind, and when two names mean the same."""

    countries: Annotated[
        tuple[str, ...],
        Field(description="ISO codes, with commas between. [those that pages are about]"),
        Typed(once=True),
    ] = ()
    per_category: Annotated[int, Field(ge=1, le=100, description="Activities of each category that is looked for.")] = (
        PER_CATEGORY
    )
    encoder: Annotated[
        str | None,
        Field(
            description="Encoder of texts that tells near-duplicates, as a SPEC. [names are compared by words alone]"
        ),
        Typed(offers="culturekit.index.encoders:ENCODERS"),
    ] = None
    similarity: Annotated[
        float,
        Field(ge=-1, le=1, description="Cosine from which two names mean the same; it belongs to the encoder."),
        Typed(needs="encoder"),
    ] = 0.85


def name_key(name: str, place: Country) -> frozenset[str]:
    """Give the words that tell an activity from others of its country; none where it has no name of its own."""
    about = {word for text in (place.name, place.adjective, place.demonym) for word in folded(text).split()}
    words = without_accents(folded(name)).split()
    plain = {word if word.endswith("ss") or len(word) < 4 else word.removesuffix("s") for word in words}
    return frozenset(plain - GENERIC - about)


@dataclass
class Named:
    """An activity with all the names and places it was found under."""

    category: str
    key: frozenset[str]
    mentions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name that is used most, then the shortest, then the first of the alphabet."""
        used: Counter[str] = Counter(mention["name"] for mention in self.mentions)
        return min(used, key=lambda name: (-used[name], len(name), name))

    @property
    def rank(self) -> tuple[int, int, str]:
        """Order activities: those that more pages name, then those with more mentions, then by name."""
        pages = {mention["page_id"] for mention in self.mentions}
        return -len(pages), -len(self.mentions), folded(self.name)


def merge_activities(work: Work, mentions: Path, pages: Path, options: MergeOptions) -> Outcome:
    """Merge mentions, choose the activities of each country, and say which countries have too few."""
    found = read_table(mentions, MENTIONS).filter(outcome="ok").sort(MENTIONS.key)
    about = read_table(pages, PAGES)
    sources = {row["page_id"]: row for row in about.iter_rows(named=True)}
    isos = sorted(options.countries or set(about["country"]))
    rows: list[dict[str, Any]] = []
    drops: list[tuple[str, str, str, str | None]] = []
    findings = []
    for iso in isos:
        own = list(found.filter(country=iso).iter_rows(named=True))
        activities = activities_of(own, country(iso), options, drops)
        rows += [row_of(iso, each, sources) for each in activities]
        rows += [fixed_row(iso, category, name) for category, names in FIXED.items() for name in names]
        counts = Counter(each.category for each in activities)
        findings += [
            f"{iso} {category}: {counts[category]} of {options.per_category}"
            for category in LOOKED_FOR
            if counts[category] < options.per_category
        ]
    write_table(work.out, ACTIVITIES, pl.DataFrame(rows, schema=ACTIVITIES.schema))
    reasons = write_drops(work.out, [(k, c, "activities.merge", r, d) for k, c, r, d in drops], once=True)
    notes = {"findings": findings} if findings else {}
    return Outcome({"countries": len(isos), "activities": len(rows)}, reasons, notes)


def activities_of(
    mentions: Sequence[dict[str, Any]],
    place: Country,
    options: MergeOptions,
    drops: list[tuple[str, str, str, str | None]],
) -> list[Named]:
    """Give the activities of a country, no more of a category than are wanted, and none in two of them."""
    named: dict[tuple[str, frozenset[str]], Named] = {}
    for mention in mentions:
        key = name_key(mention["name"], place)
        if not key:
            drops.append((f"{place.iso}/{mention['name']}", mention["category"], "no name of its own", None))
            continue
        named.setdefault((mention["category"], key), Named(mention["category"], key)).mentions.append(mention)
    alike = list(one_per_meaning(sorted(named.values(), key=lambda each: each.rank), options))
    chosen: list[Named] = []
    for each in sorted(alike, key=lambda one: one.rank):
        twin = next((other for other in chosen if other.key == each.key), None)
        count = sum(other.category == each.category for other in chosen)
        where = f"{place.iso}/{each.name}"
        if twin is not None:
            drops.append((where, each.category, "also in another category", twin.category))
        elif count == options.per_category:
            drops.append((where, each.category, f"more than {options.per_category}", None))
        else:
            chosen.append(each)
    return chosen


def one_per_meaning(activities: Sequence[Named], options: MergeOptions) -> Iterator[Named]:
    """Merge activities of one category whose names an encoder holds to be alike, into the one that stands first."""
    if options.encoder is None or not activities:
        yield from activities
        return
    vectors = np.asarray(text_encoder_of(options.encoder).encode_texts([each.name for each in activities]))
    kept: list[int] = []
    for number, each in enumerate(activities):
        close = [k for k in kept if activities[k].category == each.category]
        best = max(close, key=lambda k: float(vectors[k] @ vectors[number]), default=None)
        if best is not None and float(vectors[best] @ vectors[number]) >= options.similarity:
            activities[best].mentions.extend(each.mentions)
        else:
            kept.append(number)
    yield from (activities[number] for number in kept)


def row_of(iso: str, each: Named, sources: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Write an activity, with the first place that names it."""
    first = each.mentions[0]
    page = sources[first["page_id"]]
    others = sorted({mention["name"] for mention in each.mentions} - {each.name})
    return {
        **named_row(iso, each.category, each.name),
        "also": others,
        "quote": first["quote"],
        "page_id": first["page_id"],
        "url": page["url"],
        "title": page["title"],
        "revision": page["revision"],
        "mentions": len(each.mentions),
    }


def fixed_row(iso: str, category: str, name: str) -> dict[str, Any]:
    """Write an activity that every country has."""
    nowhere = dict.fromkeys(("quote", "page_id", "url", "title", "revision"))
    return {**named_row(iso, category, name), "also": [], **nowhere, "mentions": 0}


def named_row(iso: str, category: str, name: str) -> dict[str, Any]:
    """Write what an activity is."""
    slug = "-".join(folded(name).split())
    activity_id = f"{iso.lower()}-{category}-{slug}"
    return {
        "activity_id": activity_id,
        "country": iso,
        "category": category,
        "form": form_of(category),
        "activity": name,
    }
