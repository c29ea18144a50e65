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
from culturekit.llm.journal import FILE, SOUND, check_types, damaged, errors_explained, key_of, open_for_reading

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
        self.replies, self.path, self.miss_is_error = replies, path, miss_is_error
        self.model = replies.model
        self.caveat = f"The replies are replayed from {path.name}: no model was asked."

    def ask(self, request: Request) -> Reply:
        found = self.replies.reply_to(request, default=not self.miss_is_error)
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
    if path.is_dir() and not options.client:
        raise UsageError(
            "a journal is replayed through the client that wrote it",
            where=str(path),
            expected="replay:FOLDER?client=SPEC, where & and ? of that SPEC are written %26 and %3F",
        )
    replies = _JournalReplies(path, options) if path.is_dir() else _ScriptedReplies(path, options)
    return _ReplayClient(replies, path, miss_is_error=options.miss == "error")


def _far_client(text: str) -> Client:
    """Make the client whose replies were recorded; it is never asked, so it needs no key."""
    client = CLIENTS.make(text)
    if not isinstance(client, Client):
        raise UsageError("a journal holds the replies of far clients", found=parse_spec(text).name)
    return client


class _JournalReplies:
    """Replies in the journal of a run, found by the same key under which they were bought; the journal is only read."""

    def __init__(self, folder: Path, options: ReplayOptions) -> None:
        found = [path for path in (folder / FILE, folder / "journal" / FILE) if path.is_file()]
        if not found:
            raise UsageError("there is no journal of replies in this folder", where=str(folder), expected=FILE)
        self.path, self.run = found[0], options.run
        self.client = _far_client(options.client)
        self.model = self.client.model
        self.connection = open_for_reading(self.path)
        self.lock = threading.Lock()

    def reply_to(self, request: Request, *, default: bool) -> Reply | None:
        """Return the reply to a request: the last answer, or what came last where none was an answer."""
        del default  # a journal has none
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

    def __init__(self, path: Path, options: ReplayOptions) -> None:
        content = path.read_bytes()
        self.model = f"replay-{digest_bytes(content)[:12]}"
        self.client = _far_client(options.client) if options.client else None
        self.lines: dict[tuple[str, str | None, int] | str, _Line] = {}
        problems = []
        for number, written in enumerate(content.splitlines(), start=1):
            if written.strip():
                try:
                    self._add(msgspec.json.decode(written, type=_Line))
                except (msgspec.MsgspecError, ValueError) as error:
                    problems.append(Problem(str(error), str(path), number))
        if problems:
            raise ConfigError(problems)

    def _add(self, line: _Line) -> None:
        if (line.text is None) == (line.reply is None):
            raise ValueError("a line has a text or a reply, and not both")
        if bool(line.task) == bool(line.key):
            raise ValueError("a line has a task or a key, and not both")
        if line.key and self.client is None:
            raise ValueError("a line with a key needs client=SPEC, the client whose requests have such keys")
        key = line.key.lower() or (line.task, line.id, line.sample)
        if key in self.lines:
            named = f"key {line.key} has" if line.key else f"task {line.task}, id {line.id}, sample {line.sample} have"
            raise ValueError(f"{named} a reply above")
        self.lines[key] = line

    def reply_to(self, request: Request, *, default: bool) -> Reply | None:
        """Return the reply to a request or to a row, or, where allowed, to all rows of its task."""
        task, sample, row = request.task, request.sample, request.data.get("id")
        keys: list[tuple[str, str | None, int] | str] = []
        if self.client is not None and any(isinstance(key, str) for key in self.lines):
            keys.append(key_of(self.client.identity, self.client.compose(request)).hex())
        keys += [] if row is None else [(task, str(row), sample)]
        keys += [(task, None, sample), (task, None, 0)] if default else []
        line = next((self.lines[key] for key in keys if key in self.lines), None)
        if line is None:
            return None
        text = line.text
        if text is None:
            identifier = str(request.data.get("id", ""))
            filled = {key: identifier if value == _OWN_ID else value for key, value in (line.reply or {}).items()}
            text = msgspec.json.encode(filled).decode()
        return Reply(text, stop=line.stop, detail=line.detail, model_version=line.model_version)
