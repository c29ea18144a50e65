"""The files that a model comes in: whole safetensors, JSON that says how, and one hash of them all."""

import importlib
import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from culturekit.core.atomic import decoding
from culturekit.core.digests import digest, known_digest
from culturekit.core.errors import IntegrityError, MissingDependency, UpstreamUnavailable, UsageError
from culturekit.version import install_line

# Folders of the model hub: found in the local cache, or fetched into it where that is allowed.

FETCHED = ("*.safetensors", "*.json", "*.txt", "*.model")


def hub_folder(
    name: str,
    revision: str,
    *,
    complete: Callable[[Path], object],
    extra: str,
    asked_by: str,
    fetched: Sequence[str] = FETCHED,
) -> Path:
    """Give the folder of a hub id: its safetensors, settings and tokenizer, and never a pickle.

    Args:
        name: The hub id.
        revision: A branch, tag or commit; the newest when empty.
        complete: Tells whether a cached folder holds what is needed.
        extra: The extra of culturekit whose packages reach the hub.
        asked_by: What asked for the folder, for messages.
        fetched: Patterns of the files that are fetched, those in folders below included.
    """
    try:
        hub = importlib.import_module("huggingface_hub")
    except ModuleNotFoundError as error:
        raise MissingDependency(
            "a hub id needs the package huggingface_hub, which is not installed",
            where=name,
            hint=f"Install it with: {install_line(extra)}",
        ) from error
    wanted = {"revision": revision or None, "allow_patterns": list(fetched)}
    try:
        cached = Path(hub.snapshot_download(name, local_files_only=True, **wanted))
        if complete(cached):
            return cached
    except (hub.errors.LocalEntryNotFoundError, ValueError):
        pass
    if hub.constants.HF_HUB_OFFLINE:
        raise UsageError(
            f"{name} is no folder and has no safetensors in the local cache, and the hub is switched off",
            where=asked_by,
            found=str(hub.constants.HF_HUB_CACHE),
            hint="Name a folder, or fetch the model first where the network may be used.",
        )
    try:
        return Path(hub.snapshot_download(name, **wanted))
    except (hub.errors.RepositoryNotFoundError, hub.errors.RevisionNotFoundError) as error:
        raise UsageError("there is no such folder, and no such model on the hub", where=name, found=revision) from error
    except (hub.errors.HfHubHTTPError, hub.errors.LocalEntryNotFoundError, OSError) as error:
        raise UpstreamUnavailable(
            "the model could not be fetched from the hub", where=name, found=str(error)
        ) from error


LARGEST_HEADER = 100 * 2**20  # Bytes of a header that the format allows

Size = Annotated[int, msgspec.Meta(ge=0)]


class TensorEntry(msgspec.Struct):
    """What the header says of a tensor."""

    dtype: str
    shape: tuple[Size, ...]
    data_offsets: tuple[Size, Size]


@dataclass(frozen=True, slots=True)
class Header:
    """What a safetensors file says of itself: notes, its tensors by name, and how many bytes it should have."""

    notes: Mapping[str, str]
    tensors: Mapping[str, TensorEntry]
    promised: int


def read_header(path: Path) -> Header:
    """Read what a safetensors file says of itself."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if not 2 <= length <= min(LARGEST_HEADER, path.stat().st_size - 8):
                raise ValueError(f"a header of {length:,} bytes")
            header = msgspec.json.decode(file.read(length), type=dict[str, msgspec.Raw])
        notes = msgspec.json.decode(header.pop("__metadata__", b"{}"), type=dict[str, str])
        tensors = {name: msgspec.json.decode(entry, type=TensorEntry) for name, entry in header.items()}
        ends = [entry.data_offsets[1] for entry in tensors.values()]
        return Header(notes, tensors, 8 + length + max(ends, default=0))
    except (struct.error, ValueError, RecursionError) as error:
        raise IntegrityError(
            "this is no safetensors file, or only its beginning", where=str(path), found=str(error)
        ) from error


def check_safetensors(paths: Iterable[Path]) -> None:
    """Make sure that each file is as long as its own header says; a cut download is told from a broken model."""
    for path in paths:
        header, size = read_header(path), path.stat().st_size
        if not header.tensors:
            raise IntegrityError("a safetensors file holds no tensor", where=str(path))
        if header.promised != size:
            raise IntegrityError(
                "a safetensors file is cut or changed", where=str(path), expected=f"{header.promised} bytes",
                found=f"{size}",
            )  # fmt: skip


def digest_of_files(files: Sequence[Path], *, root: Path) -> str:
    """Hash names and bytes of files below a folder, several files at once; a file is read once per process."""
    with ThreadPoolExecutor(min(8, len(files) or 1)) as threads:
        digests = list(threads.map(known_digest, files))
    names = [path.relative_to(root).as_posix() for path in files]
    return digest(sorted(map(list, zip(names, digests, strict=True))))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that comes with a model."""
    (content,) = read_json_list(path, alone=True)
    return content


def read_json_list(path: Path, *, alone: bool = False) -> list[dict[str, Any]]:
    """Read a JSON list of objects that comes with a model; `alone` a file that is one object."""
    if not path.exists():
        raise UsageError("a file of the model is missing", where=str(path.parent), expected=path.name)
    with decoding(path, "a file of the model cannot be read", error=IntegrityError):
        content = json.loads(path.read_text(encoding="utf-8"))
    listed = [content] if alone else content
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        expected = "a JSON object" if alone else "a JSON list"
        raise IntegrityError("a file of the model is not what it should be", where=str(path), expected=expected)
    return listed
