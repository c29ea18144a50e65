"""The files of images: where each lies in the folder of its table, and how it comes there."""

import errno
import os
import re
from pathlib import Path

from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest

__all__ = ["folder_of_prompt", "linked", "placed"]

SAFE = re.compile(r"^(?!\.)[A-Za-z0-9._-]{1,100}$")
NO_LINK = {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.EOPNOTSUPP}
"""What a file system says that cannot link here."""


def folder_of_prompt(prompt_id: str) -> str:
    """Name the folder of a prompt's images; an id that is no safe name gets one made of its hash."""
    return prompt_id if SAFE.match(prompt_id) else f"prompt-{digest(prompt_id)[:16]}"


def linked(source: Path, to: Path) -> bool:
    """Give a file a second name; tell whether the file system could."""
    to.unlink(missing_ok=True)
    try:
        os.link(os.path.realpath(source), to)
    except OSError as error:
        if error.errno in NO_LINK:
            return False
        raise
    return True


def placed(content: bytes, to: Path) -> None:
    """Write a file in a folder that may not be there yet."""
    to.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(to, content)
