"""What a process keeps of memory that is free again."""

import ctypes
import os
from functools import cache

LARGE_BLOCK = 4 * 2**20
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""What glibc's mallopt calls the number of free bytes from which on the end of a heap is given back, and the number
of bytes from which on a block is taken from the system."""


@cache
def settle_heaps() -> None:
    """Have the C library take large blocks from the system and give them back, and keep small ones for what comes.

    By itself glibc soon keeps blocks of up to 32 MB in the heap of each thread: sixteen readers of pictures held 1.1 GB
    so. Workers of dask give back whatever has 64 KB: each array of a picture that is drawn was taken from the system
    anew, for half as much time of the processor again.
    """
    settle = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if settle is not None:
        settle(MMAP_THRESHOLD, LARGE_BLOCK)
        settle(TRIM_THRESHOLD, 2 * LARGE_BLOCK)
