"""Runs of pictures to embed: what is in each, how one picture is read, and the part files that outlive a kill."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.defaults import PICTURES_PER_SHARD
from culturekit.errors import CultureKitError
from culturekit.heaps import settle_heaps
from culturekit.index.embedding.embedding_encoders import encoder_of
from culturekit.index.embedding.embedding_memory import (
    LARGE_FILE,
    SMALL_FILE,
    Gate,
    OneOfMany,
    memory_for,
)
from culturekit.index.embedding.pictures import promised_bytes
from culturekit.index.encoder import ImageEncoder, Prepared
from culturekit.storage.arrays import save_array
from culturekit.storage.picture_reading import NoPicture, picture_from
from culturekit.storage.seals import is_sealed, seal
from culturekit.storage.system_errors import explained_outside
from culturekit.storage.tables import save_parquet

__all__ = ["Arrays", "PictureFile", "PictureShard", "embed_shard", "encoded", "plan_shards", "prepared", "save_shard"]


UNREADABLE = {"place": pl.UInt32(), "reason": pl.String(), "detail": pl.String()}

Item = TypeVar("Item")

Arrays = Mapping[str, NDArray[np.float32]]
"""What came of pictures, by the name of the file it is kept in: vectors, and for some encoders probabilities."""


@dataclass(frozen=True, slots=True)
class PictureFile:
    """One picture, by its content, and every path that the table gives for it."""

    sha256: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PictureShard:
    """A run of pictures, as a work item."""

    encoder: str
    root: Path
    pictures: tuple[PictureFile, ...]
    folder: Path
    number: int

    def part(self, name: str) -> Path:
        """Name a part file."""
        return self.folder / f"{self.number:06d}-{name}"

    @property
    def done(self) -> bool:
        """Tell whether an earlier run finished it: the seal of the vectors vouches for all."""
        return is_sealed(self.part("vectors.npy"))


def plan_shards(
    pictures: Sequence[PictureFile], root: Path, encoder: str, folder: Path, *, size: int
) -> list[PictureShard]:
    """Cut pictures into shards that are a multiple of `size`."""
    size *= -(-PICTURES_PER_SHARD // size)
    runs = enumerate(cut(pictures, size))
    return [PictureShard(encoder, root, tuple(run), folder, number) for number, run in runs]


def cut(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Cut items into runs of one size; the last may be shorter."""
    return (items[start : start + size] for start in range(0, len(items), size))


def prepared(picture: PictureFile, root: Path, encoder: ImageEncoder, gate: Gate) -> Prepared | NoPicture:
    """Read one picture and bring it to the form that is encoded; every path given for it must hold the same bytes."""
    for path in picture.paths[1:]:
        promised_bytes(root, path, sha256=picture.sha256)
    path, memory, size = picture.paths[0], 2**62, file_size(root / picture.paths[0])
    content: bytes | NoPicture | None = None
    if size <= LARGE_FILE:
        with gate.reading(size):
            content = promised_bytes(root, path, sha256=picture.sha256)
            memory = memory_for(content) if isinstance(content, bytes) else 0
            content = None if size > SMALL_FILE else content
    with gate.holding(memory):
        return decoded(content or promised_bytes(root, path, sha256=picture.sha256), encoder)


def file_size(path: Path) -> int:
    """Look how large a file is; what cannot be looked at is refused when it is read."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


def decoded(content: bytes | NoPicture, encoder: ImageEncoder) -> Prepared | NoPicture:
    """Decode a file and prepare its picture."""
    if isinstance(content, NoPicture):
        return content
    found = picture_from(content)
    return found if isinstance(found, NoPicture) else encoder.prepare(found.pixels)


def encoded(encoder: ImageEncoder, pictures: Sequence[Prepared]) -> Arrays:
    """Encode one batch; an encoder that classifies says what it saw, too."""
    if not pictures:
        return {}
    with explained_outside(f"the encoder {encoder.identity.name}"):
        if getattr(encoder, "give", "") == "features":
            both = encoder.describe(pictures)  # type: ignore[attr-defined]
            arrays = {"vectors": both.features, "probabilities": both.probabilities}
        else:
            arrays = {"vectors": encoder.encode_prepared(pictures)}
    shape = (len(pictures), encoder.identity.dim)
    vectors = arrays["vectors"]
    if vectors.shape != shape or not np.isfinite(vectors).all():
        raise CultureKitError(
            "the encoder did not give one vector of finite numbers per picture",
            where=encoder.identity.name,
            expected=f"float32 {shape}",
            found=f"{vectors.dtype} {vectors.shape}" if vectors.shape != shape else "numbers that are not finite",
            hint="Half precision may overflow: try dtype=float32.",
        )
    return arrays


def save_shard(shard: PictureShard, batches: Sequence[Arrays], unreadable: Sequence[tuple[int, NoPicture]]) -> None:
    """Keep what came of a shard, and seal it."""
    written = []
    if unreadable:
        rows = [(place, none.reason, none.detail) for place, none in unreadable]
        written.append(shard.part("unreadable.parquet"))
        save_parquet(pl.DataFrame(rows, schema=UNREADABLE, orient="row"), written[0])
    full = [arrays for arrays in batches if arrays]
    names = sorted(full[0], key=lambda name: name == "vectors") if full else ["vectors"]
    dim = encoder_of(shard.encoder).identity.dim
    for name in names:
        arrays: list[Any] = [batch[name] for batch in full] or [np.empty((0, dim))]
        written.append(shard.part(f"{name}.npy"))
        save_array(written[-1], np.concatenate(arrays).astype(np.float32, copy=False))
    seal(shard.part("vectors.npy"), written)


def embed_shard(shard: PictureShard) -> int:
    """Embed a run of pictures in a process of its own, one after the other."""
    settle_heaps()
    encoder, gate = encoder_of(shard.encoder), OneOfMany(shard.folder / "heavy.lock")
    ready: list[Prepared] = []
    unreadable: list[tuple[int, NoPicture]] = []
    for place, picture in enumerate(shard.pictures):
        found = prepared(picture, shard.root, encoder, gate)
        if isinstance(found, NoPicture):
            unreadable.append((place, found))
        else:
            ready.append(found)
    save_shard(shard, [encoded(encoder, batch) for batch in cut(ready, encoder.batch_size)], unreadable)
    return len(shard.pictures)
