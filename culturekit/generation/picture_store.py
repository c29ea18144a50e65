"""Pictures by what they hold: bytes that were paid for, on disk under their SHA-256 before anything else is done."""

import binascii
import errno
import os
import re
import threading
from base64 import b64decode
from pathlib import Path
from typing import Any

import msgspec

from culturekit.errors import IntegrityError
from culturekit.llm.reading.json_values import decoded
from culturekit.storage.atomic import sync_folder, write_atomically
from culturekit.storage.digests import digest, digest_bytes

__all__ = ["KEPT", "PictureStore", "folder_of_prompt", "linked", "placed", "set_apart"]

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


KEPT = "sha256:"
"""How the name of kept bytes begins, where a reply had the bytes themselves."""

HOLDERS = frozenset({"b64_json", "data", "result"})
"""Under these keys the replies of image services hold a picture in base64."""

DATA_URL = ";base64,"


class PictureStore:
    """A folder of files named by their hash; the same bytes are there once.

    `leaving` is set when a run ends early: nothing more is fetched then.
    """

    def __init__(self, folder: Path) -> None:
        """Name the folder; it is made with the first picture."""
        self.folder = folder
        self.locks: dict[str, threading.Lock] = {}
        self.open = threading.Lock()
        self.leaving = threading.Event()

    def path(self, sha256: str) -> Path:
        """Say where bytes lie, or would."""
        return self.folder / sha256[:2] / sha256

    def put(self, content: bytes) -> str:
        """Keep bytes; they are on disk when this returns their SHA-256."""
        sha256 = digest_bytes(content)
        path = self.path(sha256)
        with self.open:
            lock = self.locks.setdefault(sha256[:2], threading.Lock())
        with lock:
            if not path.is_file() or path.stat().st_size != len(content):
                new = not path.parent.is_dir()
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, content)
                sync_folder(path.parent)
                if new:
                    sync_folder(self.folder)
        return sha256

    def get(self, sha256: str) -> bytes:
        """Give kept bytes, if they are those that were kept.

        Raises:
            IntegrityError: they are gone, or others.
        """
        path = self.path(sha256)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            content = b""
        if digest_bytes(content) != sha256:
            raise IntegrityError(
                "a picture that was paid for is not what was kept",
                where=str(path),
                expected=f"SHA-256 {sha256}",
                found=f"{len(content):,} bytes with SHA-256 {digest_bytes(content)}",
                hint="Put the folder journal back from a backup; without the file the picture has to be bought again.",
            )
        return content


def set_apart(raw: bytes, store: PictureStore) -> bytes:
    """Keep the pictures that a reply holds, and put their names in their place.

    Bytes that are no JSON, or hold no picture, stay as they are.
    """
    body = decoded(raw)
    if not isinstance(body, dict | list) or not replaced(body, store):
        return raw
    return msgspec.json.encode(body)


def replaced(root: Any, store: PictureStore) -> bool:  # noqa: ANN401 - any JSON value
    """Go through a reply, and say whether anything in it was changed."""
    changed, open_ = False, [root]
    while open_:
        value = open_.pop()
        if isinstance(value, list):
            open_ += value
        elif isinstance(value, dict):
            open_ += value.values()
            for key, held in value.items():
                name = name_of(key, held, store)
                if name is not None:
                    value[key] = name
                    changed = True
    return changed


def name_of(key: str, held: object, store: PictureStore) -> str | None:
    """Keep a picture that stands under a key; None where none does. A name that came from outside is taken away."""
    if not isinstance(held, str):
        return None
    if key == "url" and held.startswith("data:") and DATA_URL in held:
        held = held.split(DATA_URL, 1)[1]
    elif key not in HOLDERS:
        return None
    if held.startswith(KEPT):
        return ""
    try:
        content = b64decode(held, validate=True)
    except (binascii.Error, ValueError):
        return None
    return KEPT + store.put(content) if content else None
