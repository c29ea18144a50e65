"""What a JPEG file says of its picture: size, way up, and how much work its scans are."""

from collections.abc import Iterator

from culturekit.storage.picture_facts import BrokenPicture, CostlyPicture, PictureFacts
from culturekit.storage.picture_orientation import exif_orientation

__all__ = ["jpeg_facts"]

STARTS_OF_FRAME = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
PROGRESSIVE = {0xC2, 0xC6, 0xCA, 0xCE}
START_OF_SCAN, END, EXIF = 0xDA, 0xD9, 0xE1
BARE = {0x01, *range(0xD0, 0xD9)}
MOST_SCANS = 200
"""Each scan of a progressive JPEG goes over the whole picture; encoders write about ten."""


def jpeg_facts(content: bytes) -> PictureFacts:
    """Read the segments before the first scan of a JPEG file."""
    frame, orientation, kind, at = b"", 1, 0, 0
    for marker, start, stop in segments(content):
        at = stop
        if marker in STARTS_OF_FRAME:
            if frame:
                raise BrokenPicture("two frame headers")
            frame, kind = content[start:stop], marker
        elif marker == EXIF and orientation == 1 and content[start : start + 6] == b"Exif\0\0":
            orientation = exif_orientation(memoryview(content)[start:stop])
    if len(frame) < 6 or len(frame) < 6 + 3 * frame[5] or not frame[5]:
        raise BrokenPicture("no frame header")
    parts = [frame[7 + 3 * part] for part in range(frame[5])]
    scans = content.count(b"\xff\xda", at)
    if scans > MOST_SCANS:
        raise CostlyPicture(f"{scans:,} scans")
    coefficients = kind in PROGRESSIVE or (len(parts) > 1 and scans > 1)
    return PictureFacts(
        int.from_bytes(frame[3:5]),
        int.from_bytes(frame[1:3]),
        orientation=orientation,
        bits=frame[0],
        working=coefficient_bytes(parts) if coefficients else 0.0,
        extra=3 * at,
    )


def segments(content: bytes) -> Iterator[tuple[int, int, int]]:
    """List the segments up to the first scan: marker, and where the data start and stop."""
    at = 2
    while True:
        at = content.find(b"\xff", at)
        while 0 <= at < len(content) - 1 and content[at + 1] == 0xFF:
            at += 1
        if at < 0 or at + 4 > len(content):
            raise BrokenPicture("cut before the first scan")
        marker = content[at + 1]
        if marker in BARE or marker == 0:
            at += 2
            continue
        if marker == END:
            raise BrokenPicture("it ends before the first scan")
        stop = at + 2 + int.from_bytes(content[at + 2 : at + 4])
        yield marker, at + 4, min(stop, len(content))
        if marker == START_OF_SCAN:
            return
        at = max(stop, at + 4)


def coefficient_bytes(parts: list[int]) -> float:
    """Count the bytes a pixel that all coefficients take, which more than one scan needs at once: two for each."""
    across = [max(1, part >> 4) for part in parts]
    down = [max(1, part & 15) for part in parts]
    samples = sum(h * v for h, v in zip(across, down, strict=True))
    return 2.0 * samples / (max(across) * max(down))
