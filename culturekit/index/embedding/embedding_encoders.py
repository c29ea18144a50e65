"""The encoder of a process, whose numbers never depend on threads, and many texts put through it."""

import importlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.arrays import load_array, save_array, save_rows
from culturekit.core.atomic import explained_outside
from culturekit.core.defaults import TEXTS_PER_SHARD
from culturekit.core.digests import digest
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.schemas import VECTOR_IDS
from culturekit.core.stage import Progress
from culturekit.core.stage_folder import is_sealed, seal
from culturekit.core.tables import read_table, write_table
from culturekit.index.encoder import ENCODERS, Encoder, ImageEncoder, TextEncoder, TokenEncoder, TooLong, Vectors

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
    return np.load(folder / "by-row.npy", mmap_mode="r", allow_pickle=False), too_long


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
    return np.load(whole, mmap_mode="r", allow_pickle=False), counts


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
