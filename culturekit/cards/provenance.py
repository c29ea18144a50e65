"""Where a release comes from: the manifests of the stages behind it, found by hash and carried in the card."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from culturekit.errors import CultureKitError, IntegrityError
from culturekit.storage.atomic import copy_file
from culturekit.storage.manifest import MANIFEST, Manifest, read_manifest
from culturekit.trail.upstream import manifest_of, upstream

__all__ = ["MANIFESTS", "carried_manifests", "carry_manifests", "keys_behind", "not_at_hand"]

MANIFESTS = "manifests"


def carry_manifests(release: Path, folder: Path) -> None:
    """Copy the manifest of a release, and of every stage behind it that is still where its run found it."""
    place = folder / MANIFESTS
    place.mkdir()
    for number, stage in enumerate(chain(release), start=1):
        manifest = manifest_of(stage)
        copy = place / f"{number:02}-{manifest.stage}"
        copy.mkdir()
        copy_file(stage / MANIFEST, copy / MANIFEST)


def keys_behind(release: Path) -> list[str]:
    """Give the keys of the stages that a card of a release would carry."""
    return [manifest_of(stage).key for stage in chain(release)]


def chain(release: Path) -> Iterator[Path]:
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
