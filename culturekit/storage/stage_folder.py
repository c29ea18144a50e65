"""A stage folder in the making: built out of sight, kept across kills, published by one rename.

What a stage paid for lies in `out/journal`. It outlives everything here: another key, `--fresh`, a kill at any moment,
and the folder that is replaced. There is one line of it: the unfinished folder's, which began as a copy of the finished
one's, and takes its place when it is published.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from culturekit.errors import UsageError
from culturekit.storage.atomic import copy_folder, remove_strays, sync_folder, write_atomically
from culturekit.storage.locks import hold
from culturekit.storage.manifest import JOURNAL, MANIFEST, RUN_RECORD, Manifest, read_manifest

__all__ = ["Staging", "staging"]


class Staging:
    """The hidden sibling in which a stage is built: `.NAME.partial` with `out`, `scratch` and the key.

    A killed run leaves it there; the next run of the same key goes on in it, any other starts afresh, but for the
    journal, which lies beside `out` while that is made again.
    """

    def __init__(self, final: Path, *, stage: str) -> None:
        """Name the folders; nothing is touched yet."""
        self.final = final
        self.stage = stage
        self.partial = final.with_name(f".{final.name}.partial")
        self.previous = final.with_name(f".{final.name}.previous")
        self.out = self.partial / "out"
        self.scratch = self.partial / "scratch"
        self.marker = self.partial / "key"
        self.kept = self.partial / JOURNAL

    def recover(self) -> None:
        """Finish or undo a publication that was cut between its two renames."""
        if not self.previous.exists():
            return
        if not self.final.exists():
            finished = self.out if (self.out / MANIFEST).exists() else self.previous
            finished.rename(self.final)
        shutil.rmtree(self.previous, ignore_errors=True)

    def check_free(self) -> None:
        """Refuse to replace anything but an older result of the same stage."""
        if not self.final.exists():
            return
        if not self.final.is_dir():
            raise UsageError("the output is a folder", where=str(self.final), found="a file of that name")
        manifest = read_manifest(self.final)
        if manifest is not None and manifest.stage != self.stage:
            raise UsageError(
                "the folder holds another finished stage",
                where=str(self.final),
                expected=f"a free place for {self.stage}",
                found=manifest.stage,
                hint="Choose another --out.",
            )
        if manifest is None and any(self.final.iterdir()):
            raise UsageError(
                "the folder has files that culturekit did not write",
                where=str(self.final),
                expected="a new, empty or finished stage folder",
                hint="Choose another --out.",
            )

    def open(self, key: str) -> bool:
        """Make the folders ready for a key; tell whether earlier work for the same key goes on."""
        goes_on = self.out.is_dir() and self.marker.exists() and self.marker.read_text(encoding="ascii") == key
        if goes_on:
            (self.out / MANIFEST).unlink(missing_ok=True)
        else:
            self.partial.mkdir(parents=True, exist_ok=True)
            self.clear()
            if not self.kept.exists() and (self.final / JOURNAL).is_dir():
                copy_folder(self.final / JOURNAL, self.kept)
            self.out.mkdir()
            self.scratch.mkdir()
            if self.kept.exists():
                self.kept.rename(self.out / JOURNAL)
                sync_folder(self.out)
            sync_folder(self.partial)
            write_atomically(self.marker, key.encode("ascii"))
        remove_strays(self.partial)
        return goes_on

    def clear(self) -> None:
        """Remove everything from the unfinished folder but its journal."""
        self.marker.unlink(missing_ok=True)
        if (self.out / JOURNAL).is_dir():
            (self.out / JOURNAL).rename(self.kept)
            sync_folder(self.partial)
        for path in self.partial.iterdir():
            if path.is_dir() and path != self.kept:
                shutil.rmtree(path)
            elif path != self.kept:
                path.unlink()
        sync_folder(self.partial)

    def discard(self) -> None:
        """Remove unfinished work, such as what a kill right after publishing left; a journal stays for the next run."""
        if not self.partial.is_dir():
            return
        self.clear()
        if not self.kept.exists():
            self.partial.rmdir()

    def publish(self, manifest: Manifest, run_record: bytes) -> None:
        """Put the finished folder in its place; the manifest is the last file written."""
        remove_strays(self.out)
        for folder in [path for path in self.out.rglob("*") if path.is_dir()]:
            sync_folder(folder)
        write_atomically(self.out / RUN_RECORD, run_record)
        write_atomically(self.out / MANIFEST, manifest.encode())
        sync_folder(self.out)
        if self.final.exists():
            self.final.rename(self.previous)
        self.out.rename(self.final)
        sync_folder(self.final.parent)
        shutil.rmtree(self.previous, ignore_errors=True)
        self.discard()


@contextmanager
def staging(final: Path, *, stage: str, wait: bool = False) -> Iterator[Staging]:
    """Hold a stage folder for one run."""
    with hold(final.with_name(f".{final.name}.lock"), wait=wait):
        place = Staging(final, stage=stage)
        place.recover()
        place.check_free()
        yield place
