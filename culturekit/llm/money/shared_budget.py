"""One budget for several stages: what the others have spent is no longer there for this one."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from culturekit.errors import UsageError
from culturekit.llm.journal.journal_file import FILE, PAID, SOUND, errors_explained, open_for_reading, paid
from culturekit.llm.money.budget import dollars
from culturekit.storage.manifest import JOURNAL

__all__ = [
    "count_unsound",
    "journal_for",
    "left_for",
    "note_on_others",
    "paid_in_journal",
    "spent_elsewhere",
    "spent_in_run",
]

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


LAST_RUN = "SELECT tag FROM runs ORDER BY number DESC LIMIT 1"
PROMISED = "SELECT value FROM facts WHERE name = ?"


def journal_for(final: Path) -> Path | None:
    """Find the journal that the next run of a stage folder would go on with; None where nothing was bought yet."""
    partial = final.with_name(f".{final.name}.partial")
    places = (partial / "out" / JOURNAL, partial / JOURNAL, final / JOURNAL)
    return next((place / FILE for place in places if (place / FILE).is_file()), None)


def spent_elsewhere(stages: Iterable[Path]) -> float:
    """Add up what the last run of each stage has spent, or may have spent, in US dollars."""
    check_folders(stages)
    journals = [journal for stage in stages if (journal := journal_for(stage)) is not None]
    return sum(spent_in_last_run(journal) for journal in journals)


def check_folders(stages: Iterable[Path]) -> None:
    """Refuse a file where the folder of a paid stage is expected."""
    if files := [stage for stage in stages if stage.is_file()]:
        raise UsageError("a paid stage is a folder", where=str(files[0]), expected="its --out", found="a file")


def spent_in_last_run(journal: Path) -> float:
    """Give what the last run in a journal paid; replies that never came count as its budget counted them."""
    with errors_explained(journal), closing(open_for_reading(journal)) as connection:
        last = connection.execute(LAST_RUN).fetchone()
        if last is None:
            return 0.0
        promised = connection.execute(PROMISED, (f"promised:{last[0]}",)).fetchone()
    if count_unsound(journal):
        return spent_in_run(journal, last[0])
    return max(spent_in_run(journal, last[0]), dollars(int(promised[0])) if promised else 0.0)


def left_for(budget: float | None, stages: Iterable[Path]) -> float | None:
    """Give what a budget leaves after what other stages have spent."""
    check_folders(stages)
    return None if budget is None else max(0.0, budget - spent_elsewhere(stages))


def note_on_others(budget: float | None, stages: Iterable[Path]) -> str:
    """Say what of a budget others have spent; empty where they have spent nothing."""
    spent = 0.0 if budget is None else spent_elsewhere(stages)
    if not spent:
        return ""
    names = " and ".join(stage.name for stage in stages)
    return f"${spent:.6f} of ${budget:g} spent by {names}, which comes on top of all sums here"
