"""Whether phrases are met in a corpus: a file or a folder of any size, read line by line."""

import gzip
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from culturekit.errors import UsageError

__all__ = ["corpus_files", "phrases_met"]

SUFFIXES = (".txt", ".tsv", ".csv", ".jsonl", ".gz")
LONGEST = 1 << 16
"""Letters of a line that are looked at together."""

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def corpus_files(place: Path) -> list[Path]:
    """List the files of a corpus, in the order of their names."""
    found = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.suffix in SUFFIXES)
    if not found:
        raise UsageError(
            "there is no corpus", where=str(place), expected=f"a file, or a folder of {', '.join(SUFFIXES)}"
        )
    return found


def phrases_met(place: Path, phrases: Collection[str]) -> dict[str, int]:
    """Count how often each phrase stands in a corpus, as whole words, whatever their case."""
    wanted = {words_of(phrase): phrase for phrase in phrases}
    met = dict.fromkeys(phrases, 0)
    lengths = sorted({len(words) for words in wanted})
    for path in corpus_files(place):
        for line in lines_of(path):
            words = words_of(line)
            for length in lengths:
                for at in range(len(words) - length + 1):
                    phrase = wanted.get(words[at : at + length])
                    if phrase is not None:
                        met[phrase] += 1
    return met


def words_of(text: str) -> tuple[str, ...]:
    """Give the words of a text in small letters."""
    return tuple(word.replace("’", "'") for word in WORD.findall(text.casefold()))


def lines_of(path: Path) -> Iterator[str]:
    """Read a file piece by piece, never more of it than a long line at once."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            while line := stream.readline(LONGEST):
                yield line.decode("utf-8", "replace")
    except (OSError, EOFError) as error:
        raise UsageError("the corpus cannot be read", where=str(path), found=str(error)) from error
