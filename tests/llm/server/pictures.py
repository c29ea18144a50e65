"""The pictures that the image models of this server make: small, different for every question, hostile when told so."""

import io
import struct
import zlib
from hashlib import sha256

from PIL import Image

from tests.llm.server.script import Pictures

CONTENT_TYPES = {"png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp", "page": "text/html"}


def picture_bytes(digest: str, place: int, told: Pictures) -> bytes:
    """Draw a picture for one place in the reply to a question."""
    seed = sha256(f"{digest} {place}".encode()).digest()
    match told.form:
        case "page":
            return b"<html><body>not a picture</body></html>"
        case "bomb":
            return bomb(60_000)
        case "cut":
            return drawn(seed, told.side, "png")[:-20]
        case "none":
            return b""
        case "svg":
            return b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
        case form:
            return drawn(seed, told.side, "png" if form == "torn" else form)


def drawn(seed: bytes, side: int, form: str) -> bytes:
    """Draw four colours."""
    picture = Image.new("RGB", (2, 2))
    picture.putdata([tuple(seed[at : at + 3]) for at in (0, 3, 6, 9)])
    buffer = io.BytesIO()
    picture.resize((side, side), Image.Resampling.NEAREST).save(buffer, format=form.upper())
    return buffer.getvalue()


def bomb(side: int) -> bytes:
    """Write a PNG whose header states far more pixels than its bytes hold."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    parts = [(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(bytes(1000)))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in [*parts, (b"IEND", b"")])
