"""Pictures by what they hold: bytes that were paid for, on disk under their SHA-256 before anything else is done."""

import binascii
import errno
import io
import json
import os
import re
import threading
import warnings
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from PIL import Image

from culturekit.core.atomic import sync_folder, write_atomically
from culturekit.core.choices import PictureFormat
from culturekit.core.digests import canonical_json, digest, digest_bytes
from culturekit.core.errors import IntegrityError, counted
from culturekit.core.pictures.picture_files import encoded
from culturekit.core.pictures.picture_reading import ReadPicture
from culturekit.core.schemas import IMAGES
from culturekit.core.stage import TRY_AGAIN
from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture, Pixels
from culturekit.llm.json_values import decoded

_SAFE = re.compile(r"^(?!\.)[A-Za-z0-9._-]{1,100}$")
# what a file system says that cannot link here
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.EOPNOTSUPP}


def folder_of_prompt(prompt_id: str) -> str:
    """Name the folder of a prompt's images; an id that is no safe name gets one made of its hash."""
    return prompt_id if _SAFE.match(prompt_id) else f"prompt-{digest(prompt_id)[:16]}"


def linked(source: Path, to: Path) -> bool:
    """Give a file a second name; tell whether the file system could."""
    to.unlink(missing_ok=True)
    try:
        os.link(os.path.realpath(source), to)
    except OSError as error:
        if error.errno in _NO_LINK:
            return False
        raise
    return True


def placed(content: bytes, to: Path) -> None:
    """Write a file in a folder that may not be there yet."""
    to.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(to, content)


# how the files end that may stay as they came
AS_IT_CAME = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp", "GIF": "gif", "BMP": "bmp", "TIFF": "tif"}


def brought_in(
    content: bytes, picture: ReadPicture, stem: str, out: Path, form: PictureFormat, *, link: Callable[[Path], bool],
    stays: Mapping[str, str] = AS_IT_CAME,
) -> dict[str, Any]:  # fmt: skip
    """Put a picture into a folder: as it came where it can stay so, else written anew; give what its row says of it.

    `stem` is its name without the ending; `link` makes a second name of the file it came from, and tells whether.
    """
    changed = picture.changed or _other_colours(content, picture.format)
    suffix = None if changed else stays.get(picture.format)
    relative = f"{stem}.{suffix or form}"
    to = out / relative
    to.parent.mkdir(parents=True, exist_ok=True)
    if suffix is None:
        content = encoded(picture.pixels, form)
    if suffix is None or not link(to):
        placed(content, to)
    height, width, _ = picture.pixels.shape
    return {
        "path": relative, "sha256": digest_bytes(content), "width": width, "height": height, "status": "ok",
        "reason": "; ".join(changed) or None,
    }  # fmt: skip


def _other_colours(content: bytes, form: str) -> tuple[str, ...]:
    """Say in words what a picture is stored as that shows as it is, but not as three colours: grey, a palette."""
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(content), formats=[form]) as opened:
            return () if opened.mode == "RGB" else (f"{opened.mode} to RGB",)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return (f"{form} written anew",)


KEPT = "sha256:"  # how the name of kept bytes begins, where a reply had the bytes themselves
# under these keys the replies of image services hold a picture in base64
_HOLDERS = frozenset({"b64_json", "data", "result"})
_DATA_URL = ";base64,"


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
        """Give kept bytes, if they are those that were kept."""
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
    if not isinstance(body, dict | list) or not _replaced(body, store):
        return raw
    return msgspec.json.encode(body)


def _replaced(root: Any, store: PictureStore) -> bool:  # noqa: ANN401 - any JSON value
    """Go through a reply, and say whether anything in it was changed."""
    changed, open_ = False, [root]
    while open_:
        value = open_.pop()
        if isinstance(value, list):
            open_ += value
        elif isinstance(value, dict):
            open_ += value.values()
            for key, held in value.items():
                name = _name_of(key, held, store)
                if name is not None:
                    value[key] = name
                    changed = True
    return changed


def _name_of(key: str, held: object, store: PictureStore) -> str | None:
    """Keep a picture that stands under a key; None where none does. A name that came from outside is taken away."""
    if not isinstance(held, str):
        return None
    if key == "url" and held.startswith("data:") and _DATA_URL in held:
        held = held.split(_DATA_URL, 1)[1]
    elif key not in _HOLDERS:
        return None
    if held.startswith(KEPT):
        return ""
    try:
        content = b64decode(held, validate=True)
    except (binascii.Error, ValueError):
        return None
    return KEPT + store.put(content) if content else None


# One image to one row: the file is written, and the table says what is known of it; a failure is a row too.


@dataclass(frozen=True, slots=True)
class Maker:
    """Who makes the images: a backend by SPEC, under the name its images carry."""

    model: str
    backend: str
    cspace: Path | None = None


@dataclass(frozen=True, slots=True)
class Shard:
    """A run of requests, as a work item."""

    maker: Maker
    out: Path
    part: Path
    format: PictureFormat
    requests: tuple[ImageRequest, ...]


def batches(requests: Sequence[ImageRequest]) -> list[list[ImageRequest]]:
    """Part requests into calls of one size each, the requests of a prompt side by side."""
    by_size: dict[tuple[int, int], list[ImageRequest]] = {}
    for request in requests:
        by_size.setdefault((request.width or 0, request.height or 0), []).append(request)
    return [sorted(some, key=lambda request: request.prompt_id) for some in by_size.values()]


def image_row(request: ImageRequest, reply: ImageReply, shard: Shard, version: str | None) -> dict[str, Any]:
    """Save a picture and describe it; a failure is a row too."""
    row = asked_row(request, shard.maker.model, version)
    if isinstance(reply, Failure):
        passing = {"provider_params": PASSING_PARAMS} if reply.passing else {}
        return {**row, **passing, "status": reply.status, "reason": reply.reason}
    return {**row, **_saved(reply, request, shard), "status": "ok"}


def image_id_of(model: str, request: ImageRequest, pixels: Pixels | None = None) -> str:
    """Name an image by who made it, what was asked for, and its pixels.

    Answers of people about an image say nothing of one that other options or weights draw in its place.
    """
    drawn = [] if pixels is None else [list(pixels.shape), digest_bytes(pixels.tobytes())]
    return digest([model, request.prompt_id, request.repeat, request.slot, request.seed, *drawn])[:16]


def asked_row(request: ImageRequest, model: str, version: str | None) -> dict[str, Any]:
    """Describe an image that is asked for, before anything of it is there."""
    return {
        "image_id": image_id_of(model, request), "path": "", "prompt_id": request.prompt_id, "model": model,
        "model_version": version, "seed": request.seed, "repeat": request.repeat, "slot": request.slot,
        "prompt_sent": request.text, "rewriter": "unknown", "provider_params": "{}", "sha256": "", "width": 0,
        "height": 0, "concept": request.concept, "country": request.country,
    }  # fmt: skip


def _saved(picture: Picture, request: ImageRequest, shard: Shard) -> dict[str, Any]:
    """Write the file of a picture; give what the table says of it."""
    folder = folder_of_prompt(request.prompt_id)
    relative = f"files/{folder}/{request.repeat:04d}-{request.slot:02d}.{shard.format}"
    content = encoded(picture.pixels, shard.format)
    placed(content, shard.out / relative)
    params = (
        "seed_honoured", "prompt_revised", "rewriter", "safety", "truth_artifact_id", "truth_country", "truth_scene",
    )  # fmt: skip
    return {name: getattr(picture, name) for name in params} | {
        "image_id": image_id_of(shard.maker.model, request, picture.pixels), "path": relative,
        "sha256": digest_bytes(content), "width": picture.pixels.shape[1], "height": picture.pixels.shape[0],
        "provider_params": canonical_json(picture.provider_params).decode(),
    }  # fmt: skip


def truth_columns(backend: ImageBackend) -> tuple[str, ...]:
    """Name the columns that say what a picture shows; only a simulated model knows it, of artifacts or as it says."""
    columns: tuple[str, ...] = getattr(backend, "truth_columns", ("truth_artifact_id", "truth_country"))
    return columns if backend.knows_truth else ()


def part_schema(truths: Sequence[str] = ()) -> dict[str, pl.DataType]:
    """Give the columns of a part."""
    names = ("concept", "country", *truths)
    return {**IMAGES.schema, **{name: IMAGES.optional[name].dtype for name in names}}


def statuses_of(images: pl.DataFrame) -> tuple[int, dict[str, int]]:
    """Count the images that were made, and the others by how they ended."""
    statuses = Counter(images["status"].to_list())
    return statuses.pop("ok", 0), dict(statuses)


PASSING = "passing"  # under this key the `provider_params` of an image say that another try may bring it
PASSING_PARAMS = canonical_json({PASSING: True}).decode()


def to_try_again() -> pl.Expr:
    """Tell the rows that the next run tries again: failed in passing or, where no image was made, failed at all."""
    passing = pl.col("provider_params").str.contains(f'"{PASSING}":true', literal=True)
    none_made = (pl.col("status") != "ok").all()
    return (pl.col("status") != "ok") & (passing | (none_made & (pl.col("status") == "failed")))


def trying_again(images: pl.DataFrame) -> dict[str, object]:
    """Note how many images the next run tries again."""
    count = images.filter(to_try_again()).height
    return {TRY_AGAIN: count} if count else {}


FINDINGS = "findings"  # under this key the `provider_params` of an image list what was odd about it


def findings(images: pl.DataFrame) -> list[str]:
    """Count what was odd, the most frequent first; before it, whether no image was made at all."""
    none = []
    if images.height and "ok" not in images["status"]:
        first = images.row(0, named=True)
        none = [f"none of {counted(images.height, 'images')} was made: {first['status']}, {first['reason']}"]
    stated = images.filter(pl.col("provider_params").str.contains(f'"{FINDINGS}"', literal=True))["provider_params"]
    counts = Counter(name for text in stated for name in json.loads(text).get(FINDINGS, []))
    return none + [
        f"{counted(count, 'images')}: {name}"
        for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
