"""What a BMP file says of its picture: its size."""

from culturekit.storage.picture_facts import BrokenPicture, PictureFacts

__all__ = ["bmp_facts"]

OLD_HEADER = 12


def bmp_facts(content: bytes) -> PictureFacts:
    """Read the header of a BMP file; a negative height says that the rows go down."""
    if len(content) < 34:
        raise BrokenPicture("cut")
    if int.from_bytes(content[14:18], "little") == OLD_HEADER:
        return PictureFacts(int.from_bytes(content[18:20], "little"), int.from_bytes(content[20:22], "little"))
    width = int.from_bytes(content[18:22], "little", signed=True)
    height = int.from_bytes(content[22:26], "little", signed=True)
    packed = int.from_bytes(content[30:34], "little") in (1, 2)
    return PictureFacts(width, abs(height), working=2.0 if packed else 0.0)
