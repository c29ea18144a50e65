"""Changing one output of a finished stage, as little as can be: a cell, a row, a vector, a word, a picture."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tests.verify.forging import change_table, read_json, write_json

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
