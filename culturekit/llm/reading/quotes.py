"""A quote must stand in the source it quotes; here it is found, with its place in the source.

Two texts that look the same are the same here: composed and decomposed letters, any run of white space, and hidden
characters make no difference. Case, punctuation and everything else do.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from culturekit.llm.reading.reply_codes import ParseFailure
from culturekit.llm.untrusted.hidden_characters import JOINERS, TAKEN_OUT

__all__ = ["Quote", "check_quotes", "find_quote"]


@dataclass(frozen=True, slots=True)
class Quote:
    """Where a quote stands: `source[start:end]`."""

    start: int
    end: int


def find_quote(source: str, quote: str) -> Quote | None:
    """Find the first place where a quote stands in a source; None where it does not, or says nothing."""
    found = check_quotes(source, [quote])
    return None if isinstance(found, ParseFailure) else found[0]


def check_quotes(source: str, quotes: Sequence[str], *, raw: str = "") -> tuple[Quote, ...] | ParseFailure:
    """Find every quote of a reply in the source as it was sent, or say that one is empty or not there.

    A quote without a letter or a digit is empty: it would stand in any source. `raw` is the reply the quotes are from;
    the failure keeps it.
    """
    form = Form(source)
    places = []
    for number, quote in enumerate(quotes, start=1):
        if not any(map(str.isalnum, quote)):
            return ParseFailure("empty-quote", f"quote {number}", raw)
        place = form.find(quote)
        if place is None:
            return ParseFailure("quote-not-found", f"quote {number}", raw)
        places.append(place)
    return tuple(places)


class Form:
    """A source brought to one form, which knows for each of its characters where that was."""

    def __init__(self, source: str) -> None:
        """Bring the source to its form."""
        pieces = list(pieces_of(source))
        self.text = "".join(piece for piece, _, _ in pieces)
        self.starts = [start for piece, start, _ in pieces for _ in piece]
        self.ends = [end for piece, _, end in pieces for _ in piece]

    def find(self, quote: str) -> Quote | None:
        """Find a quote; it may not begin or end within a letter and its marks."""
        wanted = "".join(piece for piece, _, _ in pieces_of(quote)).strip(" ")
        at = self.text.find(wanted)
        while at >= 0:
            last = at + len(wanted) - 1
            whole_start = at == 0 or self.ends[at - 1] <= self.starts[at]
            whole_end = last + 1 == len(self.text) or self.ends[last] <= self.starts[last + 1]
            if whole_start and whole_end:
                return Quote(self.starts[at], self.ends[last])
            at = self.text.find(wanted, at + 1)
        return None


def pieces_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Cut a text into letters with their marks, each composed, and single spaces; each with its place."""
    start, end, cluster, space = 0, 0, "", False
    for at, character in enumerate(text):
        if character in JOINERS or TAKEN_OUT.match(character):
            continue
        if cluster and joins(character):
            cluster, end = cluster + character, at + 1
            continue
        if cluster:
            yield unicodedata.normalize("NFC", cluster), start, end
            cluster = ""
        if character.isspace():
            if not space:
                yield " ", at, at + 1
            space = True
            continue
        start, end, cluster, space = at, at + 1, character, False
    if cluster:
        yield unicodedata.normalize("NFC", cluster), start, end


def joins(character: str) -> bool:
    """Tell whether a character may become one with the letter before it: a mark, or the rest of a Hangul syllable."""
    return unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"
