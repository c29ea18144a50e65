"""What lies in a release folder, and what of it goes into a card."""

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from culturekit.errors import IntegrityError, UsageError
from culturekit.storage.digests import digest_file, digest_tree
from culturekit.storage.manifest import JOURNAL, MANIFEST, RUN_RECORD, Manifest, read_manifest

__all__ = ["OWN", "SUMS", "ReleaseFiles", "hash_of", "plain_files", "release_files"]

SUMS = "SHA256SUMS"
SPLITS = "splits"
"""Where a release has its own tables by concept; a card has the same rows below `data/`."""

DESCRIBED = {".parquet", ".jsonl", ".csv", ".json", ".tsv", ".txt", ".md", ".yaml", ".nt", ".ttl", ".jsonld"}
OWN = {MANIFEST, RUN_RECORD, SUMS}
"""Files that say what a folder is, and are no part of what it holds."""

TABLE_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_-]*$")
PLAIN_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._ +-]*$")


@dataclass(frozen=True, slots=True)
class ReleaseFiles:
    """The manifest of a release, its tables by name, its other files, and what is left out, as relative paths."""

    manifest: Manifest
    tables: dict[str, Path]
    others: tuple[str, ...]
    left_out: tuple[str, ...]


def release_files(folder: Path) -> ReleaseFiles:
    """Look through a finished release and hold it against its manifest.

    Raises:
        IntegrityError: a file is not the one of the manifest, or is a link.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise UsageError(
            "not a finished release",
            where=str(folder),
            expected="a folder with a manifest.json, as cspace release and prompts build write it",
        )
    paths = list(plain_files(folder))
    held_to_manifest(folder, manifest)
    tables, others, left_out = {}, [], []
    for relative in paths:
        path = Path(relative)
        if relative in OWN or path.parts[0] == JOURNAL or path.match(f"{SPLITS}/*.parquet"):
            continue
        if path.suffix == ".parquet" and len(path.parts) == 1 and TABLE_NAME.match(path.stem):
            tables[path.stem] = folder / path
        elif path.suffix in DESCRIBED and all(map(PLAIN_NAME.match, path.parts)):
            others.append(relative)
        else:
            left_out.append(relative)
    if not tables:
        raise UsageError("nothing to describe", where=str(folder), expected="at least one Parquet table in the folder")
    return ReleaseFiles(manifest, tables, tuple(others), tuple(left_out))


def held_to_manifest(folder: Path, manifest: Manifest) -> None:
    """Make sure that each output of the release is there with the bytes that its manifest names."""
    for name, record in manifest.outputs.items():
        path = folder / name
        found = hash_of(path)
        if found != record.sha256:
            raise IntegrityError(
                "a file of the release is not the one its manifest names",
                where=str(path),
                expected=f"SHA-256 {record.sha256}",
                found=found,
                hint="Run the release again.",
            )


def hash_of(path: Path) -> str:
    """Hash an output as a manifest does: a file, or a folder of files as one."""
    if path.is_dir():
        return digest_tree(path)[0]
    return digest_file(path) if path.is_file() else "no such file"


def plain_files(folder: Path) -> Iterator[str]:
    """List the files below a folder by relative path, in order; links and devices are refused.

    Raises:
        IntegrityError: something below the folder is no plain file.
    """
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            continue
        if not stat.S_ISREG(mode):
            raise IntegrityError(
                "a release holds plain files only", where=str(path), found="a link, or something that is no file"
            )
        yield path.relative_to(folder).as_posix()
