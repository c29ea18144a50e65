"""Popularity from the number of search results in an artifact's country, as the CUBE paper estimated it.

Google's terms forbid publishing its counts: they stay in the folder of answers, and only ranks leave this module.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

import msgspec
import polars as pl

from culturekit.builders.popularity import Ratings, rank_within
from culturekit.errors import IntegrityError, UsageError
from culturekit.kg.countries import countries
from culturekit.kg.web.pinned_connection import check_url
from culturekit.kg.web.polite_source import KEPT, Pace, PoliteSource
from culturekit.llm.untrusted.redaction import resolve_key
from culturekit.records.work import Work
from culturekit.registry import Spec
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest

__all__ = ["ENDS", "ResultOptions", "SearchResults", "make_results"]

logger = logging.getLogger(__name__)

ENDS = "Google ends this service on 2027-01-01; from then on only kept answers can be replayed"
LARGEST_ANSWER = 4_000_000

Question = tuple[str, str]
"""What is searched for, and Google's code of the country."""


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
        told = sorted([terms, gl, count] for (terms, gl), count in self.answers.items())
        return {"source": self.name, **({"live": True} if self.source else {"answers": digest(told)})}

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
        notes: dict[str, object] = {
            "popularity": {"source": self.name, "searches": len(wanted), "without an answer": missing}
        }
        if missing:
            said = f"popularity: {missing} of {len(wanted)} searches have no kept answer, and their artifacts no rank"
            notes["findings"] = [said]
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
        raise UsageError(
            "google_cse needs the folder of its answers",
            expected="google_cse:FOLDER",
            found=str(spec),
            hint=f"{ENDS}.",
        )
    folder = Path(spec.target)
    if not options.live:
        if not folder.is_dir():
            raise UsageError(
                "there is no folder of answers to replay",
                where=str(folder),
                hint=f"Ask for live=true to fill it. {ENDS}.",
            )
        return SearchResults(folder, options, answers=read_answers(folder))
    if not options.cx:
        raise UsageError("a live search needs a search engine", expected="cx=ENGINE", found=str(spec))
    key = resolve_key(options.api_key)
    logger.warning("google_cse: %s", ENDS)
    source = PoliteSource(
        options.base_url,
        "",
        Pace(options.per_second),
        secrets={"X-Goog-Api-Key": key.reveal},
        hint=f"{KEPT} {ENDS}.",
    )
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
    try:
        if path.stat().st_size > LARGEST_ANSWER:
            raise IntegrityError("too large for an answer", where=str(path), expected=f"{LARGEST_ANSWER:,} bytes")
        reply = msgspec.json.decode(path.read_bytes(), type=Reply)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise IntegrityError(
            f"not an answer of the search service: {error}",
            where=str(path),
            expected="queries.request with searchTerms and gl, and searchInformation.totalResults",
            hint="Remove the file; it can be asked for again with live=true.",
        ) from error
    if reply.queries is None or not reply.queries.request:
        raise IntegrityError("the answer does not say what was searched for", where=str(path))
    asked = reply.queries.request[0]
    return (asked.search_terms, asked.gl.lower()), int(reply.search_information.total_results)
