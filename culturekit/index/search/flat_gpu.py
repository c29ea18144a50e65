"""Flat search on a GPU: a scan in half precision, exact scores in float64 for what could be among the best."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch

from culturekit.index.encoder import Vectors
from culturekit.index.search.flat_candidates import scan_error
from culturekit.index.search.search_found import Found, Order, exact_scores, nothing_found, ranked
from culturekit.index.search.search_inputs import (
    LARGEST_NORM,
    all_rows,
    checked_order,
    checked_queries,
    checked_vectors,
)

__all__ = ["GpuSearcher", "floor_seconds"]

QUERIES_AT_ONCE = 1024
PRODUCTS_AT_ONCE = 2**28
"""Half a gigabyte of half-precision products."""

GROUP = 64
ROWS_LOADED_AT_ONCE = 65_536
ROUNDING = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
"""How far rounding changes a number, relative to it."""

ADDING = 4
"""Tensor cores cut off where a CPU rounds, and keep a bit less: adding may err by this many times as much."""


def floor_seconds(rows: int, dim: int, queries: int, *, flops: float, bytes_per_second: float) -> float:
    """Say how long a GPU needs at the least: its arithmetic, or reading vectors and writing and reading products."""
    arithmetic = 2.0 * rows * dim * queries / flops
    moving = (2.0 * rows * dim + 4.0 * rows * queries) / bytes_per_second
    return max(arithmetic, moving)


class LowBlock(NamedTuple):
    """Vectors that are scanned at once: their row numbers, -1 for those that do not count, and whether all do."""

    vectors: torch.Tensor
    numbers: torch.Tensor
    whole: bool


class GpuSearcher:
    """Searches with torch on one device, which holds the vectors in half precision, and in full where they fit."""

    def __init__(
        self,
        vectors: Vectors,
        *,
        order: Order | None = None,
        device: torch.device,
        dtype: torch.dtype = torch.float16,
    ) -> None:
        """Load the vectors once, block by block."""
        self.vectors = checked_vectors(vectors)
        self.order = checked_order(order, vectors)
        self.device = device
        self.name = f"torch:{device}"
        count, dim = vectors.shape
        self.low = torch.zeros((count + -count % GROUP, dim), dtype=dtype, device=device)
        self.full = torch.empty((count, dim), device=device) if fits(count * dim * 4, device) else None
        self.ties = None if self.order is None else torch.from_numpy(self.order).to(device)
        lost = 0.0
        for start in range(0, count, ROWS_LOADED_AT_ONCE):
            some = torch.from_numpy(np.array(vectors[start : start + ROWS_LOADED_AT_ONCE])).to(device)
            stop = start + len(some)
            self.low[start:stop] = some
            if self.full is not None:
                self.full[start:stop] = some
            lost = max(lost, longest(some - self.low[start:stop].float()))
        self.lost = lost
        self.reserved = scan_error(dim) * ADDING + LARGEST_NORM**2 * 1.01 * ROUNDING[dtype] + 2.0**-20

    def best(self, queries: Vectors, *, k: int, slices: Sequence[slice] | None = None) -> Found:
        """Find the k best rows of each query."""
        queries = checked_queries(queries, self.vectors, k)
        runs = all_rows(slices, len(self.vectors))
        reached = min(k, sum(stop - start for start, stop in runs))
        found = nothing_found(len(queries), k)
        if not reached:
            return found
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            part = slice(start, start + QUERIES_AT_ONCE)
            scores, rows = self.search(queries[part], reached, runs)
            found.scores[part, :reached], found.rows[part, :reached] = scores, rows
        return found

    def search(
        self, queries: Vectors, k: int, runs: Sequence[tuple[int, int]]
    ) -> tuple[Vectors, np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
        """Search for some queries."""
        asked = torch.from_numpy(np.array(queries)).to(self.device)
        low = asked.to(self.low.dtype)
        short = longest(asked - low.float())
        error = LARGEST_NORM * (self.lost + short) * 1.001 + self.lost * short + self.reserved
        best = torch.full((len(asked), k), -torch.inf, device=self.device)
        kept: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        for block in self.blocks(runs, max(GROUP, PRODUCTS_AT_ONCE // len(asked) // GROUP * GROUP)):
            best, some = scanned(low, best, block, error)
            kept.append(some)
        owners, rows, products = (torch.cat(parts) for parts in zip(*kept, strict=True))
        near = products >= best[owners, -1] - 2 * error
        return self.ranked(asked, queries, owners[near], rows[near], k)

    def blocks(self, runs: Sequence[tuple[int, int]], step: int) -> Iterator[LowBlock]:
        """Cut long runs of rows into blocks of whole groups, and bring short ones together."""
        short = [np.arange(start, stop) for start, stop in runs if stop - start < GROUP]
        if short:
            rows = torch.from_numpy(np.concatenate(short)).to(self.device)
            for some in rows.split(step):
                numbers = torch.nn.functional.pad(some, (0, -len(some) % GROUP), value=-1)
                yield LowBlock(self.low[numbers.clamp(min=0)], numbers, len(some) == len(numbers))
        for start, stop in runs:
            for first in range(start - start % GROUP, stop if stop - start >= GROUP else 0, step):
                last = min(first + step, stop + -stop % GROUP)
                numbers = torch.arange(first, last, device=self.device)
                inside = first >= start and last <= stop
                if not inside:
                    numbers[(numbers < start) | (numbers >= stop)] = -1
                yield LowBlock(self.low[first:last], numbers, inside)

    def ranked(
        self, asked: torch.Tensor, queries: Vectors, owners: torch.Tensor, rows: torch.Tensor, k: int
    ) -> tuple[Vectors, np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
        """Score pairs and keep the k best of each query: on the device where it holds the vectors in full."""
        if self.full is None:
            mine, theirs = owners.cpu().numpy(), rows.cpu().numpy()
            exact = exact_scores(queries, self.vectors, owners=mine, rows=theirs)
            some = ranked(len(queries), k, owners=mine, rows=theirs, scores=exact, order=self.order)
            return some.scores, some.rows
        scores = folded(asked, self.full, owners, rows)
        ties = rows if self.ties is None else self.ties[rows]
        by = torch.argsort(ties, stable=True)
        by = by[torch.argsort(scores[by], descending=True, stable=True)]
        by = by[torch.argsort(owners[by], stable=True)]
        owners, rows, scores = owners[by], rows[by], scores[by]
        starts = torch.searchsorted(owners, torch.arange(len(asked), device=self.device))
        chosen = starts[:, None] + torch.arange(k, device=self.device)
        return scores[chosen].cpu().numpy(), rows[chosen].cpu().numpy()


@contextmanager
def whole_sums() -> Iterator[None]:
    """Let a GPU add up in float32 only: parts of a sum in half precision would err by more than is reckoned with."""
    settings = torch.backends.cuda.matmul
    names = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
    before = {name: getattr(settings, name) for name in names}
    for name in names:
        setattr(settings, name, False)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)


def fits(size: int, device: torch.device) -> bool:
    """Tell whether a device has room for a second copy of the vectors, and for what a search needs besides."""
    return device.type != "cuda" or bool(size < torch.cuda.mem_get_info(device)[0] // 2)


def longest(vectors: torch.Tensor) -> float:
    """Give an upper bound of the norms of vectors."""
    return float(vectors.norm(dim=1).max()) * 1.001 if len(vectors) else 0.0


def scanned(
    low: torch.Tensor, best: torch.Tensor, block: LowBlock, error: float
) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Let a block pass by some queries; give the k best products so far, and the rows that may be among the best."""
    with whole_sums():
        products = low @ block.vectors.T
    if not block.whole:
        products.masked_fill_(block.numbers < 0, -torch.inf)
    group = GROUP if len(block.numbers) // GROUP >= 2 * best.shape[1] else 1
    grouped = products.view(len(low), -1, group)
    most = grouped.amax(dim=2).float()
    best = torch.cat([best, most], dim=1).topk(best.shape[1], dim=1).values
    floor = best[:, -1] - 2 * error
    owners, groups = torch.nonzero(most >= floor[:, None], as_tuple=True)
    near = grouped[owners, groups].float()
    hit, place = torch.nonzero(near >= floor[owners, None], as_tuple=True)
    rows = block.numbers[groups[hit] * group + place]
    inside = rows >= 0
    return best, (owners[hit][inside], rows[inside], near[hit, place][inside])


def folded(queries: torch.Tensor, vectors: torch.Tensor, owners: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Score pairs as `exact_scores` does, in the same order of adding, on the device."""
    scores = torch.empty(len(rows), device=queries.device)
    for start in range(0, len(rows), ROWS_LOADED_AT_ONCE):
        some = slice(start, start + ROWS_LOADED_AT_ONCE)
        sums = queries[owners[some]].double() * vectors[rows[some]].double()
        width = sums.shape[1]
        while width > 1:
            half = (width + 1) // 2
            sums[:, : width - half] += sums[:, half:width]
            width = half
        scores[some] = sums[:, 0].float()
    return scores + 0.0
