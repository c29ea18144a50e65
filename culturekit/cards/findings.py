"""What a check of a card can find: a code, the place, what was expected, what was found, and what to do."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

PLAIN_PATH = "a plain relative path within the folder"

_ODD = re.compile(r"[\\\0\r\n\ud800-\udfff]|://|^[A-Za-z]:|^~|%2e|%2f|%5c", re.IGNORECASE)
"""Half a character (a lone surrogate) stands in no UTF-8 text, and no file is named by it."""


def is_plain(text: object) -> bool:
    """Tell whether a text can only mean something below the folder: no `..`, no root, no address, no drive."""
    if not isinstance(text, str) or not text or _ODD.search(text):
        return False
    return not text.startswith("/") and not {"", ".", ".."} & set(text.split("/"))


_LONGEST = 120
_NOTHING = "nothing"


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[tuple[str, str, str]]:  # noqa: ANN401 - JSON
    """Give path, wanted and found for every place where two values differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted({*wanted, *found}):
            inner = f"{path}.{key}" if path else key
            if key not in found:
                yield inner, shown(wanted[key]), _NOTHING
            elif key not in wanted:
                yield inner, _NOTHING, shown(found[key])
            else:
                yield from differences(wanted[key], found[key], inner)
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif type(wanted) is not type(found) or wanted != found:
        yield path or "the whole", shown(wanted), shown(found)


def shown(value: Any) -> str:  # noqa: ANN401 - JSON
    """Write a value, or what there is of it."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_FINDINGS = 1
_DAMAGED = 4

_REBUILD = "Build the card again from the release, with --replace."
_FETCH = "Fetch the folder again, or build the card again from the release."


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding; `damage` means that bytes are not what the folder promises."""

    says: str
    fix: str
    damage: bool = False


CODES: Mapping[str, Code] = MappingProxyType(
    {
        "block-edited": Code(
            "a generated block is not what the data say",
            f"Change the hand-written half, not the generated page. {_REBUILD}",
        ),
        "page-edited": Code(
            "a page differs outside its generated blocks", f"Change the hand-written half, not the page. {_REBUILD}"
        ),
        "hand-empty": Code(
            "a field that only people can fill is empty, or still has its marker",
            f"Fill it in where `card init` wrote it. {_REBUILD}",
        ),
        "hand-changed": Code("the hand-written half has changed since the card was built", _REBUILD),
        "hand-unreadable": Code(
            "what was written by hand cannot be read", f"Mend it where `card init` wrote it. {_REBUILD}"
        ),
        "count-differs": Code("a number of facts.json is not what the data say", _REBUILD),
        "facts-unreadable": Code("facts.json cannot be read", _REBUILD),
        "file-missing": Code("a file that is described is not there", _FETCH, damage=True),
        "hash-differs": Code("the bytes of a file are not those that were described", _FETCH, damage=True),
        "file-changed": Code("a page, or what people wrote, is not the one that was built", _REBUILD),
        "size-differs": Code("a file has another size than described", _FETCH, damage=True),
        "table-unreadable": Code("a table cannot be read", _FETCH, damage=True),
        "manifest-unreadable": Code("a manifest cannot be read", _FETCH, damage=True),
        "sums-unreadable": Code("SHA256SUMS has a line that is no checksum", _FETCH, damage=True),
        "path-leaves": Code(
            "a path leads out of the folder", "Name files by plain relative paths within the folder.", damage=True
        ),
        "link": Code("a symbolic link, or something that is no plain file", "Put the file itself here.", damage=True),
        "file-extra": Code("a file that nothing describes", f"Take it out, or put it into the release. {_REBUILD}"),
        "croissant-unreadable": Code("croissant.json is no Croissant description", _REBUILD),
        "croissant-column": Code("croissant.json has another column than the table", _REBUILD),
        "croissant-type": Code("croissant.json gives a column another type than the table", _REBUILD),
        "croissant-differs": Code("croissant.json is not what the data and the hand-written fields say", _REBUILD),
        "raw-count": Code(
            "numbers of search results, or raw popularity counts, which may not be published",
            "Release ranks within country and concept, never the counts themselves.",
        ),
        "long-prose": Code(
            "a long passage of running text",
            "Release names, ids, titles and revisions; leave the prose of sources where it is.",
        ),
        "source-prose": Code(
            "words that stand, in this order, in a source", "Say it in words of your own, or leave it out."
        ),
        "secret": Code("what looks like a key or a password", "Take it out, and revoke it: it may have been read."),
    }
)
"""Every kind of finding; `card check` leaves with 4 where bytes are damaged, else with 1."""


@dataclass(frozen=True, slots=True, order=True)
class CardFinding:
    """One thing that keeps a card from being published."""

    file: str
    code: str
    expected: str
    found: str

    @property
    def fix(self) -> str:
        """What to do about it."""
        return CODES[self.code].fix

    def as_data(self) -> dict[str, str | bool]:
        """Give the finding for machines."""
        return {**asdict(self), "says": CODES[self.code].says, "fix": self.fix, "damage": CODES[self.code].damage}


def exit_code(findings: tuple[CardFinding, ...]) -> int:
    """Say how a check ends: 0 without findings, 4 where bytes are not what was described, else 1."""
    if not findings:
        return 0
    return _DAMAGED if any(CODES[finding.code].damage for finding in findings) else _FINDINGS
