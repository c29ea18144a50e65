"""Exact search with FAISS; more than k rows are fetched, and exact scores prove that the k best are among them."""

from collections.abc import Iterator, Sequence
from typing import Any

import faiss
import numpy as np

from culturekit.core.errors import MissingDependency
from culturekit.core.registry import Spec
from culturekit.index.encoder import Vectors
from culturekit.index.search.search import (
    FlatSearcher,
    Found,
    NumpySearcher,
    Order,
    Rows,
    blocks_of,
    exact_scores,
    parts_of,
    ranked,
)
from culturekit.version import install_line

_QUERIES_AT_ONCE = 1024
_ROWS_AT_ONCE = 65_536
_MORE = 32  # how many more than k are fetched
_GPU_MOST = 2048  # FAISS fetches no more than this on a GPU
_GPU_ROUNDING = 2.0**-9  # a GPU may cut both factors to 10 bits before it multiplies (TF32)


class _FaissSearcher(FlatSearcher):
    """Searches blocks of rows with FAISS; no index is made, so the vectors are not held twice."""

    def __init__(self, vectors: Vectors, *, order: Order | None = None, gpu: bool = False) -> None:
        super().__init__(vectors, order=order)
        self.name = "faiss-gpu" if gpu else "faiss"
        self.resources: Any = faiss.StandardGpuResources() if gpu else None
        self.error += gpu * 1.01 * _GPU_ROUNDING
        self.exact = NumpySearcher(vectors, order=order)

    def search(self, queries: Vectors, k: int, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[slice, Found]]:
        """Rank what FAISS fetches; where a row that it left out could be among the best, NumPy searches anew."""
        for part in parts_of(len(queries), _QUERIES_AT_ONCE):
            some = queries[part]
            owners, rows, unseen = self.fetch(some, k, runs)
            scores = exact_scores(some, self.vectors, owners=owners, rows=rows)
            found = ranked(len(some), k, owners=owners, rows=rows, scores=scores, order=self.order)
            doubtful = np.flatnonzero(unseen + self.error >= found.scores[:, -1])
            if len(doubtful):
                again = self.exact.best(some[doubtful], k=k, slices=[slice(*run) for run in runs])
                found.scores[doubtful], found.rows[doubtful] = again.scores, again.rows
            yield part, found

    def fetch(self, queries: Vectors, k: int, runs: Sequence[tuple[int, int]]) -> tuple[Rows, Rows, Vectors]:
        """Fetch the best rows of every block: pairs of a query and a row, and what no row left out exceeds."""
        pairs: list[tuple[Rows, Rows]] = []
        unseen = np.full(len(queries), -np.inf, np.float32)
        for block, numbers in blocks_of(self.vectors, runs, _ROWS_AT_ONCE):
            vectors, wanted = np.ascontiguousarray(block), min(len(block), k + _MORE)
            if self.resources is None:
                products, places = faiss.knn(queries, vectors, wanted, metric=faiss.METRIC_INNER_PRODUCT)
            else:
                wanted = min(wanted, _GPU_MOST)
                metric = faiss.METRIC_INNER_PRODUCT
                products, places = faiss.knn_gpu(self.resources, queries, vectors, wanted, metric=metric)
            if wanted < len(vectors):
                unseen = np.maximum(unseen, products[:, -1])
            pairs.append((np.repeat(np.arange(len(queries)), wanted), numbers[places].ravel()))
        owners, rows = (np.concatenate(one) for one in zip(*pairs, strict=True))
        return owners, rows, unseen


def make(spec: Spec, *, vectors: Vectors, order: Order | None) -> _FaissSearcher:
    """Make the searcher; it takes no options."""
    spec.refuse_options()
    gpu = spec.name == "faiss-gpu"
    if gpu and not (hasattr(faiss, "get_num_gpus") and faiss.get_num_gpus()):
        raise MissingDependency(
            "the search faiss-gpu needs a GPU and the FAISS that is built for it",
            hint=f"Install it with: {install_line('faiss-gpu')}, or search with another.",
        )
    return _FaissSearcher(vectors, order=order, gpu=gpu)
