"""Small copies of pictures, which the page links to: what is small already is copied, the rest is scaled down."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from culturekit.records.schemas import IMAGES
from culturekit.report.inert import plain
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest_bytes
from culturekit.storage.picture_reading import NoPicture, picture_from, read_bytes_inside
from culturekit.storage.tables import read_table

__all__ = ["LARGEST_SIDE", "NO_COPY", "Copied", "copies", "small_copy", "thumbnail_name"]

NO_COPY = "picture that cannot be read, or is not the one of its table"
"""Why a grey picture stands in the place of one."""

LARGEST_SIDE = 192
"""Pixels; twice what the page shows, for dense screens."""

JPEG_QUALITY = 82


@dataclass(frozen=True, slots=True)
class Copied:
    """A picture to be copied: where it lies below the run, where its small copy goes, and the hash its table states."""

    root: Path
    source: str
    target: Path
    sha256: str | None = None


def copies(root: Path, thumbnails: Mapping[str, str], folder: Path) -> list[Copied]:
    """List the pictures to copy into a folder, by name, with what the tables of their stages say of them."""
    said: dict[str, str] = {}
    for stage in {source.partition("/")[0] for source in thumbnails.values()}:
        if (table := root / stage / f"{IMAGES.name}.parquet").is_file():
            said |= {
                f"{stage}/{path}": sha256 for path, sha256 in read_table(table, IMAGES)["path", "sha256"].iter_rows()
            }
    return [Copied(root, source, folder / name, said.get(source)) for name, source in sorted(thumbnails.items())]


def thumbnail_name(image_id: str, width: int | None, height: int | None) -> str:
    """Name the copy of a picture: what has to be scaled becomes a JPEG."""
    small = width is not None and height is not None and max(width, height) <= LARGEST_SIDE
    return f"{plain(image_id)}.{'png' if small else 'jpg'}"


def small_copy(wanted: Copied) -> bool:
    """Write the small copy of a picture; a grey one, and False, where there is none to be read, or another."""
    content = read_bytes_inside(wanted.root, wanted.source)
    if isinstance(content, NoPicture) or (wanted.sha256 and digest_bytes(content) != wanted.sha256):
        write_atomically(wanted.target, encoded(nothing(), wanted.target))
        return False
    if wanted.target.suffix == ".png":
        write_atomically(wanted.target, content)
        return True
    found = picture_from(content)
    readable = not isinstance(found, NoPicture)
    picture = nothing() if isinstance(found, NoPicture) else Image.fromarray(found.pixels)
    picture.thumbnail((LARGEST_SIDE, LARGEST_SIDE), Image.Resampling.LANCZOS)
    write_atomically(wanted.target, encoded(picture, wanted.target))
    return readable


def nothing() -> Image.Image:
    """Make the picture that stands where there is none."""
    return Image.new("RGB", (16, 16), (128, 128, 128))


def encoded(picture: Image.Image, target: Path) -> bytes:
    """Encode a picture in the format that its name says."""
    held = io.BytesIO()
    if target.suffix == ".png":
        picture.save(held, "PNG")
    else:
        picture.save(held, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return held.getvalue()
