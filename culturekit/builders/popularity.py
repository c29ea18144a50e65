"""How well known an artifact is; one protocol, several sources."""

import calendar
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Protocol
from urllib.parse import quote, urlencode

import msgspec
import polars as pl

from culturekit.core.atomic import decoding, write_atomically
from culturekit.core.digests import digest
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.plugins import Contract, hold, shown
from culturekit.core.registry import Entry, Registry, Spec
from culturekit.core.stage import Work
from culturekit.kg.countries import countries, wikipedia_of
from culturekit.kg.polite_source import (
    KEPT,
    WIKIMEDIA_A_MINUTE,
    KeptAnswers,
    Pace,
    PoliteSource,
    check_contact,
    check_url,
)
from culturekit.llm.redaction import resolve_key

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ratings:
    """A rating per row, null where nothing is known, and what the manifest says of how they came about."""

    values: pl.Series
    notes: Mapping[str, object] = field(default_factory=dict)


class PopularitySource(Protocol):
    """Rates artifacts by how well known they are."""

    @property
    def name(self) -> str:
        """What stands in `popularity_source`."""
        ...

    @property
    def decides(self) -> Mapping[str, object]:
        """Everything that decides the ratings besides the artifacts, as it stands in the manifest: no path, no key."""
        ...

    def rate(self, artifacts: pl.DataFrame, work: Work) -> Ratings:
        """Give a float in (0, 1] per row of `artifact_id, qid, name, concept, country, sitelinks, title, languages`.

        What was fetched may be kept in `work.scratch`: it outlives a killed run.
        """
        ...


class Sitelinks:
    """The rank of an artifact's sitelink count within its country and concept.

    Raw counts favour what is written about in many, mostly European, languages; a rank among its own
    compares like with like.
    """

    name = "sitelinks"
    decides: Mapping[str, object] = {"source": "sitelinks"}

    def rate(self, artifacts: pl.DataFrame, work: Work) -> Ratings:
        """Rank what the dump knows; an artifact without an item has no sitelinks, and of some dumps none has any."""
        counts = artifacts.select(n=pl.when(pl.col("qid").is_not_null()).then("sitelinks").cast(pl.Float64))["n"]
        if counts.max() == 0:
            logger.warning("no artifact has a sitelink, as in a dump of triples: popularity is unknown")
            counts = counts.replace(0.0, None)
        return Ratings(rank_within(artifacts, counts))


def rank_within(artifacts: pl.DataFrame, counts: pl.Series) -> pl.Series:
    """Rank counts within country and concept: 1 for the most, ties share their mean rank, unknown ones have none."""
    group = ["concept", "country"]
    rate = pl.col("n").rank("average").over(group) / pl.col("n").count().over(group)
    return artifacts.select(group).with_columns(n=counts).select(rate=rate)["rate"]


def make_sitelinks(spec: Spec) -> Sitelinks:
    """Make the source that needs nothing but the dump."""
    spec.refuse_options()
    return Sitelinks()


def rates(_: object, answer: object, artifacts: pl.DataFrame, work: Work) -> Ratings:
    """Take a rate in (0, 1], or null, for each artifact."""
    del work
    fits = isinstance(answer, Ratings) and isinstance(answer.values, pl.Series)
    hold(fits, "Ratings, with a Series as its values", shown(answer))
    ratings: Ratings = answer  # type: ignore[assignment]
    found = f"{ratings.values.dtype}, {len(ratings.values)}"
    hold(ratings.values.dtype.is_numeric() and len(ratings.values) == artifacts.height,
         f"numbers, {artifacts.height}", found)  # fmt: skip
    known = ratings.values.drop_nulls().cast(pl.Float64)
    outside = known.filter(~((known > 0) & (known <= 1)))
    hold(outside.is_empty(), "rates above 0 and at most 1, or null", f"{outside[0]}" if len(outside) else "")
    return ratings


POPULARITY = Contract((PopularitySource,), answers={"rate": rates})

SOURCES: Registry[PopularitySource] = Registry(
    "popularity source",
    [
        Entry("sitelinks", f"{__name__}:make_sitelinks", "rank of the sitelink count, from the dump"),
        Entry(
            "pageviews", f"{__name__}:make_pageviews",
            "rank of the views of its Wikipedia pages in a period; asks Wikimedia", f"{__name__}:PageviewOptions",
        ),
        Entry(
            "google_cse", f"{__name__}:make_results",
            "rank of the number of search results in its country, from kept answers or, with live=true, from Google, "
            "which ends this on 2027-01-01", f"{__name__}:ResultOptions",
        ),
    ],
    point="popularity", contract=POPULARITY,
)  # fmt: skip


# Popularity from the views of an artifact's Wikipedia pages in a period, as Wikimedia counts them.

PERIOD = re.compile(r"^(\d{4})-(0[1-9]|1[0-2])(?:/(\d{4})-(0[1-9]|1[0-2]))?$")
LANGUAGE = re.compile(r"^[a-z][a-z-]{1,15}$")
EARLIEST = "2015-07"
PAGES_PER_QUESTION = 50

Page = tuple[str, str]  # a wiki's language and a title


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
        return {wiki.removesuffix("wiki").replace("_", "-"): link.title for wiki, link in links.items()}


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
        """Name the pages of each artifact, in the wikis of the SPEC or of its root config.

        The dump names one, others are as Wikidata links them.
        """
        stated = self.options.languages.split(",") if self.options.languages else None
        rows = [
            (qid or "", title, wikis(stated or languages) or ["en"])
            for qid, title, languages in artifacts.select("qid", "title", "languages").iter_rows()
        ]
        wanted: dict[str, set[str]] = {}
        for qid, _, languages in rows:
            others = set(languages) - {self.options.titles}
            if qid and others:
                wanted.setdefault(qid, set()).update(others)
        linked = self.linked(wanted, folder)
        titles = [{**linked.get(qid, {}), self.options.titles: title} for qid, title, _ in rows]
        return [
            [(language, name) for language in languages if (name := of_row.get(language))]
            for (_, _, languages), of_row in zip(rows, titles, strict=True)
        ]

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
                query = {
                    "action": "wbgetentities", "format": "json", "props": "sitelinks", "ids": "|".join(batch),
                    "sitefilter": "|".join(f"{language.replace('-', '_')}wiki" for language in languages_asked),
                }  # fmt: skip
                answers = self.titles.ask(f"?{urlencode(query)}", Entities).entities
                for qid in batch:
                    found[qid] = answers.get(qid, Entity())
                    kept.keep([qid, *languages_asked], found[qid])
        return {qid: entity.titles() for qid, entity in found.items()}


def make_pageviews(spec: Spec) -> Pageviews:
    """Make the source; nothing is asked before it rates."""
    if spec.target:
        raise UsageError("pageviews takes no target", found=spec.target)
    options = spec.read(PageviewOptions)
    if not options.contact:
        raise UsageError("Wikimedia is told whom to write to when something goes wrong", found=str(spec),
                         expected="pageviews?contact=YOU@EXAMPLE.ORG")  # fmt: skip
    check_contact(options.contact)
    for url in (options.base_url, options.titles_url):
        check_url(url)
    months(options.period)
    languages = wikis(options.languages.split(",")) if options.languages else []
    decides: dict[str, object] = {
        "source": "pageviews", "period": options.period, "access": "all-access", "agent": "user",
        "titles": options.titles,
    }  # fmt: skip
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


# Popularity from the number of search results in an artifact's country, as the CUBE paper estimated it.
#
# Google's terms forbid publishing its counts: they stay in the folder of answers, and only ranks leave this module.

ENDS = "Google ends this service on 2027-01-01; from then on only kept answers can be replayed"
LARGEST_ANSWER = 4_000_000

Question = tuple[str, str]  # what is searched for, and Google's code of the country


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """What `google_cse:FOLDER` takes.

    Attributes:
        live: Ask Google what FOLDER has no answer for; else that is unknown.
        cx: The search engine that is asked.
        api_key: Name of the variable that holds the key.
        per_second: Questions a second, at most.
        base_url: Address of the service, or of another server.
    """

    live: bool = False
    cx: str = ""
    api_key: str = "${GOOGLE_API_KEY}"
    per_second: Annotated[float, msgspec.Meta(gt=0, le=10)] = 1.0
    base_url: str = "https://customsearch.googleapis.com/customsearch/v1"


class Asked(msgspec.Struct, frozen=True, rename="camel"):
    """What Google understood."""

    search_terms: str
    gl: str = ""


class Queries(msgspec.Struct, frozen=True):
    """The question, as a reply repeats it."""

    request: list[Asked]


class Information(msgspec.Struct, frozen=True, rename="camel"):
    """What Google found, in numbers."""

    total_results: Annotated[str, msgspec.Meta(pattern=r"^\d{1,15}$")]


class Reply(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a reply that counts; a whole one as Google sends it can be replayed too."""

    search_information: Information
    queries: Queries | None = None


@dataclass(slots=True)
class SearchResults:
    """Ranks artifacts by the number of results that their name has in their country."""

    folder: Path
    options: ResultOptions
    source: PoliteSource | None = None
    name: str = "google_cse"
    answers: Mapping[Question, int] = field(default_factory=dict, repr=False)

    @property
    def decides(self) -> Mapping[str, object]:
        """Name the kept answers by their hash; a live run fetches those it lacks."""
        counts = sorted([terms, gl, count] for (terms, gl), count in self.answers.items())
        return {"source": self.name, **({"live": True} if self.source else {"answers": digest(counts)})}

    def rate(self, artifacts: pl.DataFrame, work: Work) -> Ratings:
        """Rank the numbers of results; no number leaves this module."""
        known = dict(self.answers)
        codes = {iso: country.search_code for iso, country in countries().items()}
        asked = [(name, codes[iso]) for name, iso in artifacts.select("name", "country").iter_rows()]
        wanted = sorted(set(asked))
        work.progress.begin(len(wanted), "searches")
        for question in wanted:
            if question not in known and self.source is not None:
                known[question] = self.ask(self.source, question)
            work.progress.advance(1)
        missing = sum(question not in known for question in wanted)
        counts = [float(known[question]) if question in known else None for question in asked]
        facts = {"source": self.name, "searches": len(wanted), "without an answer": missing}
        finding = f"popularity: {missing} of {len(wanted)} searches have no kept answer, and their artifacts no rank"
        notes = {"popularity": facts, **({"findings": [finding]} if missing else {})}
        return Ratings(rank_within(artifacts, pl.Series(counts, dtype=pl.Float64)), notes)

    def ask(self, source: PoliteSource, question: Question) -> int:
        """Ask Google, and keep the number where it was found."""
        terms, gl = question
        query = {"q": terms, "gl": gl, "cx": self.options.cx, "num": 1}
        query["fields"] = "searchInformation/totalResults"
        found = source.ask(f"?{urlencode(query)}", Reply)
        kept = Reply(found.search_information, Queries([Asked(terms, gl)]))
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.folder / f"{digest([terms, gl])}.json", msgspec.json.encode(kept))
        return int(found.search_information.total_results)


def make_results(spec: Spec) -> SearchResults:
    """Make the source: from a folder of answers, and from Google where the SPEC says `live=true`."""
    options = spec.read(ResultOptions)
    check_url(options.base_url)
    if not spec.target:
        raise UsageError("google_cse needs the folder of its answers", expected="google_cse:FOLDER", found=str(spec),
                         hint=f"{ENDS}.")  # fmt: skip
    folder = Path(spec.target)
    if not options.live:
        if not folder.is_dir():
            raise UsageError("there is no folder of answers to replay", where=str(folder),
                             hint=f"Ask for live=true to fill it. {ENDS}.")  # fmt: skip
        return SearchResults(folder, options, answers=read_answers(folder))
    if not options.cx:
        raise UsageError("a live search needs a search engine", expected="cx=ENGINE", found=str(spec))
    key = resolve_key(options.api_key)
    logger.warning("google_cse: %s", ENDS)
    secrets, pace = {"X-Goog-Api-Key": key.reveal}, Pace(options.per_second)
    source = PoliteSource(options.base_url, "", pace, secrets=secrets, hint=f"{KEPT} {ENDS}.")
    return SearchResults(folder, options, source, answers=read_answers(folder) if folder.is_dir() else {})


def read_answers(folder: Path) -> Mapping[Question, int]:
    """Read a folder of answers, ours or whole replies of Google; two that disagree about a question are refused."""
    answers: dict[Question, int] = {}
    for path in sorted(folder.rglob("*.json")):
        question, count = read_answer(path)
        if answers.setdefault(question, count) != count:
            raise IntegrityError(
                "a second answer to the same search", where=str(path), found=f"{question[0]!r} in {question[1]}"
            )
    return answers


def read_answer(path: Path) -> tuple[Question, int]:
    """Read one answer."""
    if path.stat().st_size > LARGEST_ANSWER:
        raise IntegrityError("too large for an answer", where=str(path), expected=f"{LARGEST_ANSWER:,} bytes")
    with decoding(
        path, "not an answer of the search service", error=IntegrityError,
        expected="queries.request with searchTerms and gl, and searchInformation.totalResults",
        hint="Remove the file; it can be asked for again with live=true.",
    ):  # fmt: skip
        reply = msgspec.json.decode(path.read_bytes(), type=Reply)
    if reply.queries is None or not reply.queries.request:
        raise IntegrityError("the answer does not say what was searched for", where=str(path))
    asked = reply.queries.request[0]
    return (asked.search_terms, asked.gl.lower()), int(reply.search_information.total_results)
