"""SHA-256 of files, folders and values."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import msgspec
import orjson

from culturekit.errors import UsageError
from culturekit.records.unchanged import once_per_state

__all__ = [
    "canonical_json", "digest", "digest_bytes", "digest_file", "digest_tree", "indented_json", "known_digest",
    "source_hash",
]  # fmt: skip


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


known_digest = once_per_state(digest_file)
"""Hashes a file once per process as long as the file system says that it is the same."""


def source_hash(text: str) -> str:
    """Hash an inline style or script as a content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def digest_tree(folder: Path) -> tuple[str, int, int]:
    """Hash all files below a folder, names included; give the hash, their number and their bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    listing = [[path.relative_to(folder).as_posix(), digest_file(path)] for path in files]
    return digest(listing), len(files), sum(path.stat().st_size for path in files)
