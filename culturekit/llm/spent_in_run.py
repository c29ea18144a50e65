"""What one run of a stage has paid, as its journal knows."""

from contextlib import closing
from pathlib import Path

from culturekit.llm.journal_file import errors_explained, open_for_reading
from culturekit.llm.money import dollars

__all__ = ["spent_in_run"]

PAID = """
SELECT coalesce(sum(picodollars), 0)
FROM readings JOIN replies ON replies.number = readings.number JOIN runs ON runs.number = replies.run
WHERE tag = ?
"""


def spent_in_run(path: Path, run: str) -> float:
    """Add up what the replies of a run cost, in US dollars."""
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        (paid,) = connection.execute(PAID, (run,)).fetchone()
    return dollars(paid)
