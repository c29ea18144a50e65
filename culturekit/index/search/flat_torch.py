"""Exact search in torch on a GPU: a scan in half precision, exact scores for all that could be among the best."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch

from culturekit.core.errors import UsageError
from culturekit.core.registry import Spec
from culturekit.index.encoder import Vectors
from culturekit.index.search.search import (
    LARGEST_NORM,
    FlatSearcher,
    Found,
    NumpySearcher,
    Order,
    Searcher,
    exact_scores,
    parts_of,
    ranked,
)

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


def make(spec: Spec, *, vectors: Vectors, order: Order | None) -> Searcher:
    """Make the searcher of the device that a SPEC names, such as `torch:cuda:1`; of a CPU it is NumPy's."""
    Spec(spec.name, "", spec.options).refuse_options()
    device = spec.target or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cpu":
        return NumpySearcher(vectors, order=order)
    try:
        target = torch.device(device)
    except RuntimeError as error:
        raise UsageError("there is no such device", where=str(spec), found=str(error).partition("\n")[0]) from error
    if target.type != "cuda" or not torch.cuda.is_available():
        found = "no GPU that torch can use" if target.type == "cuda" else device
        raise UsageError("torch cannot search there", where=str(spec), expected="cpu, cuda or cuda:N", found=found)
    return GpuSearcher(vectors, order=order, device=target)
