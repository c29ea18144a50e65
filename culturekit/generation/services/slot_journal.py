"""The journal of a shard: the row of every image from the moment it is made, so that a kill costs no finished image."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from culturekit.storage.digests import digest_file

__all__ = ["SlotJournal"]

Slot = tuple[str, int, int]
"""prompt_id, repeat, slot."""


class SlotJournal:
    """Lines of JSON, one row each; a line that a kill cut short, or whose file is not there, does not count."""

    def __init__(self, path: Path, out: Path, *, version: str | None) -> None:
        """Read what an earlier run of the same model left; rows of another version are left behind."""
        self.path, self.out, self.version = path, out, version
        self.rows: dict[Slot, Mapping[str, Any]] = {}
        if path.exists():
            self.read()

    def read(self) -> None:
        """Take the rows that are whole, and cut the file behind them."""
        whole = 0
        with self.path.open("rb") as file:
            for line in file:
                row = row_of(line)
                if row is None:
                    break
                whole += len(line)
                if row["model_version"] == self.version and self.has_file(row):
                    self.rows[slot_of(row)] = row
        os.truncate(self.path, whole)

    def has_file(self, row: Mapping[str, Any]) -> bool:
        """Tell whether the file of a row is there with the bytes that the row promises."""
        path = self.out / row["path"]
        return not row["path"] or (path.is_file() and digest_file(path) == row["sha256"])

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows behind the others: from here on they outlive a kill."""
        with self.path.open("ab") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self.rows.update((slot_of(row), row) for row in rows)

    def settle(self) -> None:
        """Wait until the rows are on disk: from here on they outlive a power cut, too."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Let go of it: the shard's part is written."""
        self.path.unlink(missing_ok=True)


def slot_of(row: Mapping[str, Any]) -> Slot:
    """Say which image a row is of."""
    return row["prompt_id"], row["repeat"], row["slot"]


def row_of(line: bytes) -> dict[str, Any] | None:
    """Read a line; None where it was cut."""
    try:
        row = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
