"""What a server keeps for its clients: files and batch jobs."""

import hashlib
from dataclasses import dataclass, field

from tests.llm.server.jobs import Job

__all__ = ["Storage", "StoredFile"]


@dataclass(slots=True)
class StoredFile:
    """A file somebody uploaded, or a job wrote."""

    name: str
    provider: str
    filename: str
    purpose: str
    content: bytes
    created: int
    announced: int = 0


@dataclass(slots=True)
class Storage:
    """Files and jobs by name, in the order of their making; names are never given twice."""

    files: dict[str, StoredFile] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    uploads: dict[str, StoredFile] = field(default_factory=dict)
    made: int = 0

    def new_name(self, prefix: str) -> str:
        """Make a name, the same ones in the same order for every server."""
        self.made += 1
        return prefix + hashlib.sha256(f"{prefix}{self.made}".encode()).hexdigest()[:24]

    def keep(
        self, prefix: str, provider: str, content: bytes, *, filename: str, purpose: str, created: int
    ) -> StoredFile:
        """Keep a new file."""
        stored = StoredFile(self.new_name(prefix), provider, filename, purpose, content, created)
        self.files[stored.name] = stored
        return stored
