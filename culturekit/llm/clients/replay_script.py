"""Replies in a JSONL file, one line a reply: found by key, or by task, row and sample.

A line of a task without a row stands for all rows of the task that have none of their own.
"""

from pathlib import Path
from typing import Any

import msgspec

from culturekit.errors import ConfigError, Problem
from culturekit.llm.client import Client, Reply, Request, Stop
from culturekit.llm.journal.keys import key_of
from culturekit.storage.digests import digest_bytes

__all__ = ["ScriptedReplies"]

OWN_ID = "${id}"


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


class ScriptedReplies:
    """The lines of a file, by what they answer."""

    def __init__(self, path: Path, client: Client | None = None) -> None:
        """Read the file; keys are those of requests as `client` writes them.

        Raises:
            ConfigError: lines that cannot be read, or that answer the same twice; all of them are listed.
        """
        content = path.read_bytes()
        self.model = f"replay-{digest_bytes(content)[:12]}"
        self.client = client
        self.lines: dict[tuple[str, str | None, int], Line] = {}
        self.keys: dict[str, Line] = {}
        problems = []
        for number, written in enumerate(content.splitlines(), start=1):
            if written.strip():
                try:
                    self.add(msgspec.json.decode(written, type=Line))
                except (msgspec.MsgspecError, ValueError) as error:
                    problems.append(Problem(str(error), str(path), number))
        if problems:
            raise ConfigError(problems)

    def add(self, line: Line) -> None:
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

    def add_key(self, line: Line) -> None:
        """Take a line that answers the request with a key."""
        if self.client is None:
            raise ValueError("a line with a key needs client=SPEC, the client whose requests have such keys")
        if line.key.lower() in self.keys:
            raise ValueError(f"key {line.key} has a reply above")
        self.keys[line.key.lower()] = line

    def reply_to(self, request: Request) -> Reply | None:
        """Give the reply to a request or to a row."""
        if self.client is not None and self.keys:
            keyed = self.keys.get(key_of(self.client.identity, self.client.compose(request)).hex())
            if keyed is not None:
                return said(keyed, request)
        row = request.data.get("id")
        line = None if row is None else self.lines.get((request.task, str(row), request.sample))
        return None if line is None else said(line, request)

    def default_for(self, request: Request) -> Reply | None:
        """Give the reply to all rows of a task that have none of their own."""
        line = self.lines.get((request.task, None, request.sample)) or self.lines.get((request.task, None, 0))
        return None if line is None else said(line, request)


def said(line: Line, request: Request) -> Reply:
    """Make the reply of a line."""
    if line.text is not None:
        text = line.text
    else:
        own = str(request.data.get("id", ""))
        text = msgspec.json.encode({k: own if v == OWN_ID else v for k, v in (line.reply or {}).items()}).decode()
    return Reply(text, stop=line.stop, detail=line.detail, model_version=line.model_version)
