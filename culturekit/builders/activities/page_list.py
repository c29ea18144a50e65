"""A list of pages about countries: saved files, or addresses that are asked politely, and only where that is wanted."""

import codecs
import io
import re
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

from culturekit.builders.activities.extracting import LOOKED_FOR
from culturekit.core.declared import Given, builds
from culturekit.core.digests import digest, digest_bytes
from culturekit.core.errors import UpstreamUnavailable, UsageError
from culturekit.core.registry import needing
from culturekit.core.schemas import PAGES
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import write_table
from culturekit.core.yaml_source import StrictModel, not_empty, read_yaml, validate
from culturekit.kg.countries import country, country_files
from culturekit.kg.polite_source import KeptAnswers, Pace, PoliteSource, check_contact
from culturekit.llm.untrusted import strip_hidden

# Pages about countries as sections of text: HTML by selectolax, wikitext by mwparserfromhell; no script is run.

LARGEST_PAGE = 5_000_000
# Characters that a model is shown at once; a longer section becomes several, cut between paragraphs.
LONGEST_SECTION = 6_000
NEVER_SHOWN = "script, style, noscript, template, iframe, object, svg, form, nav, header, footer, aside, [hidden]"
UNSEEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
HEADINGS = {"h1", "h2", "h3", "h4"}
BLOCKS = {"p", "li", "dt", "dd", "td", "th", "blockquote"}
LEAD = "lead"
HTML = (".html", ".htm")
# What the Action API calls a page that is not there; any other reason may pass.
MISSING = ("", "missingtitle", "nosuchrevid", "invalidtitle", "nosuchpageid")
ENDS = {"references", "external links", "see also", "further reading", "notes", "bibliography"}

DECLARES = re.compile(rb"""<meta\b[^>]{0,200}?\bcharset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
DECLARED_WITHIN = 1_024  # bytes at the beginning of a page of HTML in which it says what letters it is written in
# Codecs that pages are read by: those for letters of languages, and none of those that Python has for other ends.
CHARSETS = re.compile(r"utf-8|cp(874|125\d)|iso8859-\d+|tis-620|koi8-[rtu]|(shift_jis|euc_jp|euc_kr|big5|gb)\w*")
AS_BROWSERS_DO = {"ascii": "cp1252", "iso8859-1": "cp1252"}
FILE_LINK = re.compile(r"^\s*(file|image|category)\s*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its title, and its sections, each a heading and a text."""

    title: str
    sections: tuple[tuple[str, str], ...]


class WikiPage(msgspec.Struct, frozen=True):
    """A page as the Action API gives it."""

    title: str
    wikitext: str
    revid: int | None = None


class WikiError(msgspec.Struct, frozen=True):
    """Why the Action API gives no page."""

    code: str = ""
    info: str = ""


class WikiReply(msgspec.Struct, frozen=True):
    """A reply to `action=parse&prop=wikitext|revid`, in format version 2."""

    parse: WikiPage | None = None
    error: WikiError = WikiError()


def _html_charset(raw: bytes) -> str:
    """Give what letters a page of HTML says that it is written in; empty where it says nothing."""
    declared = DECLARES.search(raw[:DECLARED_WITHIN])
    return "" if declared is None else declared[1].decode("ascii", "replace")


def _decoded(raw: bytes, charset: str, *, where: str) -> str:
    """Read the text of a page by its mark, by what it is said to be written in, or as UTF-8."""
    wanted = "utf-8-sig" if raw.startswith(codecs.BOM_UTF8) or not charset else charset
    try:
        name = codecs.lookup(wanted).name
        name = AS_BROWSERS_DO.get(name, name)
        if CHARSETS.fullmatch(name.removesuffix("-sig")) is None:
            raise LookupError(f"no letters are read as {charset!r}")
        return io.StringIO(raw.decode(name), newline=None).read()
    except (LookupError, UnicodeDecodeError) as error:
        raise UsageError(
            "the letters of this page cannot be read", where=where, found=str(error), hint="Save the page as UTF-8.",
            expected=f"{charset}, as it is declared" if charset else "UTF-8, or a page that declares its charset",
        ) from error  # fmt: skip


def _read_as(kind: str, text: str, title: str | None, revision: str | None, *, where: str) -> tuple[Page, str | None]:
    """Read a page by the kind of its file, and say its revision."""
    match kind:
        case kind if kind in HTML:
            return read_html(text, where=where), revision
        case ".wikitext" | ".wiki":
            return read_wikitext(title or Path(where).stem, text, where=where), revision
        case ".json":
            try:
                reply = msgspec.json.decode(text, type=WikiReply)
            except msgspec.DecodeError as error:
                raise UsageError("not a reply of the Action API", where=where, found=str(error)) from error
            parsed, why = reply.parse, reply.error
            if parsed is None and why.code in MISSING:
                raise UsageError("the Action API knows no such page", where=where, found=title or "")
            if parsed is None:
                reason = f"{why.code} {why.info}"[:300]
                raise UpstreamUnavailable(
                    "the Action API gave no page", where=where, found=reason, hint="Try it later."
                )
            revision = revision if parsed.revid is None else str(parsed.revid)
            return read_wikitext(parsed.title, parsed.wikitext, where=where), revision
    raise UsageError("a saved page of an unknown kind", where=where, expected=".html, .wikitext or .json", found=kind)


def read_html(html: str, *, where: str) -> Page:
    """Read the headings of a page, and the paragraphs and list items below each that a reader would see."""
    with needing("sources", "reading HTML pages"):
        from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    for node in tree.css(NEVER_SHOWN):
        node.decompose()
    for node in tree.css("[style], [aria-hidden]"):
        if UNSEEN.search(node.attributes.get("style") or "") or node.attributes.get("aria-hidden") == "true":
            node.decompose()
    title, heading = "", LEAD
    found: list[tuple[str, list[str]]] = [(LEAD, [])]
    for node in [] if tree.body is None else tree.body.traverse(include_text=False):
        text = " ".join(node.text(separator=" ").split()) if node.tag in HEADINGS | BLOCKS else ""
        above = node.parent
        while above is not None and above.tag not in BLOCKS:
            above = above.parent
        if not text or above is not None:  # without a text, or read with what it stands in
            continue
        if node.tag == "h1" and not title:
            title = text
        elif node.tag in HEADINGS:
            heading = text
            found.append((heading, []))
        else:
            found[-1][1].append(text)
    return _page_of(title, found, where=where)


def read_wikitext(title: str, wikitext: str, *, where: str) -> Page:
    """Read the sections of a page of a wiki, without references, templates, files and tables of links."""
    with needing("sources", "reading wikitext"):
        import mwparserfromhell

    found: list[tuple[str, list[str]]] = []
    for section in mwparserfromhell.parse(wikitext).get_sections(flat=True, include_lead=True):
        headings = section.filter_headings(recursive=False)
        heading = headings[0].title.strip_code().strip() if headings else LEAD
        for gone in [*headings, *section.filter_comments(), *section.filter_tags(matches=lambda tag: tag.tag == "ref")]:
            _drop(section, gone)
        for link in section.filter_wikilinks(matches=lambda link: FILE_LINK.match(str(link.title)) is not None):
            _drop(section, link)
        for template in section.filter_templates():
            _drop(section, template)
        text = section.strip_code(normalize=True, collapse=True)
        found.append((heading, [" ".join(line.split()) for line in text.splitlines() if line.strip(" \t*#:;|-{}")]))
    return _page_of(title, found, where=where)


def _drop(section: Any, node: Any) -> None:  # noqa: ANN401 - nodes of mwparserfromhell
    """Take a node out, unless it went with one that it stood in."""
    try:
        section.remove(node)
    except ValueError:
        return


def _page_of(title: str, found: list[tuple[str, list[str]]], *, where: str) -> Page:
    """Put a page together; sections without text are left out, long ones divided."""
    sections = tuple(
        (strip_hidden(heading), part)
        for heading, lines in found
        if heading.casefold() not in ENDS
        for part in _divided([strip_hidden(line) for line in lines])
    )
    if not sections:
        raise UsageError(
            "nothing on this page can be read", where=where, expected="headings with paragraphs or lists below them"
        )
    return Page(strip_hidden(title), sections)


def _divided(lines: list[str]) -> Iterator[str]:
    """Join lines to texts that a model can be shown at once."""
    part: list[str] = []
    for line in filter(None, lines):
        if part and sum(map(len, part)) + len(part) + len(line) > LONGEST_SECTION:
            yield "\n".join(part)
            part = []
        part.append(line[:LONGEST_SECTION])
    if part:
        yield "\n".join(part)


AGENT = "culturekit"
WITHOUT_RULES = {404: b"", 410: b""} | dict.fromkeys((401, 403), b"User-agent: *\nDisallow: /")
LONGEST_DELAY = 60.0  # seconds between two pages that a site may ask for
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
        """Reject a page that has neither a file nor an address to fetch it from."""
        if self.file is None and not (self.title if self.source == "wikipedia" else self.url):
            raise ValueError(
                "a page has a file, or what it is fetched by: a title (wikipedia) or a url (cultural-atlas)"
            )
        return self


class PageList(StrictModel):
    """A list of pages."""

    pages: Annotated[tuple[ListedPage, ...], AfterValidator(not_empty)]


class FetchedPage(msgspec.Struct, frozen=True):
    """A page as it was fetched, and is kept."""

    url: str
    text: str
    sha256: str


def read_list(path: Path) -> tuple[ListedPage, ...]:
    """Read the list; every mistake is said at once."""
    return validate(read_yaml(path), PageList).pages


def _files_of(path: Path) -> dict[str, Path]:
    """Name the saved pages as inputs."""
    files = [path.parent / page.file for page in read_list(path) if page.file is not None]
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        raise UsageError(f"{len(missing)} saved pages are not there", where=str(path), found=", ".join(missing[:5]))
    return {f"page-{number:03d}": file for number, file in enumerate(files, start=1)}


def _asks_wikipedia(given: Given) -> dict[str, object]:
    listed = read_list(given["pages"]) if given["pages"].is_file() else ()
    return {"wikipedia": given["wikipedia"]} if any(page.file is None for page in listed) else {}


@builds(
    "read-pages", "sources", version=2, packages=("mwparserfromhell", "polars", "selectolax"), decides=_asks_wikipedia,
    reads=lambda given: country_files() | (_files_of(given["pages"]) if given["pages"].is_file() else {}),
    example="--pages pages.yaml --out sources",
)  # fmt: skip
def read(
    work: Work,
    pages: Annotated[
        Path,
        Field(
            description="YAML, `pages:`, each with source, country, and file, url or title; see docs/descriptors.md."
        ),
    ],
    *,
    contact: Annotated[
        str, Field(description="Mail address or URL that servers are told; without it nothing is fetched.")
    ] = "",
    cache: Annotated[Path | None, Field(description="Folder that keeps fetched pages for other runs too.")] = None,
    per_second: Annotated[
        float,
        Field(gt=0, le=10, description="Requests a second to a server, at most; its robots.txt may ask for less."),
    ] = 1.0,
    wikipedia: Annotated[str, Field(description="Address of the Action API.")] = WIKIPEDIA,
) -> Outcome:
    """Read pages about countries into sections.

    Those without a file are fetched politely, where that is asked for.
    """
    listed = read_list(pages)
    fetching = Fetching(contact, wikipedia, per_second, cache or work.scratch / "pages")
    work.progress.begin(len(listed), "pages")
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for page in listed:
        country(page.country)
        for row in _sections_of(page, pages.parent, fetching):
            first = found.setdefault((row["page_id"], row["number"]), row)
            first["categories"] = list(dict.fromkeys((*first["categories"], *row["categories"])))
            if {**row, "categories": first["categories"]} != first:
                differing = [f"{name} {first[name]!r} and {row[name]!r}" for name in row if row[name] != first[name]]
                raise UsageError(
                    "a page is listed twice, and not as the same", where=str(pages), found=", ".join(differing)
                )
        work.progress.advance(1)
    table = pl.DataFrame(list(found.values()), schema=PAGES.schema)
    write_table(work.out, PAGES, table)
    return Outcome({"listed": len(listed), "pages": table.height}, {}, {"fetched": fetching.fetched})


def _sections_of(page: ListedPage, folder: Path, fetching: "Fetching") -> Iterator[dict[str, Any]]:
    """Read one page, from its file or from afar."""
    if page.file is not None:
        path = folder / page.file
        if path.stat().st_size > LARGEST_PAGE:
            raise UsageError("a page is too large", where=str(path), expected=f"up to {LARGEST_PAGE:,} bytes")
        raw, kind, url, where = path.read_bytes(), path.suffix, page.url, str(path)
        text = _decoded(raw, _html_charset(raw) if kind in HTML else "", where=where)
    else:
        found = fetching.page(page)
        text, url, where = found.text, found.url, found.url
        kind = KINDS[page.source]
    read, revision = _read_as(kind, text, page.title, page.revision, where=where)
    wanted = _wanted_sections(page, read, where)
    sha256 = digest_bytes(text.encode())
    for number, (section, body) in enumerate(read.sections, start=1):
        if section.casefold() in wanted:
            yield {
                "page_id": digest([page.country, url or page.title or (page.file and page.file.name), sha256])[:16],
                "number": number, "source": page.source, "country": page.country, "url": url,
                "title": read.title or page.title or "", "revision": revision, "sha256": sha256, "section": section,
                "text": body, "categories": list(page.categories),
            }  # fmt: skip


KINDS = {"wikipedia": ".json", "cultural-atlas": ".html"}  # of pages that are fetched


def _wanted_sections(page: ListedPage, read: Page, where: str) -> set[str]:
    """Give the headings that are read, all where none is named; one that does not stand there is refused."""
    there = {section.casefold(): section for section, _ in read.sections}
    missing = [name for name in page.sections if name.casefold() not in there]
    if missing:
        raise UsageError(
            f"no text of this page stands under {', '.join(map(repr, missing))}", where=where,
            expected="some of " + ", ".join(repr(name[:60]) for name in [*there.values()][:20]),
            hint="Mend `sections:` in the list of pages.",
        )  # fmt: skip
    return {name.casefold() for name in page.sections} or set(there)


@dataclass
class Fetching:
    """Fetches pages, each once, one at a time; a page's own site is asked first what robots may read.

    The Action API is made for programs and asked by its own etiquette: who asks is told, one question at a time.
    """

    contact: str
    wikipedia: str
    per_second: float
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
        if not self.contact:
            raise UsageError(
                "a page has no file, and nothing is fetched unless that is asked for", where=url,
                expected="a file: in the list, or --contact YOU@EXAMPLE.ORG (in a recipe: ground.contact)",
            )  # fmt: skip
        check_contact(self.contact)
        text = self.text(url) if page.source == "cultural-atlas" else self.answer(url)
        _read_as(KINDS[page.source], text, page.title, page.revision, where=url)  # what cannot be read is not kept
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
        return f"{self.wikipedia}?{urlencode(query, quote_via=quote)}"

    def answer(self, url: str) -> str:
        """Ask the Action API."""
        return _decoded(self.source(url).page(url, kinds=("json",)).body, "", where=url)

    def text(self, url: str) -> str:
        """Fetch a page that robots may read."""
        self.check_robots(url)
        reply = self.source(url).page(url, kinds=("html",), check=self.check_robots)
        return _decoded(reply.body, reply.charset or _html_charset(reply.body), where=url)

    def check_robots(self, url: str) -> None:
        """Reject a page that robots may not read, and ask its site as slowly as it asks to be asked."""
        rules, source = self.rules(url), self.source(url)
        if not rules.can_fetch(AGENT, url):
            raise UpstreamUnavailable("robots.txt of this site asks programs not to read this page", where=url,
                                      hint=BY_HAND)  # fmt: skip
        delay = float(rules.crawl_delay(AGENT) or 0)
        if delay > LONGEST_DELAY:
            raise UpstreamUnavailable(
                "robots.txt of this site asks for more time between two pages than is waited", where=url,
                expected=f"up to {LONGEST_DELAY:.0f} s", found=f"{delay:,.0f} s", hint=BY_HAND,
            )  # fmt: skip
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
            pace = Pace(self.per_second)
            self.sources[home] = PoliteSource(home, self.contact, pace, largest=LARGEST_PAGE)
        return self.sources[home]
