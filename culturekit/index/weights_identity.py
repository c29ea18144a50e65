"""Weights in a folder: where they lie, that nothing in them can run, and a hash that says which they are."""

import json
import os
import re
import struct
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from culturekit.errors import IntegrityError, UsageError
from culturekit.index.hub import hub_folder
from culturekit.storage.digests import digest, digest_file

__all__ = [
    "PICKLES",
    "ModelFolder",
    "check_safetensors",
    "digest_of_files",
    "find_model",
    "no_weights",
    "read_json",
    "read_json_list",
    "weight_files",
]

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
TOLD_BY = (
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "*.model",
)
"""What decides a vector besides the weights."""

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
LARGEST_HEADER = 100 * 2**20


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder with a model in it; `revision` is the commit of a hub id, and `local` of a folder of one's own."""

    path: Path
    revision: str

    def files(self) -> list[Path]:
        """List what decides a vector, in alphabetical order: the weights that are loaded, and what tells how."""
        told = {path for pattern in TOLD_BY for path in self.path.glob(pattern) if path.is_file()}
        return sorted({*told, *weight_files(self.path)})

    def digest(self) -> str:
        """Hash the names and bytes of all that decides a vector."""
        return digest_of_files(self.files(), root=self.path)


def find_model(target: str, *, revision: str = "", kind: str) -> ModelFolder:
    """Find the folder of a model: a local one, or that of a hub id in the local cache.

    Only what the cache lacks is fetched, and nothing is when the hub is switched off (HF_HUB_OFFLINE=1). Pickles are
    neither fetched nor read.

    Args:
        target: a folder, or a hub id such as `openai/clip-vit-base-patch32`.
        revision: a branch, tag or commit of the hub id.
        kind: who asks, for messages, such as `transformers`.
    """
    path = Path(target).expanduser()
    if path.is_dir() and target:
        if revision:
            raise UsageError("only a hub id has revisions", where=target, found=f"revision={revision}")
        return ModelFolder(path, "local")
    if not HUB_ID.fullmatch(target) or path.exists():
        raise UsageError(
            "this is not a folder with a model in it",
            where=target or kind,
            expected=f"{kind}:FOLDER or {kind}:OWNER/NAME of the Hugging Face hub",
        )
    return from_hub(target, revision, kind)


def from_hub(name: str, revision: str, kind: str) -> ModelFolder:
    """Find a hub id in the local cache, or fetch it into the cache where that is allowed."""
    folder = hub_folder(name, revision, complete=weight_names, extra="embed", asked_by=kind)
    return ModelFolder(folder, folder.name)


def weight_files(folder: Path) -> list[Path]:
    """List the weights of a folder as they are loaded: one safetensors file, or those that an index names.

    Raises:
        UsageError: there are none, or only pickles.
        IntegrityError: one that an index names is missing.
    """
    names = weight_names(folder)
    if not names:
        raise no_weights(folder)
    for name in names:
        if not (folder / name).is_file():
            raise IntegrityError("a part of the weights is missing", where=str(folder), expected=name)
    return [folder / name for name in names]


def weight_names(folder: Path) -> list[str]:
    """Name the weights that a folder promises; what else lies there, pickles included, is never opened."""
    if (folder / "model.safetensors").is_file():
        return ["model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return []
    listed = read_json(index).get("weight_map", {})
    names = sorted({str(name) for name in listed.values()}) if isinstance(listed, dict) else []
    outside = [name for name in names if Path(name).name != name or not name.endswith(".safetensors")]
    if outside:
        raise IntegrityError("an index of weights names what is no safetensors file beside it", where=str(index),
                             found=outside[0])  # fmt: skip
    return names


def no_weights(folder: Path) -> UsageError:
    """Say that a folder has no weights that may be read."""
    pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    if not pickles:
        return UsageError("there are no weights in this folder", where=str(folder), expected="model.safetensors")
    return UsageError(
        "these weights are a pickle, which can run any code when it is opened",
        where=str(folder),
        expected="model.safetensors",
        found=pickles[0],
        hint=f"Convert a checkpoint that you trust: culturekit weights convert {folder / pickles[0]} --sha256 HEX "
        f"--out {folder / 'model.safetensors'}",
    )


def check_safetensors(paths: Iterable[Path]) -> None:
    """Make sure that each file is as long as its own header says; a cut download is told from a broken model."""
    for path in paths:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            first = file.read(8)
            length = struct.unpack("<Q", first)[0] if len(first) == 8 else LARGEST_HEADER
            header = file.read(length) if length < min(size, LARGEST_HEADER) else b""
        try:
            tensors = json.loads(header)
            ends = [entry["data_offsets"][1] for name, entry in tensors.items() if name != "__metadata__"]
            promised = 8 + length + max(ends, default=0)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise IntegrityError("this is no safetensors file, or only its beginning", where=str(path)) from error
        if promised != size:
            raise IntegrityError(
                "a safetensors file is cut or changed", where=str(path), expected=f"{promised} bytes", found=f"{size}"
            )


def digest_of_files(files: Sequence[Path], *, root: Path) -> str:
    """Hash names and bytes of files below a folder, several files at once; a file is read once per process."""
    with ThreadPoolExecutor(min(8, len(files) or 1)) as threads:
        digests = list(threads.map(known_digest, files))
    names = [path.relative_to(root).as_posix() for path in files]
    return digest(sorted(map(list, zip(names, digests, strict=True))))


def known_digest(path: Path) -> str:
    """Hash a file, unless it was hashed before and has not changed since."""
    state = path.stat()
    return digest_once(path, state.st_size, state.st_mtime_ns, state.st_ino)


@lru_cache(maxsize=4096)
def digest_once(path: Path, size: int, changed: int, inode: int) -> str:
    """Hash a file once for each state it was seen in."""
    return digest_file(path)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that comes with a model."""
    content = json_of(path)
    if not isinstance(content, dict):
        raise IntegrityError("a file of the model is not what it should be", where=str(path), expected="a JSON object")
    return content


def read_json_list(path: Path) -> list[dict[str, Any]]:
    """Read a JSON list of objects that comes with a model."""
    content = json_of(path)
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        raise IntegrityError("a file of the model is not what it should be", where=str(path), expected="a JSON list")
    return content


def json_of(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    """Read a JSON file that comes with a model."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError("a file of the model is missing", where=str(path.parent), expected=path.name) from error
    except (ValueError, OSError) as error:
        raise IntegrityError("a file of the model cannot be read", where=str(path), found=str(error)) from error
