"""Photographs of what prompts ask for, with licence and author, from Wikimedia Commons and Openverse.

Each prompt is searched in English and, where somebody translates, in the first language of its country. Replies and
files are kept, so that a run that was cut goes on. The photographs belong to others: they are references, and no stage
releases them.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode, urlsplit

import msgspec
import numpy as np
import polars as pl
from PIL import Image
from pydantic import Field

from culturekit.builders.asking import Asked, asks, row_id, wording, wording_digest
from culturekit.core.atomic import write_atomically
from culturekit.core.declared import Given, Typed
from culturekit.core.digests import digest, digest_bytes, source_hash
from culturekit.core.errors import CultureKitError, UpstreamUnavailable, UsageError
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.pictures.picture_reading import picture_from
from culturekit.core.schemas import PHOTOGRAPHS, PROMPTS
from culturekit.core.spreadsheet_cells import frame_as_csv
from culturekit.core.stage import Outcome
from culturekit.core.tables import read_table, write_drops, write_table
from culturekit.kg.countries import countries
from culturekit.kg.polite_source import KeptAnswers, Pace, PoliteSource, address_of, check_contact, check_url
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.models import quoted
from culturekit.llm.untrusted import strip_hidden

WORDS = "captions_translate"
COMMONS, OPENVERSE = "https://commons.wikimedia.org/w/api.php", "https://api.openverse.org/v1/images/"
WIDE, LARGEST, ALIKE = 1024, 20_000_000, 4
LIST, SHEET = "metadata.csv", "contact_sheet.html"
CAVEAT = "Photographs belong to their authors: licence and author of each stand beside it. They are never released."
_MARKUP = re.compile(r"<[^>]{0,1000}>")


def _service(name: str) -> str:
    """Accept a service that is known."""
    if name not in ("commons", "openverse"):
        raise UsageError("there is no such service of photographs", expected="commons or openverse", found=name)
    return name


class Translated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query in another language."""

    id: str
    translation: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class Found(msgspec.Struct, frozen=True):
    """A photograph as a service lists it."""

    service: str
    url: str
    page: str
    title: str
    author: str
    licence: str
    licence_url: str


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """Where photographs are searched, and how many are taken of each prompt and language."""

    contact: Annotated[str, Field(description="Mail address or URL that services are told.")] = ""
    each: Annotated[int, Field(ge=1, le=50, description="Photographs of a prompt and language.")] = 10
    services: Annotated[
        tuple[str, ...], Field(description="commons or openverse; repeatable. [both]"), Typed("service", _service)
    ] = ("commons", "openverse")
    per_second: Annotated[float, Field(gt=0, le=10, description="Requests a second to a server, at most.")] = 1.0
    commons: Annotated[str, Field(description="Address of the Action API of Wikimedia Commons.")] = COMMONS
    openverse: Annotated[str, Field(description="Address of Openverse's search for images.")] = OPENVERSE


def wanted(prompts: Path) -> list[dict[str, Any]]:
    """List the prompts, each with what is searched for, and the language of its country."""
    table = read_table(prompts, PROMPTS).filter(pl.col("country").is_not_null(), language="en").sort("prompt_id")
    if table.is_empty():
        raise UsageError("no English prompt names a country", where=str(prompts), expected="prompts of activities")
    known, rows = countries(), []
    for row in table.iter_rows(named=True):
        home = known.get(row["country"])
        text = f"{row['activity']} {home.name}" if home is not None and row.get("activity") else row["text"]
        language = home.languages[0] if home is not None and home.languages else "en"
        rows.append({"prompt_id": row["prompt_id"], "query": text, "language": language})
    return rows


def _translation(row: Mapping[str, Any]) -> Request:
    """Ask for a query in the language of its country."""
    asked = row_id(row["query"], row["language"])
    data = {"id": asked, "caption": row["query"], "language": row["language"]}
    return Request("captions.translate", wording(WORDS), data, Translated, allowed={"id": (asked,)}, max_tokens=256)


def _decides(given: Given) -> dict[str, object]:
    options, translated = given["options"], given["translator"] is not None
    wording = {"wording": wording_digest(WORDS)} if translated else {}
    return {
        "each": options.each, "services": list(options.services), "commons": options.commons,
        "openverse": options.openverse, "language": "own" if translated else "en", **wording,
    }  # fmt: skip


@asks(
    "collect-photographs", "photographs", "translate", words="", unit="prompts", packages=("pillow", "polars"),
    key=lambda row: str(row["prompt_id"]), reads=lambda _: {}, decides=_decides,
    example=f"--prompts prompts/prompts.parquet --contact you@example.org --llm {quoted('text-small')} "
    "--out photographs --budget 5",
)  # fmt: skip
def collect(
    asked: Asked,
    prompts: Annotated[Path, Field(description="Prompts in English that name a country.")],
    *,
    translator: Annotated[
        str | None,
        Field(description="Who translates prompts for a second search, as a SPEC. [searched in English alone]"),
        Typed("llm"),
    ] = None,
    options: CollectOptions,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Gather openly licensed photographs of prompts.

    They come from Wikimedia Commons and Openverse, with licence and author, without doubles, and with a sheet to look
    at; `folder:DIR` takes them as real images.
    """
    if not asked.planning:
        check_contact(options.contact)
    work, rows = asked.work, wanted(prompts)
    queries = [(row["prompt_id"], "en", str(row["query"])) for row in rows]
    if not asked.nobody:
        for row, value in asked.put([row for row in rows if row["language"] != "en"], _translation, unit=""):
            queries.append((row["prompt_id"], row["language"], " ".join(strip_hidden(value.translation).split())))
    gathering = _Gathering(work.scratch / "fetched", work.out, options)
    work.progress.begin(len(queries), "searches")
    for prompt_id, language, query in sorted(queries, key=lambda one: (one[0], one[1] != "en", one[1])):
        gathering.search(prompt_id, language, query)
        work.progress.advance(1)
    table = pl.DataFrame(gathering.rows, schema=PHOTOGRAPHS.schema, orient="row")
    write_table(work.out, PHOTOGRAPHS, table)
    listed = table.select("path", "prompt_id", "slot", "service", "author", "licence", "page", status=pl.lit("ok"))
    write_atomically(work.out / LIST, frame_as_csv(listed).encode())
    write_atomically(work.out / SHEET, contact_sheet(table).encode())
    drops = write_drops(work.out, [(*drop[:1], None, "collect", *drop[1:]) for drop in gathering.drops], once=True)
    notes = {"caveat": CAVEAT, "licences": dict(sorted(Counter(table["licence"]).items()))}
    if not asked.nobody:
        notes |= {"translator": asked.client.model, "outcomes": dict(sorted(asked.outcomes.items()))}
    empty = len({row["prompt_id"] for row in rows} - set(table["prompt_id"]))
    if empty:
        notes["findings"] = [f"{empty:,} of {len(rows):,} prompts have no photograph"]
    return Outcome({"photographs": table.height, "prompts": len(rows)}, drops, notes)


@dataclass
class _Gathering:
    """Searches services and fetches what they list, each thing once."""

    kept_in: Path
    out: Path
    options: CollectOptions
    rows: list[tuple[object, ...]] = field(default_factory=list)
    drops: list[tuple[str, str, str | None]] = field(default_factory=list)
    sources: dict[str, PoliteSource] = field(default_factory=dict)
    seen: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    def search(self, prompt_id: str, language: str, query: str) -> None:
        """Take the first photographs that a query finds, from each service in turn."""
        listed = [self.listing(service, query) for service in self.options.services]
        taken = 0
        for found in (one for turn in zip_longest(*listed) for one in turn if one is not None):
            if taken == self.options.each:
                return
            taken += self.take(prompt_id, language, query, found)

    def listing(self, service: str, query: str) -> list[Found]:
        """Ask a service, once."""
        kept, question = KeptAnswers(self.kept_in / "listed", list[Found]), [service, query, str(self.options.each)]
        found = kept.find(question)
        if found is None:
            found = list(PHOTO_SOURCES[service](self, query))
            kept.keep(question, found)
        return found

    def answer(self, base: str, values: Mapping[str, object], kind: type[Any]) -> Any:  # noqa: ANN401 - of that kind
        """Ask an API a question."""
        return self.source(base).ask(f"?{urlencode(values)}", kind)

    def source(self, url: str) -> PoliteSource:
        """Give who asks a site; an API by its whole address."""
        parts = urlsplit(url)
        home = url if url in (self.options.commons, self.options.openverse) else f"{parts.scheme}://{parts.netloc}"
        if home not in self.sources:
            pace = Pace(self.options.per_second)
            self.sources[home] = PoliteSource(home, self.options.contact, pace, largest=LARGEST)
        return self.sources[home]

    def take(self, prompt_id: str, language: str, query: str, found: Found) -> bool:
        """Fetch a photograph and list it, unless it is none, or one of this prompt is like it."""
        try:
            content = self.content(found)
        except CultureKitError as error:
            self.drops.append((f"{prompt_id} {found.url}", "not fetched", str(error)[:300]))
            return False
        read = picture_from(content)
        if isinstance(read, NoPicture):
            self.drops.append((f"{prompt_id} {found.url}", read.reason, read.detail or None))
            return False
        # 64 bits of how it looks: where its brightness rises from left to right, on a grid of eight rows.
        grey = np.asarray(Image.fromarray(read.pixels).convert("L").resize((9, 8), Image.Resampling.BILINEAR), np.int16)
        looks = int.from_bytes(np.packbits(grey[:, 1:] > grey[:, :-1]).tobytes())
        sha256 = digest_bytes(content)
        known = self.seen.setdefault(prompt_id, [])
        if any(sha256 == other or (looks ^ like).bit_count() <= ALIKE for other, like in known):
            self.drops.append((f"{prompt_id} {found.url}", "there already", None))
            return False
        known.append((sha256, looks))
        folder = re.sub(r"[^A-Za-z0-9._-]", "-", prompt_id)[:80]
        path = f"{folder}/{sha256[:16]}{SUFFIXES.get(content[:2], '.img')}"
        (self.out / folder).mkdir(parents=True, exist_ok=True)
        write_atomically(self.out / path, content)
        height, width = read.pixels.shape[:2]
        self.rows.append((path, prompt_id, len(known) - 1, found.service, language, query, found.title, found.author,
                          found.licence, found.licence_url, found.page, found.url, sha256, width, height))  # fmt: skip
        return True

    def content(self, found: Found) -> bytes:
        """Give the bytes of a photograph, from disk where they were fetched before."""
        path = self.kept_in / "files" / digest([found.url])
        if not path.is_file():
            base = self.options.commons if found.service == "commons" else self.options.openverse
            parts, here = check_url(found.url), urlsplit(base).hostname
            address_of(parts, may_be_here=parts.hostname == here)  # what a service lists may not point at this machine
            reply = self.source(found.url).page(found.url, kinds=("image", "octet-stream"))
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, reply.body)
        return path.read_bytes()


SUFFIXES = {b"\xff\xd8": ".jpg", b"\x89P": ".png", b"RI": ".webp", b"GI": ".gif"}


# What the services answer: as each documents it, and nothing more of it than is used.


class _Text(msgspec.Struct, frozen=True):
    value: str | int | float = ""


class _ImageInfo(msgspec.Struct, frozen=True):
    url: str
    descriptionurl: str = ""
    thumburl: str = ""
    mime: str = ""
    extmetadata: dict[str, _Text] = {}


class _CommonsPage(msgspec.Struct, frozen=True):
    title: str
    index: int = 0
    imageinfo: list[_ImageInfo] = []


class _CommonsQuery(msgspec.Struct, frozen=True):
    pages: list[_CommonsPage] = []


class _CommonsReply(msgspec.Struct, frozen=True):
    query: _CommonsQuery = _CommonsQuery()
    error: dict[str, Any] = {}


class _OpenverseImage(msgspec.Struct, frozen=True):
    url: str
    title: str | None = None
    creator: str | None = None
    license: str = ""
    license_version: str | None = None
    license_url: str | None = None
    foreign_landing_url: str | None = None


class _OpenverseReply(msgspec.Struct, frozen=True):
    results: list[_OpenverseImage] = []


def _of_commons(gathering: _Gathering, query: str) -> Iterator[Found]:
    """Search Wikimedia Commons, whose files are all under free licences."""
    values = {
        "action": "query", "format": "json", "formatversion": 2, "generator": "search", "gsrnamespace": 6,
        "gsrsearch": f"{query} filetype:bitmap", "gsrlimit": 2 * gathering.options.each, "prop": "imageinfo",
        "iiprop": "url|mime|extmetadata", "iiurlwidth": WIDE,
        "iiextmetadatafilter": "LicenseShortName|LicenseUrl|Artist",
    }  # fmt: skip
    reply = gathering.answer(gathering.options.commons, values, _CommonsReply)
    if reply.error:
        raise UpstreamUnavailable("the Action API answered with an error", where=gathering.options.commons,
                                  found=str(reply.error.get("code", ""))[:100])  # fmt: skip
    for page in sorted(reply.query.pages, key=lambda one: one.index):
        for info in page.imageinfo[:1]:
            facts = {name: _plain(str(text.value)) for name, text in info.extmetadata.items()}
            licence = facts.get("LicenseShortName", ""), facts.get("LicenseUrl", "")
            title, author = _plain(page.title).removeprefix("File:"), facts.get("Artist", "")
            yield Found("commons", info.thumburl or info.url, info.descriptionurl, title, author, *licence)


def _of_openverse(gathering: _Gathering, query: str) -> Iterator[Found]:
    """Search Openverse, whose pictures are under Creative Commons licences or in the public domain."""
    values = {"q": query, "page_size": min(20, 2 * gathering.options.each), "category": "photograph"}
    for one in gathering.answer(gathering.options.openverse, values, _OpenverseReply).results:
        free = {"cc0": "CC0", "pdm": "Public domain"}
        licence = free.get(one.license, f"CC {one.license.upper()} {one.license_version or ''}".strip())
        title, author = _plain(one.title or ""), _plain(one.creator or "")
        yield Found(
            "openverse", one.url, one.foreign_landing_url or "", title, author, licence, one.license_url or ""
        )  # fmt: skip


PHOTO_SOURCES: Mapping[str, Callable[[_Gathering, str], Iterator[Found]]] = {
    "commons": _of_commons, "openverse": _of_openverse,
}  # fmt: skip


def _plain(text: str) -> str:
    """Take markup out of what a stranger wrote."""
    return " ".join(strip_hidden(html.unescape(_MARKUP.sub(" ", text))).split())[:300]


_STYLE = (
    "body{font:15px sans-serif;margin:2em}figure{display:inline-block;width:220px;margin:0 1em 1em 0;"
    "vertical-align:top}img{max-width:100%;height:160px;object-fit:contain}"
    "figcaption{font-size:12px;overflow-wrap:anywhere}"
)
_HEAD = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src 'self' file:; "
    f"style-src '{source_hash(_STYLE)}'\"><title>Photographs to choose from</title><style>{_STYLE}</style>"
    f"<h1>Photographs to choose from</h1><p>{CAVEAT} To leave one out, write <code>filtered</code> as its status in "
    f"{LIST}; then take the folder as <code>folder:DIR</code>.</p>"
)


def contact_sheet(table: pl.DataFrame) -> str:
    """Write the photographs of each prompt on a page, to choose from; it runs nothing and loads what lies beside it."""
    parts = [_HEAD]
    for rows in table.partition_by("prompt_id", maintain_order=True):
        queries = " · ".join(rows["query"].unique(maintain_order=True))
        parts.append(f"<h2>{html.escape(queries)}</h2>")
        for row in rows.iter_rows(named=True):
            about = (row["title"], row["author"], row["licence"], row["service"], row["path"].rpartition("/")[2])
            caption = html.escape(" · ".join(filter(None, about)))
            shown = f'<img loading="lazy" alt="" src="{html.escape(row["path"])}">'
            parts.append(f"<figure>{shown}<figcaption>{caption}</figcaption></figure>")
    return "\n".join(parts) + "\n"
