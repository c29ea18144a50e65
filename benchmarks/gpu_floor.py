"""What a GPU can do at its best, measured on it: half-precision arithmetic, and moving bytes."""

import time
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["fastest", "floor_seconds", "measured_rates"]

SIDE = 8192
BYTES = 2**30
TIMES = 10


def measured_rates(device: str = "cuda", *, side: int = SIDE, size: int = BYTES) -> tuple[float, float]:
    """Give operations a second of a large half-precision product, and bytes a second of a large copy, both ways."""
    square = torch.ones((side, side), dtype=torch.float16, device=device)
    block = torch.ones(size // 2, dtype=torch.float16, device=device)
    arithmetic = fastest(lambda: square @ square, device)
    moving = fastest(lambda: block.clone(), device)
    return 2.0 * side**3 / arithmetic, 2.0 * size / moving


def floor_seconds(rows: int, dim: int, queries: int, *, flops: float, bytes_per_second: float) -> float:
    """Say how long a GPU needs at the least: its arithmetic, or reading vectors and writing and reading products."""
    arithmetic = 2.0 * rows * dim * queries / flops
    moving = (2.0 * rows * dim + 4.0 * rows * queries) / bytes_per_second
    return max(arithmetic, moving)


def fastest(work: Callable[[], Any], device: str, *, times: int = TIMES) -> float:
    """Time work several times; give the fewest seconds."""
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        work()
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - started)
    return best
