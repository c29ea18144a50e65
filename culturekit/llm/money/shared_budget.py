"""One budget for several stages: what the others have spent is no longer there for this one."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from culturekit.errors import UsageError
from culturekit.llm.journal.journal_file import FILE, PAID, SOUND, errors_explained, open_for_reading, paid
from culturekit.llm.money.budget import dollars
from culturekit.storage.manifest import JOURNAL

__all__ = [
    "PROMISED",
    "UNDER_WAY",
    "UNSURE",
    "Unsure",
    "count_unsound",
    "journal_for",
    "left_for",
    "note_on_others",
    "paid_in_journal",
    "spent_elsewhere",
    "spent_in_run",
    "unsure_of",
    "unsure_runs",
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
    return dollars(picodollars_in_run(path, run))


def picodollars_in_run(path: Path, run: str) -> int:
    """Add up what the replies of a run cost, in picodollars."""
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        return paid(*connection.execute(OF_RUN, (run,)).fetchone())


def paid_in_journal(path: Path) -> int:
    """Add up what all replies cost, in picodollars."""
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        return paid(*connection.execute(OF_ALL).fetchone())


def count_unsound(path: Path) -> int:
    """Count the readings that cannot be true: what an earlier version took from a server as it came."""
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        return int(connection.execute(UNSOUND).fetchone()[0])


UNDER_WAY = "under-way:"
"""Facts of requests that have left, by run and number: the most each can cost. What came of it takes it away."""

UNSURE = "unsure:"
"""The fact of a run that says how many requests died with its processes, and what it may owe beyond its replies."""

PROMISED = "promised:"
"""What versions before this wrote down in their place: the most that a run might have spent in all."""

FACTS = "SELECT name, value FROM facts WHERE name >= ? AND name < ? || char(1114111)"
FACT = "SELECT value FROM facts WHERE name = ?"


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
    """Add up what a run may owe beyond what its replies cost."""
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        under_way = connection.execute(FACTS, (f"{UNDER_WAY}{run}:",) * 2).fetchall()
        settled = connection.execute(FACT, (UNSURE + run,)).fetchone()
        promised = connection.execute(FACT, (PROMISED + run,)).fetchone()
    requests, picodollars = map(int, settled[0].split()) if settled else (0, 0)
    if promised and not count_unsound(path):
        picodollars += max(int(promised[0]) - picodollars_in_run(path, run), 0)
    return Unsure(
        requests + len(under_way),
        picodollars + sum(int(value) for _, value in under_way),
        (*(name for name, _ in under_way), *([PROMISED + run] if promised else [])),
    )


def unsure_runs(path: Path) -> list[Unsure]:
    """Say of each run of a journal what it may owe."""
    with errors_explained(path), closing(open_for_reading(path)) as connection:
        left = {name.rpartition(":")[0] for name, _ in connection.execute(FACTS, (UNDER_WAY,) * 2)}
        others = {name for kind in (UNSURE, PROMISED) for name, _ in connection.execute(FACTS, (kind, kind))}
    return [unsure_of(path, run) for run in sorted({name.partition(":")[2] for name in left | others})]


LAST_RUN = "SELECT tag FROM runs ORDER BY number DESC LIMIT 1"


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
    return 0.0 if last is None else spent_in_run(journal, last[0]) + dollars(unsure_of(journal, last[0]).picodollars)


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
