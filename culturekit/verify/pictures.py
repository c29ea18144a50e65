"""Tables of images against their files and prompts; a sample of the pictures is decoded."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, TypeAlias, TypeVar

import polars as pl

from culturekit.core.digests import digest_file
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.pictures.picture_reading import read_inside
from culturekit.core.schemas import IMAGES
from culturekit.verify.chain import FinishedStage, Ledger, RunTree

IMAGES_FILE = f"{IMAGES.name}.parquet"

_SHOWN = 3
_DECODED = 32  # pictures of a stage, spread over its table

_Item = TypeVar("_Item")
_Problem: TypeAlias = tuple[str, str, object, object]  # where, what, expected, found


def check_images(tree: RunTree, stage: FinishedStage, ledger: Ledger, *, everything: bool) -> None:
    """Compare a table of images with its files and with the prompts that they were made from."""
    rows = pl.read_parquet(stage.folder / IMAGES_FILE).to_dicts()
    _report(stage, "pictures compared with their rows", len(rows), list(_against_files(stage, rows)), ledger)
    _check_cells(stage, rows, ledger)
    place = stage.places.get("prompts")
    record = None if place is None else tree.record(place)
    if place is not None and place.suffix == ".parquet" and record == stage.manifest.inputs["prompts"]:
        prompts = {row["prompt_id"]: row for row in pl.read_parquet(place).to_dicts()}
        wrong = [found for row in rows for found in _against_prompt(stage, row, prompts)]
        _report(stage, "images compared with their prompts", len(rows), wrong, ledger)
    there = [row for row in rows if row["status"] == "ok"]
    sample = there if everything else _spread(there, _DECODED)
    _report(stage, "pictures decoded again", len(sample), [f for row in sample for f in _decoded(stage, row)], ledger)


def _report(stage: FinishedStage, what: str, count: int, problems: Sequence[_Problem], ledger: Ledger) -> None:
    """Count what was compared, and tell the first problems."""
    ledger.count(what, count)
    for where, problem, expected, found in problems[:_SHOWN]:
        ledger.broken("images", where, problem, expected=expected, found=found)
    if len(problems) > _SHOWN:
        ledger.broken("images", f"{stage.name}/{IMAGES_FILE}", f"and {len(problems) - _SHOWN:,} more such differences")


def _spread(items: Sequence[_Item], count: int) -> list[_Item]:
    """Take items from first to last, evenly."""
    if len(items) <= count:
        return list(items)
    return [items[number * (len(items) - 1) // (count - 1)] for number in range(count)]


def _against_files(stage: FinishedStage, rows: Sequence[Mapping[str, Any]]) -> Iterator[_Problem]:
    """List files that are not as the table says: each where it is said to be, with its hash, and no other."""
    named = set()
    for row in rows:
        place, path = f"{stage.name}/{row['path']} (image {row['image_id']})", PurePosixPath(row["path"])
        if row["status"] != "ok":
            continue
        if path.is_absolute() or ".." in path.parts or not row["path"]:
            yield place, "the path leads out of the folder", "a path below it", row["path"]
            continue
        named.add(row["path"])
        file = stage.folder / path
        if not file.is_file():
            yield place, "the picture is gone", row["sha256"], "no file"
        elif (content := digest_file(file)) != row["sha256"]:
            yield place, "the picture is not the one that the table describes", row["sha256"], content
    folders = [stage.folder / name for name, record in stage.manifest.outputs.items() if record.files]
    for file in (file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()):
        name = file.relative_to(stage.folder).as_posix()
        if name not in named:
            yield f"{stage.name}/{name}", "the picture is in no row of the table", "a row", "none"


def _check_cells(stage: FinishedStage, rows: Sequence[Mapping[str, Any]], ledger: Ledger) -> None:
    """Compare how many images there are with the manifest, and look for two of one prompt, repeat and slot."""
    where, wanted = f"{stage.name}/{IMAGES_FILE}", stage.manifest.counts
    for name, found in (("images", len(rows)), ("ok", sum(row["status"] == "ok" for row in rows))):
        if wanted.get(name, found) != found:
            ledger.broken("images", where, f"the manifest counts other {name}", expected=found, found=wanted[name])
    cells = Counter((row["model"], row["prompt_id"], row["repeat"], row["slot"]) for row in rows)
    twice = [cell for cell, count in cells.items() if count > 1 and None not in cell]
    if twice:
        ledger.broken("images", where, "two images are of one prompt, repeat and slot", found=twice[0])


def _against_prompt(
    stage: FinishedStage, row: Mapping[str, Any], prompts: Mapping[str, Mapping[str, Any]]
) -> Iterator[_Problem]:
    """List in what an image departs from its prompt."""
    where = f"{stage.name}/{IMAGES_FILE}"
    if row["prompt_id"] is None:
        return
    prompt = prompts.get(row["prompt_id"])
    if prompt is None:
        problem = f"image {row['image_id']} is of a prompt that is not there"
        yield where, problem, "one of the prompts", row["prompt_id"]
        return
    pairs = [(name, prompt[name], row.get(name)) for name in ("concept", "country") if row.get(name) is not None]
    if row["rewriter"] == "off" and row["prompt_sent"] is not None:
        pairs.append(("the prompt sent", prompt["text"], row["prompt_sent"]))
    for name, expected, found in pairs:
        if expected != found:
            yield where, f"image {row['image_id']}: {name} is not the prompt's", expected, found


def _decoded(stage: FinishedStage, row: Mapping[str, Any]) -> Iterator[_Problem]:
    """Decode a picture, and compare its size with its row."""
    picture = read_inside(stage.folder, row["path"], sha256=row["sha256"])
    where, size = f"{stage.name}/{row['path']}", f"{row['width']} × {row['height']}"
    if isinstance(picture, NoPicture):
        yield where, "the picture cannot be read", size, picture.reason
    elif picture.pixels.shape[:2] != (row["height"], row["width"]):
        height, width = picture.pixels.shape[:2]
        yield where, "the picture has another size than its row", size, f"{width} × {height}"
