"""Changing a finished run, and making its hashes fit again as far as a forger would."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
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


Tamper = Callable[[Path], object]  # Changes something below the folder of a run


def other_value(value: Any) -> Any:
    """Give another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value - 1 if value > 0 else value + 1
    if isinstance(value, float):
        return value * 0.5 + 0.001
    if isinstance(value, str):
        return value + "x"
    return list(reversed(value)) if len(value) > 1 else [*value, *value]


def edit_cell(path: Path) -> None:
    """Change the last cell of the first row that holds anything that can be changed."""
    table = pl.read_parquet(path)
    kinds = (pl.String, pl.Float64, pl.Float32, pl.Int64, pl.UInt32, pl.UInt16, pl.UInt8, pl.Boolean, pl.List)
    for column in reversed(table.columns):
        values = table[column]
        if not isinstance(values.dtype, kinds) or values.null_count() == table.height:
            continue
        row = int(values.is_not_null().arg_true()[0])
        given = values.to_list()
        changed = [other_value(value) if number == row else value for number, value in enumerate(given)]
        if changed != given:
            table.with_columns(pl.Series(column, changed, values.dtype)).write_parquet(path)
            return
    raise AssertionError(f"nothing can be changed in {path}")


def drop_row(path: Path) -> None:
    """Leave the first row out."""
    change_table(path, lambda table: table.slice(1))


def edit_array(path: Path) -> None:
    """Change one number."""
    array = np.load(path)
    flat = array.reshape(-1)
    flat[len(flat) // 2] += 1
    np.save(path, array)


def edit_text(path: Path) -> None:
    """Change one letter of prose, or one digit, in the middle of a text."""
    text = path.read_text(encoding="utf-8")
    at = next(place for place in range(len(text) // 2, len(text)) if text[place].isalnum() and text[place].isascii())
    path.write_text(f"{text[:at]}{'7' if text[at] != '7' else '8'}{text[at + 1 :]}", encoding="utf-8")


def edit_tree(path: Path) -> None:
    """Put another file in the place of the first one below a folder, or change that where it is alone."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    first = files[0]
    other = next(
        (file for file in files if file.suffix == first.suffix and file.read_bytes() != first.read_bytes()), None
    )
    if other is not None:
        shutil.copyfile(other, first)
    else:
        first.write_bytes(first.read_bytes() + b" ")


def edit_output(path: Path) -> None:
    """Change an output of whatever form."""
    if path.is_dir():
        edit_tree(path)
    elif path.suffix == ".parquet":
        edit_cell(path)
    elif path.suffix == ".npy":
        edit_array(path)
    else:
        edit_text(path)


def in_text(path: str, old: str, new: str) -> Tamper:
    """Replace a text that stands in a file, once."""

    def change(root: Path) -> None:
        text = (root / path).read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {path}"
        (root / path).write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


def in_json(path: str, *keys: str | int, to: Any) -> Tamper:
    """Put another value into a JSON file: what `to` gives for the one that stands there, or `to` itself."""

    def change(root: Path) -> None:
        whole = read_json(root / path)
        part = whole
        for key in keys[:-1]:
            part = part[key]
        before = part.get(keys[-1]) if isinstance(part, dict) else part[keys[-1]]
        part[keys[-1]] = to(before) if callable(to) else to
        assert part[keys[-1]] != before
        write_json(root / path, whole)

    return change


def in_recipe(*keys: str | int, to: Any) -> Tamper:
    """Change the recipe of a run, in the form in which a run writes it."""

    def change(root: Path) -> None:
        in_json("recipe.json", *keys, to=to)(root)
        whole = json.loads((root / "recipe.json").read_bytes())
        text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        (root / "recipe.json").write_text(f"{text}\n", encoding="utf-8")

    return change
