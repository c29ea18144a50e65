"""Folders of the model hub: found in the local cache, or fetched into it where that is allowed."""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

from culturekit.errors import MissingDependency, UpstreamUnavailable, UsageError
from culturekit.version import install_line

__all__ = ["hub_folder"]

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
