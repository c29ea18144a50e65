"""Activities as a model finds them on pages; what it quotes must stand there.

Two texts that look the same are the same here: composed and decomposed letters, any run of white space, and hidden
characters make no difference. Case, punctuation and everything else do.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import AskedRows, bounded, row_id, sifted
from culturekit.builders.folded_names import folded
from culturekit.builders.wordings import wording
from culturekit.kg.countries import country
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.reading.reply_codes import ParseFailure
from culturekit.llm.untrusted.hidden_characters import JOINERS, TAKEN_OUT
from culturekit.llm.untrusted.untrusted import LongText, strip_hidden
from culturekit.records.schemas import MENTIONS, PAGES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.tables import read_table, write_table

__all__ = [
    "EXTRACT",
    "ExtractOptions",
    "Quote",
    "check_quotes",
    "extract_activities",
    "extraction_requests",
    "find_quote",
]


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
        pieces = list(pieces_of(source))
        self.text = "".join(piece for piece, _, _ in pieces)
        self.starts = [start for piece, start, _ in pieces for _ in piece]
        self.ends = [end for piece, _, end in pieces for _ in piece]

    def find(self, quote: str) -> Quote | None:
        """Find a quote; it may not begin or end within a letter and its marks."""
        wanted = "".join(piece for piece, _, _ in pieces_of(quote)).strip(" ")
        at = self.text.find(wanted)
        while at >= 0:
            last = at + len(wanted) - 1
            whole_start = at == 0 or self.ends[at - 1] <= self.starts[at]
            whole_end = last + 1 == len(self.text) or self.ends[last] <= self.starts[last + 1]
            if whole_start and whole_end:
                return Quote(self.starts[at], self.ends[last])
            at = self.text.find(wanted, at + 1)
        return None


def pieces_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Cut a text into letters with their marks, each composed, and single spaces; each with its place."""
    start, end, cluster, space = 0, 0, "", False
    for at, character in enumerate(text):
        if character in JOINERS or TAKEN_OUT.match(character):
            continue
        if cluster and joins(character):
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


def joins(character: str) -> bool:
    """Tell whether a character may become one with the letter before it: a mark, or the rest of a Hangul syllable."""
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
        str, Field(description="Who reads, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER, ...."), Typed("llm")
    ]


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
        """Say why an activity is not taken; empty where it is."""
        if each.category not in self.row["categories"]:
            return "not a category that was asked for"
        if not folded(each.name) or len(each.name.split()) > MOST_WORDS or len(each.name) > MOST_LETTERS:
            return "not a name"
        return "the quote is not in the text" if find_quote(self.row["text"], each.quote) is None else ""


def extraction_requests(pages: Path, instructions: str) -> Iterator[Request]:
    """Give the question about each section."""
    for row in read_table(pages, PAGES).sort(PAGES.key).iter_rows(named=True):
        yield Section(row).request(instructions)


def extract_activities(work: Work, pages: Path, client: Client | FreeClient, llm: LlmOptions = DEFAULTS) -> Outcome:
    """Ask a model what activities each section names, and keep what it quotes from the section."""
    sections = [Section(row) for row in read_table(pages, PAGES).sort(PAGES.key).iter_rows(named=True)]
    instructions = wording("activities_extract")
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
