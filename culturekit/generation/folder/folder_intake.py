"""Importing the pictures of a folder: each read once, copied as it is or written again, or a row with the reason."""

import io
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import polars as pl
from PIL import Image

from culturekit.generation.folder.folder_hashes import changed_meanwhile
from culturekit.generation.folder.folder_listing import PictureFile, shown
from culturekit.generation.folder.folder_plan import FolderPlan, Row
from culturekit.generation.picture_store import linked, placed
from culturekit.records.choices import PictureFormat
from culturekit.records.schemas import IMAGES
from culturekit.storage.digests import digest, digest_bytes
from culturekit.storage.picture_files import encoded
from culturekit.storage.picture_reading import NoPicture, picture_from, read_bytes_inside
from culturekit.storage.seals import seal_pictures
from culturekit.storage.tables import save_parquet

__all__ = [
    "FOLDER_SCHEMA",
    "Handling",
    "Intake",
    "Shard",
    "Taking",
    "duplicates_of",
    "image_id_of",
    "table_row",
    "take_shard",
]

DEFAULTS: Mapping[str, Any] = {
    "path": "",
    "rewriter": "unknown",
    "provider_params": "{}",
    "sha256": "",
    "width": 0,
    "height": 0,
}
"""What stands of an image of which nobody says more; all else is empty."""


def image_id_of(row: Row) -> str:
    """Name an image: the same file under the same name and model has the same id, wherever the folder lies."""
    model = row.cells["model"]
    if row.source is None:
        return digest([model, row.cells["prompt_id"], row.cells["repeat"], row.cells["slot"], "missing"])[:16]
    return digest([model, row.source, row.file.sha256 if row.file else ""])[:16]


def table_row(row: Row, *, duplicate_of: str | None = None) -> dict[str, Any]:
    """Write a row as the table has it; what only reading the picture tells is still to come."""
    return {
        **DEFAULTS,
        **row.cells,
        "image_id": image_id_of(row),
        "status": row.status,
        "reason": row.reason,
        "source": row.source,
        "source_sha256": row.file.sha256 if row.file and row.file.sha256 else None,
        "duplicate_of": duplicate_of,
    }


def duplicates_of(plan: FolderPlan) -> dict[int, int]:
    """Find files with the same bytes: for each further one, by its place among the rows, the place of the first."""
    first: dict[str, int] = {}
    found: dict[int, int] = {}
    for place, row in enumerate(plan.rows):
        if row.file is not None and row.file.sha256:
            original = first.setdefault(row.file.sha256, place)
            if original != place:
                found[place] = original
    return found


def label_of(row: Row) -> str:
    """Call a row by its file, for people."""
    return row.source if row.source is not None else shown(str(row.cells["prompt_id"]))


Taking: TypeAlias = Literal["link", "copy"]
"""How a file that can stay as it is comes into the new folder: as a second name of the same file, or as a copy."""

SUFFIXES = {"JPEG": "jpg", "TIFF": "tif"}
FOLDER_OPTIONAL = ("concept", "country", "source", "source_sha256", "duplicate_of")
FOLDER_SCHEMA: Mapping[str, pl.DataType] = {
    **IMAGES.schema,
    **{name: IMAGES.optional[name].dtype for name in FOLDER_OPTIONAL},
}
"""The columns of an images table made from a folder."""


@dataclass(frozen=True, slots=True)
class Handling:
    """How files are copied, and in which format the others are written again; the first decides no byte."""

    files: Taking = "link"
    format: PictureFormat = "png"


@dataclass(frozen=True, slots=True)
class Intake:
    """A picture to import: its row to be, and the image whose bytes it repeats."""

    row: Row
    duplicate_of: str | None


@dataclass(frozen=True, slots=True)
class Shard:
    """A run of pictures, as a work item."""

    root: Path
    out: Path
    part: Path
    handling: Handling
    pictures: tuple[Intake, ...]


def take_shard(shard: Shard) -> int:
    """Import the pictures of a shard, then write its part of the table."""
    rows = []
    for intake in shard.pictures:
        row = table_row(intake.row, duplicate_of=intake.duplicate_of)
        rows.append({**row, **taken(intake.row, row["image_id"], shard)})
    save_parquet(pl.DataFrame(rows, schema=FOLDER_SCHEMA), shard.part)
    seal_pictures(shard.part, shard.out, rows)
    return len(rows)


def taken(row: Row, image_id: str, shard: Shard) -> dict[str, Any]:
    """Import one picture; give what its row says of it.

    Raises:
        IntegrityError: the file is no longer the one that was hashed.
    """
    file = row.file
    assert file is not None
    path = shard.root / file.name
    content = read_bytes_inside(shard.root, file.name)
    if not unchanged(path, file):
        raise changed_meanwhile(shard.root, file.name)
    if isinstance(content, NoPicture):
        return failed(content)
    if digest_bytes(content) != file.sha256:
        raise changed_meanwhile(shard.root, file.name)
    picture = picture_from(content)
    if isinstance(picture, NoPicture):
        return failed(picture)
    changed = picture.changed or other_colours(content, picture.format)
    form = shard.handling.format if changed else SUFFIXES.get(picture.format, picture.format.lower())
    relative = f"files/{image_id[:2]}/{image_id}.{form}"
    to = shard.out / relative
    if changed:
        content = encoded(picture.pixels, shard.handling.format)
        placed(content, to)
    else:
        take_over(content, file, to, shard)
    height, width, _ = picture.pixels.shape
    reasons = [*filter(None, [row.reason]), *changed]
    return {
        "path": relative,
        "sha256": digest_bytes(content),
        "width": width,
        "height": height,
        "status": "ok",
        "reason": "; ".join(reasons) or None,
    }


def other_colours(content: bytes, form: str) -> tuple[str, ...]:
    """Say in words what a picture is stored as that shows as it is, but not as three colours: grey, a palette."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content), formats=[form]) as opened:
                return () if opened.mode == "RGB" else (f"{opened.mode} to RGB",)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return (f"{form} written anew",)


def take_over(content: bytes, file: PictureFile, to: Path, shard: Shard) -> None:
    """Link a file that can stay as it is, or write its bytes."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if shard.handling.files == "copy" or not linked(shard.root / file.name, to):
        placed(content, to)
    elif not unchanged(to, file):
        raise changed_meanwhile(shard.root, file.name)


def unchanged(path: Path, file: PictureFile) -> bool:
    """Tell whether a file still has the size and the time that it was listed with."""
    try:
        state = os.stat(path)  # noqa: PTH116
    except OSError:
        return False
    return (state.st_size, state.st_mtime_ns) == (file.size, file.changed)


def failed(why: NoPicture) -> dict[str, Any]:
    """Say why there is no picture."""
    return {"status": "failed", "reason": f"{why.reason}: {why.detail}" if why.detail else why.reason}
