"""Popularity from the views of an artifact's Wikipedia pages in a period, as Wikimedia counts them."""

import calendar
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import msgspec
import polars as pl

from culturekit.builders.popularity import Ratings, rank_within
from culturekit.errors import UsageError
from culturekit.kg.dump.entities import wikipedia_of
from culturekit.kg.web.pinned_connection import check_contact, check_url
from culturekit.kg.web.polite_source import WIKIMEDIA_A_MINUTE, KeptAnswers, Pace, PoliteSource
from culturekit.records.work import Work
from culturekit.registry import Spec

__all__ = ["PageviewOptions", "Pageviews", "make_pageviews"]

PERIOD = re.compile(r"^(\d{4})-(0[1-9]|1[0-2])(?:/(\d{4})-(0[1-9]|1[0-2]))?$")
LANGUAGE = re.compile(r"^[a-z][a-z-]{1,15}$")
EARLIEST = "2015-07"
PAGES_PER_QUESTION = 50

Page = tuple[str, str]
"""A wiki's language and a title."""


@dataclass(frozen=True, slots=True)
class PageviewOptions:
    """What `pageviews` takes.

    Attributes:
        contact: Mail address or URL that Wikimedia is told; without it nothing is asked.
        period: First and last month that count.
        languages: Wikis that count, divided by commas, in place of the `languages` of the root configs.
        titles: Language of the wiki whose titles the dump gave: the first of `kg ingest --languages`.
        cache: Folder that keeps each page's answer for other runs too.
        per_second: Questions a second, at most; all of Wikimedia gets no more than 200 a minute.
        base_url: Address of the service of page views.
        titles_url: Address where titles in other languages are asked for.
    """

    contact: str = ""
    period: str = "2025-01/2025-12"
    languages: str = ""
    titles: str = "en"
    cache: str = ""
    per_second: Annotated[float, msgspec.Meta(gt=0, le=100)] = WIKIMEDIA_A_MINUTE / 60
    base_url: str = "https://wikimedia.org/api/rest_v1"
    titles_url: str = "https://www.wikidata.org/w/api.php"


class Views(msgspec.Struct, frozen=True):
    """The views of a page in one month."""

    views: Annotated[int, msgspec.Meta(ge=0, le=10**13)]


class Months(msgspec.Struct, frozen=True):
    """A reply about a page, and what is kept of it."""

    items: Annotated[list[Views], msgspec.Meta(max_length=2_000)]


class Sitelink(msgspec.Struct, frozen=True):
    """A page of an item."""

    title: str


class Entity(msgspec.Struct, frozen=True):
    """The pages of an item, by wiki."""

    sitelinks: dict[str, Sitelink] | list[None] = {}

    def titles(self) -> dict[str, str]:
        """Give the titles by language; no pages can also come as an empty list."""
        links = self.sitelinks if isinstance(self.sitelinks, dict) else {}
        return {wiki_language(wiki): link.title for wiki, link in links.items()}


class Entities(msgspec.Struct, frozen=True):
    """A reply about items."""

    entities: dict[str, Entity]


@dataclass(slots=True)
class Pageviews:
    """Adds up the views of an artifact's pages in the languages of its root config, and ranks the sums."""

    options: PageviewOptions
    source: PoliteSource
    titles: PoliteSource
    name: str = "pageviews"
    decides: Mapping[str, object] = field(default_factory=dict)

    def rate(self, artifacts: pl.DataFrame, work: Work) -> Ratings:
        """Rank the views; an artifact without a page in any of the languages is unknown."""
        folder = Path(self.options.cache) if self.options.cache else work.scratch / "pageviews"
        pages = self.pages_of(artifacts, folder / "titles")
        wanted = sorted({page for several in pages for page in several})
        kept = KeptAnswers(folder / "views", Months)
        work.progress.begin(len(wanted), "pages")
        views: dict[Page, int] = {}
        with self.source:
            for page, seen in zip(wanted, self.source.each(partial(self.views_of, kept), wanted), strict=True):
                views[page] = seen
                work.progress.advance(1)
        sums = [float(sum(views[page] for page in several)) if several else None for several in pages]
        without = sum(not several for several in pages)
        snapshot = {**self.decides, "pages": len(wanted), "rows without a page": without}
        return Ratings(rank_within(artifacts, pl.Series(sums, dtype=pl.Float64)), {"popularity": snapshot})

    def views_of(self, kept: KeptAnswers[Months], page: Page) -> int:
        """Give the views of a page in the period, from disk where they were counted before."""
        first, last = months(self.options.period)
        language, title = page
        question = [language, title, first, last]
        found = kept.find(question)
        if found is None:
            project, article = f"{language}.wikipedia.org", quote(title.replace(" ", "_"), safe="")
            path = f"metrics/pageviews/per-article/{project}/all-access/user/{article}/monthly/{first}/{last}"
            found = self.source.ask(path, Months, missing=Months([]))
            kept.keep(question, found)
        return sum(month.views for month in found.items)

    def pages_of(self, artifacts: pl.DataFrame, folder: Path) -> list[list[Page]]:
        """Name the pages of each artifact: the one that the dump names, others as Wikidata links them."""
        rows = list(artifacts.select("qid", "title", "languages").iter_rows(named=True))
        wanted: dict[str, set[str]] = {}
        for row in rows:
            others = [language for language in self.languages_of(row) if language != self.options.titles]
            if row["qid"] and others:
                wanted.setdefault(row["qid"], set()).update(others)
        linked = self.linked(wanted, folder)
        return [list(self.pages_of_row(row, linked)) for row in rows]

    def pages_of_row(self, row: Mapping[str, Any], linked: Mapping[str, Mapping[str, str]]) -> Iterator[Page]:
        """Name the pages of one artifact."""
        titles = linked.get(row["qid"] or "", {})
        for language in self.languages_of(row):
            title = row["title"] if language == self.options.titles else titles.get(language)
            if title:
                yield language, title

    def languages_of(self, row: Mapping[str, Any]) -> list[str]:
        """List the wikis of a row: the SPEC's, or those of its root config."""
        stated = self.options.languages.split(",") if self.options.languages else row["languages"]
        return wikis(stated) or ["en"]

    def linked(self, wanted: Mapping[str, set[str]], folder: Path) -> Mapping[str, Mapping[str, str]]:
        """Find the titles of items in other languages, many items at a time."""
        kept = KeptAnswers(folder, Entity)
        found: dict[str, Entity] = {}
        missing: dict[str, list[str]] = {}
        for qid, languages in sorted(wanted.items()):
            answer = kept.find([qid, *sorted(languages)])
            if answer is None:
                missing.setdefault(",".join(sorted(languages)), []).append(qid)
            else:
                found[qid] = answer
        for joined, qids in missing.items():
            languages_asked = joined.split(",")
            for start in range(0, len(qids), PAGES_PER_QUESTION):
                batch = qids[start : start + PAGES_PER_QUESTION]
                answers = self.ask_titles(batch, languages_asked)
                for qid in batch:
                    found[qid] = answers.get(qid, Entity())
                    kept.keep([qid, *languages_asked], found[qid])
        return {qid: entity.titles() for qid, entity in found.items()}

    def ask_titles(self, qids: Sequence[str], languages: Sequence[str]) -> Mapping[str, Entity]:
        """Ask Wikidata how the pages of items are called."""
        query = {
            "action": "wbgetentities", "format": "json", "props": "sitelinks", "ids": "|".join(qids),
            "sitefilter": "|".join(wiki_name(language) for language in languages),
        }  # fmt: skip
        return self.titles.ask(f"?{urlencode(query)}", Entities).entities


def make_pageviews(spec: Spec) -> Pageviews:
    """Make the source; nothing is asked before it rates."""
    if spec.target:
        raise UsageError("pageviews takes no target", found=spec.target)
    options = spec.read(PageviewOptions)
    if not options.contact:
        raise UsageError(
            "Wikimedia is told whom to write to when something goes wrong",
            expected="pageviews?contact=YOU@EXAMPLE.ORG",
            found=str(spec),
        )
    check_contact(options.contact)
    for url in (options.base_url, options.titles_url):
        check_url(url)
    months(options.period)
    languages = wikis(options.languages.split(",")) if options.languages else []
    decides: dict[str, object] = {
        "source": "pageviews",
        "period": options.period,
        "access": "all-access",
        "agent": "user",
        "titles": options.titles,
    }
    if languages:
        decides["languages"] = languages
    source, titles = (
        PoliteSource(url, options.contact, Pace(options.per_second)) for url in (options.base_url, options.titles_url)
    )
    return Pageviews(options, source, titles, decides=decides)


def months(period: str) -> tuple[str, str]:
    """Read a period of whole months as the service writes its first and last one."""
    found = PERIOD.match(period)
    if found is None:
        raise UsageError("not a period", expected="months as 2025-01/2025-12, or one month", found=repr(period))
    year, month = int(found[3] or found[1]), int(found[4] or found[2])
    first, last = f"{found[1]}-{found[2]}", f"{year:04}-{month:02}"
    if not EARLIEST <= first <= last:
        raise UsageError("no such period", expected=f"from {EARLIEST} on, the first month first", found=period)
    return f"{first.replace('-', '')}0100", f"{last.replace('-', '')}{calendar.monthrange(year, month)[1]:02}00"


def wikis(languages: Sequence[str]) -> list[str]:
    """Turn languages of labels into those of wikis, each once."""
    codes = [language.strip().lower().replace("_", "-") for language in languages]
    short = [wikipedia_of(code) for code in codes if code and code != "mul"]
    wrong = [code for code in short if not LANGUAGE.match(code)]
    if wrong:
        raise UsageError("not the language of a Wikipedia", expected="codes such as en,hi,zh-yue", found=wrong[0])
    return list(dict.fromkeys(short))


def wiki_name(language: str) -> str:
    """Name a Wikipedia as Wikidata does."""
    return f"{language.replace('-', '_')}wiki"


def wiki_language(wiki: str) -> str:
    """Find the language in a wiki's name."""
    return wiki.removesuffix("wiki").replace("_", "-")
