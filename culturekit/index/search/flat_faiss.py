"""Flat search with FAISS, over blocks of a memory map; more than k are fetched until the k best are certain."""

from collections.abc import Sequence
from typing import Any

import faiss
import numpy as np

from culturekit.core.errors import MissingDependency
from culturekit.core.registry import Spec
from culturekit.index.encoder import Vectors
from culturekit.index.search.flat_candidates import Candidates, scan_error
from culturekit.index.search.search import (
    Block,
    Found,
    Order,
    Rows,
    all_rows,
    blocks_of,
    checked_order,
    checked_queries,
    checked_vectors,
    nothing_found,
)
from culturekit.version import install_line

QUERIES_AT_ONCE = 1024
ROWS_AT_ONCE = 65_536
MORE = 32
"""How many more than k are fetched at first."""

GPU_MOST = 2048
"""FAISS fetches no more than this on a GPU."""

GPU_ROUNDING = 2.0**-9
"""A GPU may cut both factors to 10 bits before it multiplies (TF32)."""


class FaissSearcher:
    """Searches with FAISS; no index is made, so the vectors are not held twice."""

    def __init__(self, vectors: Vectors, *, order: Order | None = None, gpu: bool = False) -> None:
        """Check the vectors once."""
        self.vectors = checked_vectors(vectors)
        self.order = checked_order(order, vectors)
        self.name = "faiss-gpu" if gpu else "faiss"
        self.resources: Any = faiss.StandardGpuResources() if gpu else None
        self.error = np.float32(scan_error(vectors.shape[1]) + gpu * 1.01 * GPU_ROUNDING)

    def best(self, queries: Vectors, *, k: int, slices: Sequence[slice] | None = None) -> Found:
        """Find the k best rows of each query."""
        queries = np.ascontiguousarray(checked_queries(queries, self.vectors, k))
        runs = all_rows(slices, len(self.vectors))
        reached = min(k, sum(stop - start for start, stop in runs))
        found = nothing_found(len(queries), k)
        if not reached:
            return found
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            part = slice(start, start + QUERIES_AT_ONCE)
            some = self.search(queries[part], reached, runs).finish(k)
            found.scores[part], found.rows[part] = some.scores, some.rows
        return found

    def search(self, queries: Vectors, k: int, runs: Sequence[tuple[int, int]]) -> Candidates:
        """Let blocks pass by some queries."""
        error = np.full(len(queries), self.error, np.float32)
        seen = Candidates(self.vectors, queries, k, self.order, error, coarse=self.resources is not None)
        least = np.full(len(queries), -np.inf, np.float32)
        for block in blocks_of(self.vectors, runs, ROWS_AT_ONCE):
            least = self.look_at(block, seen, least)
        return seen

    def look_at(self, block: Block, seen: Candidates, least: Vectors) -> Vectors:
        """Fetch from a block what could be among the best; give what the k-th best product reaches by now.

        What was not fetched lies below the last that was. Where that is not below all that could count, more
        is fetched for those queries, in the end all of the block.
        """
        asked, wanted = np.arange(len(seen.queries)), min(len(block.vectors), seen.k + MORE)
        while len(asked):
            products, places = self.fetch(seen.queries[asked], block.vectors, wanted)
            if wanted >= seen.k:
                least[asked] = np.maximum(least[asked], products[:, seen.k - 1])
            near = products >= (least[asked] - 2 * self.error)[:, None]
            open_ended = near[:, -1] if wanted < len(block.vectors) else np.zeros(len(asked), bool)
            query, place = np.nonzero(near & ~open_ended[:, None])
            numbers = places[query, place].astype(np.int64)
            rows = numbers + block.numbers if isinstance(block.numbers, int) else block.numbers[numbers]
            seen.take(asked[query], rows, products[query, place] + self.error)
            asked, wanted = asked[open_ended], min(len(block.vectors), 4 * wanted)
        return least

    def fetch(self, queries: Vectors, vectors: Vectors, count: int) -> tuple[Vectors, Rows]:
        """Fetch the best of a block with FAISS."""
        block = np.ascontiguousarray(vectors)
        if self.resources is None:
            products, places = faiss.knn(queries, block, count, metric=faiss.METRIC_INNER_PRODUCT)
        elif count <= GPU_MOST:
            products, places = faiss.knn_gpu(self.resources, queries, block, count, metric=faiss.METRIC_INNER_PRODUCT)
        else:
            all_products = queries @ block.T
            return all_products, np.broadcast_to(np.arange(len(block)), all_products.shape)
        return products, places


def make(spec: Spec, *, vectors: Vectors, order: Order | None) -> FaissSearcher:
    """Make the searcher; it takes no options."""
    spec.refuse_options()
    gpu = spec.name == "faiss-gpu"
    if gpu and not (hasattr(faiss, "get_num_gpus") and faiss.get_num_gpus()):
        raise MissingDependency(
            "the search faiss-gpu needs a GPU and the FAISS that is built for it",
            hint=f"Install it with: {install_line('faiss-gpu')}, or search with another.",
        )
    return FaissSearcher(vectors, order=order, gpu=gpu)
