"""SHA-256 of files, folders and values, and what is kept of them while they stay as they are."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import orjson

from culturekit.core.atomic import decoding
from culturekit.core.errors import IntegrityError, UsageError

MANY = 256  # Files of a folder that are looked at; of one with more the folder alone is

Read = TypeVar("Read")
MaybePath = TypeVar("MaybePath", Path, Path | None)


def state_of(path: Path | None) -> tuple[object, ...]:
    """Say in which state a file is as far as the file system tells, or a folder with all that lies in it."""
    stamp = () if path is None else stamp_of(path)
    within = list(islice(path.rglob("*"), MANY + 1)) if path is not None and stamp else []
    return (stamp, *map(stamp_of, within if len(within) <= MANY else ()))


def stamp_of(path: Path) -> tuple[object, ...]:
    """Tell a file from any other, and from itself when it was written; what is no file has no state."""
    try:
        state = path.stat()
    except (OSError, ValueError):
        return ()
    return path.resolve(), state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def once_per_state(read: Callable[[MaybePath], Read]) -> Callable[[MaybePath], Read]:
    """Let a file be read once in each state."""

    @lru_cache(maxsize=1024)
    def kept(path: MaybePath, *_: object) -> Read:
        return read(path)

    @wraps(read)
    def asked(path: MaybePath) -> Read:
        return kept(path, state_of(path))

    return asked


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Write a value in the one form that equal values share: sorted keys, no spaces, UTF-8."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        if "64-bit" not in str(error):
            raise
        raise UsageError("a number is too large", expected="below 2^64", found=str(error)) from error


def indented_json(value: Any) -> bytes:  # noqa: ANN401 - anything that msgspec writes
    """Write a value for people and machines: indented, the same bytes for the same content."""
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"


def digest(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Hash a JSON value by its content, whatever the order of its keys."""
    return digest_bytes(canonical_json(value))


def digest_bytes(content: bytes) -> str:
    """Hash bytes."""
    return hashlib.sha256(content).hexdigest()


def digest_file(path: Path) -> str:
    """Hash a file without reading it into memory at once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Hashes a file once per process as long as the file system says that it is the same.
known_digest = once_per_state(digest_file)


def source_hash(text: str) -> str:
    """Hash an inline style or script as a content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def digest_tree(folder: Path) -> tuple[str, int, int]:
    """Hash all files below a folder, names included; give the hash, their number and their bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    listing = [[path.relative_to(folder).as_posix(), digest_file(path)] for path in files]
    return digest(listing), len(files), sum(path.stat().st_size for path in files)


# The manifest of a finished stage: what went in, how, and what came out, by hash.

MANIFEST = "manifest.json"
RUN_RECORD = "run.json"  # Timings, host and workers of the run: beside the manifest, outside every comparison
JOURNAL = "journal"  # Folder of what a stage paid for: it outlives every run, so it is no output of any


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
    hint = "Remove the folder and run the stage again."
    with decoding(path, "the manifest cannot be read", hint=hint, error=IntegrityError):
        manifest = msgspec.json.decode(content, type=Manifest)
    for name in manifest.outputs:
        if Path(name).name != name or name in {"", ".", ".."}:
            raise IntegrityError(
                "an output of the manifest lies outside its folder", where=str(path), expected="a plain file name",
                found=repr(name),
            )  # fmt: skip
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
