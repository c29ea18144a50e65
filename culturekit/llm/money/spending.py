"""What the requests in a journal took, by key and by what they asked: what a plan learns from earlier replies."""

from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from culturekit.llm.journal.journal_file import SOUND, errors_explained, open_for_reading
from culturekit.records.choices import ANSWERED

__all__ = ["Spent", "read_spending"]

LOOKED_INTO = 2_000
"""Of so many requests, the last ones, the text is read: enough for an estimate, and little beside a large journal."""

SPENT = f"""
SELECT key, tag, sum(input_tokens), sum(output_tokens), max(outcome IN ({", ".join(repr(name) for name in ANSWERED)}))
FROM readings
JOIN replies ON replies.number = readings.number AND {SOUND}
JOIN requests ON requests.number = replies.request
JOIN runs ON runs.number = replies.run
WHERE kind = 'reply'
GROUP BY key, tag
ORDER BY min(replies.number)
"""

TEXTS = """
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
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        bodies: dict[bytes, bytes] = dict(connection.execute(TEXTS, (LOOKED_INTO,)).fetchall())
        return [
            Spent(key, run, sent, came, bool(answered), bodies.get(key, b""))
            for key, run, sent, came, answered in connection.execute(SPENT)
        ]
