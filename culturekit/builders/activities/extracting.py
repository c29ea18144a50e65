"""Activities as a model finds them on pages; what it quotes must stand there.

Two texts that look the same are the same here: composed and decomposed letters, any run of white space, and hidden
characters make no difference. Case, punctuation and everything else do.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import AskedRows, GivenWording, bounded, row_id, sifted, wording
from culturekit.builders.asking import asking_each
from culturekit.builders.country_names import folded, without_accents
from culturekit.core.inputs import roles_of
from culturekit.core.schemas import ACTIVITIES, MENTIONS, PAGES, PROMPTS
from culturekit.core.stage import Stage
from culturekit.core.stage_command import AskingCommand, StageCommand, Typed
from culturekit.core.tables import read_table, write_drops, write_table
from culturekit.core.work import Outcome, Work
from culturekit.index.embedding.embedding_encoders import text_encoder_of
from culturekit.index.encoder import ENCODERS
from culturekit.kg.countries import Country, country, country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.models import quoted
from culturekit.llm.replies import ParseFailure
from culturekit.llm.untrusted import JOINERS, TAKEN_OUT, LongText, strip_hidden

# The categories of activities, and prompts that ask for the activities of countries, one each.

LOOKED_FOR = ("dances", "games", "religious", "greetings", "celebrations")
"""The categories whose activities differ from country to country: pages are read for them."""

PER_CATEGORY = 6

FIXED: Mapping[str, tuple[str, ...]] = {
    "eating": ("eating at home", "eating at a restaurant"),
    "concerts": ("an indoor concert", "an outdoor concert"),
    "wedding": ("a wedding",),
    "funeral": ("a funeral",),
}
"""The categories whose activities are the same everywhere, and are shown in two settings, or in one way."""

SHORT = {"home": "eating at home", "restaurant": "eating at a restaurant"}
SHORT |= {"indoor": "an indoor concert", "outdoor": "an outdoor concert"}


def _form_of(category: str) -> str:
    """Say how the activities of a category come about."""
    if category in LOOKED_FOR:
        return "multi-variant"
    return "setting" if len(FIXED[category]) > 1 else "single"


def spelled_out(activity: str) -> str:
    """Say an activity as a prompt does, where published files only name its setting."""
    plain = activity.replace("_", " ").strip()
    return SHORT.get(plain.casefold(), plain)


TEMPLATE = "A photorealistic photo of {activity} in {country}."
ACTIVITY = {"activity": pl.String()}


def activity_prompt(prompt_id: str, iso: str, category: str, activity: str) -> dict[str, Any]:
    """Write the prompt of an activity."""
    place, name = country(iso), spelled_out(activity)
    return {
        "prompt_id": prompt_id,
        "text": TEMPLATE.format(activity=name, country=place.in_a_sentence),
        "negative_text": None,
        "benchmark": "cultivate",
        "kind": "activity",
        "concept": category,
        "country": iso,
        "group": place.groups.get("cultivate"),
        "artifact_id": None,
        "language": "en",
        "template_id": "cultivate-photo",
        "activity": name,
    }


@dataclass(frozen=True, slots=True)
class ActivitiesRead:
    """Activities of countries."""

    activities: Annotated[Path, Field(description="Table that `activities merge` wrote.")]


def activity_prompts_stage(given: ActivitiesRead) -> Stage:
    """Write a prompt for each activity in its country."""
    return Stage(
        "prompts",
        "activity-prompts",
        1,
        lambda work: prompt_activities(work, given.activities),
        {**roles_of(given), **country_files()},
        {"template": TEMPLATE},
        packages=("polars",),
    )


PROMPTS_OF = StageCommand(activity_prompts_stage, "--activities activities/activities.parquet --out prompts")


def prompt_activities(work: Work, activities: Path) -> Outcome:
    """Write the prompts of all activities."""
    rows = [
        activity_prompt(row["activity_id"], row["country"], row["category"], row["activity"])
        for row in read_table(activities, ACTIVITIES).iter_rows(named=True)
    ]
    table = pl.DataFrame(rows, schema={**PROMPTS.schema, **ACTIVITY})
    write_table(work.out, PROMPTS, table)
    return Outcome({"prompts": table.height, "countries": table["country"].n_unique()})


@dataclass(frozen=True, slots=True)
class Quote:
    """Where a quote stands: `source[start:end]`."""

    start: int
    end: int


def find_quote(source: str, quote: str) -> Quote | None:
    """Find the first place where a quote stands in a source; None where it does not, or says nothing."""
    found = check_quotes(source, [quote])
    return None if isinstance(found, ParseFailure) else found[0]


def check_quotes(source: str, quotes: Sequence[str], *, raw: str = "") -> tuple[Quote, ...] | ParseFailure:
    """Find every quote of a reply in the source as it was sent, or say that one is empty or not there.

    A quote without a letter or a digit is empty: it would stand in any source. `raw` is the reply the quotes are from;
    the failure keeps it.
    """
    form = Form(source)
    places = []
    for number, quote in enumerate(quotes, start=1):
        if not any(map(str.isalnum, quote)):
            return ParseFailure("empty-quote", f"quote {number}", raw)
        place = form.find(quote)
        if place is None:
            return ParseFailure("quote-not-found", f"quote {number}", raw)
        places.append(place)
    return tuple(places)


class Form:
    """A source brought to one form, which knows for each of its characters where that was."""

    def __init__(self, source: str) -> None:
        """Bring the source to its form."""
        pieces = list(_pieces_of(source))
        self.text = "".join(piece for piece, _, _ in pieces)
        self.starts = [start for piece, start, _ in pieces for _ in piece]
        self.ends = [end for piece, _, end in pieces for _ in piece]

    def find(self, quote: str) -> Quote | None:
        """Find a quote; it may not begin or end within a letter and its marks."""
        wanted = "".join(piece for piece, _, _ in _pieces_of(quote)).strip(" ")
        at = self.text.find(wanted)
        while at >= 0:
            last = at + len(wanted) - 1
            whole_start = at == 0 or self.ends[at - 1] <= self.starts[at]
            whole_end = last + 1 == len(self.text) or self.ends[last] <= self.starts[last + 1]
            if whole_start and whole_end:
                return Quote(self.starts[at], self.ends[last])
            at = self.text.find(wanted, at + 1)
        return None


def _pieces_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Cut a text into letters with their marks, each composed, and single spaces; each with its place."""
    start, end, cluster, space = 0, 0, "", False
    for at, character in enumerate(text):
        if character in JOINERS or TAKEN_OUT.match(character):
            continue
        if cluster and _joins(character):
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


def _joins(character: str) -> bool:
    """Return whether a character may become one with the letter before it: a mark, or the rest of a Hangul syllable."""
    return unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"


EXTRACT = "activities.extract"
REPLY_TOKENS = 2048
AT_MOST = 20
MOST_READ = 200
LONGEST_TEXT = 8_000
MOST_WORDS, MOST_LETTERS = 8, 120
MENTIONED = "ok"


class FoundActivity(msgspec.Struct, frozen=True):
    """An activity that a model found."""

    name: str
    category: str
    quote: str


class FoundActivities(msgspec.Struct, frozen=True):
    """What a model answers about one section."""

    id: str
    activities: Annotated[list[FoundActivity], msgspec.Meta(max_length=MOST_READ)]


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """Who reads the pages."""

    reader: Annotated[
        str,
        Field(description="Who reads, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER or another."),
        Typed("llm"),
    ]
    wording: GivenWording = None


@dataclass(frozen=True, slots=True)
class Section:
    """A section as a model is shown it."""

    row: dict[str, Any]

    def request(self, instructions: str) -> Request:
        """Ask what activities the section names."""
        asked = row_id(self.row["page_id"], str(self.row["number"]))
        data = {
            "id": asked,
            "country": country(self.row["country"]).name,
            "page": self.row["title"],
            "section": self.row["section"],
            "text": LongText(self.row["text"], LONGEST_TEXT),
            "categories": self.row["categories"],
            "at_most": AT_MOST,
        }
        return Request(
            EXTRACT, instructions, data, FoundActivities, allowed={"id": (asked,)}, max_tokens=REPLY_TOKENS,
            asks=bounded(FoundActivities, "activities", AT_MOST),
        )  # fmt: skip

    def mentions(self, found: FoundActivities, reader: str) -> Iterator[dict[str, Any]]:
        """Write each activity that was found, and what is wrong with it where something is."""
        named = [
            msgspec.structs.replace(each, name=" ".join(strip_hidden(each.name).split())) for each in found.activities
        ]
        sorted_out = sifted(named, problem=self.problem, key=lambda each: (each.category, folded(each.name)))
        for position, (each, why) in enumerate(sorted_out, start=1):
            yield {
                "country": self.row["country"],
                "category": each.category,
                "page_id": self.row["page_id"],
                "number": self.row["number"],
                "position": position,
                "name": each.name,
                "quote": each.quote,
                "reader": reader,
                "outcome": why or MENTIONED,
            }

    def problem(self, each: FoundActivity) -> str:
        """Explain why an activity is not taken; empty where it is."""
        if each.category not in self.row["categories"]:
            return "not a category that was asked for"
        if not folded(each.name) or len(each.name.split()) > MOST_WORDS or len(each.name) > MOST_LETTERS:
            return "not a name"
        return "the quote is not in the text" if find_quote(self.row["text"], each.quote) is None else ""


@dataclass(frozen=True, slots=True)
class SectionsRead:
    """Pages as sections."""

    pages: Annotated[Path, Field(description="Table that `activities read` wrote.")]


def extract_activities_stage(given: SectionsRead, options: ExtractOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Have a model find activities on pages.

    What it quotes must stand there.
    """
    return asking_each(
        "extract-activities",
        given,
        options.reader,
        task=EXTRACT,
        words="activities_extract",
        unit="sections",
        requests=partial(_extraction_requests, given.pages),
        run=lambda work, client: extract_activities(work, given.pages, client, llm, options.wording),
        llm=llm,
        name="mentions",
        version=3,
        given_words=options.wording,
    )


EXTRACT_ACTIVITIES = AskingCommand(
    extract_activities_stage, f"--pages sources/pages.parquet --llm {quoted('text')} --out mentions --budget 20"
)


def _extraction_requests(pages: Path, instructions: str) -> Iterator[Request]:
    """Give the question about each section."""
    for row in read_table(pages, PAGES).sort(PAGES.key).iter_rows(named=True):
        yield Section(row).request(instructions)


def extract_activities(
    work: Work, pages: Path, client: Client | FreeClient, llm: LlmOptions = DEFAULTS, words: Path | None = None
) -> Outcome:
    """Ask a model what activities each section names, and keep what it quotes from the section."""
    sections = [Section(row) for row in read_table(pages, PAGES).sort(PAGES.key).iter_rows(named=True)]
    instructions = wording("activities_extract", words)
    asked: AskedRows[Section] = AskedRows(
        EXTRACT, client, llm, lambda section: f"{section.row['page_id']}/{section.row['number']}"
    )
    rows: list[dict[str, Any]] = []
    for section, value in asked.ask(work, sections, lambda each: each.request(instructions), unit="sections"):
        assert isinstance(value, FoundActivities)
        rows += section.mentions(value, client.model)
    write_table(work.out, MENTIONS, pl.DataFrame(rows, schema=MENTIONS.schema))
    outcomes = dict(sorted(Counter(row["outcome"] for row in rows).items()))
    return asked.outcome(work, {"sections": len(sections), "mentions": len(rows)}, mentions=outcomes)


# Mentions become the activities of each country: near-duplicates are merged, and none is in two categories.

GENERIC = {
    "a", "an", "and", "at", "by", "during", "folk", "for", "in", "national", "of", "on", "the", "traditional", "with",
    "ceremony", "celebration", "custom", "dance", "dancing", "day", "festival", "game", "greeting", "holiday", "ritual",
}  # fmt: skip
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
        Typed(offers="culturekit.index.encoder:ENCODERS"),
    ] = None
    similarity: Annotated[
        float,
        Field(ge=-1, le=1, description="Cosine from which two names mean the same; it belongs to the encoder."),
        Typed(needs="encoder"),
    ] = 0.85


@dataclass(frozen=True, slots=True)
class MentionsRead:
    """What was found on pages, and the pages."""

    mentions: Annotated[Path, Field(description="Table that `activities extract` wrote.")]
    pages: Annotated[Path, Field(description="Table that `activities read` wrote.")]


MERGED = MergeOptions()


def merge_activities_stage(given: MentionsRead, options: MergeOptions = MERGED) -> Stage:
    """Merge what says the same, and choose by country.

    Each country keeps 36 activities in nine categories.
    """
    decided = {} if options.encoder is None else ENCODERS.decided_by(options.encoder)
    return Stage(
        "activities",
        "merge-activities",
        1,
        lambda work: merge_activities(work, given.mentions, given.pages, options),
        {**roles_of(given), **country_files()},
        {**asdict(options), **decided},
        packages=("numpy", "polars"),
    )


MERGE = StageCommand(
    merge_activities_stage, "--mentions mentions/mentions.parquet --pages sources/pages.parquet --out activities"
)


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
        of_country = list(found.filter(country=iso).iter_rows(named=True))
        activities = activities_of(of_country, country(iso), options, drops)
        rows += [_row_of(iso, each, sources) for each in activities]
        rows += [_fixed_row(iso, category, name) for category, names in FIXED.items() for name in names]
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
    alike = list(_one_per_meaning(sorted(named.values(), key=lambda each: each.rank), options))
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


def _one_per_meaning(activities: Sequence[Named], options: MergeOptions) -> Iterator[Named]:
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


def _row_of(iso: str, each: Named, sources: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Write an activity, with the first place that names it."""
    first = each.mentions[0]
    page = sources[first["page_id"]]
    others = sorted({mention["name"] for mention in each.mentions} - {each.name})
    return {
        **_named_row(iso, each.category, each.name),
        "also": others,
        "quote": first["quote"],
        "page_id": first["page_id"],
        "url": page["url"],
        "title": page["title"],
        "revision": page["revision"],
        "mentions": len(each.mentions),
    }


def _fixed_row(iso: str, category: str, name: str) -> dict[str, Any]:
    """Write an activity that every country has."""
    nowhere = dict.fromkeys(("quote", "page_id", "url", "title", "revision"))
    return {**_named_row(iso, category, name), "also": [], **nowhere, "mentions": 0}


def _named_row(iso: str, category: str, name: str) -> dict[str, Any]:
    """Write what an activity is."""
    slug = "-".join(folded(name).split())
    activity_id = f"{iso.lower()}-{category}-{slug}"
    return {
        "activity_id": activity_id,
        "country": iso,
        "category": category,
        "form": _form_of(category),
        "activity": name,
    }
