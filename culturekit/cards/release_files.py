"""What lies in a release folder, and what of it goes into a card."""

import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from culturekit.errors import CultureKitError, IntegrityError, UsageError
from culturekit.storage.atomic import copy_file
from culturekit.storage.digests import digest_file, digest_tree
from culturekit.storage.manifest import JOURNAL, MANIFEST, RUN_RECORD, Manifest, read_manifest
from culturekit.trail.upstream import manifest_of, upstream

SUMS = "SHA256SUMS"
_SPLITS = "splits"
"""Where a release has its own tables by concept; a card has the same rows below `data/`."""

_DESCRIBED = {".parquet", ".jsonl", ".csv", ".json", ".tsv", ".txt", ".md", ".yaml", ".nt", ".ttl", ".jsonld"}
OWN = {MANIFEST, RUN_RECORD, SUMS}
"""Files that say what a folder is, and are no part of what it holds."""

_TABLE_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_-]*$")
_PLAIN_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._ +-]*$")


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
    _held_to_manifest(folder, manifest)
    tables, others, left_out = {}, [], []
    for relative in paths:
        path = Path(relative)
        if relative in OWN or path.parts[0] == JOURNAL or path.match(f"{_SPLITS}/*.parquet"):
            continue
        if path.suffix == ".parquet" and len(path.parts) == 1 and _TABLE_NAME.match(path.stem):
            tables[path.stem] = folder / path
        elif path.suffix in _DESCRIBED and all(map(_PLAIN_NAME.match, path.parts)):
            others.append(relative)
        else:
            left_out.append(relative)
    if not tables:
        raise UsageError("nothing to describe", where=str(folder), expected="at least one Parquet table in the folder")
    return ReleaseFiles(manifest, tables, tuple(others), tuple(left_out))


def _held_to_manifest(folder: Path, manifest: Manifest) -> None:
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


MANIFESTS = "manifests"


def carry_manifests(release: Path, folder: Path) -> None:
    """Copy the manifest of a release, and of every stage behind it that is still where its run found it."""
    place = folder / MANIFESTS
    place.mkdir()
    for number, stage in enumerate(_chain(release), start=1):
        manifest = manifest_of(stage)
        copy = place / f"{number:02}-{manifest.stage}"
        copy.mkdir()
        copy_file(stage / MANIFEST, copy / MANIFEST)


def keys_behind(release: Path) -> list[str]:
    """Give the keys of the stages that a card of a release would carry."""
    return [manifest_of(stage).key for stage in _chain(release)]


def _chain(release: Path) -> Iterator[Path]:
    """Give stage folders from the release back to the dump, each once."""
    waiting, seen = [release], set()
    while waiting:
        folder = waiting.pop(0)
        manifest = manifest_of(folder)
        if manifest.key in seen:
            continue
        seen.add(manifest.key)
        yield folder
        for role in sorted(role for role, record in manifest.inputs.items() if record.stage):
            try:
                path = upstream(folder, role)
            except CultureKitError:  # the card says which stages it could not find
                continue
            waiting.append(path if path.is_dir() else path.parent)


def carried_manifests(folder: Path) -> tuple[Manifest, ...]:
    """Read the manifests of a card, the release's own first.

    Raises:
        IntegrityError: one cannot be read, or there is none.
    """
    place = folder / MANIFESTS
    paths = sorted(path for path in place.iterdir() if path.is_dir()) if place.is_dir() else []
    if not paths:
        raise IntegrityError("the card carries no manifest", where=str(place), hint="Build the card again.")
    return tuple(manifest for manifest in map(read_manifest, paths) if manifest is not None)


def not_at_hand(manifests: Sequence[Manifest]) -> Iterator[tuple[str, str, str]]:
    """Give stage, name and hash of every input that a stage made whose own manifest is not among those given."""
    known = {(m.stage, m.sha256) for m in manifests}
    known |= {(m.stage, output.sha256) for m in manifests for output in m.outputs.values()}
    missing = {
        (record.stage, record.name, record.sha256)
        for manifest in manifests
        for record in manifest.inputs.values()
        if record.stage and (record.stage, record.sha256) not in known
    }
    yield from sorted(missing)
