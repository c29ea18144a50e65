"""Activities as a model finds them on pages; what it quotes must stand there."""

from collections import Counter
from collections.abc import Iterator
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
from culturekit.llm.reading.quotes import find_quote
from culturekit.llm.untrusted.untrusted import LongText, strip_hidden
from culturekit.records.schemas import MENTIONS, PAGES
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.tables import read_table, write_table

__all__ = ["EXTRACT", "ExtractOptions", "extract_activities", "extraction_requests"]

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
