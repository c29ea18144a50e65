"""What the requests in a journal took, by key: what a plan learns from a pilot."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from culturekit.llm.journal_entry import ANSWERS
from culturekit.llm.journal_file import SOUND, errors_explained, open_for_reading

__all__ = ["Spent", "read_spending"]

SPENT = f"""
SELECT key, tag, sum(input_tokens), sum(output_tokens), max(outcome IN ({", ".join(repr(name) for name in ANSWERS)}))
FROM readings
JOIN replies ON replies.number = readings.number AND {SOUND}
JOIN requests ON requests.number = replies.request
JOIN runs ON runs.number = replies.run
WHERE kind = 'reply'
GROUP BY key, tag
ORDER BY min(replies.number)
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """What all replies to one request took in one run, and whether an answer is among them."""

    key: bytes
    run: str
    input_tokens: int
    output_tokens: int
    answered: bool


def read_spending(path: Path) -> list[Spent]:
    """Read what was spent, in the order in which it began; empty where there is no journal."""
    if not path.exists():
        return []
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        rows = connection.execute(SPENT)
        return [Spent(key, run, sent, came, bool(answered)) for key, run, sent, came, answered in rows]
