"""Files against what is said of them: links, checksums, what is missing, and what nobody describes."""

import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from culturekit.cards.findings import CardFinding
from culturekit.cards.release_files import SUMS
from culturekit.cards.safe_paths import PLAIN_PATH, is_plain
from culturekit.storage.digests import digest_file
from culturekit.storage.manifest import MANIFEST, RUN_RECORD

__all__ = ["check_links", "check_sums", "hashes_of"]

LINE = re.compile(r"^(?P<sha256>[0-9a-f]{64}) [ *](?P<path>.+)$")
OWN = {SUMS, MANIFEST, RUN_RECORD}


def check_links(folder: Path) -> Iterator[CardFinding]:
    """Find what is no plain file, the folder itself aside."""
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            kind = f"a link to {path.readlink()}" if path.is_symlink() else "something else"
            yield CardFinding(path.relative_to(folder).as_posix(), "link", "a plain file", kind)


def hashes_of(folder: Path) -> dict[str, str]:
    """Hash every file of a folder that holds no links, by relative path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest_file(path) for path in paths}


def check_sums(folder: Path, hashes: Mapping[str, str]) -> Iterator[CardFinding]:
    """Hold each file against SHA256SUMS, and find files that it does not name."""
    if SUMS not in hashes:
        yield CardFinding(SUMS, "file-missing", "the checksums of every file", "no such file")
        return
    named = set()
    for line in (folder / SUMS).read_bytes().decode("utf-8", "replace").splitlines():
        match = LINE.match(line)
        if match is None:
            yield CardFinding(SUMS, "sums-unreadable", "a SHA-256, two spaces and a path", repr(line[:120]))
            continue
        path = match["path"]
        named.add(path)
        if not is_plain(path):
            yield CardFinding(SUMS, "path-leaves", PLAIN_PATH, repr(path))
        elif path not in hashes:
            yield CardFinding(path, "file-missing", f"a file with SHA-256 {match['sha256']}", "no such file")
        elif hashes[path] != match["sha256"]:
            yield CardFinding(path, "hash-differs", f"SHA-256 {match['sha256']} (SHA256SUMS)", hashes[path])
    for path in hashes:
        if path not in named and path not in OWN:
            yield CardFinding(path, "file-extra", "a file that SHA256SUMS names", "one that nothing describes")
