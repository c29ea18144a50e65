"""A disk that forgets at a power cut whatever was not waited for: for tests in one process."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest


class ForgetfulDisk:
    """Notes what is on disk, and which files were vouched for before they were.

    A file is on disk when it was synced and not written since, its name when its folder was synced. A seal vouches for
    the files it names, the report of a run of a dump for those beside it.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.contents: set[tuple[int, int, int]] = set()
        self.names: set[tuple[int, str, int]] = set()
        self.unsafe: set[str] = set()
        self.vouched = 0
        fsync, replace = os.fsync, Path.replace

        def noting_fsync(descriptor: int) -> None:
            fsync(descriptor)
            state = os.fstat(descriptor)
            if stat.S_ISDIR(state.st_mode):
                with os.scandir(descriptor) as entries:
                    self.names |= {(state.st_ino, entry.name, entry.inode()) for entry in entries}
            else:
                self.contents.add(identity(state))

        def noting_replace(path: Path, to: Path) -> Path:
            found = replace(path, to)
            for file in in_care_of(to):
                self.vouched += 1
                self.unsafe |= {f"{what} of {file.name} before {to.name}" for what in self.forgotten(file)}
            return found

        patch.setattr(os, "fsync", noting_fsync)
        patch.setattr(Path, "replace", noting_replace)

    def forgotten(self, file: Path) -> Iterator[str]:
        """Say what a power cut would cost of a file now."""
        state = file.stat()
        if identity(state) not in self.contents:
            yield "content"
        if (file.parent.stat().st_ino, file.name, state.st_ino) not in self.names:
            yield "name"


def in_care_of(voucher: Path) -> list[Path]:
    if voucher.suffix == ".seal":
        return [voucher.parent / name for name in json.loads(voucher.read_bytes())]
    return [path for path in voucher.parent.iterdir() if path != voucher] if voucher.name == "done.json" else []


def identity(state: os.stat_result) -> tuple[int, int, int]:
    return state.st_ino, state.st_size, state.st_mtime_ns


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
        return
    middle = len(content) // 2
    path.write_bytes({
        "empty": b"",
        "short": content[:-1],
        "zeroed": bytes(len(content)),
        "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
    }[how])  # fmt: skip


DAMAGES = ("gone", "empty", "short", "zeroed", "flipped")
