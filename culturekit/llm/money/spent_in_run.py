"""What one run of a stage has paid, or all of them, as its journal knows."""

from contextlib import closing
from pathlib import Path

from culturekit.llm.journal.journal_file import PAID, SOUND, errors_explained, open_for_reading, paid
from culturekit.llm.money.money import dollars

__all__ = ["count_unsound", "paid_in_journal", "spent_in_run"]

OF_RUN = f"""
SELECT {PAID}
FROM readings JOIN replies ON replies.number = readings.number JOIN runs ON runs.number = replies.run
WHERE tag = ? AND {SOUND}
"""
OF_ALL = f"SELECT {PAID} FROM readings WHERE {SOUND}"
UNSOUND = f"SELECT count(*) FROM readings WHERE NOT {SOUND}"


def spent_in_run(path: Path, run: str) -> float:
    """Add up what the replies of a run cost, in US dollars."""
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        return dollars(paid(*connection.execute(OF_RUN, (run,)).fetchone()))


def paid_in_journal(path: Path) -> int:
    """Add up what all replies cost, in picodollars."""
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        return paid(*connection.execute(OF_ALL).fetchone())


def count_unsound(path: Path) -> int:
    """Count the readings that cannot be true: what an earlier version took from a server as it came."""
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        return int(connection.execute(UNSOUND).fetchone()[0])
