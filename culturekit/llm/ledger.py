"""What journals hold, summed up and shown: exchanges, tokens, money spent, and money that may have been spent."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import msgspec

from culturekit.core.choices import ANSWERED
from culturekit.core.digests import JOURNAL
from culturekit.core.errors import UsageError, printable
from culturekit.llm.client import Usage
from culturekit.llm.journal import FILE, PAID, SOUND, check_types, errors_explained, open_for_reading, paid
from culturekit.llm.redaction import redact
from culturekit.llm.usage import dollars

_PARTIAL = ".partial"
_PREVIOUS = ".previous"


@dataclass(frozen=True, slots=True)
class JournalPlace:
    """A journal, the stage it belongs to, and whether that stage is finished."""

    stage: str
    path: Path
    finished: bool


def journals_below(folders: Sequence[Path]) -> list[JournalPlace]:
    """Find the journals of runs, of stages, or of folders full of these, in the order of their stages' names.

    The journal of an unfinished stage began as a copy of the finished one's, so only the former is listed.
    """
    found: dict[Path, JournalPlace] = {}
    for folder in folders:
        above = folder.absolute()
        partial = above.with_name(f".{above.name}{_PARTIAL}")
        if not folder.exists() and not partial.exists():
            raise UsageError("there is no such folder", where=str(folder))
        for path in [folder] if folder.name == FILE else [*folder.rglob(FILE), *partial.rglob(FILE)]:
            if path.parent.name != JOURNAL or path.parent.parent.name.endswith(_PREVIOUS):
                continue
            stage = _stage_folder(path)
            if stage not in found or found[stage].finished:
                inside = stage != above and stage.is_relative_to(above)
                name = stage.relative_to(above).as_posix() if inside else stage.name
                found[stage] = JournalPlace(name, path, finished=stage == path.absolute().parent.parent)
    if not found:
        raise UsageError(
            "no journal of replies lies below",
            where=" ".join(str(folder) for folder in folders),
            expected=f"a folder {JOURNAL} with {FILE}, which a stage that asks a paid model writes",
            hint="Name the folder of a run, or the --out of a stage.",
        )
    return sorted(found.values(), key=lambda journal: (journal.stage, journal.path))


def _stage_folder(path: Path) -> Path:
    """Return the folder in which the stage of a journal is, or will be, finished."""
    for parent in path.absolute().parents:
        if parent.name.startswith(".") and parent.name.endswith(_PARTIAL):
            return parent.with_name(parent.name[1 : -len(_PARTIAL)])
    return path.absolute().parent.parent


def _rows(path: Path, query: str, *values: object) -> list[Any]:
    """Read rows of a journal, which a run may be writing to."""
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        return connection.execute(query, values).fetchall()


_UNREAD = "unread"  # the outcome of a reply that a kill left on disk before it was read
_OUTCOME = f"CASE WHEN kind = 'reply' THEN coalesce(outcome, '{_UNREAD}') ELSE kind END"

_LATEST = f"""
SELECT replies.number, key, tag, model, attempt, at, mode, status, {_OUTCOME} AS ended, raw, head, middle, tail,
       input_tokens, output_tokens, thinking_tokens, cached_tokens, counted, picodollars
FROM replies
JOIN requests ON requests.number = replies.request
JOIN templates ON templates.number = requests.template
JOIN runs ON runs.number = replies.run
LEFT JOIN readings ON readings.number = replies.number AND {SOUND}
WHERE ? IN ('', ended) AND {{mentions}}
ORDER BY replies.number DESC LIMIT ?
"""

# What was asked about, between its fences; no text from outside can write a fence.
_DATA = re.compile(r"<untrusted-data-([0-9a-f]{16})>\n(.*)\n<untrusted-data-\1>")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and what came of it; `outcome` is the kind of the failure where no reply came."""

    number: int
    key: str
    run: str
    model: str
    attempt: int
    at: float
    mode: str
    status: int
    outcome: str
    reply: bytes
    request: bytes
    usage: Usage | None
    usd: float | None


def latest_exchanges(path: Path, *, outcome: str = "", limit: int, mentions: Sequence[str] = ()) -> Iterator[Exchange]:
    """Yield the last exchanges of a journal with an outcome, or with any, in the order in which they came.

    With `mentions`, only those in whose request one of these texts stands.
    """
    mentioned = " OR ".join(["instr(head || middle || tail, ?)"] * len(mentions)) or "1"
    query = _LATEST.format(mentions=f"({mentioned})")
    for row in reversed(_rows(path, query, outcome, *mentions, limit)):
        check_types(path, f"exchange {row[0]}", [row[1], *row[9:13]], [bytes] * 5)
        number, key, tag, model, attempt, at, mode, status, ended, raw, *request = row[:13]
        *counted, picodollars = row[13:]
        usage = None if counted[0] is None else Usage(*counted)
        usd = None if picodollars is None else dollars(picodollars)
        body = b"".join(request)
        yield Exchange(number, key.hex(), tag, model, attempt, at, mode, status, ended, raw, body, usage, usd)


def question_of(request: bytes) -> Mapping[str, Any]:
    """Find the data that a request asks about; empty where it has none."""
    try:
        body = msgspec.json.decode(request)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    for text in _texts_in(body):
        found = _DATA.search(text)
        if found is not None:
            data = msgspec.json.decode(found[2])
            return data if isinstance(data, dict) else {}
    return {}


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(below)


def shown_text(text: str, *, longest: int, rest: str = "") -> str:
    """Write what came from outside without secrets, and so that it cannot steer a terminal."""
    plain = redact(text)
    more = f" ... {len(plain) - longest:,} more characters{rest}" if len(plain) > longest else ""
    return printable(plain[:longest]) + more


_OF_RUN = f"""
SELECT {PAID}
FROM readings JOIN replies ON replies.number = readings.number JOIN runs ON runs.number = replies.run
WHERE tag = ? AND {SOUND}
"""


def spent_in_run(path: Path, run: str) -> float:
    """Sum what the replies of a run cost, in US dollars."""
    return dollars(paid(*_rows(path, _OF_RUN, run)[0]))


def paid_in_journal(path: Path) -> int:
    """Sum what all replies cost, in picodollars."""
    return paid(*_rows(path, f"SELECT {PAID} FROM readings WHERE {SOUND}")[0])


def count_unsound(path: Path) -> int:
    """Count the readings that cannot be true: what an earlier version took from a server as it came."""
    return int(_rows(path, f"SELECT count(*) FROM readings WHERE NOT {SOUND}")[0][0])


# Facts of requests that have left, by run and number: the most each can cost. What came of it takes it away.
UNDER_WAY = "under-way:"
# The fact of a run that says how many requests died with its processes, and what it may owe beyond its replies.
UNSURE = "unsure:"
# What versions before this wrote down in their place: the most that a run might have spent in all.
PROMISED = "promised:"
_FACTS = "SELECT name, value FROM facts WHERE name >= ? AND name < ? || char(1114111)"
_FACT = "SELECT value FROM facts WHERE name = ?"


@dataclass(frozen=True, slots=True)
class Unsure:
    """What may have been billed beside the replies in a journal: requests whose end nobody saw, and all their money.

    `requests` counts those that left no exchange, since their process died; `open` are the facts that hold them.
    `picodollars` is the most that they, requests without a reply and replies that nobody counted can have cost.
    """

    requests: int = 0
    picodollars: int = 0
    open: tuple[str, ...] = ()


def unsure_of(path: Path, run: str) -> Unsure:
    """Sum what a run may owe beyond what its replies cost."""
    under_way = _rows(path, _FACTS, *(f"{UNDER_WAY}{run}:",) * 2)
    settled, promised = _rows(path, _FACT, UNSURE + run), _rows(path, _FACT, PROMISED + run)
    requests, picodollars = map(int, settled[0][0].split()) if settled else (0, 0)
    if promised and not count_unsound(path):
        picodollars += max(int(promised[0][0]) - paid(*_rows(path, _OF_RUN, run)[0]), 0)
    return Unsure(
        requests + len(under_way),
        picodollars + sum(int(value) for _, value in under_way),
        (*(name for name, _ in under_way), *([PROMISED + run] if promised else [])),
    )


def journal_for(final: Path) -> Path | None:
    """Find the journal that the next run of a stage folder would go on with; None where nothing was bought yet."""
    partial = final.with_name(f".{final.name}{_PARTIAL}")
    places = (partial / "out" / JOURNAL, partial / JOURNAL, final / JOURNAL)
    return next((folder / FILE for folder in places if (folder / FILE).is_file()), None)


def spent_elsewhere(stages: Iterable[Path]) -> float:
    """Sum what the last run of each stage has spent, or may have spent, in US dollars."""
    _check_folders(stages)
    spent = 0.0
    for journal in filter(None, map(journal_for, stages)):
        for (tag,) in _rows(journal, "SELECT tag FROM runs ORDER BY number DESC LIMIT 1"):
            spent += spent_in_run(journal, tag) + dollars(unsure_of(journal, tag).picodollars)
    return spent


def _check_folders(stages: Iterable[Path]) -> None:
    if files := [stage for stage in stages if stage.is_file()]:
        raise UsageError("a paid stage is a folder", where=str(files[0]), expected="its --out", found="a file")


def left_for(budget: float | None, stages: Iterable[Path]) -> float | None:
    """Return what a budget leaves after what other stages have spent."""
    _check_folders(stages)
    return None if budget is None else max(0.0, budget - spent_elsewhere(stages))


def note_on_others(budget: float | None, stages: Iterable[Path]) -> str:
    """Return what of a budget others have spent; empty where they have spent nothing."""
    spent = 0.0 if budget is None else spent_elsewhere(stages)
    if not spent:
        return ""
    names = " and ".join(stage.name for stage in stages)
    return f"${spent:.6f} of ${budget:g} spent by {names}, which comes on top of all sums here"


# Of so many requests, the last ones, the text is read: enough for an estimate, and little beside a large journal.
_LOOKED_INTO = 2_000
_SPENT = f"""
SELECT key, tag, sum(input_tokens), sum(output_tokens), max(outcome IN ({", ".join(repr(name) for name in ANSWERED)}))
FROM readings
JOIN replies ON replies.number = readings.number AND {SOUND}
JOIN requests ON requests.number = replies.request
JOIN runs ON runs.number = replies.run
WHERE kind = 'reply'
GROUP BY key, tag
ORDER BY min(replies.number)
"""

_TEXTS = """
SELECT key, CAST(head || middle || tail AS BLOB) FROM requests JOIN templates ON templates.number = requests.template
WHERE requests.number > (SELECT max(number) FROM requests) - ?
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """What all replies to one request took in one run, and whether an answer is among them.

    `body` is what was sent, of the last requests of a journal; empty of others.
    """

    key: bytes
    run: str
    input_tokens: int
    output_tokens: int
    answered: bool
    body: bytes = field(default=b"", repr=False)


def read_spending(path: Path | None) -> list[Spent]:
    """Read what was spent, in the order in which it began; empty where there is no journal."""
    if path is None or not path.exists():
        return []
    bodies: dict[bytes, bytes] = dict(_rows(path, _TEXTS, _LOOKED_INTO))
    return [
        Spent(key, run, sent, came, bool(answered), bodies.get(key, b""))
        for key, run, sent, came, answered in _rows(path, _SPENT)
    ]


_SUMS = f"""
SELECT model, mode, {_OUTCOME} AS ended, count(*),
       coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
       coalesce(sum(thinking_tokens), 0), coalesce(sum(cached_tokens), 0), {PAID},
       coalesce(sum(counted = 'here'), 0), sum(counted IS NOT NULL AND picodollars IS NULL),
       sum(kind = 'reply' AND counted IS NULL), sum(kind IN ('timeout', 'connection'))
FROM replies
JOIN runs ON runs.number = replies.run
LEFT JOIN readings ON readings.number = replies.number AND {SOUND}
GROUP BY model, mode, ended
ORDER BY model, mode, ended
"""


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """The sums of all requests of a stage to a model that ended in one way.

    Attributes:
        outcome: The outcome of the replies, `unread` where a kill came before reading, or the kind of the failure.
        requests: All that left, retries and repairs included.
        counted_here: Replies whose usage the server did not tell, or not truly: their tokens were counted here.
        unpriced: Replies of which the tokens are known and the price is not.
        unread: Replies of which neither is known yet; the next run reads them, for nothing.
        perhaps_billed: Requests whose reply never came; the provider may have made one, and billed it. In a total also
            those that were under way when their process died, or are now.
        picodollars_unsure: In a total, the most that may be billed beside `picodollars`, which a budget counts too.
    """

    stage: str
    model: str
    mode: str
    outcome: str
    requests: int
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cached_tokens: int
    picodollars: int
    counted_here: int
    unpriced: int
    unread: int
    perhaps_billed: int
    picodollars_unsure: int = 0

    @property
    def usd(self) -> float:
        """US dollars."""
        return dollars(self.picodollars)

    @property
    def usd_unsure(self) -> float:
        """US dollars that may be billed on top."""
        return dollars(self.picodollars_unsure)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The lines of some journals, and their sum."""

    lines: tuple[LedgerLine, ...]
    total: LedgerLine


def read_ledger(places: Sequence[JournalPlace]) -> Ledger:
    """Sum journals, by stage, model, mode and outcome; a run may be writing to them meanwhile."""
    lines = tuple(
        LedgerLine(journal.stage, *(*row[:8], paid(*row[8:10]), *row[10:]))
        for journal in places
        for row in _rows(journal.path, _SUMS)
    )
    names = [each.name for each in fields(LedgerLine)[4:]]
    total = LedgerLine("total", "", "", "", **{name: sum(getattr(line, name) for line in lines) for name in names})
    unsure = []
    for journal in places:
        left = {name.rpartition(":")[0] for name, _ in _rows(journal.path, _FACTS, UNDER_WAY, UNDER_WAY)}
        others = {name for kind in (UNSURE, PROMISED) for name, _ in _rows(journal.path, _FACTS, kind, kind)}
        runs = sorted({name.partition(":")[2] for name in left | others})
        unsure += [unsure_of(journal.path, run) for run in runs]
    billed = total.perhaps_billed + sum(each.requests for each in unsure)
    picodollars = sum(each.picodollars for each in unsure)
    return Ledger(lines, replace(total, perhaps_billed=billed, picodollars_unsure=picodollars))
