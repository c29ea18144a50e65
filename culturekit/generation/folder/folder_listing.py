"""What lies in a folder of images: pictures by name, and everything else with a reason; no link is followed out."""

import os
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from culturekit.errors import UsageError

__all__ = ["PICTURE_SUFFIXES", "Listing", "Other", "PictureFile", "list_folder", "shown"]

PICTURE_SUFFIXES = frozenset(
    f".{name}"
    for name in (
        "png", "jpg", "jpeg", "jpe", "jfif", "webp", "gif", "bmp", "dib", "tif", "tiff", "apng", "avif", "heic", "heif",
        "jxl", "jp2", "ppm", "pgm", "pbm", "pnm", "tga", "ico", "psd", "svg", "exr", "dng",
    )
)  # fmt: skip
"""What is a picture by name; some of these cannot be read, and are rows that say so."""

EXTENSION = re.compile(r"^\.[A-Za-z][A-Za-z0-9]{0,7}$")
BEGINNINGS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*")
"""How the files begin that are taken for pictures though their names have no extension."""

SIDE_FILE = b"\x00\x05\x16\x07"
"""How the files begin that a Mac puts beside each file on foreign disks, as `._NAME`."""

UNREADABLE_FOLDER = "folder that cannot be read"


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A picture by name, with size and time of change in nanoseconds; `problem` says why it is not to be opened.

    `name` is relative to the folder, as the system has it: bytes that are no UTF-8 stand in it as surrogates.
    """

    name: str
    size: int
    changed: int
    problem: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Other:
    """Something that is no picture by name."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything below a folder, each part in the order of the names."""

    root: Path
    pictures: tuple[PictureFile, ...]
    others: tuple[Other, ...]


def shown(name: str) -> str:
    r"""Write a file name as text: bytes that are no UTF-8 as `\\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def list_folder(root: Path, *, listed: Collection[str] = (), leave_out: str = "") -> Listing:
    """List a folder, hidden files and folders too.

    `listed` names files that count as pictures whatever they are called; `leave_out` is the list that names them.
    """
    if not root.is_dir():
        raise UsageError(
            "there is no such folder of images",
            where=str(root),
            expected="folder:DIR, a folder that is there",
            found="a file" if root.exists() else "nothing of that name",
        )
    real = os.path.realpath(root)
    pictures: list[PictureFile] = []
    others: list[Other] = []
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            with os.scandir(os.path.join(root, below)) as entries:  # noqa: PTH118 - a hundred thousand times
                found = list(entries)
        except OSError as error:
            others.append(Other(below, f"{UNREADABLE_FOLDER}: {error.strerror}"))
            continue
        for entry in found:
            name = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(name)
            elif name != leave_out:
                thing = classify(entry, name, real, listed)
                (pictures if isinstance(thing, PictureFile) else others).append(thing)  # type: ignore[arg-type]
    return Listing(
        root,
        tuple(sorted(pictures, key=lambda file: file.name)),
        tuple(sorted(others, key=lambda other: other.name)),
    )


def classify(entry: "os.DirEntry[str]", name: str, root: str, listed: Collection[str]) -> PictureFile | Other:
    """Tell a picture from what is none, and a picture that may be opened from one that may not."""
    suffix = os.path.splitext(entry.name)[1].lower()  # noqa: PTH122
    by_name = suffix in PICTURE_SUFFIXES or name in listed
    problem, real = "", entry.path
    if entry.is_symlink():
        real = os.path.realpath(entry.path)
        if not (real == root or real.startswith(os.path.join(root, ""))):  # noqa: PTH118
            problem = "link that leads out of the folder"
        elif not os.path.exists(real):  # noqa: PTH110
            problem = "link that leads nowhere"
        elif os.path.isdir(real):  # noqa: PTH112
            return Other(name, "link to a folder, which is not followed")
    if problem:
        return PictureFile(name, 0, 0, problem) if by_name else Other(name, problem)
    try:
        state = os.stat(real, follow_symlinks=False)  # noqa: PTH116
    except OSError as error:
        return PictureFile(name, 0, 0, f"file cannot be read: {error.strerror}") if by_name else Other(name, "gone")
    if not stat.S_ISREG(state.st_mode):
        return PictureFile(name, 0, 0, "not a plain file") if by_name else Other(name, "not a plain file")
    if entry.name.startswith("._") and beginning(real).startswith(SIDE_FILE):
        return Other(name, "side file of a Mac (._NAME)")
    if by_name or (not EXTENSION.match(suffix) and looks_like_picture(beginning(real))):
        return PictureFile(name, state.st_size, state.st_mtime_ns)
    return Other(name, suffix if EXTENSION.match(suffix) else "no extension")


def beginning(path: str) -> bytes:
    """Read the first bytes of a file, as far as they can be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(16)
    except OSError:
        return b""


def looks_like_picture(first: bytes) -> bool:
    """Tell a picture by its first bytes."""
    return first.startswith(BEGINNINGS) or (first[:4] == b"RIFF" and first[8:12] == b"WEBP")


def unreadable_folders(listing: Listing) -> Iterator[str]:
    """Name the folders that could not be looked into."""
    return (shown(other.name) for other in listing.others if other.reason.startswith(UNREADABLE_FOLDER))
