"""Texts to vectors: every text encoded once, in shards that outlive a kill."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from culturekit.defaults import TEXTS_PER_SHARD
from culturekit.errors import UsageError
from culturekit.index.embedding.embedding_encoders import encoding_pool, text_encoder_of
from culturekit.index.encoder import TextEncoder, TooLong, Vectors
from culturekit.records.work import Progress
from culturekit.storage.arrays import save_array, save_rows
from culturekit.storage.digests import digest
from culturekit.storage.seals import is_sealed, seal
from culturekit.storage.system_errors import explained_outside

__all__ = ["embed_texts"]


def embed_texts(
    texts: Sequence[str], encoder: str, scratch: Path, *, progress: Progress
) -> tuple[Vectors, list[TooLong]]:
    """Embed texts in their order, in this thread: a tokenizer belongs to one; equal texts are encoded once.

    Args:
        texts: none of them empty.
        encoder: SPEC of an encoder of texts.
        scratch: where parts are kept until the stage is done.
        progress: hears of every shard.

    Returns:
        float32 (n, dim), unit norm, and which texts are longer than the encoder reads, by their place.
    """
    empty = [place for place, text in enumerate(texts) if not text.strip()]
    if empty:
        raise UsageError("an empty text has no vector", found=f"{len(empty)} empty texts, the first in row {empty[0]}")
    made = text_encoder_of(encoder)
    different = list(dict.fromkeys(texts))
    folder = scratch / f"texts-{digest([made.identity.as_options(), different])[:16]}"
    folder.mkdir(exist_ok=True)
    progress.begin(len(different), "texts")
    with encoding_pool(1) as (pool, _):
        parts = []
        for start in range(0, len(different), TEXTS_PER_SHARD):
            run = different[start : start + TEXTS_PER_SHARD]
            parts.append(pool.submit(text_part, made, run, folder / f"{start:09d}.npy").result())
            progress.advance(len(run))
        long = pool.submit(made.too_long, different).result()
    vectors = joined(parts, folder / "vectors.npy", shape=(len(different), made.identity.dim))
    place = {text: number for number, text in enumerate(different)}
    order = [place[text] for text in texts]
    cut = {each.place: each for each in long}
    too_long = [
        TooLong(number, cut[where].tokens, cut[where].most) for number, where in enumerate(order) if where in cut
    ]
    return (vectors if len(different) == len(texts) else vectors[order]), too_long


def joined(parts: Sequence[Path], whole: Path, *, shape: tuple[int, int]) -> Vectors:
    """Write all parts as one array, and open it without reading it."""
    save_rows(whole, (np.load(part, allow_pickle=False) for part in parts), shape=shape, dtype=np.float32)
    vectors: Vectors = np.load(whole, mmap_mode="r", allow_pickle=False)
    return vectors


def text_part(encoder: TextEncoder, texts: Sequence[str], part: Path) -> Path:
    """Embed a run of texts, unless an earlier run did."""
    if not is_sealed(part):
        with explained_outside(f"the encoder {encoder.identity.name}"):
            vectors = encoder.encode_texts(texts)
        if vectors.shape != (len(texts), encoder.identity.dim) or not np.isfinite(vectors).all():
            raise UsageError("the encoder gave no vector of finite numbers for a text", where=encoder.identity.name)
        save_array(part, vectors.astype(np.float32, copy=False))
        seal(part)
    return part
