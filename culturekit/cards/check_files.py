"""Files against what is said of them: links, checksums, what is missing, and what nobody describes."""

import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from culturekit.cards.card_tables import FILES
from culturekit.cards.findings import CardFinding
from culturekit.cards.provenance import MANIFESTS
from culturekit.cards.release_files import SUMS
from culturekit.cards.safe_paths import PLAIN_PATH, is_plain
from culturekit.cards.splits import DATA
from culturekit.storage.digests import digest, digest_file
from culturekit.storage.manifest import MANIFEST, RUN_RECORD, Manifest

__all__ = ["check_links", "check_outputs", "check_sums", "hashes_of"]

CARRIED = {DATA, FILES, MANIFESTS}
"""Folders whose bytes come from the release."""

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


def changed(path: str) -> str:
    """Give the code for other bytes: data that differ are damaged, a page or a hand-written file was edited."""
    return "hash-differs" if path.split("/")[0] in CARRIED else "file-changed"


def check_outputs(hashes: Mapping[str, str], own: Manifest, found: Iterable[CardFinding]) -> Iterator[CardFinding]:
    """Hold the folder against the card's own manifest, as far as nothing was found below a name already."""
    known = {finding.file.split("/")[0] for finding in found}
    outputs = outputs_of(hashes)
    for name in sorted({*own.outputs, *outputs} - known):
        wanted, there = own.outputs.get(name), outputs.get(name, "nothing of that name")
        if wanted is None or wanted.sha256 != there:
            expected = f"SHA-256 {wanted.sha256} ({MANIFEST})" if wanted else f"a name that {MANIFEST} has"
            yield CardFinding(name, changed(name), expected, there)


def outputs_of(hashes: Mapping[str, str]) -> dict[str, str]:
    """Give the hashes of files and of whole folders as a manifest has them."""
    outputs: dict[str, str] = {}
    below: dict[str, list[list[str]]] = {}
    for path in sorted(hashes, key=PurePosixPath):
        name, inside, rest = path.partition("/")
        if inside:
            below.setdefault(name, []).append([rest, hashes[path]])
        elif path not in {MANIFEST, RUN_RECORD}:
            outputs[path] = hashes[path]
    return {**outputs, **{name: digest(listing) for name, listing in below.items()}}


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
            yield CardFinding(path, changed(path), f"SHA-256 {match['sha256']} ({SUMS})", hashes[path])
    for path in hashes:
        if path not in named and path not in OWN:
            yield CardFinding(path, "file-extra", "a file that SHA256SUMS names", "one that nothing describes")
