"""Changing a finished run, and making its hashes fit again as far as a forger would."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.core.digests import describe_outputs, digest, digest_file


def read_json(path: Path) -> Any:
    return json.loads(path.read_bytes())


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")


def change_table(path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    before = pl.read_parquet(path)
    after = change(before)
    assert not after.equals(before), "the tampering must change something"
    after.write_parquet(path)


def reseal(folder: Path) -> None:
    """Make a manifest list what lies in its folder now."""
    manifest = read_json(folder / "manifest.json")
    counts = {path.stem: pl.read_parquet(path).height for path in folder.glob("*.parquet")}
    manifest["counts"] = {name: counts.get(name, count) for name, count in manifest["counts"].items()}
    rows = {name: counts[Path(name).stem] for name, record in manifest["outputs"].items() if "rows" in record}
    sha256, outputs = describe_outputs(folder, rows)
    manifest["sha256"] = sha256
    manifest["outputs"] = {
        name: {key: value for key, value in vars_of(record).items() if value not in (None, 0) or key == "bytes"}
        for name, record in outputs.items()
    }
    for name, count in rows.items():
        manifest["outputs"][name]["rows"] = count
    write_json(folder / "manifest.json", manifest)


def vars_of(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in ("sha256", "bytes", "files", "rows")}


def reseal_all(root: Path) -> None:
    """Make all manifests of a run fit one another again, from the dump to the report."""
    for _ in range(20):
        changed = False
        for folder in sorted(path for path in root.iterdir() if (path / "manifest.json").is_file()):
            before = (folder / "manifest.json").read_bytes()
            reseal(folder)
            renew_inputs(folder)
            changed |= (folder / "manifest.json").read_bytes() != before
        if not changed:
            return
    raise AssertionError("the manifests of a run never settle")


def renew_inputs(folder: Path) -> None:
    manifest, record = read_json(folder / "manifest.json"), read_json(folder / "run.json")
    for role, known in manifest["inputs"].items():
        path = Path(record["outside"].get(role, folder / record["inputs"][role]))
        known["sha256"] = read_json(path / "manifest.json")["sha256"] if path.is_dir() else digest_file(path)
    manifest["key"] = digest(
        {
            "kind": manifest["stage"],
            "version": manifest["version"],
            "inputs": {role: known["sha256"] for role, known in manifest["inputs"].items()},
            "options": manifest["options"],
            "seeds": manifest["seeds"],
        }
    )
    write_json(folder / "manifest.json", manifest)
