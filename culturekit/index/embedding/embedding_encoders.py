"""The encoder of a process: made once, and run so that its numbers never depend on how many threads there are."""

import importlib
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

from culturekit.errors import UsageError
from culturekit.index.encoder import Encoder, ImageEncoder, TextEncoder
from culturekit.index.encoders import ENCODERS

__all__ = ["at_once", "encoder_of", "encoding_pool", "made_encoder", "text_encoder_of", "weightless"]

NO_WEIGHTS = "none"

BATCHES_ON_GPU = 4
"""Handed over in one piece, so that the encoder can lay the next batch ready while the GPU computes."""


@cache
def made_encoder(spec: str) -> Encoder:
    """Make an encoder once per process."""
    return ENCODERS.make(spec)


def encoder_of(spec: str) -> ImageEncoder:
    """Give an encoder that reads pictures."""
    encoder = made_encoder(spec)
    if not isinstance(encoder, ImageEncoder):
        raise UsageError("the encoder reads no pictures", where=spec, expected="an encoder of pictures")
    return encoder


def text_encoder_of(spec: str) -> TextEncoder:
    """Give an encoder that reads texts."""
    encoder = made_encoder(spec)
    if not isinstance(encoder, TextEncoder):
        raise UsageError("the encoder reads no texts", where=spec, expected="an encoder of texts, such as CLIP")
    return encoder


def weightless(encoder: Encoder) -> bool:
    """Tell whether every process may have an encoder of its own: one with weights is loaded once."""
    return encoder.identity.weights == NO_WEIGHTS


@contextmanager
def encoding_pool(workers: int) -> Iterator[tuple[ThreadPoolExecutor, int]]:
    """Give the threads that encode, and how many there are.

    On a CPU each encodes batches of its own with one thread for arithmetic: as torch adds numbers up in another order
    when it has another number of threads, only this gives the same bits for any number of workers. A GPU has one.
    """
    torch = importlib.import_module("torch") if "torch" in sys.modules else None
    threads = 1 if torch is None or on_gpu() else workers
    before = 0 if torch is None else torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, "encoding", initializer=None if torch is None else lambda: one_thread(torch))
    try:
        yield pool, threads
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        if torch is not None:
            torch.set_num_threads(before)


def at_once(encoder: ImageEncoder) -> int:
    """Say how many pictures are handed to an encoder in one piece; it encodes them in batches of its own size."""
    return encoder.batch_size * (BATCHES_ON_GPU if on_gpu() else 1)


def on_gpu() -> bool:
    """Tell whether a model of this process is on a GPU."""
    return "torch" in sys.modules and bool(importlib.import_module("torch").cuda.is_initialized())


def one_thread(torch: object) -> None:
    """Leave one thread for the arithmetic of this thread."""
    torch.set_num_threads(1)  # type: ignore[attr-defined]
