"""The hand-written half of a card: `card.yaml` for fields, `card.md` for sections."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType

import yaml
from pydantic import field_validator

from culturekit.core.atomic import write_atomically
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.yaml_source import StrictModel, load_model

MARKER = "FILL IN"  # stands where only the publisher can know; `card check` fails while it is there

_EMPTY_WORDS = frozenset({"", "todo", "tbd", "n/a", "na", "none", "xxx", "fixme", "unknown", "lorem ipsum"})

SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "Motivation": "Why the release was made, by whom it was paid for, and which gap it fills.",
        "Intended uses": "What it is made for.",
        "Unsuitable uses": "What it must not, or cannot, be used for.",
        "Known biases": "Whom it shows too much, too little or wrongly, and why.",
        "Limitations": "What is missing, and what was not checked.",
        "Sensitive content": "What could hurt or identify people, and what was done about it.",
        "Annotators and pay": "Who judged, how they were found, where they live, and what they were paid per hour.",
        "Social impact": "Who gains and who could be harmed.",
        "Maintenance": "Who keeps it, how mistakes are reported, and when the next release is due.",
        "Licence decisions": "Which licence, why, and what the sources ask for.",
    }
)
"""By heading, what a person is asked to write below it."""


def _is_empty(text: str | None) -> bool:
    """Tell whether a field says nothing: blank, only punctuation, a placeholder, or still marked."""
    if text is None or MARKER in text:
        return True
    words = text.strip().strip(".-…*_ ").lower()
    return words in _EMPTY_WORDS or not any(character.isalnum() for character in words)


FIELDS_FILE = "card.yaml"
TEXT_FILE = "card.md"

_HEADING = re.compile(r"^## +(.+?) *#*$")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_OWN_MARKS = re.compile(r"<!-- *(generated:|end of )")
_DAY = re.compile(r"^20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$")
_VERSION = re.compile(r"^\d+\.\d+\.\d+$")
_SLUG = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")


_TEXTS = (
    "title", "version", "published", "summary", "licence.id", "licence.url", "contact", "annotators.who",
    "annotators.pay",
)  # fmt: skip
_LISTS = ("languages", "tags", "creators")
_OPTIONAL = ("homepage", "citation", "dump_date")
_DATE_NEEDED = ("dump_date", False)
"""Fields that a person fills in, and those that may be left out: the date only where a dump says it."""

_ASKED = {
    "title": "what people call the release",
    "version": "such as 1.0.0",
    "published": "the day, as YYYY-MM-DD",
    "summary": "two sentences: what it is, and how many of what",
}


def _shaped(text: str | None, shape: re.Pattern[str], expected: str) -> str | None:
    """Accept a text of a shape, or one that is still marked or empty."""
    if not _is_empty(text) and not shape.match(text or ""):
        raise ValueError(f"{expected}, found {text!r}")
    return text


class Licence(StrictModel):
    """Under what a release may be used."""

    id: str | None = None
    url: str | None = None


class Annotators(StrictModel):
    """Who judged by hand, and for what pay."""

    who: str | None = None
    pay: str | None = None


class Change(StrictModel):
    """What one version changed."""

    version: str
    date: str
    changes: tuple[str, ...]


class Fields(StrictModel):
    """The fields of `card.yaml`; what is left out, or null, is found empty by the check."""

    name: str
    title: str | None = None
    version: str | None = None
    published: str | None = None
    summary: str | None = None
    licence: Licence = Licence()
    languages: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    creators: tuple[str, ...] = ()
    contact: str | None = None
    homepage: str | None = None
    citation: str | None = None
    dump_date: str | None = None
    annotators: Annotators = Annotators()
    changelog: tuple[Change, ...] = ()

    @field_validator("published", "dump_date")
    @classmethod
    def day(cls, text: str | None) -> str | None:
        """Accept a day."""
        return _shaped(text, _DAY, "a day is written YYYY-MM-DD")

    @field_validator("version")
    @classmethod
    def numbered(cls, text: str | None) -> str | None:
        """Accept a version."""
        return _shaped(text, _VERSION, "a version is written as three numbers, such as 1.0.0")

    @field_validator("name")
    @classmethod
    def plain(cls, name: str) -> str:
        """Accept a name that can be part of a file name and of an address."""
        if not _SLUG.match(name):
            raise ValueError(f"letters, digits, dots, dashes and underscores only, found {name!r}")
        return name


@dataclass(frozen=True, slots=True)
class Hand:
    """What people wrote about a release."""

    fields: Fields
    sections: Mapping[str, str]


def read_hand(folder: Path) -> Hand:
    """Read both files of a hand-written card.

    Raises:
        ConfigError: a key or a heading is unknown, or given twice; all problems at once.
    """
    if not folder.is_dir():
        raise UsageError(
            "there is no such hand-written card", where=str(folder),
            expected=f"a folder with {FIELDS_FILE} and {TEXT_FILE}",
            hint=f"Begin one with: culturekit card init {folder}",
        )  # fmt: skip
    fields = load_model(folder / FIELDS_FILE, Fields)
    return Hand(fields, _read_sections(folder / TEXT_FILE))


def _read_sections(path: Path) -> dict[str, str]:
    """Cut the text file at its headings; comments are for its authors and left out."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise UsageError("there is no such file", where=str(path), expected="the sections of the card") from error
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8 text", where=str(path), found=f"byte {error.start}") from error
    problems = [Problem("this marks what is generated, and cannot be written by hand", str(path))] * bool(
        _OWN_MARKS.search(text)
    )
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        heading = _HEADING.match(line)
        if heading is None:
            current.append(line)
            continue
        problems += [Problem(message, str(path), number) for message in _wrong_heading(heading[1], found)]
        current = found.setdefault(heading[1], [])
    if problems:
        raise ConfigError(problems)
    return {name: _COMMENT.sub("", "\n".join(lines)).strip() for name, lines in found.items()}


def _wrong_heading(name: str, found: Mapping[str, list[str]]) -> Iterator[str]:
    """Say what is wrong with a heading."""
    if name not in SECTIONS:
        yield f"no such section: {name!r}; accepted: {', '.join(SECTIONS)}"
    if name in found:
        yield f"the section {name!r} is given twice"


def empty_fields(hand: Hand, *, dump_dated: bool) -> Iterator[tuple[str, str]]:
    """Give file and name of every field that is not filled in; a dump may say its date itself."""
    fields = hand.fields
    given = [name for name in _OPTIONAL if getattr(fields, name) is not None or (name, dump_dated) == _DATE_NEEDED]
    yield from ((FIELDS_FILE, name) for name in (*_TEXTS, *given) if _is_empty(attrgetter(name)(fields)))
    for name in _LISTS:
        listed: tuple[str, ...] = getattr(fields, name)
        if not listed or any(map(_is_empty, listed)):
            yield FIELDS_FILE, name
    if not fields.changelog:
        yield FIELDS_FILE, "changelog"
    for number, change in enumerate(fields.changelog):
        for name, text in (
            ("version", change.version),
            ("date", change.date),
            *(("changes", c) for c in change.changes),
        ):
            if _is_empty(text):
                yield FIELDS_FILE, f"changelog[{number}].{name}"
        if not change.changes:
            yield FIELDS_FILE, f"changelog[{number}].changes"
    yield from ((TEXT_FILE, name) for name in SECTIONS if _is_empty(hand.sections.get(name)))


def write_skeleton(folder: Path, name: str) -> list[Path]:
    """Write both files into a new folder."""
    if folder.exists():
        raise UsageError("there is something already", where=str(folder), expected="the name of a new folder")
    Fields(name=name)
    folder.mkdir(parents=True)
    fields = {
        "name": name,
        **{field: f"{MARKER}: {what}" for field, what in _ASKED.items()},
        "licence": {"id": f"{MARKER}: as on spdx.org", "url": f"{MARKER}: its address"},
        "languages": [f"{MARKER}: such as en"],
        "tags": [f"{MARKER}: words to find it by"],
        "creators": [f"{MARKER}: who made it"],
        "contact": f"{MARKER}: where questions are answered",
        "homepage": None,
        "citation": None,
        "dump_date": None,
        "annotators": {"who": f"{MARKER}: who judged by hand, if anyone", "pay": f"{MARKER}: what they were paid"},
        "changelog": [{"version": f"{MARKER}", "date": f"{MARKER}", "changes": [f"{MARKER}: what changed"]}],
    }
    sections = "\n".join(f"## {heading}\n\n{MARKER}: {what}\n" for heading, what in SECTIONS.items())
    write_atomically(folder / FIELDS_FILE, yaml.safe_dump(fields, sort_keys=False, allow_unicode=True).encode())
    write_atomically(folder / TEXT_FILE, sections.encode())
    return [folder / FIELDS_FILE, folder / TEXT_FILE]
