"""Pictures from the files of an images table, safe to send: whole, of the size they claim, and inside their folder."""

import io
import warnings
from dataclasses import dataclass
from pathlib import Path

from PIL import Image as Pictures

from culturekit.errors import IntegrityError
from culturekit.llm.client import Image
from culturekit.llm.images import image_from_bytes
from culturekit.storage.digests import digest_bytes

__all__ = ["MAX_BYTES", "MAX_PIXELS", "NoPicture", "read_picture"]

MAX_BYTES = 20_000_000
MAX_PIXELS = 50_000_000
"""No judge looks at more, and a small file can claim to be far larger."""

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")


@dataclass(frozen=True, slots=True)
class NoPicture:
    """Why there is no picture to send."""

    reason: str
    detail: str = ""


def read_picture(root: Path, relative: str, *, sha256: str) -> Image | NoPicture:
    """Read the picture of an images row, at the size that judges are shown, or say why it cannot be shown."""
    path = root / relative
    if not path.resolve().is_relative_to(root.resolve()):
        return NoPicture("picture outside its table's folder", relative)
    try:
        if not path.is_file():
            return NoPicture("no picture file", relative)
        if path.stat().st_size > MAX_BYTES:
            return NoPicture("picture too large", f"{path.stat().st_size:,} bytes, at most {MAX_BYTES:,}")
        content = path.read_bytes()
    except OSError as error:
        return NoPicture("picture file cannot be read", error.strerror or str(error))
    if digest_bytes(content) != sha256:
        return NoPicture("picture is not the one its table describes", f"SHA-256 {digest_bytes(content)}")
    return shown(content)


def shown(content: bytes) -> Image | NoPicture:
    """Prepare a picture for a judge, after its header says that there are not too many pixels."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Pictures.DecompressionBombWarning)
            with Pictures.open(io.BytesIO(content), formats=FORMATS) as picture:
                width, height = picture.size
        if width * height > MAX_PIXELS:
            return NoPicture("picture too large", f"{width} × {height} pixels, at most {MAX_PIXELS:,} in all")
        return image_from_bytes(content)
    except Pictures.DecompressionBombError:
        return NoPicture("picture too large", f"more than {MAX_PIXELS:,} pixels")
    except (IntegrityError, OSError, ValueError, SyntaxError, EOFError, OverflowError, MemoryError) as error:
        return NoPicture("picture cannot be read", type(error).__name__)
