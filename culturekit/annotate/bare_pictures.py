"""Pictures as annotators get them: pixels and nothing else, under names that tell nothing."""

from dataclasses import dataclass
from pathlib import Path

from culturekit.storage.atomic import write_atomically
from culturekit.storage.picture_files import encoded
from culturekit.storage.picture_reading import NoPicture, read_inside

__all__ = ["BarePicture", "copy_bare"]


@dataclass(frozen=True, slots=True)
class BarePicture:
    """A picture to copy: where it lies, the hash it must have, and where it goes."""

    image_id: str
    root: Path
    relative: str
    sha256: str
    to: Path


def copy_bare(picture: BarePicture) -> str | None:
    """Write the pixels of a picture again, as PNG: no text, date, format or profile of the file goes along.

    Returns why it could not be read, or None.
    """
    found = read_inside(picture.root, picture.relative, sha256=picture.sha256 or None)
    if isinstance(found, NoPicture):
        return f"{found.reason}: {found.detail}" if found.detail else found.reason
    write_atomically(picture.to, encoded(found.pixels))
    return None
