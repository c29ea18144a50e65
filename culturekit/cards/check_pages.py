"""The pages of a card against what the data and the hand-written half say."""

import difflib
from collections.abc import Iterator
from pathlib import Path

from culturekit.cards.findings import CardFinding
from culturekit.cards.markdown import BLOCK
from culturekit.cards.pages import README
from culturekit.cards.safe_paths import PLAIN_PATH, is_plain
from culturekit.errors import ConfigError
from culturekit.storage.yaml_source import YamlValue, parse_yaml

__all__ = ["check_header_paths", "check_page"]

LONGEST = 160
HEADER = "---\n"


def check_page(folder: Path, page: str, expected: bytes) -> Iterator[CardFinding]:
    """Compare a page block by block, and then around its blocks."""
    path = folder / page
    if not path.is_file():
        yield CardFinding(page, "file-missing", "a page of the card", "no such file")
        return
    found = path.read_bytes()
    if found == expected:
        return
    text, wanted = found.decode("utf-8", "replace"), expected.decode("utf-8")
    edited = list(check_blocks(page, wanted, text))
    yield from edited
    if BLOCK.sub(r"\g<name>", text) != BLOCK.sub(r"\g<name>", wanted) or not edited:
        yield CardFinding(page, "page-edited", *first_difference(BLOCK.sub("", wanted), BLOCK.sub("", text)))


def check_blocks(page: str, wanted: str, text: str) -> Iterator[CardFinding]:
    """Compare the generated blocks."""
    blocks = {match["name"]: match["text"] for match in BLOCK.finditer(text)}
    for match in BLOCK.finditer(wanted):
        name = match["name"]
        if name not in blocks:
            yield CardFinding(page, "block-edited", f"the block {name}", "no such block")
        elif blocks[name] != match["text"]:
            expected, found = first_difference(match["text"], blocks[name])
            yield CardFinding(page, "block-edited", f"in {name}: {expected}", found)


def first_difference(wanted: str, found: str) -> tuple[str, str]:
    """Show the first line in which two texts differ."""
    gone, came = "", ""
    for line in difflib.unified_diff(wanted.splitlines(), found.splitlines(), n=0, lineterm=""):
        if line.startswith(("---", "+++")) and len(line) < 5:
            continue
        if line.startswith("@@"):
            if gone or came:
                break
        elif line.startswith("-") and not gone:
            gone = line[1:]
        elif line.startswith("+") and not came:
            came = line[1:]
    return cut(gone), cut(came)


def cut(line: str) -> str:
    """Quote a line, or what there is of it."""
    return repr(line[:LONGEST]) if line else "nothing"


def check_header_paths(folder: Path) -> Iterator[CardFinding]:
    """Find paths in the header of the README that leave the folder."""
    path = folder / README
    text = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    if not text.startswith(HEADER):
        return
    try:
        value = parse_yaml(text.removeprefix(HEADER).partition("\n---")[0], name=README).value
    except ConfigError as error:
        yield CardFinding(README, "page-edited", "a YAML header", str(error))
        return
    for place in data_paths(value):
        if not is_plain(place):
            yield CardFinding(README, "path-leaves", PLAIN_PATH, repr(place))


def data_paths(value: YamlValue, key: str = "") -> Iterator[YamlValue]:
    """Find everything under `path`, `data_files` and `data_dir`, however nested."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from data_paths(inner, name if name in {"path", "data_files", "data_dir"} else "")
            if name == "data_files" and isinstance(inner, dict):
                yield from (place for place in inner.values() if isinstance(place, str))
    elif isinstance(value, list):
        for inner in value:
            yield from data_paths(inner, key)
    elif key:
        yield value
