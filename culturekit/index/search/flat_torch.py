"""Exact search in torch: a scan in low precision, and exact scores for all that could be among the best."""

import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.core.registry import Spec
from culturekit.index.encoder import Vectors
from culturekit.index.search.flat_numpy import Candidates, FlatSearcher, NumpySearcher, Scale, group_for, parts_of
from culturekit.index.search.search import LARGEST_NORM, Block, Found, Order, Searcher, exact_scores, ranked

# Vectors as bytes: a quarter of the memory and several times the speed, with a proven bound on what is lost.

GROUP = 64  # rows that share a scale
_MOST = 127
_ROWS_AT_ONCE = 2048
_MEASURED = 1.001  # norms are measured in float32; this covers what that may get wrong
_UNIT = 2.0**-24


@dataclass(frozen=True, slots=True)
class _ByteVectors:
    """Vectors, less their middle and turned, as whole numbers of -127 to 127.

    Attributes:
        numbers: int8 (n, dim).
        rows: int64 (n,), which vector each row of `numbers` is: within a block they stand by their largest number,
            so that those of a group need nearly the same scale.
        scales: float32, one for each group of rows: what one means.
        lost: float32, for each group the longest difference between a turned vector and its bytes.
        middle: the mean of all vectors; it adds the same to all scores of a query.
        longest: the norm of the longest vector of bytes.
        spread: the norm of the longest vector, less the middle.
    """

    numbers: NDArray[np.int8]
    rows: NDArray[np.int64]
    scales: NDArray[np.float32]
    lost: NDArray[np.float32]
    middle: Vectors
    longest: float
    spread: float


@dataclass(frozen=True, slots=True)
class _ByteQueries:
    """Queries turned in the same way, and how far a product of bytes may lie from their score.

    To `errors` comes, for the rows of a group, what the group has lost times the norm of the query.
    """

    numbers: NDArray[np.int8]
    scales: NDArray[np.float32]
    offsets: NDArray[np.float32]
    norms: NDArray[np.float32]
    errors: NDArray[np.float32]


def turning(dim: int) -> Vectors:
    """Give the matrix by which runs of numbers are turned: one large number becomes many small ones.

    It is a Hadamard matrix of side 64, 16, 4 or 1, divided by the root of its side: a power of two, so that its
    entries are exact in float32 and it is orthogonal to the last bit.
    """
    side = next(side for side in (64, 16, 4, 1) if dim % side == 0)
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < side:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    turned: Vectors = (matrix / np.sqrt(side)).astype(np.float32)
    return turned


def turned(vectors: Vectors, matrix: Vectors) -> Vectors:
    """Turn vectors; products between them stay what they were."""
    return (vectors.reshape(-1, len(matrix)) @ matrix).reshape(vectors.shape)


def _turning_error(side: int) -> float:
    """Bound how much turning in float32 changes a vector of norm 1.

    Each number is a sum of `side` products, and the matrix of absolute values stretches by no more than the root
    of its side.
    """
    return float(np.sqrt(side)) * (side + 2) * _UNIT * _MEASURED


def as_bytes(vectors: Vectors) -> _ByteVectors:
    """Bring vectors to bytes, block by block."""
    count, dim = vectors.shape
    matrix = turning(dim)
    middle = np.zeros(dim)
    for start in range(0, count, _ROWS_AT_ONCE):
        middle += vectors[start : start + _ROWS_AT_ONCE].sum(axis=0, dtype=np.float64)
    mean = (middle / max(count, 1)).astype(np.float32)
    numbers, rows = np.empty((count, dim), np.int8), np.arange(count)
    scales, lost = np.empty((2, -(-count // GROUP)), np.float32)
    longest = spread = 0.0
    for start in range(0, count, _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, count)
        some = vectors[start:stop] - mean
        spread = max(spread, _largest_norm(some))
        some = turned(some, matrix)
        reach = np.abs(some).max(axis=1)
        by_reach = np.argsort(reach, kind="stable")
        rows[start:stop] += by_reach - np.arange(stop - start)
        some, firsts = some[by_reach], np.arange(0, stop - start, GROUP)
        scale = np.maximum(np.maximum.reduceat(reach[by_reach], firsts), np.float32(1e-30)) / np.float32(_MOST)
        each = np.repeat(scale, GROUP)[: stop - start, None]
        whole = np.clip(np.rint(some / each), -_MOST, _MOST)
        numbers[start:stop] = whole
        whole *= each
        longest = max(longest, _largest_norm(whole))
        groups = slice(start // GROUP, start // GROUP + len(scale))
        scales[groups] = scale
        lost[groups] = np.maximum.reduceat(_norms_of(np.subtract(some, whole, out=some)), firsts)
    return _ByteVectors(numbers, rows, scales, lost, mean, longest, spread)


def _norms_of(vectors: Vectors) -> NDArray[np.float32]:
    """Give upper bounds of the norms of vectors that hold in spite of rounding."""
    norms: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", vectors, vectors)) * np.float32(_MEASURED)
    return norms


def _largest_norm(vectors: Vectors) -> float:
    return float(_norms_of(vectors).max(initial=0))


def query_bytes(queries: Vectors, known: _ByteVectors) -> _ByteQueries:
    """Bring queries to bytes, and bound the error of every product with known vectors.

    With the vector y + middle turned to z and stored as z', and the query q turned to w and stored as w',
    q.y - w'.z' = w.(z - z') + z'.(w - w'), each at most the product of two norms; turning adds what it rounds.
    """
    matrix = turning(queries.shape[1])
    some = turned(queries, matrix)
    scales = (np.maximum(np.abs(some).max(axis=1), np.float32(1e-30)) / np.float32(_MOST)).astype(np.float32)
    whole = np.clip(np.rint(some / scales[:, None]), -_MOST, _MOST)
    lost = _norms_of(some - whole * scales[:, None])
    norms = _norms_of(some)
    errors = known.longest * lost + 2 * _turning_error(len(matrix)) * known.spread * norms + 2.0**-19
    offsets = (queries.astype(np.float64) @ known.middle.astype(np.float64)).astype(np.float32)
    return _ByteQueries(whole.astype(np.int8), scales, offsets, norms, errors.astype(np.float32))


# Flat search on a GPU: a scan in half precision, exact scores in float64 for what could be among the best.

_GPU_QUERIES_AT_ONCE = 1024
_PRODUCTS_AT_ONCE = 2**28  # half a gigabyte of half-precision products
_GPU_GROUP = 64
_ROWS_LOADED_AT_ONCE = 65_536
_ROUNDING = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}  # how far rounding changes a number, relative to it
_ADDING = 4  # tensor cores cut off where a CPU rounds, and keep a bit less: adding may err by this many times as much


class LowBlock(NamedTuple):
    """Vectors that are scanned at once: their row numbers, -1 for those that do not count, and whether all do."""

    vectors: torch.Tensor
    numbers: torch.Tensor
    whole: bool


class GpuSearcher(FlatSearcher):
    """Searches with torch on one device, which holds the vectors in half precision, and in full where they fit."""

    def __init__(
        self, vectors: Vectors, *, order: Order | None = None, device: torch.device, dtype: torch.dtype = torch.float16
    ) -> None:
        """Load the vectors once, block by block."""
        super().__init__(vectors, order=order)
        self.device = device
        self.name = f"torch:{device}"
        count, dim = vectors.shape
        self.low = torch.zeros((count + -count % _GPU_GROUP, dim), dtype=dtype, device=device)
        # in full where there is room for a second copy, and for what a search needs besides
        fits = device.type != "cuda" or bool(count * dim * 4 < torch.cuda.mem_get_info(device)[0] // 2)
        self.full = torch.empty((count, dim), device=device) if fits else None
        self.ties = None if self.order is None else torch.from_numpy(self.order).to(device)
        self.lost = 0.0
        for start in range(0, count, _ROWS_LOADED_AT_ONCE):
            some = torch.from_numpy(np.array(vectors[start : start + _ROWS_LOADED_AT_ONCE])).to(device)
            stop = start + len(some)
            self.low[start:stop] = some
            if self.full is not None:
                self.full[start:stop] = some
            self.lost = max(self.lost, longest(some - self.low[start:stop].float()))
        self.reserved = self.error * _ADDING + LARGEST_NORM**2 * 1.01 * _ROUNDING[dtype] + 2.0**-20

    def search(self, queries: Vectors, k: int, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[slice, Found]]:
        """Scan in half precision, and rank what could be among the best."""
        for part in parts_of(len(queries), _GPU_QUERIES_AT_ONCE):
            asked = torch.from_numpy(np.array(queries[part])).to(self.device)
            low = asked.to(self.low.dtype)
            short = longest(asked - low.float())
            error = LARGEST_NORM * (self.lost + short) * 1.001 + self.lost * short + self.reserved
            best = torch.full((len(asked), k), -torch.inf, device=self.device)
            kept: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
            for block in self.blocks(runs, max(_GPU_GROUP, _PRODUCTS_AT_ONCE // len(asked) // _GPU_GROUP * _GPU_GROUP)):
                best, some = _scanned(low, best, block, error)
                kept.append(some)
            owners, rows, products = (torch.cat(parts) for parts in zip(*kept, strict=True))
            near = products >= best[owners, -1] - 2 * error
            yield part, self.ranked(asked, queries[part], owners[near], rows[near], k)

    def blocks(self, runs: Sequence[tuple[int, int]], step: int) -> Iterator[LowBlock]:
        """Cut long runs of rows into blocks of whole groups, and bring short ones together."""
        short = [np.arange(start, stop) for start, stop in runs if stop - start < _GPU_GROUP]
        if short:
            rows = torch.from_numpy(np.concatenate(short)).to(self.device)
            for some in rows.split(step):
                numbers = torch.nn.functional.pad(some, (0, -len(some) % _GPU_GROUP), value=-1)
                yield LowBlock(self.low[numbers.clamp(min=0)], numbers, len(some) == len(numbers))
        for start, stop in runs:
            for first in range(start - start % _GPU_GROUP, stop if stop - start >= _GPU_GROUP else 0, step):
                last = min(first + step, stop + -stop % _GPU_GROUP)
                numbers = torch.arange(first, last, device=self.device)
                inside = first >= start and last <= stop
                if not inside:
                    numbers[(numbers < start) | (numbers >= stop)] = -1
                yield LowBlock(self.low[first:last], numbers, inside)

    def ranked(self, asked: torch.Tensor, queries: Vectors, owners: torch.Tensor, rows: torch.Tensor, k: int) -> Found:
        """Score pairs and keep the k best of each query: on the device where it holds the vectors in full."""
        if self.full is None:
            mine, theirs = owners.cpu().numpy(), rows.cpu().numpy()
            exact = exact_scores(queries, self.vectors, owners=mine, rows=theirs)
            return ranked(len(queries), k, owners=mine, rows=theirs, scores=exact, order=self.order)
        scores = _folded(asked, self.full, owners, rows)
        ties = rows if self.ties is None else self.ties[rows]
        by = torch.argsort(ties, stable=True)
        by = by[torch.argsort(scores[by], descending=True, stable=True)]
        by = by[torch.argsort(owners[by], stable=True)]
        owners, rows, scores = owners[by], rows[by], scores[by]
        starts = torch.searchsorted(owners, torch.arange(len(asked), device=self.device))
        chosen = starts[:, None] + torch.arange(k, device=self.device)
        return Found(scores[chosen].cpu().numpy(), rows[chosen].cpu().numpy())


@contextmanager
def _whole_sums() -> Iterator[None]:
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


def longest(vectors: torch.Tensor) -> float:
    """Give an upper bound of the norms of vectors."""
    return float(vectors.norm(dim=1).max()) * 1.001 if len(vectors) else 0.0


def _scanned(
    low: torch.Tensor, best: torch.Tensor, block: LowBlock, error: float
) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Let a block pass by some queries; give the k best products so far, and the rows that may be among the best."""
    with _whole_sums():
        products = low @ block.vectors.T
    if not block.whole:
        products.masked_fill_(block.numbers < 0, -torch.inf)
    group = _GPU_GROUP if len(block.numbers) // _GPU_GROUP >= 2 * best.shape[1] else 1
    grouped = products.view(len(low), -1, group)
    most = grouped.amax(dim=2).float()
    best = torch.cat([best, most], dim=1).topk(best.shape[1], dim=1).values
    floor = best[:, -1] - 2 * error
    owners, groups = torch.nonzero(most >= floor[:, None], as_tuple=True)
    near = grouped[owners, groups].float()
    hit, column = torch.nonzero(near >= floor[owners, None], as_tuple=True)
    rows = block.numbers[groups[hit] * group + column]
    inside = rows >= 0
    return best, (owners[hit][inside], rows[inside], near[hit, column][inside])


def _folded(queries: torch.Tensor, vectors: torch.Tensor, owners: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Score pairs as `exact_scores` does, in the same order of adding, on the device."""
    scores = torch.empty(len(rows), device=queries.device)
    for start in range(0, len(rows), _ROWS_LOADED_AT_ONCE):
        some = slice(start, start + _ROWS_LOADED_AT_ONCE)
        sums = queries[owners[some]].double() * vectors[rows[some]].double()
        width = sums.shape[1]
        while width > 1:
            half = (width + 1) // 2
            sums[:, : width - half] += sums[:, half:width]
            width = half
        scores[some] = sums[:, 0].float()
    return scores + 0.0


_QUERIES_AT_ONCE = 512
_FEWEST_NUMBERS = 16  # vectors of fewer are searched in float32: of one number, torch 2.13 multiplies bytes wrongly
_FEWEST_QUERIES = 8  # fewer are searched in float32: reading the vectors takes longer than multiplying them


def fast_bytes() -> bool:
    """Tell whether this CPU has instructions for products of bytes."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_vnni" in flags or "avx_vnni" in flags or "amx_int8" in flags


class _ByteSearcher(FlatSearcher):
    """Scans bytes with torch on a CPU; memory holds a quarter of what the vectors take."""

    name = "torch:cpu"

    def __init__(self, vectors: Vectors, *, order: Order | None = None) -> None:
        super().__init__(vectors, order=order)
        self.exact = NumpySearcher(vectors, order=order)
        self.known = as_bytes(vectors)
        self.numbers = torch.from_numpy(self.known.numbers)
        self.trusted = _multiplies_as_numpy(self.known.numbers[:_ROWS_AT_ONCE])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # nobody writes to it
            self.mapped = torch.from_numpy(self.vectors)

    def search(self, queries: Vectors, k: int, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[slice, Found]]:
        """Let each thread scan for some of the queries."""
        if len(queries) < _FEWEST_QUERIES:
            yield from self.exact.search(queries, k, runs)
            return
        whole = runs == [(0, len(self.vectors))] and self.trusted
        scan = self.scan if whole else partial(self.scan_slices, runs=runs)
        threads = torch.get_num_threads()
        parts = parts_of(len(queries), min(_QUERIES_AT_ONCE, max(_FEWEST_QUERIES, -(-len(queries) // threads))))
        try:
            with ThreadPoolExecutor(threads, "searching", initializer=lambda: torch.set_num_threads(1)) as pool:
                yield from zip(parts, pool.map(lambda part: scan(queries[part], k).finish(), parts), strict=True)
        finally:
            torch.set_num_threads(threads)

    def scan_slices(self, queries: Vectors, k: int, *, runs: Sequence[tuple[int, int]]) -> Candidates:
        """Let slices pass by some queries, in one thread and in float32: to find them in bytes takes as long."""
        seen = self.begin(queries, k)
        self.exact.scan([(queries, seen)], runs, self.multiply)
        return seen

    def multiply(self, block: Block, queries: Vectors, /, *, out: Vectors) -> None:
        """Multiply with as many threads as torch has here, which is one."""
        first, count = block.numbers, len(block.vectors)
        rows = self.mapped[first : first + count] if isinstance(first, int) else torch.from_numpy(block.vectors)
        torch.matmul(rows, torch.from_numpy(queries).T, out=torch.from_numpy(out))

    def scan(self, queries: Vectors, k: int) -> Candidates:
        """Let all rows pass by some queries, in one thread."""
        known, asked = self.known, query_bytes(queries, self.known)
        seen = self.begin(queries, k, error=asked.errors)
        columns = torch.from_numpy(asked.numbers).T
        room = torch.empty((_ROWS_AT_ONCE, columns.shape[1]), dtype=torch.int32)
        for start in range(0, len(self.numbers), _ROWS_AT_ONCE):
            block = self.numbers[start : start + _ROWS_AT_ONCE]
            products = torch._int_mm(block, columns, out=room[: len(block)]).numpy()
            group = group_for(len(block), k)
            places = (start + np.arange(0, len(block), group)) // GROUP
            scale = Scale(known.scales[places], known.lost[places], asked.scales, asked.offsets, asked.norms)
            seen.offer(products, known.rows[start : start + _ROWS_AT_ONCE], group=group, scale=scale)
            if start == 0:
                seen.look_closer()
        return seen


def _multiplies_as_numpy(numbers: NDArray[np.int8]) -> bool:
    """Tell whether torch multiplies bytes as NumPy does; where it does not, they are not used."""
    some = numbers[:_FEWEST_QUERIES]
    if numbers.shape[1] < _FEWEST_NUMBERS or len(some) < _FEWEST_QUERIES:
        return False
    products = torch._int_mm(torch.from_numpy(numbers), torch.from_numpy(some).T).numpy()
    return np.array_equal(products, numbers.astype(np.int32) @ some.T.astype(np.int32))


def make(spec: Spec, *, vectors: Vectors, order: Order | None) -> Searcher:
    """Make the searcher for the device that a SPEC names, such as `torch:cuda:1`; else a GPU where there is one."""
    Spec(spec.name, "", spec.options).refuse_options()
    device = spec.target or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cpu":
        return _ByteSearcher(vectors, order=order)
    try:
        target = torch.device(device)
    except RuntimeError as error:
        raise UsageError("there is no such device", where=str(spec), found=str(error).partition("\n")[0]) from error
    if target.type != "cuda" or not torch.cuda.is_available():
        found = "no GPU that torch can use" if target.type == "cuda" else device
        raise UsageError("torch cannot search there", where=str(spec), expected="cpu, cuda or cuda:N", found=found)
    return GpuSearcher(vectors, order=order, device=target)
