"""How this server counts tokens: by a rule anyone can repeat, never more than the bytes of what is counted."""

import struct
from functools import lru_cache

__all__ = ["count_image", "count_text"]


def count_text(text: str) -> int:
    """Count a quarter of the ASCII characters and every other character, rounded up."""
    ascii_count = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return (ascii_count + 3) // 4 + len(text) - ascii_count


@lru_cache(maxsize=1024)
def count_image(content: bytes, provider: str) -> int:
    """Count an image by its tiles: 85 and 170 a tile of 512 for OpenAI, 258 a tile of 768 for Google."""
    width, height = image_size(content)
    if provider == "openai":
        scale = min(1.0, 2048 / max(width, height), 768 / min(width, height))
        tiles = -(-round(width * scale) // 512) * -(-round(height * scale) // 512)
        return 85 + 170 * tiles
    if width <= 384 and height <= 384:
        return 258
    return 258 * (-(-width // 768) * -(-height // 768))


def image_size(content: bytes) -> tuple[int, int]:
    """Read width and height from the head of a PNG, a JPEG, a GIF or a WebP; 1024 squared where there is none."""
    if content[:8] == b"\x89PNG\r\n\x1a\n" and len(content) >= 24:
        width, height = struct.unpack(">II", content[16:24])
        return max(width, 1), max(height, 1)
    if content[:6] in {b"GIF87a", b"GIF89a"} and len(content) >= 10:
        width, height = struct.unpack("<HH", content[6:10])
        return max(width, 1), max(height, 1)
    return _jpeg_size(content) if content[:2] == b"\xff\xd8" else (1024, 1024)


def _jpeg_size(content: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 < len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return max(width, 1), max(height, 1)
        at += 2 + struct.unpack(">H", content[at + 2 : at + 4])[0]
    return 1024, 1024
