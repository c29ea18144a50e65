"""Pictures from files: the pixels an image table promises, or a reason."""

from pathlib import Path

from culturekit.errors import IntegrityError
from culturekit.storage.digests import digest_bytes
from culturekit.storage.picture_limits import ABSENT, CHANGED, IRREGULAR, OUTSIDE, UNOPENED
from culturekit.storage.picture_reading import (
    NoPicture,
    Pixels,
    picture_from,
    read_bytes_inside,
)

__all__ = ["load_picture", "promised_bytes", "try_picture"]

NOT_AS_PROMISED = {ABSENT, CHANGED, IRREGULAR, OUTSIDE, UNOPENED}
"""The folder is not what its table says, which no report of single images should hide."""


def try_picture(root: Path, relative: str, *, sha256: str) -> Pixels | NoPicture:
    """Load the picture of an images row as uint8 (height, width, 3), or say why its file holds none that is read.

    Raises:
        IntegrityError: the file is missing, outside the table's folder, or not the one that the row describes.
    """
    content = promised_bytes(root, relative, sha256=sha256)
    if isinstance(content, NoPicture):
        return content
    found = picture_from(content)
    return found if isinstance(found, NoPicture) else found.pixels


def promised_bytes(root: Path, relative: str, *, sha256: str) -> bytes | NoPicture:
    """Read the file of an images row, or say why it holds no picture that is read.

    Raises:
        IntegrityError: the file is missing, outside the table's folder, or not the one that the row describes.
    """
    found = read_bytes_inside(root, relative)
    if not isinstance(found, NoPicture) and digest_bytes(found) != sha256:
        found = NoPicture(CHANGED, f"SHA-256 {digest_bytes(found)}")
    if isinstance(found, NoPicture) and found.reason in NOT_AS_PROMISED:
        raise IntegrityError(
            f"an image is not as its table promises: {found.reason}",
            where=f"{root}/{relative}",
            expected=f"SHA-256 {sha256}",
            found=found.detail,
        )
    return found


def load_picture(root: Path, relative: str, *, sha256: str) -> Pixels:
    """Load the picture of an images row, which has to hold one.

    Raises:
        IntegrityError: it does not, or the file is missing, outside the table's folder, or not the one of the row.
    """
    found = try_picture(root, relative, sha256=sha256)
    if isinstance(found, NoPicture):
        raise IntegrityError(
            "an image of the table holds no picture that is read",
            where=f"{root}/{relative}",
            found=f"{found.reason} ({found.detail})" if found.detail else found.reason,
        )
    return found
