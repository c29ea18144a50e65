"""Whether words stand, in the same order, in a source that must not be released.

Twelve words in a row, or twenty-four letters of a script without spaces, case and punctuation aside.
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from culturekit.errors import UsageError

__all__ = ["SourceTexts", "read_sources"]

RUN = 12
UNSPACED_RUN = 24
SHORTEST = 24
MOST_BYTES = 100_000_000

HIDDEN = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
TAG = re.compile(r"<[^>]*>|\[\[(?:[^\]|]*\|)?|\]\]|'{2,}")
TOKEN = re.compile("[぀-ヿ㐀-䶿一-鿿豈-﫿฀-๿຀-໿က-႟ក-៿]|[^\\W_]+")


class SourceTexts:
    """The runs of words of some sources."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Remember every run of every text."""
        self.words: set[int] = set()
        self.letters: set[int] = set()
        for text in texts:
            plain = html.unescape(TAG.sub(" ", HIDDEN.sub(" ", text)))
            tokens = tokens_of(plain)
            self.words.update(hash(run) for run in runs(tokens, RUN))
            self.letters.update(hash(run) for run in runs(tokens, UNSPACED_RUN))

    def found_in(self, text: str, *, least: int = 0) -> str | None:
        """Give the first run of a text, of at least so many words, that stands in a source."""
        tokens = tokens_of(text)
        if len(tokens) < max(RUN, least):
            return None
        unspaced = sum(1 for token in tokens if len(token) == 1 and not token.isascii())
        long, known = (UNSPACED_RUN, self.letters) if unspaced > len(tokens) / 2 else (RUN, self.words)
        return next((" ".join(run) for run in runs(tokens, long) if hash(run) in known), None)

    def cells_found(self, texts: pl.Series, *, least: int = 0) -> Iterator[str]:
        """Give the runs of some cells that stand in a source."""
        for text in texts.filter(texts.str.len_chars() >= SHORTEST).to_list():
            found = self.found_in(text, least=least)
            if found is not None:
                yield found


def tokens_of(text: str) -> list[str]:
    """Cut a text into folded words, and into letters where a script has no spaces."""
    return TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def runs(tokens: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    """Give every run of tokens."""
    for start in range(len(tokens) - length + 1):
        yield tuple(tokens[start : start + length])


def read_sources(paths: Sequence[Path]) -> SourceTexts | None:
    """Read sources; None where there are none."""
    if not paths:
        return None
    return SourceTexts([text for path in paths for text in texts_at(path)])


def texts_at(path: Path) -> Iterator[str]:
    """Read a file, or every file below a folder."""
    if not path.exists():
        raise UsageError("there is no such source", where=str(path), expected="a text file, or a folder of them")
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for file in files:
        if file.stat().st_size > MOST_BYTES:
            raise UsageError("too large for a source", where=str(file), expected=f"at most {MOST_BYTES:,} bytes")
        yield file.read_bytes().decode("utf-8", "replace")
