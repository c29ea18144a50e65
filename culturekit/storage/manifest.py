"""The manifest of a finished stage: what went in, how, and what came out, by hash."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from culturekit.errors import IntegrityError
from culturekit.storage.digests import digest, digest_file, digest_tree, indented_json

__all__ = [
    "JOURNAL",
    "MANIFEST",
    "RUN_RECORD",
    "InputRecord",
    "Manifest",
    "OutputRecord",
    "describe_outputs",
    "read_manifest",
]

MANIFEST = "manifest.json"
RUN_RECORD = "run.json"
"""Timings, host and workers of the run: beside the manifest, outside every comparison."""

JOURNAL = "journal"
"""Folder of what a stage paid for: it outlives every run, so it is no output of any."""


class InputRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One input: its content by hash, and what it is: the name of a file, the stage of a folder, never its place."""

    sha256: str
    name: str
    stage: str = ""


class OutputRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One output: a file, or a folder of files hashed as one."""

    sha256: str
    bytes: int
    files: int = 0
    rows: int | None = None


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Everything that decided the bytes of a stage folder, and their hashes."""

    stage: str
    version: int
    key: str
    sha256: str
    code: Mapping[str, str]
    packages: Mapping[str, str]
    inputs: Mapping[str, InputRecord]
    options: Mapping[str, Any]
    seeds: Mapping[str, int]
    counts: Mapping[str, int]
    drops: Mapping[str, int]
    notes: Mapping[str, Any] = {}
    outputs: Mapping[str, OutputRecord]

    def encode(self) -> bytes:
        """Write the manifest for people and machines: indented JSON, the same bytes for the same content."""
        return indented_json(self)


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of a folder; None where the folder is not a finished stage."""
    path = folder / MANIFEST
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise IntegrityError(
            f"the manifest cannot be read ({error})",
            where=str(path),
            hint="Remove the folder and run the stage again.",
        ) from error
    for name in manifest.outputs:
        if Path(name).name != name or name in {"", ".", ".."}:
            raise IntegrityError(
                "an output of the manifest lies outside its folder",
                where=str(path),
                expected="a plain file name",
                found=repr(name),
            )
    return manifest


def describe_outputs(folder: Path, rows: Mapping[str, int]) -> tuple[str, dict[str, OutputRecord]]:
    """Hash everything in a folder but its manifest, run record and journal; give one hash of all, and each."""
    outputs = {}
    for path in sorted(folder.iterdir()):
        if path.name in {MANIFEST, RUN_RECORD, JOURNAL}:
            continue
        if path.is_dir():
            tree, files, size = digest_tree(path)
            outputs[path.name] = OutputRecord(tree, size, files=files)
        else:
            outputs[path.name] = OutputRecord(digest_file(path), path.stat().st_size, rows=rows.get(path.name))
    return digest({name: record.sha256 for name, record in outputs.items()}), outputs
