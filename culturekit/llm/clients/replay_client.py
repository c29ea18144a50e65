"""Replies that were given before, or written by hand: for tests, for audits, for running somebody's release again."""

from pathlib import Path
from typing import Protocol

from culturekit.errors import UsageError
from culturekit.llm.client import Reply, Request
from culturekit.llm.clients.client_options import ReplayOptions
from culturekit.llm.clients.replay_journal import JournalReplies, far_client
from culturekit.llm.clients.replay_script import ScriptedReplies
from culturekit.registry import Spec

__all__ = ["ReplayClient", "make"]


class Replies(Protocol):
    """Where replies are looked up."""

    model: str

    def reply_to(self, request: Request) -> Reply | None:
        """Give the reply to a request, or None."""
        ...

    def default_for(self, request: Request) -> Reply | None:
        """Give the reply that stands for all others of a task, or None."""
        ...


class ReplayClient:
    """Gives replies again, and nothing of its own."""

    def __init__(self, replies: Replies, path: Path, *, miss_is_error: bool) -> None:
        """Take where the replies are."""
        self.replies = replies
        self.path = path
        self.miss_is_error = miss_is_error
        self.model = replies.model
        self.caveat = f"The replies are replayed from {path.name}: no model was asked."

    def ask(self, request: Request) -> Reply:
        """Give the reply to a request.

        Raises:
            UsageError: there is none.
        """
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


def make(spec: Spec) -> ReplayClient:
    """Make the client from a JSONL file, or from the journal of a finished run."""
    options = spec.read(ReplayOptions)
    path = Path(spec.target)
    if not spec.target or not path.exists():
        raise UsageError(
            "there are no replies to replay", where=spec.target, expected="replay:FILE.jsonl or replay:FOLDER"
        )
    replies: Replies
    if path.is_dir():
        if not options.client:
            raise UsageError(
                "a journal is replayed through the client that wrote it",
                where=str(path),
                expected="replay:FOLDER?client=SPEC, where & and ? of that SPEC are written %26 and %3F",
            )
        replies = JournalReplies(path, options.client, run=options.run)
    else:
        replies = ScriptedReplies(path, far_client(options.client) if options.client else None)
    return ReplayClient(replies, path, miss_is_error=options.miss == "error")
