"""A list of pages about countries: saved files, or addresses that are asked politely, and only where that is wanted."""

import urllib.robotparser
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import msgspec
import polars as pl
from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.activities.activity_prompts import LOOKED_FOR
from culturekit.builders.activities.pages import (
    HTML,
    LARGEST_PAGE,
    Page,
    decoded,
    html_charset,
    read_as,
)
from culturekit.errors import UpstreamUnavailable, UsageError
from culturekit.kg.countries import country
from culturekit.kg.web.pinned_connection import check_contact
from culturekit.kg.web.polite_source import KeptAnswers, Pace, PoliteSource
from culturekit.records.schemas import PAGES
from culturekit.records.work import Outcome, Work
from culturekit.storage.digests import digest, digest_bytes
from culturekit.storage.tables import write_table
from culturekit.storage.yaml_model import StrictModel, not_empty, validate
from culturekit.storage.yaml_source import read_yaml

__all__ = ["ListedPage", "PageOptions", "files_of", "read_list", "read_pages"]

AGENT = "culturekit"
WITHOUT_RULES = {404: b"", 410: b""} | dict.fromkeys((401, 403), b"User-agent: *\nDisallow: /")
LONGEST_DELAY = 60.0
"""Seconds between two pages that a site may ask for."""

BY_HAND = "Save the page by hand and name it with file: in the list."
WIKIPEDIA = "https://en.wikipedia.org/w/api.php"


class ListedPage(StrictModel):
    """A page of the list."""

    source: Annotated[Literal["cultural-atlas", "wikipedia"], Field(description="Whose page it is.")]
    country: Annotated[str, Field(description="ISO code of the country that it is about.", pattern="^[A-Z]{2}$")]
    file: Annotated[
        Path | None, Field(description="Saved page beside the list: .html, .wikitext, or .json of the Action API.")
    ] = None
    url: Annotated[str | None, Field(description="Address of the page.")] = None
    title: Annotated[str | None, Field(description="Title of the page.")] = None
    revision: Annotated[str | None, Field(description="Revision of the page, where it is known.")] = None
    sections: Annotated[tuple[str, ...], Field(description="Headings that are read. [all]")] = ()
    categories: Annotated[
        tuple[Literal["dances", "games", "religious", "greetings", "celebrations"], ...],
        AfterValidator(not_empty),
        Field(description="Kinds of activities that are looked for."),
    ] = LOOKED_FOR  # type: ignore[assignment]

    @model_validator(mode="after")
    def found_somewhere(self) -> "ListedPage":
        """Refuse a page that is nowhere."""
        if self.file is None and not (self.title if self.source == "wikipedia" else self.url):
            raise ValueError(
                "a page has a file, or what it is fetched by: a title (wikipedia) or a url (cultural-atlas)"
            )
        return self


class PageList(StrictModel):
    """A list of pages."""

    pages: Annotated[tuple[ListedPage, ...], AfterValidator(not_empty)]


@dataclass(frozen=True, slots=True)
class PageOptions:
    """Whether pages without a file are fetched, and how."""

    contact: Annotated[
        str, Field(description="Mail address or URL that servers are told; without it nothing is fetched.")
    ] = ""
    cache: Annotated[Path | None, Field(description="Folder that keeps fetched pages for other runs too.")] = None
    per_second: Annotated[
        float,
        Field(gt=0, le=10, description="Requests a second to a server, at most; its robots.txt may ask for less."),
    ] = 1.0
    wikipedia: Annotated[str, Field(description="Address of the Action API.")] = WIKIPEDIA


class FetchedPage(msgspec.Struct, frozen=True):
    """A page as it was fetched, and is kept."""

    url: str
    text: str
    sha256: str


def read_list(path: Path) -> tuple[ListedPage, ...]:
    """Read the list; every mistake is said at once."""
    return validate(read_yaml(path), PageList).pages


def files_of(path: Path) -> dict[str, Path]:
    """Name the saved pages as inputs."""
    files = [path.parent / page.file for page in read_list(path) if page.file is not None]
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        raise UsageError(f"{len(missing)} saved pages are not there", where=str(path), found=", ".join(missing[:5]))
    return {f"page-{number:03d}": file for number, file in enumerate(files, start=1)}


def read_pages(work: Work, path: Path, options: PageOptions) -> Outcome:
    """Read every page of the list into sections, and write where each comes from."""
    listed = read_list(path)
    fetching = Fetching(options, options.cache or work.scratch / "pages")
    work.progress.begin(len(listed), "pages")
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for page in listed:
        country(page.country)
        for row in sections_of(page, path.parent, fetching):
            first = found.setdefault((row["page_id"], row["number"]), row)
            first["categories"] = list(dict.fromkeys((*first["categories"], *row["categories"])))
            if {**row, "categories": first["categories"]} != first:
                told = [f"{name} {first[name]!r} and {row[name]!r}" for name in row if row[name] != first[name]]
                raise UsageError("a page is listed twice, and not as the same", where=str(path), found=", ".join(told))
        work.progress.advance(1)
    table = pl.DataFrame(list(found.values()), schema=PAGES.schema)
    write_table(work.out, PAGES, table)
    return Outcome({"listed": len(listed), "pages": table.height}, {}, {"fetched": fetching.fetched})


def sections_of(page: ListedPage, folder: Path, fetching: "Fetching") -> Iterator[dict[str, Any]]:
    """Read one page, from its file or from afar."""
    if page.file is not None:
        place = folder / page.file
        if place.stat().st_size > LARGEST_PAGE:
            raise UsageError("a page is too large", where=str(place), expected=f"up to {LARGEST_PAGE:,} bytes")
        raw, kind, url, where = place.read_bytes(), place.suffix, page.url, str(place)
        text = decoded(raw, html_charset(raw) if kind in HTML else "", where=where)
    else:
        found = fetching.page(page)
        text, url, where = found.text, found.url, found.url
        kind = kind_of(page)
    read, revision = read_as(kind, text, page.title, page.revision, where=where)
    wanted = wanted_sections(page, read, where)
    sha256 = digest_bytes(text.encode())
    for number, (section, body) in enumerate(read.sections, start=1):
        if section.casefold() in wanted:
            yield {
                "page_id": digest([page.country, url or page.title or (page.file and page.file.name), sha256])[:16],
                "number": number,
                "source": page.source,
                "country": page.country,
                "url": url,
                "title": read.title or page.title or "",
                "revision": revision,
                "sha256": sha256,
                "section": section,
                "text": body,
                "categories": list(page.categories),
            }


def kind_of(page: ListedPage) -> str:
    """Give the kind of a page that is fetched."""
    return ".json" if page.source == "wikipedia" else ".html"


def wanted_sections(page: ListedPage, read: Page, where: str) -> set[str]:
    """Give the headings that are read, all where none is named; one that does not stand there is refused."""
    there = {section.casefold(): section for section, _ in read.sections}
    missing = [name for name in page.sections if name.casefold() not in there]
    if missing:
        raise UsageError(
            f"no text of this page stands under {', '.join(map(repr, missing))}",
            where=where,
            expected="some of " + ", ".join(repr(name[:60]) for name in [*there.values()][:20]),
            hint="Mend `sections:` in the list of pages.",
        )
    return {name.casefold() for name in page.sections} or set(there)


@dataclass
class Fetching:
    """Fetches pages, each once, one at a time; a page's own site is asked first what robots may read.

    The Action API is made for programs and asked by its own etiquette: who asks is told, one question at a time.
    """

    options: PageOptions
    folder: Path
    fetched: int = 0
    sources: dict[str, PoliteSource] = field(default_factory=dict)
    robots: dict[str, urllib.robotparser.RobotFileParser] = field(default_factory=dict)

    @cached_property
    def kept(self) -> KeptAnswers[FetchedPage]:
        """The pages that were fetched before."""
        return KeptAnswers(self.folder, FetchedPage)

    def page(self, page: ListedPage) -> FetchedPage:
        """Give a page, from disk where it was fetched before."""
        url = self.address(page)
        found = self.kept.find([url])
        if found is not None and digest_bytes(found.text.encode()) == found.sha256:
            return found
        if not self.options.contact:
            raise UsageError(
                "a page has no file, and nothing is fetched unless that is asked for",
                where=url,
                expected="a file: in the list, or --contact YOU@EXAMPLE.ORG (in a recipe: ground.contact)",
            )
        check_contact(self.options.contact)
        text = self.text(url) if page.source == "cultural-atlas" else self.answer(url)
        read_as(kind_of(page), text, page.title, page.revision, where=url)  # what cannot be read is not kept
        fetched = FetchedPage(url, text, digest_bytes(text.encode()))
        self.kept.keep([url], fetched)
        self.fetched += 1
        return fetched

    def address(self, page: ListedPage) -> str:
        """Say where a page is."""
        if page.source == "cultural-atlas":
            return str(page.url)
        which = {"oldid": page.revision} if page.revision else {"page": str(page.title)}
        query = {"action": "parse", **which, "prop": "wikitext|revid", "format": "json", "formatversion": "2"}
        return f"{self.options.wikipedia}?{urlencode(query, quote_via=quote)}"

    def answer(self, url: str) -> str:
        """Ask the Action API."""
        return decoded(self.source(url).page(url, kinds=("json",)).body, "", where=url)

    def text(self, url: str) -> str:
        """Fetch a page that robots may read."""
        self.check_robots(url)
        reply = self.source(url).page(url, kinds=("html",), check=self.check_robots)
        return decoded(reply.body, reply.charset or html_charset(reply.body), where=url)

    def check_robots(self, url: str) -> None:
        """Refuse a page that robots may not read, and ask its site as slowly as it asks to be asked."""
        rules, source = self.rules(url), self.source(url)
        if not rules.can_fetch(AGENT, url):
            raise UpstreamUnavailable(
                "robots.txt of this site asks programs not to read this page",
                where=url,
                hint=BY_HAND,
            )
        delay = float(rules.crawl_delay(AGENT) or 0)
        if delay > LONGEST_DELAY:
            raise UpstreamUnavailable(
                "robots.txt of this site asks for more time between two pages than is waited",
                where=url,
                expected=f"up to {LONGEST_DELAY:.0f} s",
                found=f"{delay:,.0f} s",
                hint=BY_HAND,
            )
        if delay:
            source.pace.per_second = min(source.pace.per_second, 1 / delay)

    def rules(self, url: str) -> urllib.robotparser.RobotFileParser:
        """Read what a site lets robots read: all where it has no robots.txt, nothing where it hides it."""
        home = urlunsplit((*urlsplit(url)[:2], "", "", ""))
        if home not in self.robots:
            rules = urllib.robotparser.RobotFileParser()
            reply = self.source(url).page(f"{home}/robots.txt", kinds=("text",), instead=WITHOUT_RULES)
            rules.parse(reply.body.decode("utf-8", "replace").splitlines())
            self.robots[home] = rules
        return self.robots[home]

    def source(self, url: str) -> PoliteSource:
        """Give who asks a site."""
        home = urlunsplit((*urlsplit(url)[:2], "", "", ""))
        if home not in self.sources:
            pace = Pace(self.options.per_second)
            self.sources[home] = PoliteSource(home, self.options.contact, pace, largest=LARGEST_PAGE)
        return self.sources[home]
