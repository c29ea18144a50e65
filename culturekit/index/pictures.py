"""Pictures from files: the pixels an image table promises, or a reason."""

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.errors import IntegrityError
from culturekit.storage.digests import digest_bytes

__all__ = ["load_picture"]


def load_picture(root: Path, relative: str, *, sha256: str) -> NDArray[np.uint8]:
    """Load the picture of an images row as uint8 (height, width, 3), if it is still the one the row describes."""
    path = root / relative
    if not path.resolve().is_relative_to(root.resolve()):
        raise IntegrityError("an image lies outside its table's folder", where=str(root), found=relative)
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise IntegrityError("an image of the table is missing", where=str(path)) from error
    if digest_bytes(content) != sha256:
        raise IntegrityError(
            "an image is not the one its table describes", where=str(path), expected=f"SHA-256 {sha256}"
        )
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture.convert("RGB"))
