"""Activities as a model finds them on pages; what it quotes must stand there.

Two texts that look the same are the same here: composed and decomposed letters, any run of white space, and hidden
characters make no difference. Case, punctuation and everything else do.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.asking import Asked, GivenWording, asks, bounded, row_id, sifted
from culturekit.builders.country_names import folded, without_accents
from culturekit.core.declared import Given, Typed, builds
from culturekit.core.schemas import ACTIVITIES, MENTIONS, PAGES, PROMPTS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, write_drops, write_table
from culturekit.index.embedding.embedding import text_encoder_of
from culturekit.index.encoder import ENCODERS
from culturekit.kg.countries import Country, country, country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.models import quoted
from culturekit.llm.untrusted import JOINERS, TAKEN_OUT, LongText, strip_hidden

# The categories of activities, and prompts that ask for the activities of countries, one each.

LOOKED_FOR = ("dances", "games", "religious", "greetings", "celebrations")
# The activities of these differ from country to country, and pages are read for them; those of the others are the same
# everywhere, and are shown in two settings, or in one way.
FIXED: Mapping[str, tuple[str, ...]] = {
    "eating": ("eating at home", "eating at a restaurant"),
    "concerts": ("an indoor concert", "an outdoor concert"),
    "wedding": ("a wedding",),
    "funeral": ("a funeral",),
}
PER_CATEGORY = 6

SHORT = {"home": "eating at home", "restaurant": "eating at a restaurant"}
SHORT |= {"indoor": "an indoor concert", "outdoor": "an outdoor concert"}
TEMPLATE = "A photorealistic photo of {activity} in {country}."
ACTIVITY = {"activity": pl.String()}


def spelled_out(activity: str) -> str:
    """Say an activity as a prompt does, where published files only name its setting."""
    plain = activity.replace("_", " ").strip()
    return SHORT.get(plain.casefold(), plain)


def activity_prompt(prompt_id: str, iso: str, category: str, activity: str) -> dict[str, Any]:
    """Write the prompt of an activity."""
    land, name = country(iso), spelled_out(activity)
    text, group = TEMPLATE.format(activity=name, country=land.in_a_sentence), land.groups.get("cultivate")
    return {
        "prompt_id": prompt_id, "text": text, "negative_text": None, "benchmark": "cultivate", "kind": "activity",
        "concept": category, "country": iso, "group": group, "artifact_id": None, "language": "en",
        "template_id": "cultivate-photo", "activity": name,
    }  # fmt: skip


@builds(
    "activity-prompts", "prompts", reads=lambda _: country_files(), decides=lambda _: {"template": TEMPLATE},
    example="--activities activities/activities.parquet --out prompts",
)  # fmt: skip
def prompts(
    work: Work, activities: Annotated[Path, Field(description="Table that `activities merge` wrote.")]
) -> Outcome:
    """Write a prompt for each activity in its country."""
    named = read_table(activities, ACTIVITIES).select("activity_id", "country", "category", "activity")
    rows = [activity_prompt(*row) for row in named.iter_rows()]
    table = pl.DataFrame(rows, schema={**PROMPTS.schema, **ACTIVITY})
    write_table(work.out, PROMPTS, table)
    return Outcome({"prompts": table.height, "countries": table["country"].n_unique()})


def find_quote(source: str, quote: str) -> tuple[int, int] | None:
    """Find the first place where a quote stands in a source; None where it does not, or has no letter and no digit.

    Both are brought to one form, which knows where each of its characters was; a quote may not begin or end within a
    letter and its marks.
    """
    if not any(map(str.isalnum, quote)):
        return None
    pieces = list(_pieces_of(source))
    text = "".join(piece for piece, _, _ in pieces)
    starts = [start for piece, start, _ in pieces for _ in piece]
    ends = [end for piece, _, end in pieces for _ in piece]
    wanted = "".join(piece for piece, _, _ in _pieces_of(quote)).strip(" ")
    at = text.find(wanted)
    while at >= 0:
        last = at + len(wanted) - 1
        whole_start = at == 0 or ends[at - 1] <= starts[at]
        whole_end = last + 1 == len(text) or ends[last] <= starts[last + 1]
        if whole_start and whole_end:
            return starts[at], ends[last]
        at = text.find(wanted, at + 1)
    return None


def _pieces_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Cut a text into letters with their marks, each composed, and single spaces; each with its place."""
    start, end, cluster, space = 0, 0, "", False
    for at, character in enumerate(text):
        if character in JOINERS or TAKEN_OUT.match(character):
            continue
        # A mark, or the rest of a Hangul syllable, becomes one with the letter before it.
        if cluster and (unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"):
            cluster, end = cluster + character, at + 1
            continue
        if cluster:
            yield unicodedata.normalize("NFC", cluster), start, end
            cluster = ""
        if character.isspace():
            if not space:
                yield " ", at, at + 1
            space = True
            continue
        start, end, cluster, space = at, at + 1, character, False
    if cluster:
        yield unicodedata.normalize("NFC", cluster), start, end


EXTRACT = "activities.extract"
REPLY_TOKENS = 2048
AT_MOST = 20
MOST_READ = 200
LONGEST_TEXT = 8_000
MOST_WORDS, MOST_LETTERS = 8, 120


class FoundActivity(msgspec.Struct, frozen=True):
    """An activity that a model found."""

    name: str
    category: str
    quote: str


class FoundActivities(msgspec.Struct, frozen=True):
    """What a model answers about one section."""

    id: str
    activities: Annotated[list[FoundActivity], msgspec.Meta(max_length=MOST_READ)]


@asks(
    "extract-activities", "mentions", EXTRACT, words="activities_extract", unit="sections", version=3,
    key=lambda row: f"{row['page_id']}/{row['number']}",
    example=f"--pages sources/pages.parquet --llm {quoted('text')} --out mentions --budget 20",
)  # fmt: skip
def extract(
    asked: Asked,
    pages: Annotated[Path, Field(description="Table that `activities read` wrote.")],
    *,
    reader: Annotated[
        str,
        Field(description="Who reads, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER or another."),
        Typed("llm"),
    ],
    wording: GivenWording = None,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Have a model find activities on pages.

    What it quotes must stand there.
    """
    sections = list(read_table(pages, PAGES).sort(PAGES.key).iter_rows(named=True))
    request = partial(section_request, instructions=asked.instructions)
    came = asked.put(sections, request, unit="sections")
    rows = [row for section, found in came for row in _mentions(section, found, asked.client.model)]
    write_table(asked.work.out, MENTIONS, pl.DataFrame(rows, schema=MENTIONS.schema))
    outcomes = dict(sorted(Counter(row["outcome"] for row in rows).items()))
    return asked.outcome(asked.work, {"sections": len(sections), "mentions": len(rows)}, mentions=outcomes)


def section_request(section: Mapping[str, Any], *, instructions: str) -> Request:
    """Ask what activities a section names."""
    asked = row_id(section["page_id"], str(section["number"]))
    data = {
        "id": asked, "country": country(section["country"]).name, "page": section["title"],
        "section": section["section"], "text": LongText(section["text"], LONGEST_TEXT),
        "categories": section["categories"], "at_most": AT_MOST,
    }  # fmt: skip
    return Request(
        EXTRACT, instructions, data, FoundActivities, allowed={"id": (asked,)}, max_tokens=REPLY_TOKENS,
        asks=bounded(FoundActivities, "activities", AT_MOST),
    )  # fmt: skip


def _mentions(section: Mapping[str, Any], found: FoundActivities, reader: str) -> Iterator[dict[str, Any]]:
    """Write each activity that was found, and what is wrong with it where something is."""

    def problem(each: FoundActivity) -> str:
        if each.category not in section["categories"]:
            return "not a category that was asked for"
        if not folded(each.name) or len(each.name.split()) > MOST_WORDS or len(each.name) > MOST_LETTERS:
            return "not a name"
        return "the quote is not in the text" if find_quote(section["text"], each.quote) is None else ""

    named = [msgspec.structs.replace(each, name=" ".join(strip_hidden(each.name).split())) for each in found.activities]
    sorted_out = sifted(named, problem=problem, key=lambda each: (each.category, folded(each.name)))
    about = {name: section[name] for name in ("country", "page_id", "number")}
    for position, (each, why) in enumerate(sorted_out, start=1):
        yield about | {"category": each.category, "position": position, "name": each.name, "quote": each.quote,
                       "reader": reader, "outcome": why or "ok"}  # fmt: skip


# Mentions become the activities of each country: near-duplicates are merged, and none is in two categories.

GENERIC = {
    "a", "an", "and", "at", "by", "during", "folk", "for", "in", "national", "of", "on", "the", "traditional", "with",
    "ceremony", "celebration", "custom", "dance", "dancing", "day", "festival", "game", "greeting", "holiday", "ritual",
}  # fmt: skip # words that do not tell two activities of one category apart


def name_key(name: str, land: Country) -> frozenset[str]:
    """Give the words that tell an activity from others of its country; none where it has no name of its own."""
    about = {word for text in (land.name, land.adjective, land.demonym) for word in folded(text).split()}
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


def _merging_decides(given: Given) -> dict[str, object]:
    names = ("countries", "per_category", "encoder", "similarity")
    decided = {} if given["encoder"] is None else ENCODERS.decided_by(given["encoder"])
    return {**{name: given[name] for name in names}, **decided}


@builds(
    "merge-activities", "activities", packages=("numpy", "polars"), decides=_merging_decides,
    reads=lambda _: country_files(),
    example="--mentions mentions/mentions.parquet --pages sources/pages.parquet --out activities",
)  # fmt: skip
def merge(
    work: Work,
    mentions: Annotated[Path, Field(description="Table that `activities extract` wrote.")],
    pages: Annotated[Path, Field(description="Table that `activities read` wrote.")],
    *,
    countries: Annotated[
        tuple[str, ...],
        Field(description="ISO codes, with commas between. [those that pages are about]"),
        Typed(once=True),
    ] = (),
    per_category: Annotated[
        int, Field(ge=1, le=100, description="Activities of each category that is looked for.")
    ] = PER_CATEGORY,
    encoder: Annotated[
        str | None,
        Field(
            description="Encoder of texts that tells near-duplicates, as a SPEC. [names are compared by words alone]"
        ),
        Typed(offers="culturekit.index.encoder:ENCODERS"),
    ] = None,
    similarity: Annotated[
        float,
        Field(ge=-1, le=1, description="Cosine from which two names mean the same; it belongs to the encoder."),
        Typed(needs="encoder"),
    ] = 0.85,
) -> Outcome:
    """Merge what says the same, and choose by country.

    Each country keeps 36 activities in nine categories.
    """
    found = read_table(mentions, MENTIONS).filter(outcome="ok").sort(MENTIONS.key)
    sources = {row["page_id"]: row for row in read_table(pages, PAGES).iter_rows(named=True)}
    isos = sorted(countries or {row["country"] for row in sources.values()})
    rows: list[dict[str, Any]] = []
    drops: list[Drop] = []
    findings = []
    for iso in isos:
        named, without = _named_in(found.filter(country=iso).iter_rows(named=True), country(iso))
        alike = named if encoder is None or not named else _one_per_meaning(named, encoder, similarity)
        activities, twice = _chosen(alike, iso, per_category)
        drops += without + twice
        rows += [_row_of(iso, each, sources) for each in activities]
        rows += [_named_row(iso, category, name) for category, names in FIXED.items() for name in names]
        counts = Counter(each.category for each in activities)
        findings += [
            f"{iso} {category}: {counts[category]} of {per_category}"
            for category in LOOKED_FOR
            if counts[category] < per_category
        ]
    write_table(work.out, ACTIVITIES, pl.DataFrame(rows, schema=ACTIVITIES.schema))
    reasons = write_drops(work.out, drops, once=True)
    return Outcome({"countries": len(isos), "activities": len(rows)}, reasons,
                   {"findings": findings} if findings else {})  # fmt: skip


Drop: TypeAlias = tuple[str, str, str, str, str | None]
MERGE = "activities.merge"


def _named_in(mentions: Iterable[dict[str, Any]], land: Country) -> tuple[list[Named], list[Drop]]:
    """Gather the mentions of each activity of a country, the best known first; drop those without a name."""
    named: dict[tuple[str, frozenset[str]], Named] = {}
    drops: list[Drop] = []
    for mention in mentions:
        category, key = mention["category"], name_key(mention["name"], land)
        if key:
            named.setdefault((category, key), Named(category, key)).mentions.append(mention)
        else:
            drops.append((f"{land.iso}/{mention['name']}", category, MERGE, "no name of its own", None))
    return sorted(named.values(), key=lambda each: each.rank), drops


def _one_per_meaning(activities: Sequence[Named], encoder: str, similarity: float) -> list[Named]:
    """Merge activities of one category whose names an encoder holds to be alike, into the one that stands first."""
    vectors = np.asarray(text_encoder_of(encoder).encode_texts([each.name for each in activities]))
    kept: list[int] = []
    for number, each in enumerate(activities):
        close = [k for k in kept if activities[k].category == each.category]
        best = max(close, key=lambda k: float(vectors[k] @ vectors[number]), default=None)
        if best is not None and float(vectors[best] @ vectors[number]) >= similarity:
            activities[best].mentions.extend(each.mentions)
        else:
            kept.append(number)
    return [activities[number] for number in kept]


def _chosen(activities: Iterable[Named], iso: str, per_category: int) -> tuple[list[Named], list[Drop]]:
    """Take no more activities of a category than are wanted, and none in two of them."""
    chosen: list[Named] = []
    drops: list[Drop] = []
    for each in sorted(activities, key=lambda one: one.rank):
        twin = next((other for other in chosen if other.key == each.key), None)
        where = f"{iso}/{each.name}"
        if twin is not None:
            drops.append((where, each.category, MERGE, "also in another category", twin.category))
        elif sum(other.category == each.category for other in chosen) == per_category:
            drops.append((where, each.category, MERGE, f"more than {per_category}", None))
        else:
            chosen.append(each)
    return chosen, drops


def _row_of(iso: str, each: Named, sources: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Write an activity, with the first place that names it."""
    first = each.mentions[0]
    page = sources[first["page_id"]]
    return _named_row(iso, each.category, each.name) | {
        "also": sorted({mention["name"] for mention in each.mentions} - {each.name}),
        **{name: first[name] for name in ("quote", "page_id")},
        **{name: page[name] for name in ("url", "title", "revision")},
        "mentions": len(each.mentions),
    }


def _named_row(iso: str, category: str, name: str) -> dict[str, Any]:
    """Write what an activity is; those of FIXED stand on no page."""
    form = "multi-variant" if category in LOOKED_FOR else "setting" if len(FIXED[category]) > 1 else "single"
    activity_id = f"{iso.lower()}-{category}-{'-'.join(folded(name).split())}"
    nowhere = dict.fromkeys(("quote", "page_id", "url", "title", "revision"))
    return {"activity_id": activity_id, "country": iso, "category": category, "form": form, "activity": name,
            "also": [], **nowhere, "mentions": 0}  # fmt: skip
