"""The chain of hashes: every file as its manifest lists it, every input as the stage before wrote it, nothing extra."""

import hashlib
import json
from pathlib import Path

import polars as pl

from culturekit.storage.digests import canonical_json
from culturekit.storage.manifest import JOURNAL, MANIFEST, RUN_RECORD, OutputRecord
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree

__all__ = ["check_chain", "fingerprint", "sha256_of"]

CHECK = "chain"
BESIDE = (MANIFEST, RUN_RECORD, JOURNAL)
"""What lies in a stage folder and is no output of the stage."""

STAGES_BEHIND = "the stages behind the release"
"""What a card names as an input that is no file: the keys of the stages it tells of, from the release back."""

EXPORTED = {".csv": "csv", ".jsonl": "jsonl"}


def check_chain(tree: RunTree, ledger: Ledger) -> None:
    """Follow the chain from the outputs of each stage to the inputs of the next."""
    for stage in tree.stages.values():
        with ledger.guarded(CHECK, stage.name):
            check_outputs(stage, ledger)
            check_key(stage, ledger)
    written = {
        record.sha256: stage.folder / name for stage in tree.stages.values() for name, record in outputs_of(stage)
    }
    for stage in tree.stages.values():
        with ledger.guarded(CHECK, stage.name):
            check_inputs(tree, stage, written, ledger)


def outputs_of(stage: FinishedStage) -> list[tuple[str, OutputRecord]]:
    """List the outputs that a manifest names."""
    return sorted(stage.manifest.outputs.items())


def sha256_of(path: Path) -> str:
    """Hash the bytes of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


def sha256_of_json(value: object) -> str:
    """Hash a value by its JSON with sorted keys and no spaces."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def sha256_of_tree(folder: Path) -> tuple[str, int, int]:
    """Hash the sorted list of the files below a folder, each with its own hash; give their number and bytes too."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    listing = [[path.relative_to(folder).as_posix(), sha256_of(path)] for path in files]
    text = json.dumps(listing, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest(), len(files), sum(path.stat().st_size for path in files)


def check_outputs(stage: FinishedStage, ledger: Ledger) -> None:
    """Hash what a stage wrote, and look for what it did not write."""
    manifest = stage.manifest
    for path in sorted(stage.folder.iterdir()):
        if path.name not in manifest.outputs and path.name not in BESIDE:
            ledger.broken(CHECK, f"{stage.name}/{path.name}", "is in no manifest", expected="only what the stage wrote")
    for path in stage.folder.rglob("*"):
        if path.is_symlink():
            ledger.broken(CHECK, str(path.relative_to(stage.folder.parent)), "a link leads out of the stage's folder")
    for name, record in outputs_of(stage):
        check_output(stage, name, record, ledger)
    content = sha256_of_json({name: record.sha256 for name, record in manifest.outputs.items()})
    if content != manifest.sha256:
        ledger.broken(
            CHECK, f"{stage.name}/{MANIFEST}", "the hash of all outputs is not that of the hashes listed",
            expected=content, found=manifest.sha256,
        )  # fmt: skip


def check_output(stage: FinishedStage, name: str, record: OutputRecord, ledger: Ledger) -> None:
    """Compare one output with its record: bytes, hash, number of files, number of rows."""
    path, where = stage.folder / name, f"{stage.name}/{name}"
    if not path.exists():
        ledger.broken(CHECK, where, "is gone", expected=f"SHA-256 {record.sha256}")
        return
    found, files, size = sha256_of_tree(path) if path.is_dir() else (sha256_of(path), 0, path.stat().st_size)
    ledger.count("files hashed", max(files, 1))
    if found != record.sha256:
        ledger.broken(CHECK, where, "is not what its stage wrote", expected=f"SHA-256 {record.sha256}", found=found)
    elif (files, size) != (record.files, record.bytes):
        ledger.broken(
            CHECK, where, "the manifest miscounts it", expected=f"{files} files, {size} bytes",
            found=f"{record.files} files, {record.bytes} bytes",
        )  # fmt: skip
    if path.suffix == ".parquet":
        with ledger.guarded(CHECK, where):
            rows = pl.scan_parquet(path).select(pl.len()).collect().item()
            ledger.count("tables counted")
            said = {stage.manifest.counts.get(path.stem, rows), rows if record.rows is None else record.rows}
            if said != {rows}:
                ledger.broken(CHECK, where, "the manifest counts other rows", expected=rows, found=sorted(said))


def check_key(stage: FinishedStage, ledger: Ledger) -> None:
    """Hash what decided the stage's bytes: its inputs, options and seeds, as the manifest names them."""
    manifest = stage.manifest
    value = {
        "kind": manifest.stage,
        "version": manifest.version,
        "inputs": {role: record.sha256 for role, record in manifest.inputs.items()},
        "options": manifest.options,
        "seeds": manifest.seeds,
    }
    exports = sorted({EXPORTED[Path(name).suffix] for name in manifest.outputs if Path(name).suffix in EXPORTED})
    keys = [sha256_of_json(value), *([sha256_of_json({**value, "exports": exports})] if exports else [])]
    ledger.count("keys worked out")
    if manifest.key not in keys:
        ledger.broken(
            CHECK, f"{stage.name}/{MANIFEST}", "the key is not that of its inputs, options and seeds",
            expected=keys[-1], found=manifest.key,
        )  # fmt: skip


def check_inputs(tree: RunTree, stage: FinishedStage, written: dict[str, Path], ledger: Ledger) -> None:
    """Find each input of a stage, by its place and then by its content, and hash what lies outside the run."""
    root = tree.root.resolve()
    for role, record in sorted(stage.manifest.inputs.items()):
        where = f"{stage.name} <- {role}"
        ledger.count("inputs followed")
        place = stage.places.get(role)
        inside = place is not None and place.resolve().is_relative_to(root) and not tree.alone
        if place is None or (inside and not place.exists()):
            source = whole_stage(tree, record.sha256, record.stage) or written.get(record.sha256)
            if source is not None:
                tree.sources[stage.name, role] = source
            elif place is None and not record.stage:
                ledger.note(CHECK, where, "is named by its content and its run does not say where it lay")
            else:
                ledger.broken(CHECK, where, "no stage of the run wrote this input", expected=f"SHA-256 {record.sha256}")
            continue
        if not place.exists():
            ledger.finding(
                CHECK, where, "lay outside this folder and is no longer there", expected=f"SHA-256 {record.sha256}",
                found=str(place),
            )  # fmt: skip
            continue
        follow(tree, stage, role, place, ledger)


IMAGES_OF_ANYBODY = "a folder of images"
"""What an input is called that is known by its pictures alone, also where a stage made the folder."""


def follow(tree: RunTree, stage: FinishedStage, role: str, place: Path, ledger: Ledger) -> None:
    """Compare what lies where an input was with what the manifest says of it."""
    record, where = stage.manifest.inputs[role], f"{stage.name} <- {role}"
    if record.name == STAGES_BEHIND:
        found = sha256_of_json(keys_behind(tree, place))
    elif place.is_dir():
        other = next((one for one in tree.stages.values() if one.folder.resolve() == place.resolve()), None)
        if record.name == IMAGES_OF_ANYBODY or (other is None and not (place / MANIFEST).is_file()):
            ledger.note(CHECK, where, "is a folder named by the content of its images; it was not hashed again")
            return
        found = other.manifest.sha256 if other else content_hash(place)
    else:
        found = sha256_of(place)
    if found == record.sha256:
        tree.sources[stage.name, role] = place
        return
    ledger.broken(
        CHECK, where, f"{stage.name} was not made from what lies there now", expected=f"SHA-256 {record.sha256}",
        found=f"{found} in {place.parent.name}/{place.name}",
    )  # fmt: skip


def keys_behind(tree: RunTree, release: Path) -> list[str]:
    """List the keys of a release and of the stages it goes back to, each once, the nearest first."""
    stages = {stage.folder.resolve(): stage for stage in tree.stages.values()}
    waiting, keys = [release], list[str]()
    while waiting:
        stage = stages.get(waiting.pop(0).resolve())
        if stage is None or stage.manifest.key in keys:
            continue
        keys.append(stage.manifest.key)
        above = [stage.places.get(role) for role, record in sorted(stage.manifest.inputs.items()) if record.stage]
        waiting += [place if place.is_dir() else place.parent for place in above if place is not None]
    return keys


def content_hash(folder: Path) -> str:
    """Hash what a folder outside the run holds now, output by output as its manifest names them."""
    names = json.loads((folder / MANIFEST).read_bytes())["outputs"]
    paths = {name: folder / Path(name).name for name in sorted(names)}
    return sha256_of_json(
        {
            name: (sha256_of_tree(path)[0] if path.is_dir() else sha256_of(path)) if path.exists() else "gone"
            for name, path in paths.items()
        }
    )


def whole_stage(tree: RunTree, sha256: str, kind: str) -> Path | None:
    """Find a stage of the run by the hash of all its outputs."""
    for stage in tree.stages.values():
        if stage.manifest.sha256 == sha256 and stage.manifest.stage == kind:
            return stage.folder
    return None


def fingerprint(tree: RunTree) -> str:
    """Hash all manifests of a run: whoever was told it beforehand knows that this is the run they were told of."""
    return sha256_of_json({name: sha256_of(stage.folder / MANIFEST) for name, stage in sorted(tree.stages.items())})
