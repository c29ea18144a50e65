"""What may not be published, wherever it stands: counts of search results, prose of sources, keys."""

import hashlib
import html
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson
import polars as pl

from culturekit.core.errors import UsageError
from culturekit.core.literal_keys import is_key_name, key_problem
from culturekit.core.spreadsheet_cells import exported
from culturekit.release.card_facts import DATA, FILES, SPLITS, CardTable, scan, scan_texts

# What a check of a card can find: a code, the place, what was expected, what was found, and what to do.

PLAIN_PATH = "a plain relative path within the folder"

_ODD = re.compile(r"[\\\0\r\n\ud800-\udfff]|://|^[A-Za-z]:|^~|%2e|%2f|%5c", re.IGNORECASE)
"""Half a character (a lone surrogate) stands in no UTF-8 text, and no file is named by it."""


def is_plain(text: object) -> bool:
    """Tell whether a text can only mean something below the folder: no `..`, no root, no address, no drive."""
    if not isinstance(text, str) or not text or _ODD.search(text):
        return False
    return not text.startswith("/") and not {"", ".", ".."} & set(text.split("/"))


_LONGEST = 120


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[tuple[str, str, str]]:  # noqa: ANN401 - JSON
    """Give path, wanted and found for every place where two values differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted({*wanted, *found}):
            inner = f"{path}.{key}" if path else key
            if key in found and key in wanted:
                yield from differences(wanted[key], found[key], inner)
            else:
                one, other = (shown(there[key]) if key in there else "nothing" for there in (wanted, found))
                yield inner, one, other
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
    return 4 if any(CODES[finding.code].damage for finding in findings) else int(bool(findings))


_TEXT_SUFFIXES = {".txt", ".md", ".yaml"}


@dataclass(frozen=True, slots=True)
class Cells:
    """The values of one column of one file; `texts` where they are texts, `numbers` where they are numbers."""

    file: str
    column: str
    texts: pl.Series | None = None
    numbers: pl.Series | None = None


def _file_cells(name: str, path: Path) -> Iterator[Cells]:
    """Give the columns of a file that is none of the split tables; one that is broken is looked through as text."""
    between = ""
    try:
        if path.suffix == ".parquet":
            yield from _frame_cells(name, pl.scan_parquet(path, glob=False))
        elif path.suffix in {".csv", ".tsv"}:
            yield from _frame_cells(name, scan_texts(path))
        elif path.suffix in {".json", ".jsonl"}:
            yield from _json_cells(name, path)
        elif path.suffix in _TEXT_SUFFIXES:
            between = "\n\n"
    except (pl.exceptions.PolarsError, orjson.JSONDecodeError):
        between = "\n"
    if between:
        pieces = path.read_bytes().decode("utf-8", "replace").split(between)
        yield Cells(name, "", pl.Series(pieces, dtype=pl.String()))


def _frame_cells(name: str, lazy: pl.LazyFrame) -> Iterator[Cells]:
    """Give the columns of a table, which is read once: each text of a column, and the numbers of popularity."""
    schema = lazy.collect_schema()
    inner = {
        column: pl.col(column) if kind == pl.String() else pl.col(column).explode(empty_as_null=False)
        for column, kind in schema.items()
        if kind in (pl.String(), pl.List(pl.String()))
    }
    texts = lazy.select(each.unique(maintain_order=True).drop_nulls().implode() for each in inner.values()).collect()
    for column, kind in schema.items():
        if column in inner:
            yield Cells(name, column, texts[column].explode(empty_as_null=False))
        elif kind.is_numeric():
            ranks = lazy.select(column).collect()[column].drop_nulls() if column == _POPULARITY else None
            yield Cells(name, column, numbers=ranks)
        elif kind in (pl.Boolean(), pl.Null(), pl.List(pl.Null())) or kind.is_temporal():
            yield Cells(name, column)
        else:
            yield from _gathered(name, ({column: value} for value in lazy.select(column).collect()[column]))


def _json_cells(name: str, path: Path) -> Iterator[Cells]:
    """Give the texts and numbers of a JSON file, or of one with JSON in each line, by the key that they stand under.

    Rows of plain values are read as tables, thirty times faster, one piece after the other.
    """
    found: dict[str, list[Cells]] = {}
    for piece in _blocks_of(path):
        frame = _flat_frame(piece, path.suffix)
        if frame is None:
            yield from _gathered(name, _json_values(path))
            return
        for cells in _frame_cells(name, frame.lazy()):
            found.setdefault(cells.column, []).append(cells)
    for column, parts in found.items():
        texts = [part.texts for part in parts if part.texts is not None]
        numbers = [part.numbers.cast(pl.Float64()) for part in parts if part.numbers is not None]
        unique = pl.concat(texts).unique(maintain_order=True) if texts else None
        yield Cells(name, column, unique, pl.concat(numbers) if numbers else None)


_PIECE_BYTES = 8_000_000
_BEGIN, _BETWEEN = b"[\n {\n", b"\n },\n {\n"  # of rows as `cube.json` has them


def _blocks_of(path: Path) -> Iterator[bytes]:
    """Cut lines of JSON, or an array as `cube.json` has it, into pieces that can be read; any other file is one."""
    between = b"\n"
    with path.open("rb") as file:
        if path.suffix == ".json":
            between = _BETWEEN
            begin = file.read(len(_BEGIN))
            file.seek(0)
            if begin != _BEGIN:
                yield file.read()
                return
        rest, opened = b"", b""
        while block := file.read(_PIECE_BYTES):
            *_, last = whole = (rest + block).rpartition(between)
            if whole[0]:
                yield opened + whole[0] + (b"\n }]" if path.suffix == ".json" else b"")
                opened = b"[ {\n" if path.suffix == ".json" else b""
            rest = last
        if rest:
            yield opened + rest


def _flat_frame(piece: bytes, suffix: str) -> pl.DataFrame | None:
    """Read rows of plain values as a table; None where there is anything else."""
    try:
        frame = (pl.read_json if suffix == ".json" else pl.read_ndjson)(piece, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError):
        return None
    plain = (pl.String(), pl.Boolean(), pl.Null(), pl.List(pl.String()), pl.List(pl.Null()))
    return frame if all(kind in plain or kind.is_numeric() for kind in frame.schema.values()) else None


def _json_values(path: Path) -> Iterator[Any]:
    """Read the values of a JSON file, line by line where each line is one."""
    if path.suffix == ".json":
        yield orjson.loads(path.read_bytes())
        return
    with path.open("rb") as file:
        yield from (orjson.loads(line) for line in file if line.strip())


def _gathered(name: str, values: Iterable[Any]) -> Iterator[Cells]:
    """Gather everything in nested values by the key that it stands under; a key without texts is noted too."""
    texts: dict[str, set[str]] = {}
    numbers: dict[str, set[float]] = {}
    for value in values:
        waiting: list[tuple[str, Any]] = [("", value)]
        while waiting:
            key, inner = waiting.pop()
            if isinstance(inner, Mapping):
                texts |= {str(below): set() for below in inner if str(below) not in texts}
                waiting += [(str(below), each) for below, each in inner.items()]
            elif isinstance(inner, list):
                waiting += [(key, below) for below in inner]
            elif isinstance(inner, str):
                texts.setdefault(key, set()).add(inner)
            elif isinstance(inner, int | float) and not isinstance(inner, bool):
                numbers.setdefault(key, set()).add(float(inner))
    for key, found in sorted(texts.items()):
        yield Cells(name, key, pl.Series(sorted(found), dtype=pl.String()))
    for key, listed in sorted(numbers.items()):
        yield Cells(name, key, numbers=pl.Series(sorted(listed), dtype=pl.Float64()))


_COUNT_NAMES = {
    "totalresults", "estimatedtotalresults", "formattedtotalresults", "totalestimatedmatches", "resultcount",
    "numresults", "numberofresults", "searchresults", "resultstats", "hitcount", "googlecount", "csecount",
}  # fmt: skip
_COUNT_WORDS = re.compile(r"total_?(estimated_?)?(results|matches)", re.IGNORECASE)
_POPULARITY = "popularity"
_NAMES = {"name", "label", "aliases", "title", "country_name"}
_MAYBE_KEY = (
    r"(?i)\b(sk|pk|rk|gsk|hf|xai|nvapi|pplx|csk|tgp|fw|r8|gh[opusr]|github_pat|glpat|xox[abpr])[-_]|AIza|ya29\.|AKIA|ASIA"
    r"|eyJ|PRIVATE KEY|://[^/@\s]+@|bearer|basic|api[_-]?key|access[_-]?token|client[_-]?secret|passw|authorization"
    r"|[?&](key|token|access_token|sig|signature)="
)
"""A sieve without look-around, for millions of cells; what it lets through is looked at properly."""

_SHORTEST_KEY = 12
_MOST_PER_COLUMN = 3
_QUOTED = 100

_WORDS = 25
_UNSPACED = 60
_WITHOUT_END = 60
_UNSPACED_WITHOUT_END = 120
_PIECE = 4.0
_SMALL = 0.5
_SHORTEST = 60  # characters; no cell below can be a passage

_LONGEST_NAME = 20

_UNSPACED_LETTER = re.compile("[぀-ヿ㐀-䶿一-鿿豈-﫿฀-๿຀-໿က-႟ក-៿]")
_ENDS = re.compile(r"[.!?…؟۔।॥።](?=[\s\"'”’»)\]]|$)|[。！？]")
_PIECES = re.compile(r"[,;|、،，\n\t]+")

_RUN = 12
_UNSPACED_RUN = 24
_SHORTEST_RUN = 24
_MOST_BYTES = 100_000_000

_HIDDEN = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>|\[\[(?:[^\]|]*\|)?|\]\]|'{2,}")
_TOKEN = re.compile("[぀-ヿ㐀-䶿一-鿿豈-﫿฀-๿຀-໿က-႟ក-៿]|[^\\W_]+")


class SourceTexts:
    """The runs of words of sources that must not be released: twelve words in a row, case and punctuation aside.

    In a script without spaces twenty-four letters in a row count.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """Remember every run of every text."""
        self.words: set[int] = set()
        self.letters: set[int] = set()
        for text in texts:
            plain = html.unescape(_TAG.sub(" ", _HIDDEN.sub(" ", text)))
            tokens = _tokens_of(plain)
            self.words.update(hash(run) for run in _runs(tokens, _RUN))
            self.letters.update(hash(run) for run in _runs(tokens, _UNSPACED_RUN))

    def found_in(self, text: str, *, least: int = 0) -> str | None:
        """Give the first run of a text, of at least so many words, that stands in a source."""
        tokens = _tokens_of(text)
        if len(tokens) < max(_RUN, least):
            return None
        unspaced = sum(1 for token in tokens if len(token) == 1 and not token.isascii())
        long, known = (_UNSPACED_RUN, self.letters) if unspaced > len(tokens) / 2 else (_RUN, self.words)
        return next((" ".join(run) for run in _runs(tokens, long) if hash(run) in known), None)

    def cells_found(self, texts: pl.Series, *, least: int = 0) -> Iterator[str]:
        """Give the runs of some cells that stand in a source."""
        for text in texts.filter(texts.str.len_chars() >= _SHORTEST_RUN).to_list():
            found = self.found_in(text, least=least)
            if found is not None:
                yield found


def check_content(
    folder: Path, hashes: Mapping[str, str], *, sources: Sequence[Path], tables: Sequence[CardTable]
) -> Iterator[CardFinding]:
    """Look through all data, and through every other text file of the card."""
    known = SourceTexts([text for path in sources for text in _texts_at(path)]) if sources else None
    keys = sorted({v for name, v in os.environ.items() if is_key_name(name) and len(v) >= _SHORTEST_KEY})
    same: set[str] = set()
    for table in tables:
        found: list[CardFinding] = []
        for file in table.files:
            for cells in _frame_cells(file.path, pl.scan_parquet(folder / file.path, glob=False)):
                found += _check_cells(cells, known, keys)
        yield from found
        same |= set() if found else set(_copies_of(folder, table, hashes))
    for name in sorted(hashes):
        if name.startswith(f"{FILES}/") and name not in same:
            for cells in _file_cells(name, folder / name):
                yield from _check_cells(cells, known, keys)
    for name in hashes:
        if not name.startswith((f"{DATA}/", f"{FILES}/")):
            yield from _check_text(name, (folder / name).read_bytes().decode("utf-8", "replace"), known, keys)


def _copies_of(folder: Path, table: CardTable, hashes: Mapping[str, str]) -> Iterator[str]:
    """Find the files that are a table, or a split of it, in another form, byte for byte."""
    frames = {f"{FILES}/{SPLITS}/{file.split}": pl.scan_parquet(folder / file.path, glob=False) for file in table.files}
    for stem, lazy in {**frames, f"{FILES}/{table.name}": scan(folder, table.name)}.items():
        for suffix in (".jsonl", ".csv"):
            if (name := f"{stem}{suffix}") in hashes:
                sha256 = hashlib.sha256()
                for piece in exported(lazy.collect(), suffix):
                    sha256.update(piece)
                if sha256.hexdigest() == hashes[name]:
                    yield name


def _check_cells(cells: Cells, known: SourceTexts | None, keys: Sequence[str]) -> Iterator[CardFinding]:
    """Look through one column."""
    where = f"column {cells.column}" if cells.column else "text"
    if re.sub(r"[^a-z]", "", cells.column.lower()) in _COUNT_NAMES:
        yield CardFinding(cells.file, "raw-count", "no column of counts", cells.column)
    if cells.column == _POPULARITY:
        yield from _check_popularity(cells)
    if cells.texts is None:
        return
    counted = cells.texts.filter(cells.texts.str.contains(f"(?i){_COUNT_WORDS.pattern}"))
    for text in counted.head(_MOST_PER_COLUMN).to_list():
        yield CardFinding(cells.file, "raw-count", f"no counts of search results in {where}", _quoted(text))
    for text in long_passages(cells.texts)[:_MOST_PER_COLUMN]:
        yield CardFinding(cells.file, "long-prose", f"names, prompts and ids in {where}", _quoted(text))
    if known is not None:
        least = _LONGEST_NAME if cells.column in _NAMES else 0
        for run in list(known.cells_found(cells.texts, least=least))[:_MOST_PER_COLUMN]:
            yield CardFinding(cells.file, "source-prose", f"no words of a source in {where}", _quoted(run))
    for text in cells.texts.filter(cells.texts.str.contains(_MAYBE_KEY)).to_list():
        problem = key_problem(text)
        if problem is not None:
            yield CardFinding(cells.file, "secret", f"no key in {where}", problem)
    for key in keys:
        if cells.texts.str.contains(key, literal=True).any():
            yield CardFinding(cells.file, "secret", f"no key in {where}", "a key of this machine's environment")


def _check_popularity(cells: Cells) -> Iterator[CardFinding]:
    """Find popularity that is no rank in (0, 1]."""
    values = cells.numbers
    if values is None and cells.texts is not None:
        values = cells.texts.cast(pl.Float64(), strict=False).drop_nulls()
    if values is not None and len(values) and not values.is_between(0, 1).all():
        wrong = values.filter(~values.is_between(0, 1))
        yield CardFinding(cells.file, "raw-count", "ranks between 0 and 1 in popularity", f"{wrong[0]:g}")


def _check_text(name: str, text: str, known: SourceTexts | None, keys: Sequence[str]) -> Iterator[CardFinding]:
    """Look through a page, a manifest or a hand-written file."""
    for number, line in enumerate(text.splitlines(), start=1):
        problem = key_problem(line)
        if problem is not None:
            yield CardFinding(name, "secret", f"no key in line {number}", problem)
    if any(key in text for key in keys):
        yield CardFinding(name, "secret", "no key", "a key of this machine's environment")
    run = None if known is None else known.found_in(text)
    if run is not None:
        yield CardFinding(name, "source-prose", "words of our own", _quoted(run))
    with suppress(orjson.JSONDecodeError):  # which is said elsewhere
        for cells in _gathered(name, [orjson.loads(text)]) if name.endswith(".json") else ():
            if re.sub(r"[^a-z]", "", cells.column.lower()) in _COUNT_NAMES:
                yield CardFinding(name, "raw-count", "no counts of search results", cells.column)


def _quoted(text: str) -> str:
    """Quote a text, or the beginning of it."""
    return repr(text) if len(text) <= _QUOTED else f"{text[:_QUOTED]!r}… ({len(text):,} characters)"


def long_passages(texts: pl.Series) -> list[str]:
    """Find the long passages of running text among cells."""
    long = texts.filter(texts.str.len_chars() >= _SHORTEST)
    maybe = long.filter((long.str.count_matches(r"\s+") >= _WORDS - 1) | long.str.contains(_UNSPACED_LETTER.pattern))
    return [text for text in maybe.to_list() if is_passage(text)]


def is_passage(text: str) -> bool:
    """Tell whether a cell is a long passage of running text.

    It has 25 words or more, or 60 letters of a script that writes no spaces; a sentence ends in it, or it has 60 words
    (120 such letters); its pieces between commas have 4 words or more on average, which lists of terms do not; half of
    its words or more begin with a small letter, where the script has any, which names do not.

    The rule does not ask for a language. It lets through names of any length in capitals, prompts of the known
    templates, negative prompts, lists of aliases, and paths of ids.
    """
    ended = _ENDS.search(text) is not None
    unspaced = len(_UNSPACED_LETTER.findall(text))
    if unspaced >= (_UNSPACED if ended else _UNSPACED_WITHOUT_END):
        return unspaced / _pieces_of(text) >= 2 * _PIECE
    words = [letters for word in text.split() if (letters := "".join(filter(str.isalpha, word)))]
    if len(words) < (_WORDS if ended else _WITHOUT_END) or len(words) / _pieces_of(text) < _PIECE:
        return False
    cased = [word for word in words if word[0].lower() != word[0].upper()]
    small = sum(1 for word in cased if word[0].islower())
    return len(cased) < len(words) / 2 or small >= _SMALL * len(cased)


def _pieces_of(text: str) -> int:
    """Count the pieces between commas and the like."""
    return sum(1 for piece in _PIECES.split(text) if piece.strip()) or 1


def _tokens_of(text: str) -> list[str]:
    """Cut a text into folded words, and into letters where a script has no spaces."""
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def _runs(tokens: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    """Give every run of tokens."""
    for start in range(len(tokens) - length + 1):
        yield tuple(tokens[start : start + length])


def _texts_at(path: Path) -> Iterator[str]:
    """Read a file, or every file below a folder."""
    if not path.exists():
        raise UsageError("there is no such source", where=str(path), expected="a text file, or a folder of them")
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for file in files:
        if file.stat().st_size > _MOST_BYTES:
            raise UsageError("too large for a source", where=str(file), expected=f"at most {_MOST_BYTES:,} bytes")
        yield file.read_bytes().decode("utf-8", "replace")
