"""Flat search in torch: a scan in low precision, and exact scores for all that could be among the best."""

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.index.encoder import Vectors
from culturekit.index.search.flat_bytes import GROUP, as_bytes, query_bytes
from culturekit.index.search.flat_candidates import Candidates, Scale, group_for
from culturekit.index.search.flat_gpu import GpuSearcher
from culturekit.index.search.flat_numpy import NumpySearcher
from culturekit.index.search.search_found import Found, Order, Searcher, nothing_found
from culturekit.index.search.search_inputs import Block, all_rows, checked_queries
from culturekit.registry import Spec

__all__ = ["ByteSearcher", "fast_bytes", "make"]

QUERIES_AT_ONCE = 512
FEWEST_NUMBERS = 16
"""Vectors of fewer are searched in float32: of one number, torch 2.13 multiplies bytes wrongly."""

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
        self.trusted = multiplies_as_numpy(self.known.numbers[:ROWS_AT_ONCE])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # nobody writes to it
            self.mapped = torch.from_numpy(self.exact.vectors)

    def best(self, queries: Vectors, *, k: int, slices: Sequence[slice] | None = None) -> Found:
        """Find the k best rows of each query."""
        if len(queries) < FEWEST_QUERIES:
            return self.exact.best(queries, k=k, slices=slices)
        queries = np.require(checked_queries(queries, self.exact.vectors, k), requirements=["C", "W"])
        count = len(self.exact.vectors)
        runs = all_rows(slices, count)
        reached = min(k, sum(stop - start for start, stop in runs))
        found = nothing_found(len(queries), k)
        if not reached:
            return found
        whole = runs == [(0, count)] and self.trusted
        scan = self.scan if whole else partial(self.scan_slices, runs=runs)
        threads = torch.get_num_threads()
        size = min(QUERIES_AT_ONCE, max(FEWEST_QUERIES, -(-len(queries) // threads)))
        parts = [slice(start, start + size) for start in range(0, len(queries), size)]
        try:
            with ThreadPoolExecutor(threads, "searching", initializer=lambda: torch.set_num_threads(1)) as pool:
                seen = pool.map(lambda part: scan(queries[part], reached).finish(k), parts)
                for part, some in zip(parts, seen, strict=True):
                    found.scores[part], found.rows[part] = some.scores, some.rows
        finally:
            torch.set_num_threads(threads)
        return found

    def scan_slices(self, queries: Vectors, k: int, *, runs: Sequence[tuple[int, int]]) -> Candidates:
        """Let slices pass by some queries, in one thread and in float32: to find them in bytes takes as long."""
        seen = self.exact.begin(queries, k)
        self.exact.scan([seen], runs, self.multiply)
        return seen

    def multiply(self, block: Block, queries: Vectors, /, *, out: Vectors) -> None:
        """Multiply with as many threads as torch has here, which is one."""
        first, count = block.numbers, len(block.vectors)
        rows = self.mapped[first : first + count] if isinstance(first, int) else torch.from_numpy(block.vectors)
        torch.matmul(rows, torch.from_numpy(queries).T, out=torch.from_numpy(out))

    def scan(self, queries: Vectors, k: int) -> Candidates:
        """Let all rows pass by some queries, in one thread."""
        known, asked = self.known, query_bytes(queries, self.known)
        seen = Candidates(self.exact.vectors, queries, k, self.exact.order, asked.errors, coarse=True)
        columns = torch.from_numpy(asked.numbers).T
        room = torch.empty((ROWS_AT_ONCE, columns.shape[1]), dtype=torch.int32)
        for start in range(0, len(self.numbers), ROWS_AT_ONCE):
            block = self.numbers[start : start + ROWS_AT_ONCE]
            products = torch._int_mm(block, columns, out=room[: len(block)]).numpy()
            group = group_for(len(block), k)
            places = (start + np.arange(0, len(block), group)) // GROUP
            scale = Scale(known.scales[places], known.lost[places], asked.scales, asked.offsets, asked.norms)
            seen.offer(products, known.rows[start : start + ROWS_AT_ONCE], group=group, scale=scale)
            if start == 0:
                seen.look_closer()
        return seen


def multiplies_as_numpy(numbers: NDArray[np.int8]) -> bool:
    """Tell whether torch multiplies bytes as NumPy does; where it does not, they are not used."""
    some = numbers[:FEWEST_QUERIES]
    if numbers.shape[1] < FEWEST_NUMBERS or len(some) < FEWEST_QUERIES:
        return False
    products = torch._int_mm(torch.from_numpy(numbers), torch.from_numpy(some).T).numpy()
    return np.array_equal(products, numbers.astype(np.int32) @ some.T.astype(np.int32))


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
