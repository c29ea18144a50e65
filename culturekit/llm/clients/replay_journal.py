"""Replies in the journal of a run, found by the same key under which they were bought; the journal is only read."""

import threading
from pathlib import Path
from zlib import crc32

from culturekit.errors import UsageError
from culturekit.llm.client import Client, Reply, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.journal.journal_entry import ANSWERS
from culturekit.llm.journal.journal_file import FILE, SOUND, check_types, damaged, errors_explained, open_for_reading
from culturekit.llm.journal.keys import key_of
from culturekit.registry import parse_spec

__all__ = ["JournalReplies", "far_client"]

REPLIES = f"""
SELECT raw, checksum, replies.number, coalesce(outcome, '') FROM requests
JOIN replies ON replies.request = requests.number
JOIN runs ON runs.number = replies.run
LEFT JOIN readings ON readings.number = replies.number AND {SOUND}
WHERE key = ? AND kind = 'reply' AND ? IN ('', runs.tag)
ORDER BY replies.number
"""


class JournalReplies:
    """What was bought once, and is read again without being sent for."""

    def __init__(self, folder: Path, spec: str, *, run: str) -> None:
        """Open the journal in a folder, or in the folder `journal` of a stage; `run` takes the replies of one run only.

        Raises:
            UsageError: there is no journal, or the client is none that writes one.
        """
        found = [path for path in (folder / FILE, folder / "journal" / FILE) if path.is_file()]
        if not found:
            raise UsageError("there is no journal of replies in this folder", where=str(folder), expected=FILE)
        self.path = found[0]
        self.client = far_client(spec)
        self.run = run
        self.model = self.client.model
        self.connection = open_for_reading(self.path)
        self.lock = threading.Lock()

    def reply_to(self, request: Request) -> Reply | None:
        """Give the reply to a request: the last answer, or what came last where none was an answer."""
        key = key_of(self.client.identity, self.client.compose(request))
        with self.lock, errors_explained(self.path):
            rows = self.connection.execute(REPLIES, (key, self.run)).fetchall()
        if not rows:
            return None
        raw, checksum, number, _ = max(rows, key=lambda row: (row[3] in ANSWERS, row[2]))
        check_types(self.path, f"reply {number}", (raw, checksum), (bytes, int))
        if crc32(raw) != checksum:
            raise damaged(self.path, f"reply {number} is not what was written")
        return self.client.read(raw)

    def default_for(self, request: Request) -> Reply | None:
        """A journal holds what was asked, and nothing for the rest."""
        return None


def far_client(text: str) -> Client:
    """Make the client whose replies were recorded; it is never asked, so it needs no key."""
    client = CLIENTS.make(text)
    if not isinstance(client, Client):
        raise UsageError("a journal holds the replies of far clients", found=parse_spec(text).name)
    return client
