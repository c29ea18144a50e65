"""What a journal holds, exchange by exchange, for people: read only, also while a run is writing."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from culturekit.llm.client import Usage
from culturekit.llm.journal_file import SOUND, errors_explained, open_for_reading
from culturekit.llm.money import dollars

__all__ = ["UNREAD", "Exchange", "latest_exchanges"]

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
WHERE ? IN ('', ended)
ORDER BY replies.number DESC LIMIT ?
"""


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


def latest_exchanges(path: Path, *, outcome: str = "", limit: int) -> Iterator[Exchange]:
    """Give the last exchanges of a journal with an outcome, or with any, in the order in which they came."""
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        rows = connection.execute(LATEST, (outcome, limit)).fetchall()
    for row in reversed(rows):
        number, key, tag, model, attempt, at, mode, status, ended, raw, *request = row[:13]
        *counted, picodollars = row[13:]
        usage = None if counted[0] is None else Usage(*counted)
        usd = None if picodollars is None else dollars(picodollars)
        body = b"".join(request)
        yield Exchange(number, key.hex(), tag, model, attempt, at, mode, status, ended, raw, body, usage, usd)
