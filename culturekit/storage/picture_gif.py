"""What a GIF file says of its pictures: size, where the first one lies, and how many there are."""

from culturekit.storage.picture_facts import MOST_FRAMES, BrokenPicture, PictureFacts

__all__ = ["gif_facts"]

EXTENSION, PICTURE = 0x21, 0x2C


def gif_facts(content: bytes) -> PictureFacts:
    """Read the blocks of a GIF file."""
    if len(content) < 13:
        raise BrokenPicture("cut")
    width, height = little(content, 6), little(content, 8)
    at = 13 + palette_bytes(content[10])
    frames, box = 0, (0, 0, 0, 0)
    while at < len(content) and frames <= MOST_FRAMES:
        if content[at] == EXTENSION:
            at = after_blocks(content, at + 2)
        elif content[at] == PICTURE and at + 10 <= len(content):
            if not frames:
                left, top = little(content, at + 1), little(content, at + 3)
                box = (left, top, left + little(content, at + 5), top + little(content, at + 7))
            frames += 1
            at = after_blocks(content, at + 11 + palette_bytes(content[at + 9]))
        else:
            break
    if not frames:
        raise BrokenPicture("no picture in it")
    width, height = max(width, box[2]), max(height, box[3])
    whole = box == (0, 0, width, height)
    return PictureFacts(width, height, frames=frames, box=None if whole else box)


def little(content: bytes, at: int) -> int:
    """Read two bytes, the smaller first."""
    return content[at] | content[at + 1] << 8


def palette_bytes(flags: int) -> int:
    """Count the bytes of the palette that the flags announce."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def after_blocks(content: bytes, at: int) -> int:
    """Go over data blocks, each with its size before it, to what follows the empty one."""
    while at < len(content) and content[at]:
        at += content[at] + 1
    return at + 1
