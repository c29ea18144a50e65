"""Replies that were given before, or written by hand: for tests, for audits, for running somebody's release again."""

import threading
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from culturekit.core.choices import ANSWERED
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.registry import Spec, parse_spec
from culturekit.llm.client import Client, Reply, Request, Stop
from culturekit.llm.clients.client_options import ReplayOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.journal_file import FILE, SOUND, check_types, damaged, errors_explained, key_of, open_for_reading

_REPLIES = f"""
SELECT raw, checksum, replies.number, coalesce(outcome, '') FROM requests
JOIN replies ON replies.request = requests.number
JOIN runs ON runs.number = replies.run
LEFT JOIN readings ON readings.number = replies.number AND {SOUND}
WHERE key = ? AND kind = 'reply' AND ? IN ('', runs.tag)
ORDER BY replies.number
"""

_OWN_ID = "${id}"


class _ReplayClient:
    """Gives replies again, and nothing of its own."""

    def __init__(self, replies: "_JournalReplies | _ScriptedReplies", path: Path, *, miss_is_error: bool) -> None:
        self.replies = replies
        self.path = path
        self.miss_is_error = miss_is_error
        self.model = replies.model
        self.caveat = f"The replies are replayed from {path.name}: no model was asked."

    def ask(self, request: Request) -> Reply:
        """Return the reply to a request."""
        found = self.replies.reply_to(request)
        if found is None and not self.miss_is_error:
            found = self.replies.default_for(request)
        if found is None:
            about = f"{request.task}, row {request.data.get('id', 'without an id')}, sample {request.sample}"
            raise UsageError(
                f"there is no recorded reply to {about}",
                where=str(self.path),
                hint="It was recorded with other data, another wording or another client; or add a line for it.",
            )
        return found


def make(spec: Spec) -> _ReplayClient:
    """Make the client from a JSONL file, or from the journal of a finished run."""
    options = spec.read(ReplayOptions)
    path = Path(spec.target)
    if not spec.target or not path.exists():
        raise UsageError(
            "there are no replies to replay", where=spec.target, expected="replay:FILE.jsonl or replay:FOLDER"
        )
    replies: _JournalReplies | _ScriptedReplies
    if path.is_dir():
        if not options.client:
            raise UsageError(
                "a journal is replayed through the client that wrote it",
                where=str(path),
                expected="replay:FOLDER?client=SPEC, where & and ? of that SPEC are written %26 and %3F",
            )
        replies = _JournalReplies(path, options.client, run=options.run)
    else:
        replies = _ScriptedReplies(path, _far_client(options.client) if options.client else None)
    return _ReplayClient(replies, path, miss_is_error=options.miss == "error")


class _JournalReplies:
    """Replies in the journal of a run, found by the same key under which they were bought; the journal is only read."""

    def __init__(self, folder: Path, spec: str, *, run: str) -> None:
        found = [path for path in (folder / FILE, folder / "journal" / FILE) if path.is_file()]
        if not found:
            raise UsageError("there is no journal of replies in this folder", where=str(folder), expected=FILE)
        self.path = found[0]
        self.client = _far_client(spec)
        self.run = run
        self.model = self.client.model
        self.connection = open_for_reading(self.path)
        self.lock = threading.Lock()

    def reply_to(self, request: Request) -> Reply | None:
        """Return the reply to a request: the last answer, or what came last where none was an answer."""
        key = key_of(self.client.identity, self.client.compose(request))
        with self.lock, errors_explained(self.path):
            rows = self.connection.execute(_REPLIES, (key, self.run)).fetchall()
        if not rows:
            return None
        raw, checksum, number, _ = max(rows, key=lambda row: (row[3] in ANSWERED, row[2]))
        check_types(self.path, f"reply {number}", (raw, checksum), (bytes, int))
        if crc32(raw) != checksum:
            raise damaged(self.path, f"reply {number} is not what was written")
        return self.client.read(raw)

    def default_for(self, request: Request) -> Reply | None:
        return None


def _far_client(text: str) -> Client:
    """Make the client whose replies were recorded; it is never asked, so it needs no key."""
    client = CLIENTS.make(text)
    if not isinstance(client, Client):
        raise UsageError("a journal holds the replies of far clients", found=parse_spec(text).name)
    return client


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reply, to the request with a key or to the row of a task.

    `text` is as it came; or `reply` is JSON, in which the text `${id}` stands for the id of the row.
    """

    task: str = ""
    key: str = ""
    id: str | None = None
    sample: int = 0
    text: str | None = None
    reply: dict[str, Any] | None = None
    stop: Stop = "end"
    detail: str = ""
    model_version: str = ""


class _ScriptedReplies:
    """The lines of a JSONL file, one a reply: found by key, or by task, row and sample.

    A line of a task without a row stands for all rows of the task that have none of their own.
    """

    def __init__(self, path: Path, client: Client | None = None) -> None:
        content = path.read_bytes()
        self.model = f"replay-{digest_bytes(content)[:12]}"
        self.client = client
        self.lines: dict[tuple[str, str | None, int], _Line] = {}
        self.keys: dict[str, _Line] = {}
        problems = []
        for number, written in enumerate(content.splitlines(), start=1):
            if written.strip():
                try:
                    self.add(msgspec.json.decode(written, type=_Line))
                except (msgspec.MsgspecError, ValueError) as error:
                    problems.append(Problem(str(error), str(path), number))
        if problems:
            raise ConfigError(problems)

    def add(self, line: _Line) -> None:
        """Take a line."""
        if (line.text is None) == (line.reply is None):
            raise ValueError("a line has a text or a reply, and not both")
        if bool(line.task) == bool(line.key):
            raise ValueError("a line has a task or a key, and not both")
        if line.key:
            self.add_key(line)
            return
        key = (line.task, line.id, line.sample)
        if key in self.lines:
            raise ValueError(f"task {line.task}, id {line.id}, sample {line.sample} have a reply above")
        self.lines[key] = line

    def add_key(self, line: _Line) -> None:
        """Take a line that answers the request with a key."""
        if self.client is None:
            raise ValueError("a line with a key needs client=SPEC, the client whose requests have such keys")
        if line.key.lower() in self.keys:
            raise ValueError(f"key {line.key} has a reply above")
        self.keys[line.key.lower()] = line

    def reply_to(self, request: Request) -> Reply | None:
        """Return the reply to a request or to a row."""
        if self.client is not None and self.keys:
            keyed = self.keys.get(key_of(self.client.identity, self.client.compose(request)).hex())
            if keyed is not None:
                return _reply_of_line(keyed, request)
        row = request.data.get("id")
        line = None if row is None else self.lines.get((request.task, str(row), request.sample))
        return None if line is None else _reply_of_line(line, request)

    def default_for(self, request: Request) -> Reply | None:
        """Return the reply to all rows of a task that have none of their own."""
        line = self.lines.get((request.task, None, request.sample)) or self.lines.get((request.task, None, 0))
        return None if line is None else _reply_of_line(line, request)


def _reply_of_line(line: _Line, request: Request) -> Reply:
    """Make the reply of a line."""
    if line.text is not None:
        text = line.text
    else:
        row_id = str(request.data.get("id", ""))
        text = msgspec.json.encode({k: row_id if v == _OWN_ID else v for k, v in (line.reply or {}).items()}).decode()
    return Reply(text, stop=line.stop, detail=line.detail, model_version=line.model_version)
