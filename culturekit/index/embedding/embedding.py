"""A table of images to vectors: every picture encoded once, in shards that outlive a kill."""

import importlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.arrays import load_array, save_array, save_rows
from culturekit.core.atomic import explained_outside
from culturekit.core.choices import PICTURES_PER_SHARD, TEXTS_PER_SHARD
from culturekit.core.digests import digest, digest_bytes
from culturekit.core.engines import settle_heaps
from culturekit.core.errors import CultureKitError, IntegrityError, UsageError
from culturekit.core.pictures.picture_files import (
    ABSENT,
    CHANGED,
    IRREGULAR,
    OUTSIDE,
    UNOPENED,
    NoPicture,
    read_bytes_inside,
)
from culturekit.core.pictures.picture_reading import (
    BrokenPicture,
    CostlyPicture,
    Pixels,
    facts_of,
    format_of,
    picture_from,
)
from culturekit.core.schemas import VECTOR_IDS
from culturekit.core.stage import Engine, Progress, hold, is_sealed, seal
from culturekit.core.tables import read_table, save_parquet, write_table
from culturekit.index.encoder import (
    ENCODERS,
    Encoder,
    ImageEncoder,
    Prepared,
    TextEncoder,
    TokenEncoder,
    TooLong,
    Vectors,
)

_NO_WEIGHTS = "none"
_SIDE = 512  # of a picture of noise
_BATCHES_ON_GPU = 4  # handed over in one piece, so that the encoder can lay the next batch ready while the GPU computes


def encoder_of(spec: str) -> ImageEncoder:
    """Give an encoder that reads pictures."""
    encoder = ENCODERS.kept(spec)
    if not isinstance(encoder, ImageEncoder):
        raise UsageError("the encoder reads no pictures", where=spec, expected="an encoder of pictures")
    return encoder


def text_encoder_of(spec: str) -> TextEncoder:
    """Give an encoder that reads texts."""
    encoder = ENCODERS.kept(spec)
    if not isinstance(encoder, TextEncoder):
        raise UsageError("the encoder reads no texts", where=spec, expected="an encoder of texts, such as CLIP")
    return encoder


def weightless(encoder: Encoder) -> bool:
    """Tell whether every process may have an encoder of its own: one with weights is loaded once."""
    return encoder.identity.weights == _NO_WEIGHTS


@contextmanager
def encoding_pool(workers: int, *, on_gpu: int = 1, plain: int = 1) -> Iterator[tuple[ThreadPoolExecutor, int]]:
    """Give the threads that encode, and how many there are: `plain` of them where torch is not at work.

    On a CPU each encodes batches of its own with one thread for arithmetic: as torch adds numbers up in another order
    when it has another number of threads, only this gives the same bits for any number of workers.
    """
    torch = importlib.import_module("torch") if "torch" in sys.modules else None
    threads = plain if torch is None else on_gpu if _on_gpu() else workers
    before = 0 if torch is None else torch.get_num_threads()
    alone = None if torch is None else lambda: torch.set_num_threads(1)
    pool = ThreadPoolExecutor(threads, "encoding", initializer=alone)
    try:
        yield pool, threads
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        if torch is not None:
            torch.set_num_threads(before)


def at_once(encoder: ImageEncoder) -> int:
    """Say how many pictures are handed to an encoder in one piece; it encodes them in batches of its own size."""
    return encoder.batch_size * (_BATCHES_ON_GPU if _on_gpu() else 1)


def _on_gpu() -> bool:
    """Tell whether a model of this process is on a GPU."""
    return "torch" in sys.modules and bool(importlib.import_module("torch").cuda.is_initialized())


def seconds_for_one(encoder: str, of: str, texts: Sequence[str]) -> float:
    """Time an encoder, by one thread on a CPU: on texts, or on as many pictures of noise; warm before it is timed."""

    def encode() -> Vectors:
        if of == "texts":
            return text_encoder_of(encoder).encode_texts(texts)
        loaded = encoder_of(encoder)
        return loaded.encode_prepared([loaded.prepare(noise) for _ in texts])

    noise = np.random.default_rng(0).integers(0, 256, (_SIDE, _SIDE, 3), np.uint8)
    with encoding_pool(1) as (pool, _):
        pool.submit(encode).result()
        started = time.perf_counter()
        pool.submit(encode).result()
        return (time.perf_counter() - started) / len(texts)


def embed_texts(
    texts: Sequence[str], encoder: str, scratch: Path, *, progress: Progress
) -> tuple[Vectors, list[TooLong]]:
    """Embed texts in their order, in this thread: a tokenizer belongs to one; equal texts are encoded once.

    Returns:
        float32 (n, dim), unit norm, and which texts are longer than the encoder reads, by their place.
    """
    empty = [row_of for row_of, text in enumerate(texts) if not text.strip()]
    if empty:
        raise UsageError("an empty text has no vector", found=f"{len(empty)} empty texts, the first in row {empty[0]}")
    loaded = text_encoder_of(encoder)
    different = list(dict.fromkeys(texts))

    def encode(run: Sequence[str]) -> list[Vectors]:
        vectors = loaded.encode_texts(run)
        if vectors.shape != (len(run), loaded.identity.dim) or not np.isfinite(vectors).all():
            raise UsageError("the encoder gave no vector of finite numbers for a text", where=loaded.identity.name)
        return list(vectors[:, np.newaxis])

    folder = scratch / f"texts-{digest([loaded.identity.as_options(), different])[:16]}"
    vectors, _ = _in_parts(different, folder, encode, of=loaded.identity.name, progress=progress)
    row_of = {text: number for number, text in enumerate(different)}
    order = [row_of[text] for text in texts]
    cut = {each.place: each for each in loaded.too_long(different)}
    too_long = [
        TooLong(number, cut[where].tokens, cut[where].most) for number, where in enumerate(order) if where in cut
    ]
    if len(different) == len(texts):
        return vectors, too_long
    save_ordered(folder / "by-row.npy", vectors, np.array(order))
    return load_array(folder / "by-row.npy"), too_long


def embed_tokens(
    texts: Mapping[str, str], encoder: str, scratch: Path, *, mean: bool, progress: Progress
) -> tuple[Vectors, list[str]]:
    """Embed the tokens of texts, or of each text the mean of its tokens; parts outlive a kill.

    Returns:
        float32 (n, dim), unit norm, and the id of each: that of the text, or ID#k for its token k.
    """
    text_encoder = text_encoder_of(encoder)
    if not isinstance(text_encoder, TokenEncoder):
        raise UsageError("the encoder gives no vectors of single tokens", where=encoder,
                         expected="sentence:FOLDER, or transformers:FOLDER with CLIP")  # fmt: skip

    def encode(run: Sequence[str]) -> Sequence[Vectors]:
        found = text_encoder.encode_tokens(run)
        dtype = text_encoder.identity.dtype
        return [unit(each.mean(axis=0, keepdims=True), where=dtype) for each in found] if mean else found

    folder = scratch / f"tokens-{digest([text_encoder.identity.as_options(), mean, dict(texts)])[:16]}"
    vectors, counts = _in_parts(list(texts.values()), folder, encode, of=text_encoder.identity.name, progress=progress)
    each = zip(texts, counts, strict=True)
    return vectors, list(texts) if mean else [f"{name}#{k}" for name, count in each for k in range(1, count + 1)]


def _in_parts(
    texts: Sequence[str],
    folder: Path,
    encode: Callable[[Sequence[str]], Sequence[Vectors]],
    *,
    of: str,
    progress: Progress,
) -> tuple[Vectors, list[int]]:
    """Encode texts, each to some vectors, in parts that outlive a kill; give all vectors, and how many a text has."""
    folder.mkdir(exist_ok=True)
    progress.begin(len(texts), "texts")
    parts, counts = [], list[int]()
    for start in range(0, len(texts), TEXTS_PER_SHARD):
        run, part = texts[start : start + TEXTS_PER_SHARD], folder / f"{start:09d}.npy"
        many = part.with_suffix(".counts.npy")
        if not is_sealed(part):
            with encoding_pool(1) as (pool, _), explained_outside(f"the encoder {of}"):
                found = pool.submit(encode, run).result()
            save_array(many, np.array([len(each) for each in found]))
            save_array(part, np.concatenate(found).astype(np.float32, copy=False))
            seal(part, [many])
        parts.append(part)
        counts += np.load(many, allow_pickle=False).tolist()
        progress.advance(len(run))
    whole, width = folder / "vectors.npy", np.load(parts[0], mmap_mode="r", allow_pickle=False).shape[1]
    blocks = (np.load(part, allow_pickle=False) for part in parts)
    save_rows(whole, blocks, shape=(sum(counts), width), dtype=np.float32)
    return load_array(whole), counts


# Vectors of length one, from what a model says.


def unit(vectors: Vectors, *, where: str) -> Vectors:
    """Bring each vector to length one, float32; a model that gives no direction is refused.

    Args:
        vectors: float32 (n, dim).
        where: what the model computed in, for the message.
    """
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    wrong = int((~np.isfinite(lengths) | (lengths == 0)).sum())
    if wrong:
        raise IntegrityError(
            "the model gives vectors without a direction",
            where=where,
            found=f"{wrong} of {len(vectors)} are zero, infinite or not a number",
            hint="In float16 numbers overflow easily: try dtype=bfloat16 or dtype=float32." if "16" in where else "",
        )
    of_length_one: Vectors = (vectors / lengths).astype(np.float32)
    return of_length_one


# A data set of vectors on disk: `vectors.npy` and, in row order, `ids.parquet`.

_ROWS_AT_ONCE = 16_384


def save_blocks(path: Path, blocks: Sequence[Vectors]) -> None:
    """Write blocks of vectors as one array, a few rows at a time."""
    rows = (one[at : at + _ROWS_AT_ONCE] for one in blocks for at in range(0, len(one), _ROWS_AT_ONCE))
    save_rows(path, rows, shape=(sum(map(len, blocks)), blocks[0].shape[1]), dtype=np.float32)


def save_ordered(path: Path, vectors: Vectors, order: NDArray[np.int64]) -> None:
    """Write rows of vectors in another order, a few at a time."""
    rows = (vectors[order[at : at + _ROWS_AT_ONCE]] for at in range(0, len(order), _ROWS_AT_ONCE))
    save_rows(path, rows, shape=(len(order), vectors.shape[1]), dtype=np.float32)


def save_vectors(out: Path, vectors: Vectors, ids: list[str]) -> None:
    """Write vectors, float32 (n, dim), and what each belongs to."""
    save_blocks(out / "vectors.npy", [vectors])
    rows = pl.DataFrame({"row": range(len(ids)), "id": ids}, schema=VECTOR_IDS.schema)
    write_table(out, VECTOR_IDS, rows)


def load_vectors(folder: Path) -> tuple[Vectors, list[str]]:
    """Open the vectors of a folder, memory-mapped, with the id of each, in whatever order the ids stand."""
    vectors: Vectors = load_array(folder / "vectors.npy", "not a folder of vectors")
    table = read_table(folder / "ids.parquet", VECTOR_IDS).sort("row")
    ids = table["id"].to_list()
    if not (table["row"] == pl.int_range(table.height, dtype=pl.UInt32, eager=True)).all():
        raise IntegrityError(
            "an id says which vector is its own",
            where=str(folder / "ids.parquet"),
            expected="a column row that counts the vectors from 0",
            found=f"from {table['row'].min()!r} to {table['row'].max()!r}",
        )
    if vectors.ndim != 2 or vectors.dtype != np.float32 or len(vectors) != len(ids):
        raise IntegrityError(
            "the vectors and their ids do not belong together", where=str(folder),
            expected=f"float32 ({len(ids)}, dim)", found=f"{vectors.dtype} {vectors.shape}",
        )  # fmt: skip
    _check_directions(vectors, ids, folder)
    return vectors, ids


def _check_directions(vectors: Vectors, ids: Sequence[str], folder: Path) -> None:
    """Refuse vectors that point nowhere: no cosine with them is a number, and no distance says anything."""
    wrong: list[int] = []
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        block = vectors[start : start + _ROWS_AT_ONCE]
        usable = np.isfinite(block).all(axis=1) & block.any(axis=1)
        wrong += (start + np.flatnonzero(~usable)).tolist()
    if wrong:
        raise IntegrityError(
            f"{len(wrong):,} of {len(vectors):,} vectors have no direction",
            where=f"{folder / 'vectors.npy'}, row {wrong[0]}", expected="finite numbers, not all of them zero",
            found=f"{vectors[wrong[0]][:3].tolist()}... of {ids[wrong[0]]!r}",
            hint="Embed these again, or take them out of both files.",
        )  # fmt: skip


# How many decoded pictures are in memory at once: few large ones or many small ones.

_BUDGET = 224 * 2**20  # bytes that pictures may take together in one process; one that needs more is decoded alone
_FILES = 32 * 2**20  # bytes of files that may be looked at together, before there is memory for their pictures
_LARGE_FILE = 16 * 2**20  # a file of more bytes is not even read beside others
# a file of more bytes is read once more when there is memory for its picture, rather than kept until then
_SMALL_FILE = 2 * 2**20
HEAVY = 96 * 2**20  # a picture that needs more is decoded by one process at a time
# bytes a pixel: as the decoder fills them, as an array, and as the copy that is brought to an encoder's size
DECODED, PIXELS, COPY = 4, 3, 4


class Room:
    """Memory that the threads of a process share; who came first goes first."""

    def __init__(self, budget: int) -> None:
        """Start with all of it free."""
        self.budget = budget
        self.taken = 0
        self.turn = threading.Lock()
        self.freed = threading.Condition()

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        """Wait until there is room; what needs more than there is waits until it is alone."""
        size = min(size, self.budget)
        with self.turn, self.freed:
            self.freed.wait_for(lambda: self.taken + size <= self.budget)
            self.taken += size
        try:
            yield
        finally:
            with self.freed:
                self.taken -= size
                self.freed.notify_all()


@contextmanager
def in_turn(lock: Path, size: int) -> Iterator[None]:
    """Wait for the turn among processes that decode one picture at a time each, if the picture is heavy."""
    with hold(lock, wait=True) if size > HEAVY else nullcontext():
        yield


@dataclass(frozen=True, slots=True)
class _Gate:
    """Lets a file of some bytes be looked at, and a picture be decoded, when there is memory for it."""

    reading: Callable[[int], AbstractContextManager[None]]
    holding: Callable[[int], AbstractContextManager[None]]


def memory_for(content: bytes) -> int:
    """Say how much memory it takes to decode a file and bring its picture to another size."""
    kind = format_of(content)
    if kind is None:
        return len(content)
    try:
        facts = facts_of(kind, content)
    except (BrokenPicture, CostlyPicture, ValueError, OverflowError):
        return len(content)
    a_pixel = max(DECODED + max(facts.working, PIXELS), PIXELS + COPY)
    return int(2 * len(content) + facts.extra + facts.width * facts.height * a_pixel)


# Pictures from files: the pixels an image table promises, or a reason.

# the folder is not what its table says, which no report of single images should hide
_NOT_AS_PROMISED = {ABSENT, CHANGED, IRREGULAR, OUTSIDE, UNOPENED}


def try_picture(root: Path, relative: str, *, sha256: str) -> Pixels | NoPicture:
    """Load the picture of an images row as uint8 (height, width, 3), or say why its file holds none that is read."""
    content = _promised_bytes(root, relative, sha256=sha256)
    if isinstance(content, NoPicture):
        return content
    found = picture_from(content)
    return found if isinstance(found, NoPicture) else found.pixels


def _promised_bytes(root: Path, relative: str, *, sha256: str) -> bytes | NoPicture:
    """Read the file of an images row, as `try_picture` does."""
    found = read_bytes_inside(root, relative)
    if not isinstance(found, NoPicture) and digest_bytes(found) != sha256:
        found = NoPicture(CHANGED, f"SHA-256 {digest_bytes(found)}")
    if isinstance(found, NoPicture) and found.reason in _NOT_AS_PROMISED:
        raise IntegrityError(
            f"an image is not as its table promises: {found.reason}", where=f"{root}/{relative}",
            expected=f"SHA-256 {sha256}", found=found.detail,
        )  # fmt: skip
    return found


def load_picture(root: Path, relative: str, *, sha256: str) -> Pixels:
    """Load the picture of an images row, which has to hold one: what `try_picture` gives a reason for is an error."""
    found = try_picture(root, relative, sha256=sha256)
    if isinstance(found, NoPicture):
        raise IntegrityError(
            "an image of the table holds no picture that is read",
            where=f"{root}/{relative}",
            found=f"{found.reason} ({found.detail})" if found.detail else found.reason,
        )
    return found


_UNREADABLE_IN_SHARD = {"place": pl.UInt32(), "reason": pl.String(), "detail": pl.String()}
Item = TypeVar("Item")
# what came of pictures, by the name of the file it is kept in: vectors, and for some encoders probabilities
_Arrays = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class _PictureFile:
    """One picture, by its content, and every path that the table gives for it."""

    sha256: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _PictureShard:
    """A run of pictures, as a work item."""

    encoder: str
    root: Path
    pictures: tuple[_PictureFile, ...]
    folder: Path
    number: int

    def part(self, name: str) -> Path:
        return self.folder / f"{self.number:06d}-{name}"

    @property
    def done(self) -> bool:
        """Tell whether an earlier run finished it: the seal of the vectors vouches for all."""
        return is_sealed(self.part("vectors.npy"))


def cut(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Cut items into runs of one size; the last may be shorter."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _prepared(picture: _PictureFile, root: Path, encoder: ImageEncoder, gate: _Gate) -> Prepared | NoPicture:
    """Read one picture and bring it to the form that is encoded; every path given for it must hold the same bytes."""
    for path in picture.paths[1:]:
        _promised_bytes(root, path, sha256=picture.sha256)
    path, memory, size = picture.paths[0], 2**62, 0
    with suppress(OSError, ValueError):  # what cannot be looked at is refused when it is read
        size = (root / path).stat().st_size
    content: bytes | NoPicture | None = None
    if size <= _LARGE_FILE:
        with gate.reading(size):
            content = _promised_bytes(root, path, sha256=picture.sha256)
            memory = memory_for(content) if isinstance(content, bytes) else 0
            content = None if size > _SMALL_FILE else content
    with gate.holding(memory):
        content = content or _promised_bytes(root, path, sha256=picture.sha256)
        found = content if isinstance(content, NoPicture) else picture_from(content)
        return found if isinstance(found, NoPicture) else encoder.prepare(found.pixels)


def _encoded(encoder: ImageEncoder, pictures: Sequence[Prepared]) -> _Arrays:
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


def _save_shard(shard: _PictureShard, batches: Sequence[_Arrays], unreadable: Sequence[tuple[int, NoPicture]]) -> None:
    """Keep what came of a shard, and seal it."""
    written = []
    if unreadable:
        rows = [(index, none.reason, none.detail) for index, none in unreadable]
        written.append(shard.part("unreadable.parquet"))
        save_parquet(pl.DataFrame(rows, schema=_UNREADABLE_IN_SHARD, orient="row"), written[0])
    full = [arrays for arrays in batches if arrays]
    names = sorted(full[0], key=lambda name: name == "vectors") if full else ["vectors"]
    dim = encoder_of(shard.encoder).identity.dim
    for name in names:
        arrays: list[Any] = [batch[name] for batch in full] or [np.empty((0, dim))]
        written.append(shard.part(f"{name}.npy"))
        save_array(written[-1], np.concatenate(arrays).astype(np.float32, copy=False))
    seal(shard.part("vectors.npy"), written)


def _embed_shard(shard: _PictureShard) -> int:
    """Embed a run of pictures in a process of its own, one after the other."""
    settle_heaps()
    encoder = encoder_of(shard.encoder)
    gate = _Gate(lambda _: nullcontext(), partial(in_turn, shard.folder / "heavy.lock"))
    found = [_prepared(picture, shard.root, encoder, gate) for picture in shard.pictures]
    ready = [picture for picture in found if not isinstance(picture, NoPicture)]
    unreadable = [(index, picture) for index, picture in enumerate(found) if isinstance(picture, NoPicture)]
    _save_shard(shard, [_encoded(encoder, batch) for batch in cut(ready, encoder.batch_size)], unreadable)
    return len(shard.pictures)


_UNREADABLE = {"image_id": pl.String(), "reason": pl.String(), "detail": pl.String()}
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Embedded:
    """What came of a table of images."""

    vectors: Vectors  # float32 (n, dim), one for each row of `kept`; memory-mapped from the scratch folder
    kept: pl.DataFrame  # the rows of the table whose picture could be read, in their order
    unreadable: pl.DataFrame  # image_id, reason and detail of the other rows
    probabilities: NDArray[np.float32] | None = None  # float32 (n, classes) where the encoder classifies pictures, too


def embed(
    images: pl.DataFrame, root: Path, encoder: str, scratch: Path, *, engine: Engine, progress: Progress
) -> Embedded:
    """Embed the pictures of a table in its row order; shards that a cut run finished are not embedded again.

    Args:
        images: with image_id, path and sha256; rows with the same hash share one vector.
        root: the folder that paths are relative to.
        encoder: SPEC of an encoder of pictures.
        scratch: where parts are kept until the stage is done.
        engine: an encoder without weights works in its processes; one with weights is loaded once, in this process,
            with as many threads as the engine has workers.
        progress: hears of every batch.
    """
    loaded = encoder_of(encoder)
    paths = images.group_by("sha256", maintain_order=True).agg(pl.col("path").unique(maintain_order=True))
    pictures = [_PictureFile(sha256, tuple(names)) for sha256, names in paths.select("sha256", "path").iter_rows()]
    exactly = [loaded.identity.as_options(), loaded.batch_size, [[one.sha256, *one.paths] for one in pictures]]
    folder = scratch / f"pictures-{digest(exactly)[:16]}"
    folder.mkdir(exist_ok=True)
    size = at_once(loaded)
    size *= -(-PICTURES_PER_SHARD // size)
    runs = enumerate(cut(pictures, size))
    shards = [_PictureShard(encoder, root, tuple(run), folder, number) for number, run in runs]
    todo = [shard for shard in shards if not shard.done]
    before = len(pictures) - sum(len(shard.pictures) for shard in todo)
    progress.begin(len(pictures) - before, "pictures")
    if before:
        progress.tell(f"{before:,} were done before")
    here = not weightless(loaded)
    for count in _embed_in_threads(todo, workers=engine.workers) if here else engine.map(_embed_shard, todo):
        progress.advance(count)
    return gathered(images, pictures, shards, folder, dim=loaded.identity.dim)


def gathered(
    images: pl.DataFrame, pictures: Sequence[_PictureFile], shards: Sequence[_PictureShard], folder: Path, *, dim: int
) -> Embedded:
    """Put the parts of all shards together, one row for each row of the table that has a vector."""
    failures = {
        shard.pictures[index].sha256: (reason, detail) for shard in shards
        if (path := shard.part("unreadable.parquet")).exists()
        for index, reason, detail in pl.read_parquet(path).iter_rows()
    }  # fmt: skip
    kept = images.filter(~pl.col("sha256").is_in(list(failures)))
    readable = [picture.sha256 for picture in pictures if picture.sha256 not in failures]
    row_of = {sha256: number for number, sha256 in enumerate(readable)}
    order = np.array([row_of[sha256] for sha256 in kept["sha256"]], np.int64)
    first = next((path for shard in shards if (path := shard.part("probabilities.npy")).exists()), None)
    widths = {"vectors": dim} | ({} if first is None else {"probabilities": _opened(first).shape[1]})
    arrays = {
        name: _by_row(shards, folder, name, order, count=len(readable), width=width) for name, width in widths.items()
    }
    rows = images.filter(pl.col("sha256").is_in(list(failures))).select("image_id", "sha256").iter_rows()
    unreadable = pl.DataFrame([(image, *failures[sha256]) for image, sha256 in rows], _UNREADABLE, orient="row")
    return Embedded(arrays["vectors"], kept, unreadable, arrays.get("probabilities"))


def _opened(path: Path) -> NDArray[Any]:
    array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def _by_row(
    shards: Sequence[_PictureShard], folder: Path, name: str, order: NDArray[np.int64], *, count: int, width: int
) -> NDArray[np.float32]:
    """Write the rows of all shards as one array, then one row for each row of the table, and open it."""
    whole = folder / f"{name}.npy"
    parts = (path for shard in shards if (path := shard.part(f"{name}.npy")).exists())
    save_rows(whole, (_opened(path) for path in parts if _opened(path).size), shape=(count, width), dtype=np.float32)
    if np.array_equal(order, np.arange(count)):
        return _opened(whole)
    save_ordered(folder / f"{name}-by-row.npy", _opened(whole), order)
    return _opened(folder / f"{name}-by-row.npy")


@dataclass(slots=True)
class _Batch:
    """Pictures of one shard that are handed over at once; `seen` counts those that could not be read, too."""

    shard: _PictureShard
    ready: list[Prepared] = field(default_factory=list)
    unreadable: list[tuple[int, NoPicture]] = field(default_factory=list)
    seen: int = 0
    last: bool = False


def _embed_in_threads(shards: Sequence[_PictureShard], *, workers: int) -> Iterator[int]:
    """Embed shards of one encoder, and say how many pictures each batch settled.

    A shard's batches hold the same pictures however many threads there are; it is written when its last one is done.
    """
    if not shards:
        return
    settle_heaps()
    encoder = encoder_of(shards[0].encoder)
    reading = ThreadPoolExecutor(workers, "reading")
    try:
        with encoding_pool(workers) as (encoding, threads):
            waiting: deque[tuple[_Batch, Future[_Arrays]]] = deque()
            gathered: list[tuple[_Batch, _Arrays]] = []
            for batch in batches(shards, encoder, reading, workers=workers):
                waiting.append((batch, encoding.submit(_encoded, encoder, batch.ready)))
                while len(waiting) > threads or (batch.shard is shards[-1] and batch.last and waiting):
                    yield _settle(waiting, gathered)
    finally:
        reading.shutdown(wait=True, cancel_futures=True)


def _settle(waiting: deque[tuple[_Batch, "Future[_Arrays]"]], gathered: list[tuple[_Batch, _Arrays]]) -> int:
    """Wait for the batch that was sent off first, and write its shard if it was the last one of it."""
    batch, future = waiting.popleft()
    gathered.append((batch, future.result()))
    batch.ready.clear()
    if batch.last:
        unreadable = [found for done, _ in gathered for found in done.unreadable]
        _save_shard(batch.shard, [arrays for _, arrays in gathered], unreadable)
        gathered.clear()
    return batch.seen


def batches(
    shards: Sequence[_PictureShard], encoder: ImageEncoder, pool: ThreadPoolExecutor, *, workers: int
) -> Iterator[_Batch]:
    """Read pictures ahead, and give them in batches; every shard ends with a batch of its own, which may be empty."""
    gate = _Gate(Room(_FILES).holding, Room(_BUDGET).holding)
    pictures = ((shard, picture) for shard in shards for picture in shard.pictures)

    def read(item: tuple[_PictureShard, _PictureFile]) -> Prepared | NoPicture:
        return _prepared(item[1], item[0].root, encoder, gate)

    full = at_once(encoder)
    found = _ahead(pool, read, pictures, count=full + 2 * workers)
    for shard in shards:
        batch = _Batch(shard)
        for index in range(len(shard.pictures)):
            one = next(found)
            batch.seen += 1
            if isinstance(one, NoPicture):
                batch.unreadable.append((index, one))
            else:
                batch.ready.append(one)
            if len(batch.ready) == full and index + 1 < len(shard.pictures):
                yield batch
                batch = _Batch(shard)
        batch.last = True
        yield batch


def _ahead(
    pool: ThreadPoolExecutor, function: Callable[[Item], Result], items: Iterable[Item], *, count: int
) -> Iterator[Result]:
    """Give results in the order of the items, with up to `count` of them under way or waiting."""
    coming: deque[Future[Result]] = deque()
    for item in items:
        coming.append(pool.submit(function, item))
        if len(coming) >= count:
            yield coming.popleft().result()
    while coming:
        yield coming.popleft().result()
