"""The name of one run of a stage, the same after every kill of it."""

import secrets
from contextlib import closing
from pathlib import Path

from culturekit.llm.journal.journal_file import FILE, open_for_reading
from culturekit.records.work import Work
from culturekit.storage.atomic import sync_folder, write_atomically

__all__ = ["go_on_as", "last_run", "run_tag"]

_TAG = "run_tag"
_LAST = "SELECT tag, mode FROM runs JOIN replies ON replies.run = runs.number ORDER BY replies.number DESC LIMIT 1"


def run_tag(work: Work) -> str:
    """Give the tag of this run: a random one that lies in its scratch folder, and so lives as long as the run does."""
    try:
        return (work.scratch / _TAG).read_text(encoding="ascii")
    except FileNotFoundError:
        tag = secrets.token_hex(8)
        go_on_as(tag, work.scratch)
        return tag


def last_run(journal: Path) -> tuple[str, str]:
    """Give the tag and the mode of the run that a journal heard last; empty where it heard none."""
    if not (journal / FILE).is_file():
        return "", ""
    with closing(open_for_reading(journal / FILE)) as connection:
        row = connection.execute(_LAST).fetchone()
    return ("", "") if row is None else (str(row[0]), str(row[1]))


def go_on_as(tag: str, scratch: Path) -> None:
    """Give a run the tag of another, whose failures then count as its own: nothing that failed is asked again."""
    if tag:
        write_atomically(scratch / _TAG, tag.encode("ascii"))
        sync_folder(scratch)
