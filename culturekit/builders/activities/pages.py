"""Pages about countries as sections of text: HTML by selectolax, wikitext by mwparserfromhell; no script is run."""

import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from culturekit.errors import UpstreamUnavailable, UsageError
from culturekit.llm.untrusted.untrusted import strip_hidden
from culturekit.registry import needing

__all__ = ["HTML", "LARGEST_PAGE", "Page", "decoded", "html_charset", "read_as", "read_html", "read_wikitext"]

LARGEST_PAGE = 5_000_000
LONGEST_SECTION = 6_000
"""Characters that a model is shown at once; a longer section becomes several, cut between paragraphs."""

NEVER_SHOWN = "script, style, noscript, template, iframe, object, svg, form, nav, header, footer, aside, [hidden]"
UNSEEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
HEADINGS = {"h1", "h2", "h3", "h4"}
BLOCKS = {"p", "li", "dt", "dd", "td", "th", "blockquote"}
LEAD = "lead"
HTML = (".html", ".htm")
MISSING = ("", "missingtitle", "nosuchrevid", "invalidtitle", "nosuchpageid")
"""What the Action API calls a page that is not there; any other reason may pass."""

ENDS = {"references", "external links", "see also", "further reading", "notes", "bibliography"}

DECLARES = re.compile(rb"""<meta\b[^>]{0,200}?\bcharset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
DECLARED_WITHIN = 1_024
"""Bytes at the beginning of a page of HTML in which it says what letters it is written in."""

CHARSETS = re.compile(r"utf-8|cp(874|125\d)|iso8859-\d+|tis-620|koi8-[rtu]|(shift_jis|euc_jp|euc_kr|big5|gb)\w*")
"""Codecs that pages are read by: those for letters of languages, and none of those that Python has for other ends."""

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


def html_charset(raw: bytes) -> str:
    """Give what letters a page of HTML says that it is written in; empty where it says nothing."""
    said = DECLARES.search(raw[:DECLARED_WITHIN])
    return "" if said is None else said[1].decode("ascii", "replace")


def decoded(raw: bytes, charset: str, *, where: str) -> str:
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
            "the letters of this page cannot be read",
            where=where,
            expected=f"{charset}, as it is declared" if charset else "UTF-8, or a page that declares its charset",
            found=str(error),
            hint="Save the page as UTF-8.",
        ) from error


def read_as(kind: str, text: str, title: str | None, revision: str | None, *, where: str) -> tuple[Page, str | None]:
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
                said = f"{why.code} {why.info}"[:300]
                raise UpstreamUnavailable("the Action API gave no page", where=where, found=said, hint="Try it later.")
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
        if not text or inside_block(node):
            continue
        if node.tag == "h1" and not title:
            title = text
        elif node.tag in HEADINGS:
            heading = text
            found.append((heading, []))
        else:
            found[-1][1].append(text)
    return page_of(title, found, where=where)


def inside_block(node: Any) -> bool:  # noqa: ANN401 - a node of selectolax
    """Tell whether the text of a node was read with one that it stands in."""
    above = node.parent
    while above is not None:
        if above.tag in BLOCKS:
            return True
        above = above.parent
    return False


def read_wikitext(title: str, wikitext: str, *, where: str) -> Page:
    """Read the sections of a page of a wiki, without references, templates, files and tables of links."""
    with needing("sources", "reading wikitext"):
        import mwparserfromhell

    found: list[tuple[str, list[str]]] = []
    for section in mwparserfromhell.parse(wikitext).get_sections(flat=True, include_lead=True):
        headings = section.filter_headings(recursive=False)
        heading = headings[0].title.strip_code().strip() if headings else LEAD
        for gone in [*headings, *section.filter_comments(), *section.filter_tags(matches=lambda tag: tag.tag == "ref")]:
            drop(section, gone)
        for link in section.filter_wikilinks(matches=lambda link: FILE_LINK.match(str(link.title)) is not None):
            drop(section, link)
        for template in section.filter_templates():
            drop(section, template)
        text = section.strip_code(normalize=True, collapse=True)
        found.append((heading, [" ".join(line.split()) for line in text.splitlines() if line.strip(" \t*#:;|-{}")]))
    return page_of(title, found, where=where)


def drop(section: Any, node: Any) -> None:  # noqa: ANN401 - nodes of mwparserfromhell
    """Take a node out, unless it went with one that it stood in."""
    try:
        section.remove(node)
    except ValueError:
        return


def page_of(title: str, found: list[tuple[str, list[str]]], *, where: str) -> Page:
    """Put a page together; sections without text are left out, long ones divided."""
    sections = tuple(
        (strip_hidden(heading), part)
        for heading, lines in found
        if heading.casefold() not in ENDS
        for part in divided([strip_hidden(line) for line in lines])
    )
    if not sections:
        raise UsageError(
            "nothing on this page can be read", where=where, expected="headings with paragraphs or lists below them"
        )
    return Page(strip_hidden(title), sections)


def divided(lines: list[str]) -> Iterator[str]:
    """Join lines to texts that a model can be shown at once."""
    part: list[str] = []
    for line in filter(None, lines):
        if part and sum(map(len, part)) + len(part) + len(line) > LONGEST_SECTION:
            yield "\n".join(part)
            part = []
        part.append(line[:LONGEST_SECTION])
    if part:
        yield "\n".join(part)
