"""Matches that are compared come from one index and one mapping rule, as the manifests behind tables tell."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from culturekit.core.digests import Manifest, read_manifest
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.lineage import recorded
from culturekit.core.schemas import MATCHES

MAP = "map"
"""The kind of the stage that maps images to the artifacts of an index."""

DEPTH = "k"
"""How many neighbours are kept: the nearest stays the same."""


def check_mapped_alike(tables: Sequence[Path]) -> None:
    """Refuse tables of matches, or of scores of them, that were mapped through different indexes or by other rules.

    What no manifest tells, as of tables that somebody merged, is not known.
    """
    known: Mapping[str, Any] = {}
    for path in tables:
        for mapped in maps_behind(path):
            own = {**mapped.options, "index": mapped.inputs["index"].sha256[:12], DEPTH: None}
            known = known or own
            apart = [name for name in sorted({*known, *own}) if known.get(name) != own.get(name)]
            if apart:
                raise UsageError(
                    "models are compared that were mapped in different ways", where=", ".join(map(str, tables)),
                    expected=", ".join(f"{name} {known.get(name)}" for name in apart),
                    found=", ".join(f"{name} {own.get(name)}" for name in apart),
                    hint="Map the images of all models with one index and the same options.",
                )  # fmt: skip


def check_mapped_through(index: Path, tables: Sequence[Path]) -> None:
    """Refuse tables of matches that were mapped through another index than one that is looked at."""
    wanted = read_manifest(index)
    for path in tables:
        for through in [mapped.inputs["index"].sha256 for mapped in maps_behind(path)]:
            if wanted is not None and through != wanted.sha256:
                raise UsageError(
                    "these images were mapped through another index", where=str(path),
                    expected=f"index {wanted.sha256[:12]} ({index})", found=f"index {through[:12]}",
                    hint="Map them through this one, or name the index they were mapped through.",
                )  # fmt: skip


def maps_behind(table: Path) -> Iterator[Manifest]:
    """Give the stages that mapped what a table is, or was made of, where they are still there as they were."""
    manifest = read_manifest(table.parent)
    if manifest is None or table.name not in manifest.outputs:
        return
    if manifest.stage == MAP:
        yield manifest
    file = f"{MATCHES.name}.parquet"
    for role, record in manifest.inputs.items():
        if record.stage == MAP and record.name == file:
            with suppress(IntegrityError):  # where it lay is no longer known
                behind = read_manifest(recorded(table.parent, role).parent)
                if behind is not None and file in behind.outputs and behind.outputs[file].sha256 == record.sha256:
                    yield behind
