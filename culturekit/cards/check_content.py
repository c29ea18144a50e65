"""What may not be published, wherever it stands: counts of search results, prose of sources, keys."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import orjson
import polars as pl

from culturekit.cards.card_cells import Cells, card_cells
from culturekit.cards.card_tables import FILES, CardTable
from culturekit.cards.findings import CardFinding
from culturekit.cards.prose import LONGEST_NAME, long_passages
from culturekit.cards.source_texts import SourceTexts, read_sources
from culturekit.cards.splits import DATA
from culturekit.records.literal_keys import is_key_name, key_problem

__all__ = ["check_content"]

COUNT_NAMES = {
    "totalresults", "estimatedtotalresults", "formattedtotalresults", "totalestimatedmatches", "resultcount",
    "numresults", "numberofresults", "searchresults", "resultstats", "hitcount", "googlecount", "csecount",
}  # fmt: skip
COUNT_WORDS = re.compile(r"total_?(estimated_?)?(results|matches)", re.IGNORECASE)
POPULARITY = "popularity"
NAMES = {"name", "label", "aliases", "title", "country_name"}
MAYBE_KEY = (
    r"(?i)\b(sk|pk|rk|gsk|hf|xai|nvapi|pplx|csk|tgp|fw|r8|gh[opusr]|github_pat|glpat|xox[abpr])[-_]|AIza|ya29\.|AKIA|ASIA"
    r"|eyJ|PRIVATE KEY|://[^/@\s]+@|bearer|basic|api[_-]?key|access[_-]?token|client[_-]?secret|passw|authorization"
    r"|[?&](key|token|access_token|sig|signature)="
)
"""A sieve without look-around, for millions of cells; what it lets through is looked at properly."""

SHORTEST_KEY = 12
MOST_PER_COLUMN = 3
QUOTED = 100


def check_content(
    folder: Path, hashes: Mapping[str, str], *, sources: Sequence[Path], tables: Sequence[CardTable]
) -> Iterator[CardFinding]:
    """Look through all data, and through every other text file of the card."""
    known = read_sources(sources)
    keys = keys_of_environment()
    for cells in card_cells(folder, tables):
        yield from check_cells(cells, known, keys)
    for name in hashes:
        if not name.startswith((f"{DATA}/", f"{FILES}/")):
            yield from check_text(name, (folder / name).read_bytes().decode("utf-8", "replace"), known, keys)


def check_cells(cells: Cells, known: SourceTexts | None, keys: Sequence[str]) -> Iterator[CardFinding]:
    """Look through one column."""
    where = f"column {cells.column}" if cells.column else "text"
    if re.sub(r"[^a-z]", "", cells.column.lower()) in COUNT_NAMES:
        yield CardFinding(cells.file, "raw-count", "no column of counts", cells.column)
    if cells.column == POPULARITY:
        yield from check_popularity(cells)
    if cells.texts is None:
        return
    counted = cells.texts.filter(cells.texts.str.contains(f"(?i){COUNT_WORDS.pattern}"))
    for text in counted.head(MOST_PER_COLUMN).to_list():
        yield CardFinding(cells.file, "raw-count", f"no counts of search results in {where}", quoted(text))
    for text in long_passages(cells.texts)[:MOST_PER_COLUMN]:
        yield CardFinding(cells.file, "long-prose", f"names, prompts and ids in {where}", quoted(text))
    if known is not None:
        least = LONGEST_NAME if cells.column in NAMES else 0
        for run in list(known.cells_found(cells.texts, least=least))[:MOST_PER_COLUMN]:
            yield CardFinding(cells.file, "source-prose", f"no words of a source in {where}", quoted(run))
    for text in cells.texts.filter(cells.texts.str.contains(MAYBE_KEY)).to_list():
        problem = key_problem(text)
        if problem is not None:
            yield CardFinding(cells.file, "secret", f"no key in {where}", problem)
    for key in keys:
        if cells.texts.str.contains(key, literal=True).any():
            yield CardFinding(cells.file, "secret", f"no key in {where}", "a key of this machine's environment")


def check_popularity(cells: Cells) -> Iterator[CardFinding]:
    """Find popularity that is no rank in (0, 1]."""
    values = cells.numbers
    if values is None and cells.texts is not None:
        values = cells.texts.cast(pl.Float64(), strict=False).drop_nulls()
    if values is not None and len(values) and not values.is_between(0, 1).all():
        wrong = values.filter(~values.is_between(0, 1))
        yield CardFinding(cells.file, "raw-count", "ranks between 0 and 1 in popularity", f"{wrong[0]:g}")


def check_text(name: str, text: str, known: SourceTexts | None, keys: Sequence[str]) -> Iterator[CardFinding]:
    """Look through a page, a manifest or a hand-written file."""
    for number, line in enumerate(text.splitlines(), start=1):
        problem = key_problem(line)
        if problem is not None:
            yield CardFinding(name, "secret", f"no key in line {number}", problem)
    if any(key in text for key in keys):
        yield CardFinding(name, "secret", "no key", "a key of this machine's environment")
    run = None if known is None else known.found_in(text)
    if run is not None:
        yield CardFinding(name, "source-prose", "words of our own", quoted(run))
    if name.endswith(".json"):
        yield from check_names(name, text)


def check_names(name: str, text: str) -> Iterator[CardFinding]:
    """Find counts of search results among the keys of a JSON file."""
    try:
        waiting = [orjson.loads(text)]
    except orjson.JSONDecodeError:
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for key in value:
                if re.sub(r"[^a-z]", "", key.lower()) in COUNT_NAMES:
                    yield CardFinding(name, "raw-count", "no counts of search results", key)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def keys_of_environment() -> list[str]:
    """List the values of variables that hold keys, by their names."""
    return sorted({v for name, v in os.environ.items() if is_key_name(name) and len(v) >= SHORTEST_KEY})


def quoted(text: str) -> str:
    """Quote a text, or the beginning of it."""
    return repr(text) if len(text) <= QUOTED else f"{text[:QUOTED]!r}… ({len(text):,} characters)"
