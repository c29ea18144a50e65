"""What lies in a folder of images: pictures by name, and everything else with a reason; no link is followed out."""

import os
import re
import stat
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from culturekit.core.errors import UsageError

# what is a picture by name; some of these cannot be read, and are rows that say so
_PICTURE_SUFFIXES = frozenset(
    f".{name}"
    for name in (
        "png", "jpg", "jpeg", "jpe", "jfif", "webp", "gif", "bmp", "dib", "tif", "tiff", "apng", "avif", "heic", "heif",
        "jxl", "jp2", "ppm", "pgm", "pbm", "pnm", "tga", "ico", "psd", "svg", "exr", "dng",
    )
)  # fmt: skip

_EXTENSION = re.compile(r"^\.[A-Za-z][A-Za-z0-9]{0,7}$")
# how the files begin that are taken for pictures though their names have no extension
_BEGINNINGS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*")
_SIDE_FILE = b"\x00\x05\x16\x07"  # how the files begin that a Mac puts beside each file on foreign disks, as `._NAME`
_UNREADABLE_FOLDER = "folder that cannot be read"


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A picture by name, with size and time of change in nanoseconds; `problem` says why it is not to be opened.

    `name` is relative to the folder, as the system has it: bytes that are no UTF-8 stand in it as surrogates.
    """

    name: str
    size: int
    changed: int
    problem: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class _Other:
    """Something that is no picture by name."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything below a folder, each part in the order of the names."""

    root: Path
    pictures: tuple[PictureFile, ...]
    others: tuple[_Other, ...]


def shown(name: str) -> str:
    r"""Write a file name as text: bytes that are no UTF-8 as `\\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def list_folder(root: Path, *, listed: Collection[str] = (), leave_out: str = "") -> Listing:
    """List a folder, hidden files and folders too.

    `listed` names files that count as pictures whatever they are called; `leave_out` is the list that names them.
    """
    if not root.is_dir():
        raise UsageError(
            "there is no such folder of images", where=str(root), expected="folder:DIR, a folder that is there",
            found="a file" if root.exists() else "nothing of that name",
        )  # fmt: skip
    real = os.path.realpath(root)
    pictures: list[PictureFile] = []
    others: list[_Other] = []
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            with os.scandir(os.path.join(root, below)) as entries:  # noqa: PTH118 - a hundred thousand times
                found = list(entries)
        except OSError as error:
            others.append(_Other(below, f"{_UNREADABLE_FOLDER}: {error.strerror}"))
            continue
        for entry in found:
            name = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(name)
            elif name != leave_out:
                thing = _classify(entry, name, real, listed)
                (pictures if isinstance(thing, PictureFile) else others).append(thing)  # type: ignore[arg-type]
    by_name = attrgetter("name")
    return Listing(root, tuple(sorted(pictures, key=by_name)), tuple(sorted(others, key=by_name)))


def _classify(entry: "os.DirEntry[str]", name: str, root: str, listed: Collection[str]) -> PictureFile | _Other:
    """Tell a picture from what is none, and a picture that may be opened from one that may not."""
    suffix = os.path.splitext(entry.name)[1].lower()  # noqa: PTH122
    by_name = suffix in _PICTURE_SUFFIXES or name in listed
    problem, real = "", entry.path
    if entry.is_symlink():
        real = os.path.realpath(entry.path)
        if not (real == root or real.startswith(os.path.join(root, ""))):  # noqa: PTH118
            problem = "link that leads out of the folder"
        elif not os.path.exists(real):  # noqa: PTH110
            problem = "link that leads nowhere"
        elif os.path.isdir(real):  # noqa: PTH112
            return _Other(name, "link to a folder, which is not followed")
    if problem:
        return PictureFile(name, 0, 0, problem) if by_name else _Other(name, problem)
    try:
        state = os.stat(real, follow_symlinks=False)  # noqa: PTH116
    except OSError as error:
        return PictureFile(name, 0, 0, f"file cannot be read: {error.strerror}") if by_name else _Other(name, "gone")
    if not stat.S_ISREG(state.st_mode):
        return PictureFile(name, 0, 0, "not a plain file") if by_name else _Other(name, "not a plain file")
    if entry.name.startswith("._") and _beginning(real).startswith(_SIDE_FILE):
        return _Other(name, "side file of a Mac (._NAME)")
    first = b"" if by_name or _EXTENSION.match(suffix) else _beginning(real)
    if by_name or first.startswith(_BEGINNINGS) or (first[:4] == b"RIFF" and first[8:12] == b"WEBP"):
        return PictureFile(name, state.st_size, state.st_mtime_ns)
    return _Other(name, suffix if _EXTENSION.match(suffix) else "no extension")


def _beginning(path: str) -> bytes:
    """Read the first bytes of a file, as far as they can be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(16)
    except OSError:
        return b""


def unreadable_folders(listing: Listing) -> Iterator[str]:
    """Name the folders that could not be looked into."""
    return (shown(other.name) for other in listing.others if other.reason.startswith(_UNREADABLE_FOLDER))


# Naming patterns such as `{prompt}__{id}.png`: what the parts of a file's path mean.
#
# A pattern is held against as many last parts of a path as it has itself, so that `{prompt_id}/{id}` fits in whatever
# folder the folders lie; a pattern that begins with `/` begins at the folder named. Longer texts (`{prompt}`,
# `{prompt_id}`, `{artifact}`) take as much as they can, all other fields as little.

_DIGITS = re.compile(r"([0-9]{1,18})")
_WORD_ENDS = re.compile(r"[\W_]+")
_SEPARATORS = re.compile(r"[\s_+]+")


@lru_cache(maxsize=65_536)
def folded(text: str) -> str:
    """Fold a text to its letters, marks and digits: case, spaces, punctuation and ways of encoding go."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    if plain.isascii():
        return "".join(filter(str.isalnum, plain))
    return "".join(c for c in unicodedata.normalize("NFC", plain) if unicodedata.category(c)[0] in "LMN")


@lru_cache(maxsize=65_536)
def bare(text: str) -> str:
    """Fold a text further, to letters without accents, as many tools write names."""
    key = folded(text)
    if key.isascii():
        return key
    return "".join(c for c in unicodedata.normalize("NFKD", key) if unicodedata.category(c)[0] in "LN")


def spaced(text: str) -> str:
    """Fold a text word by word, one space between words."""
    return " ".join(filter(None, (bare(word) for word in _WORD_ENDS.split(text))))


def natural_order(name: str) -> tuple[tuple[int | str, ...], str]:
    """Give what names are sorted by, so that img2 comes before img10."""
    parts = _DIGITS.split(name)
    return tuple(int(part) if index % 2 else part for index, part in enumerate(parts)), name


def words_of(text: str) -> str:
    """Write the text of a name with spaces, where it has none."""
    return text if " " in text else _SEPARATORS.sub(" ", text).strip()


_NUMBERS = ("repeat", "slot", "seed")
_LONG = ("prompt_id", "prompt", "artifact", "artifact_id")
FIELDS = (*_LONG, *_NUMBERS, "model", "id", "concept", "country", "group", "_")
_BETWEEN = "|"  # what stands between patterns that are tried one after the other
_PIECE = re.compile(r"\{\{|\}\}|\{(?P<field>[^{}]*)\}|[{}]|[^{}]+")
_SUFFIXES = "|".join(sorted(suffix[1:] for suffix in _PICTURE_SUFFIXES))
_ANY_SUFFIX = r"\.[^./]+"
_SUFFIX = re.compile(rf"\.(?:{_SUFFIXES})$", re.IGNORECASE)
Fields: TypeAlias = Mapping[str, str]  # what a name says, by field


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern, and what finds its fields in a name; `otherwise` parts a name at the other end.

    One that is `without_suffix` fits whatever the extension.
    """

    text: str
    parts: int
    anchored: bool
    without_suffix: bool
    names: tuple[str, ...]
    expression: re.Pattern[str]
    otherwise: re.Pattern[str]

    def fields(self, name: str, *, otherwise: bool = False) -> Fields | None:
        """Read the fields of a relative path; None where the pattern does not fit."""
        parts = name.split("/")
        if len(parts) < self.parts or (self.anchored and len(parts) != self.parts):
            return None
        tail = "/".join(parts[-self.parts :])
        if self.without_suffix:
            tail = _SUFFIX.sub("", tail)
        expression = self.otherwise if otherwise else self.expression
        match = expression.fullmatch(tail if tail.isascii() else unicodedata.normalize("NFC", tail))
        return None if match is None else match.groupdict()


def parse_patterns(text: str) -> tuple[Pattern, ...]:
    """Read patterns with `|` between them; an empty text is none.

    Raises:
        ValueError: one of them is wrong, in words for its writer.
    """
    return tuple(parse_pattern(one) for one in text.split(_BETWEEN)) if text else ()


def parse_pattern(text: str) -> Pattern:
    """Read one pattern.

    Raises:
        ValueError: it is wrong, in words for its writer.
    """
    anchored, body = text.startswith("/"), text.removeprefix("/")
    if not body or body.endswith("/") or "//" in body:
        raise ValueError(f"pattern {text!r} does not end in the name of a file")
    if any(part in (".", "..") for part in body.split("/")):
        raise ValueError(f"pattern {text!r} leads out of the folder with '..' or '.'")
    stem, dot, end = body.rpartition(".")
    ending = ""
    if dot and (end == "*" or f".{end.lower()}" in _PICTURE_SUFFIXES):
        ending = _ANY_SUFFIX if end == "*" else rf"\.(?i:{re.escape(end)})"
    pieces = list(_pieces_of(stem if ending else body, text))
    names = tuple(dict.fromkeys(field for field, _ in pieces if field and field != "_"))
    if not names:
        raise ValueError(f"pattern {text!r} has no field; fields are {listed()}")
    for (before, _), (after, _) in pairwise(pieces):
        if before and after:
            raise ValueError(
                f"pattern {text!r} has nothing between {{{before}}} and {{{after}}}: no one could tell where one ends"
            )
    greedy, lazy = (re.compile(_expression_of(pieces, long) + ending, re.DOTALL) for long in ("+", "+?"))
    return Pattern(text, body.count("/") + 1, anchored, not ending, names, greedy, lazy)


def _pieces_of(body: str, text: str) -> Iterator[tuple[str, str]]:
    """Part a pattern into fields and what stands between them; one of the two is empty."""
    for match in _PIECE.finditer(body):
        found, field = match[0], match["field"]
        if field is not None:
            if field not in FIELDS:
                raise ValueError(f"pattern {text!r} has the field {{{field}}}, which is none of {listed()}")
            yield field, ""
        elif found in ("{", "}"):
            raise ValueError(f"pattern {text!r} has a brace that nothing closes; one that is meant is written twice")
        else:
            yield "", unicodedata.normalize("NFC", found[0] if found in ("{{", "}}") else found)


def _expression_of(pieces: Sequence[tuple[str, str]], long: str) -> str:
    """Write a pattern as a regular expression; a field named twice says the same twice."""
    written, seen = [], {"", "_"}
    for field, literal in pieces:
        if field in seen:
            written.append({"": re.escape(literal), "_": "[^/]*?"}.get(field, f"(?P={field})"))
        else:
            seen.add(field)
            of = "[0-9]{1,20}" if field in _NUMBERS else f"[^/]{long if field in _LONG else '+?'}"
            written.append(f"(?P<{field}>{of})")
    return "".join(written)


def listed() -> str:
    """List the fields for a message."""
    return ", ".join(f"{{{field}}}" for field in sorted(FIELDS, key=natural_order))
