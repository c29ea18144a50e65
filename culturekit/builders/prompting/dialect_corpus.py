"""Whether phrases are met in a corpus: a file or a folder of any size, read line by line."""

import gzip
import hashlib
import os
import re
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

from culturekit.errors import UsageError
from culturekit.storage.digests import digest_file

__all__ = ["corpus_digest", "corpus_files", "phrases_met"]

SUFFIXES = (".txt", ".tsv", ".csv", ".jsonl", ".gz")
LONGEST = 1 << 14
"""Bytes of a line that are looked at together."""

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def corpus_files(place: Path) -> Iterator[Path]:
    """Go through the files of a corpus, folder by folder in the order of names; there is at least one."""
    found = iter([place]) if place.is_file() else files_below(place)
    first = next(found, None)
    if first is None:
        raise UsageError(
            "there is no corpus", where=str(place), expected=f"a file, or a folder of {', '.join(SUFFIXES)}"
        )
    return chain([first], found)


def files_below(place: Path) -> Iterator[Path]:
    """Go through a folder; what is held is the names of one folder at a time."""
    for folder, inside, names in os.walk(place):
        inside.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(SUFFIXES))


def corpus_digest(place: Path) -> str:
    """Hash the names of a corpus's files and what they hold, one after the other."""
    every = hashlib.sha256()
    for path in corpus_files(place):
        every.update(f"{path.relative_to(place).as_posix()}\0{digest_file(path)}\n".encode())
    return every.hexdigest()


def phrases_met(place: Path, phrases: Collection[str]) -> dict[str, int]:
    """Count how often each phrase stands in a line of a corpus, as whole words, whatever their case."""
    wanted = {words_of(phrase): phrase for phrase in phrases}
    met = dict.fromkeys(phrases, 0)
    lengths = sorted({len(words) for words in wanted})
    for path in corpus_files(place):
        for text, counted in lines_of(path, keep=max(lengths, default=1) - 1):
            words = words_of(text)
            for length in lengths:
                for at in range(max(0, counted - length + 1), len(words) - length + 1):
                    phrase = wanted.get(words[at : at + length])
                    if phrase is not None:
                        met[phrase] += 1
    return met


def words_of(text: str) -> tuple[str, ...]:
    """Give the words of a text in small letters."""
    return tuple(word.replace("’", "'") for word in WORD.findall(text.casefold()))


def lines_of(path: Path, *, keep: int) -> Iterator[tuple[str, int]]:
    """Read a file line by line, a long line in pieces: each begins with some words that the piece before ended with.

    Args:
        path: the file, compressed or not.
        keep: how many words.

    Returns:
        Texts, and how many of their first words stood in the text before.
    """
    held, counted = b"", 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            while piece := stream.readline(LONGEST):
                held += piece
                if piece.endswith(b"\n"):
                    yield held.decode("utf-8", "replace"), counted
                    held, counted = b"", 0
                elif len(held) >= LONGEST:
                    cut = held.rfind(b" ") + 1 or len(held)
                    text = held[:cut].decode("utf-8", "replace")
                    yield text, counted
                    last = words_of(text)[-keep:] if keep else ()
                    held, counted = f"{' '.join(last)} ".encode() + held[cut:], len(last)
    except (OSError, EOFError) as error:
        raise UsageError("the corpus cannot be read", where=str(path), found=str(error)) from error
    if held:
        yield held.decode("utf-8", "replace"), counted
