"""Flat search in torch: a scan in low precision, and exact scores for all that could be among the best."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from culturekit.errors import UsageError
from culturekit.index.encoder import Vectors
from culturekit.index.flat_bytes import GROUP, ByteQueries, as_bytes, query_bytes
from culturekit.index.flat_candidates import Candidates, Scale, group_for
from culturekit.index.flat_gpu import GpuSearcher
from culturekit.index.flat_numpy import NumpySearcher
from culturekit.index.search_found import Found, Order, Searcher, nothing_found
from culturekit.index.search_inputs import all_rows, checked_queries
from culturekit.registry import Spec

__all__ = ["ByteSearcher", "fast_bytes", "make"]

QUERIES_AT_ONCE = 256
FEWEST_QUERIES = 8
"""Fewer are searched in float32: reading the vectors takes longer than multiplying them."""

ROWS_AT_ONCE = 2048


def fast_bytes() -> bool:
    """Tell whether this CPU has instructions for products of bytes."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_vnni" in flags or "avx_vnni" in flags or "amx_int8" in flags


class ByteSearcher:
    """Scans bytes with torch on a CPU; memory holds a quarter of what the vectors take."""

    name = "torch:cpu"

    def __init__(self, vectors: Vectors, *, order: Order | None = None) -> None:
        """Bring the vectors to bytes once."""
        self.exact = NumpySearcher(vectors, order=order)
        self.known = as_bytes(vectors)
        self.numbers = torch.from_numpy(self.known.numbers)

    def best(self, queries: Vectors, *, k: int, slices: Sequence[slice] | None = None) -> Found:
        """Find the k best rows of each query."""
        queries = checked_queries(queries, self.exact.vectors, k)
        count = len(self.exact.vectors)
        part_of_rows = sum(stop - start for start, stop in all_rows(slices, count)) < count
        if part_of_rows or not count or len(queries) < FEWEST_QUERIES:
            return self.exact.best(queries, k=k, slices=slices)
        threads = torch.get_num_threads()
        size = min(QUERIES_AT_ONCE, max(FEWEST_QUERIES, -(-len(queries) // threads)))
        parts = [slice(start, start + size) for start in range(0, len(queries), size)]
        found = nothing_found(len(queries), k)
        try:
            with ThreadPoolExecutor(threads, "searching", initializer=lambda: torch.set_num_threads(1)) as pool:
                seen = pool.map(lambda part: self.scan(queries[part], min(k, count)).finish(k), parts)
                for part, some in zip(parts, seen, strict=True):
                    found.scores[part], found.rows[part] = some.scores, some.rows
        finally:
            torch.set_num_threads(threads)
        return found

    def scan(self, queries: Vectors, k: int) -> Candidates:
        """Let all rows pass by some queries, in one thread."""
        known, asked = self.known, query_bytes(queries, self.known)
        seen = Candidates(self.exact.vectors, queries, k, self.exact.order, asked.errors, coarse=True)
        columns = torch.from_numpy(filled(asked)).T
        room = torch.empty((ROWS_AT_ONCE, columns.shape[1]), dtype=torch.int32)
        for start in range(0, len(self.numbers), ROWS_AT_ONCE):
            block = self.numbers[start : start + ROWS_AT_ONCE]
            products = torch._int_mm(block, columns, out=room[: len(block)]).numpy()[:, : len(queries)]
            groups = known.scales[start // GROUP : start // GROUP + -(-len(block) // GROUP)]
            group = group_for(len(block), k)
            scale = Scale(np.repeat(groups, GROUP // group)[: -(-len(block) // group)], asked.scales, asked.offsets)
            seen.offer(products, start, group=group, scale=scale)
            if start == 0:
                seen.look_closer()
        return seen


def filled(asked: ByteQueries) -> np.ndarray[tuple[int, int], np.dtype[np.int8]]:
    """Fill few queries up with zeros."""
    missing = FEWEST_QUERIES - len(asked.numbers)
    return asked.numbers if missing <= 0 else np.pad(asked.numbers, ((0, missing), (0, 0)))


def make(spec: Spec, *, vectors: Vectors, order: Order | None) -> Searcher:
    """Make the searcher for the device that a SPEC names, such as `torch:cuda:1`; else a GPU where there is one."""
    Spec(spec.name, "", spec.options).refuse_options()
    device = spec.target or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cpu":
        return ByteSearcher(vectors, order=order)
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise UsageError("there is no such device", where=str(spec), found=str(error).partition("\n")[0]) from error
    if place.type != "cuda" or not torch.cuda.is_available():
        found = "no GPU that torch can use" if place.type == "cuda" else device
        raise UsageError("torch cannot search there", where=str(spec), expected="cpu, cuda or cuda:N", found=found)
    return GpuSearcher(vectors, order=order, device=place)
