"""Pictures from the files of an images table, as judges are shown them."""

from pathlib import Path

from culturekit.llm.client import Image
from culturekit.llm.clients.images import image_of
from culturekit.storage.picture_reading import LIMITS, NoPicture, PictureLimits, read_inside

__all__ = ["read_picture"]


def read_picture(root: Path, relative: str, *, sha256: str, limits: PictureLimits = LIMITS) -> Image | NoPicture:
    """Read the picture of an images row, at the size that judges are shown, or say why it cannot be shown."""
    found = read_inside(root, relative, sha256=sha256, limits=limits)
    return found if isinstance(found, NoPicture) else image_of(found.pixels)
