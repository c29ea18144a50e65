"""What a journal holds, exchange by exchange, for people: read only, also while a run is writing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from culturekit.llm.client import Usage
from culturekit.llm.journal.journal_file import SOUND, check_types, errors_explained, open_for_reading
from culturekit.llm.money.budget import dollars
from culturekit.llm.untrusted.redaction import redact
from culturekit.storage.foreign_text import printable

__all__ = ["UNREAD", "Exchange", "latest_exchanges", "question_of", "shown_text"]

UNREAD = "unread"
"""The outcome of a reply that a kill left on disk before it was read."""

OUTCOME = f"CASE WHEN kind = 'reply' THEN coalesce(outcome, '{UNREAD}') ELSE kind END"

LATEST = f"""
SELECT replies.number, key, tag, model, attempt, at, mode, status, {OUTCOME} AS ended, raw, head, middle, tail,
       input_tokens, output_tokens, thinking_tokens, cached_tokens, counted, picodollars
FROM replies
JOIN requests ON requests.number = replies.request
JOIN templates ON templates.number = requests.template
JOIN runs ON runs.number = replies.run
LEFT JOIN readings ON readings.number = replies.number AND {SOUND}
WHERE ? IN ('', ended) AND {{mentions}}
ORDER BY replies.number DESC LIMIT ?
"""

MENTIONS = "instr(head || middle || tail, ?)"

DATA = re.compile(r"<untrusted-data-([0-9a-f]{16})>\n(.*)\n<untrusted-data-\1>")
"""What was asked about, between its fences; no text from outside can write a fence."""


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
    """Give the last exchanges of a journal with an outcome, or with any, in the order in which they came.

    With `mentions`, only those in whose request one of these texts stands.
    """
    query = LATEST.format(mentions=f"({' OR '.join([MENTIONS] * len(mentions))})" if mentions else "1")
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        rows = connection.execute(query, (outcome, *mentions, limit)).fetchall()
    for row in reversed(rows):
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
    for text in texts_in(body):
        found = DATA.search(text)
        if found is not None:
            data = msgspec.json.decode(found[2])
            return data if isinstance(data, dict) else {}
    return {}


def texts_in(value: object) -> Iterator[str]:
    """Give all texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            yield from texts_in(below)


def shown_text(text: str, *, longest: int, rest: str = "") -> str:
    """Write what came from outside without secrets, and so that it cannot steer a terminal."""
    plain = redact(text)
    more = f" ... {len(plain) - longest:,} more characters{rest}" if len(plain) > longest else ""
    return printable(plain[:longest]) + more
