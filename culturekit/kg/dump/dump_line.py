"""One line of a dump by its place, as it stands there."""

from pathlib import Path

from culturekit.errors import IntegrityError
from culturekit.kg.dump.members import read_chunks

__all__ = ["read_line"]


def read_line(dump: Path, *, member: int, offset: int) -> str:
    """Read the line that begins at an offset of a decompressed member, without its comma."""
    content = bytearray()
    for chunk in read_chunks(dump):
        if chunk.member < member or (chunk.member == member and chunk.offset + len(chunk.content) <= offset):
            continue
        start = max(0, offset - chunk.offset) if chunk.member == member else 0
        content += chunk.content[start:]
        end = content.find(b"\n")
        if end >= 0:
            del content[end:]
            break
    if not content:
        raise IntegrityError("the dump has no such line", where=str(dump), found=f"member {member}, byte {offset}")
    return bytes(content).decode("utf-8").strip().removesuffix(",")
