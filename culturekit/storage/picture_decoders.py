"""Pillow's decoders of the six formats that are read, each by its own class and without its warnings."""

import struct
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO

from PIL import BmpImagePlugin, GifImagePlugin, Image, ImageFile, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
from PIL.TiffImagePlugin import TiffImageFile

__all__ = ["DECODERS", "DECODING_FAILED", "quiet"]

DECODING_FAILED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    Image.DecompressionBombError,
    struct.error,
    zlib.error,
)
"""What Pillow was seen to raise over broken files; the one list of it."""


class PlainTiff(TiffImageFile):
    """A TIFF whose pixels are all that is read.

    As it comes, the class reads every tag of every directory below the first once the pixels are there, and turns them
    in a second copy.
    """

    def load_end(self) -> None:
        """Leave the pixels as they are stored, and the tags unread."""
        self._size = self.im.size


DECODERS: Mapping[str, Callable[[BinaryIO], ImageFile.ImageFile]] = {
    "BMP": BmpImagePlugin.BmpImageFile,
    "GIF": GifImagePlugin.GifImageFile,
    "JPEG": JpegImagePlugin.JpegImageFile,
    "PNG": PngImagePlugin.PngImageFile,
    "TIFF": PlainTiff,
    "WEBP": WebPImagePlugin.WebPImageFile,
}


class Silence:
    """How many threads decode; the warnings of Pillow are off while any does."""

    def __init__(self) -> None:
        """Begin with none."""
        self.lock = threading.Lock()
        self.threads = 0
        self.caught = warnings.catch_warnings()

    def begin(self) -> None:
        """Count a thread in."""
        with self.lock:
            if not self.threads:
                self.caught = warnings.catch_warnings()
                self.caught.__enter__()
                warnings.filterwarnings("ignore", module=r"PIL\.")
            self.threads += 1

    def end(self) -> None:
        """Count a thread out."""
        with self.lock:
            self.threads -= 1
            if not self.threads:
                self.caught.__exit__(None, None, None)


SILENCE = Silence()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Pillow from warning of what a picture's own reason says; unlike the standard way, from several threads."""
    SILENCE.begin()
    try:
        yield
    finally:
        SILENCE.end()
