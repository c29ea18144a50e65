"""Files that are there whole or not at all, also after a power cut."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from culturekit.storage.system_errors import system_errors

__all__ = [
    "check_writable",
    "clear_folder",
    "copy_file",
    "copy_folder",
    "remove_strays",
    "sync_folder",
    "sync_tree",
    "whole_file",
    "write_atomically",
]

STRAY = ".writing-"
"""How the name of a file begins while it is being written."""


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that a reader, or a run after a kill, sees whole or not at all.

    Raises:
        OSError: the system refused, whatever the library that writes makes of it.
    """
    temporary = path.with_name(f"{STRAY}{os.getpid()}-{path.name}")
    try:
        with system_errors(path), temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Let the system refuse a file at once that it would refuse when the work for it is done.

    Raises:
        OSError: nothing can be written where the file would lie.
    """
    folder = next(folder for folder in path.absolute().parents if folder.exists())
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write bytes whole or not at all."""
    with whole_file(path) as file:
        file.write(content)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    sync(folder)


def sync(path: Path) -> None:
    """Wait until what a file or a folder holds is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_strays(folder: Path) -> None:
    """Remove what killed writers left half-written below a folder."""
    for path in folder.rglob(f"{STRAY}*"):
        path.unlink(missing_ok=True)


def clear_folder(folder: Path) -> None:
    """Make sure that a folder is there and empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def copy_folder(folder: Path, to: Path) -> None:
    """Copy a folder so that the copy is there whole or not at all."""
    temporary = to.with_name(f"{to.name}.copying")
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(folder, temporary, copy_function=shutil.copyfile)
    sync_tree(temporary)
    temporary.rename(to)
    sync_folder(to.parent)


def copy_file(file: Path, to: Path) -> None:
    """Copy the content of a file, and wait until it is on disk."""
    with system_errors(to):
        shutil.copyfile(file, to)
        sync(to)


def sync_tree(folder: Path) -> None:
    """Wait until every file below a folder is on disk, and its name."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            sync(path)
