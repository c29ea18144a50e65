"""Large inputs are hashed once: a file of the same place, size and time of change is the one hashed before."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from culturekit.stages.stage import Stage
from culturekit.storage.manifest import RUN_RECORD, InputRecord, read_manifest

__all__ = ["WORTH_REMEMBERING", "known_inputs", "known_records", "traces_of"]

WORTH_REMEMBERING = 64_000_000
"""Bytes from which hashing takes longer than a reader would like to wait."""


class RunRecord(msgspec.Struct):
    """The part of a run record that tells inputs apart."""

    traces: dict[str, tuple[int, int]] = {}
    """Size and time of change, in nanoseconds, of inputs by role."""


def traces_of(inputs: Mapping[str, Path]) -> dict[str, tuple[int, int]]:
    """Note size and time of change of the large files among inputs."""
    sizes = {role: path.stat() for role, path in inputs.items() if path.is_file()}
    return {role: (s.st_size, s.st_mtime_ns) for role, s in sizes.items() if s.st_size >= WORTH_REMEMBERING}


def known_inputs(final: Path, inputs: Mapping[str, Path]) -> dict[str, InputRecord]:
    """Give the records of large inputs that have not changed since the stage in `final` finished."""
    manifest = read_manifest(final)
    if manifest is None:
        return {}
    try:
        before = msgspec.json.decode((final / RUN_RECORD).read_bytes(), type=RunRecord).traces
    except (FileNotFoundError, msgspec.DecodeError):
        return {}
    now = traces_of(inputs)
    return {role: manifest.inputs[role] for role in now if now[role] == before.get(role) and role in manifest.inputs}


def known_records(stage: Stage, final: Path) -> dict[str, InputRecord]:
    """Give the records of large inputs that have not changed, and of trees, which keep notes of their own."""
    return {**known_inputs(final, stage.inputs), **{role: name(final) for role, name in stage.trees.items()}}
