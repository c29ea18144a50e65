"""Exact search beside FAISS IndexFlatIP: queries a second, filtered, in small batches; and as the rows double.

All that is compared runs in one process on the same vectors with two threads, in turn, and ratios are the medians of
pairs that ran one after the other: what else a machine does meets both. `--full` takes 300,000 rows of 512 and 768
numbers instead of 30,000 of 512. What is found is held against the twin.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import faiss
import numpy as np
from recording import record
from search_vectors import Vectors, draw_queries, written

from culturekit.index.search.search import Found, Searcher, best_by_hand, searcher

THREADS = int(os.environ["OMP_NUM_THREADS"])
K = 10
PAIRS = 5
SLICES = 60
"""A filter takes one row in so many."""

BATCHES = (1, 8, 64, 512)
Way = Callable[[Vectors], object]


def engines(vectors: Vectors) -> dict[str, Searcher]:
    """Make every engine that is installed here."""
    import torch

    torch.set_num_threads(THREADS)
    made = {name: searcher(vectors, engine=name) for name in ("numpy", "torch:cpu", "faiss")}
    if torch.cuda.is_available():
        made["torch:cuda"] = searcher(vectors, engine="torch:cuda")
    return made


def flat(vectors: Vectors) -> "faiss.IndexFlatIP":
    """Make the peer."""
    faiss.omp_set_num_threads(THREADS)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(np.ascontiguousarray(vectors))
    return index


def seconds(way: Way, queries: Vectors) -> float:
    """Time one search."""
    started = time.perf_counter()
    way(queries)
    return time.perf_counter() - started


def in_turn(ways: Mapping[str, Way], queries: Vectors) -> dict[str, list[float]]:
    """Time ways one after the other, several times."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way(queries[:1])
    for _ in range(PAIRS):
        for name, way in ways.items():
            times[name].append(seconds(way, queries))
    return times


def ratio(peer: list[float], mine: list[float]) -> float:
    """Give the median of how many times faster the second is, pair by pair."""
    return statistics.median(theirs / ours for theirs, ours in zip(peer, mine, strict=True))


def recall(found: Found, by_hand: Found) -> float:
    """Give the share of the twin's rows that were found."""
    same = [len(set(mine) & set(theirs)) for mine, theirs in zip(found.rows, by_hand.rows, strict=True)]
    return sum(same) / by_hand.rows.size


def whole_search(vectors: Vectors, kind: str, checked: int) -> list[list[str]]:
    """Compare searches of all rows, by batch size."""
    index, made = flat(vectors), engines(vectors)
    rows = []
    queries = draw_queries(vectors, kind, checked)
    by_hand = best_by_hand(vectors, queries, k=K)
    recalls = {name: recall(one.best(queries, k=K), by_hand) for name, one in made.items()}
    for batch in BATCHES:
        queries = draw_queries(vectors, kind, batch)
        ways: dict[str, Way] = {"IndexFlatIP": partial(index.search, k=K)}
        ways |= {name: partial(one.best, k=K) for name, one in made.items()}
        times = in_turn(ways, queries)
        for name in ways:
            milliseconds = statistics.median(times[name]) / batch * 1e3
            times_as_fast = f"{ratio(times['IndexFlatIP'], times[name]):.1f}x" if name in made else "1x"
            shape = f"{kind} {len(vectors):,} x {vectors.shape[1]}"
            rows.append([shape, str(batch), name, f"{milliseconds:.2f}", times_as_fast,
                         f"{recalls[name]:.3f}" if name in recalls else "-"])  # fmt: skip
        if "torch:cuda" in made:
            floor = gpu_floor(vectors, batch)
            times_of_floor = f"{statistics.median(times['torch:cuda']) / floor:.1f} floors"
            rows.append([shape, str(batch), "floor of the GPU", f"{floor / batch * 1e3:.4f}", times_of_floor, "-"])
    return rows


def gpu_floor(vectors: Vectors, queries: int) -> float:
    """Say how long the GPU needs at the least, from what it can do at its best."""
    from gpu_floor import measured_rates

    from culturekit.index.search.flat_gpu import floor_seconds

    flops, moved = measured_rates()
    rows, dim = vectors.shape
    return floor_seconds(rows, dim, queries, flops=flops, bytes_per_second=moved)


def filtered_search(vectors: Vectors) -> list[list[str]]:
    """Compare searches of one row in sixty that stand together: a slice, and the selectors of FAISS."""
    index, made = flat(vectors), engines(vectors)
    count = len(vectors) // SLICES
    start = len(vectors) // 3
    chosen = np.arange(start, start + count, dtype=np.int64)
    bits = np.packbits(np.isin(np.arange(len(vectors)), chosen), bitorder="little")
    selectors: dict[str, Any] = {
        "IDSelectorBatch": faiss.IDSelectorBatch(chosen),
        "IDSelectorBitmap": faiss.IDSelectorBitmap(bits),  # type: ignore[arg-type,call-arg]
        "IDSelectorRange": faiss.IDSelectorRange(start, start + count),
    }
    queries = draw_queries(vectors, "clustered", 512)
    ways: dict[str, Way] = {
        name: partial(index.search, k=K, params=faiss.SearchParameters(sel=selector))  # type: ignore[call-arg]
        for name, selector in selectors.items()
    }
    part = [slice(start, start + count)]
    ways |= {name: partial(one.best, k=K, slices=part) for name, one in made.items()}
    times = in_turn(ways, queries)
    return [
        [name, f"{statistics.median(times[name]) / len(queries) * 1e3:.3f}",
         *(f"{ratio(times[peer], times[name]):.1f}x" for peer in selectors)]
        for name in ways
    ]  # fmt: skip


def child(path: str, engine: str, batch: int) -> None:
    """Search a memory map in a process of its own; say how long it took, and the most memory that was its own."""
    vectors: Vectors = np.load(path, mmap_mode="r")
    queries = draw_queries(vectors, "clustered", batch)
    if engine.startswith("torch"):
        import torch

        torch.set_num_threads(THREADS)
    before, most, done = own_memory(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            most[0] = max(most[0], own_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    made = searcher(vectors, engine=engine)
    made.best(queries[:8], k=K)
    times = [seconds(lambda some: made.best(some, k=K), queries) for _ in range(3)]
    done.set()
    watcher.join()
    sys.stdout.write(json.dumps({"seconds": statistics.median(times), "memory": most[0] - before}))


def own_memory() -> float:
    """Give the memory that belongs to this process alone, in MB; pages of mapped files do not."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


def doubling(folder: Path, rows: int, dim: int) -> list[list[str]]:
    """Compare a search with one of twice the rows: time, and memory besides the mapped file."""
    table = []
    for engine in ("numpy", "torch:cpu", "faiss"):
        answers = []
        for count in (rows // 2, rows):
            path = written(folder, "clustered", count, dim)
            command = [sys.executable, __file__, "child", str(path), engine, "512"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            answers.append(json.loads(done.stdout))
        half, full = answers
        table.append([engine, f"{full['seconds'] / 512 * 1e3:.2f}", f"{full['seconds'] / half['seconds']:.2f}x",
                      f"{half['memory']:.0f}", f"{full['memory']:.0f}", f"{rows * dim * 4 / 2**20:.0f}"])  # fmt: skip
    return table


def main() -> None:
    """Compare, and refuse what finds less than the twin."""
    full = "--full" in sys.argv
    count, dims, checked = (300_000, (512, 768), 16) if full else (30_000, (512,), 32)
    command = "python benchmarks/search.py" + (" --full" if full else "")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        whole, filtered = [], []
        for dim in dims:
            for kind in ("clustered", "random"):
                vectors: Vectors = np.load(written(folder, kind, count, dim), mmap_mode="r")
                whole += whole_search(vectors, kind, checked)
            vectors = np.load(written(folder, "clustered", count, dim), mmap_mode="r")
            filtered += [[str(dim), *row] for row in filtered_search(vectors)]
        doubled = doubling(folder, count, dims[0])
    if any(row[-1] not in {"-", "1.000"} for row in whole):
        raise SystemExit(f"an engine finds less than the twin: {whole}")
    record("search", title=f"Search of all rows, k = {K}, {THREADS} threads; goal: 2.5x IndexFlatIP, recall 1.000",
           command=command, table=[["vectors", "queries", "engine", "ms a query", "as fast as IndexFlatIP",
                                    f"recall@{K}"], *whole])  # fmt: skip
    record("search_filtered", title=f"Search of 1 row in {SLICES} of {count:,}, 512 queries, {THREADS} threads; "
           "goal: 20x a selector", command=command,
           table=[["dim", "engine", "ms a query", "against Batch", "Bitmap", "Range"], *filtered])  # fmt: skip
    record("search_doubling", title=f"Search of {count:,} x {dims[0]} from a memory map against half as many rows",
           command=command, table=[["engine", "ms a query", "time", "MB for half", "MB for all", "MB of the file"],
                                   *doubled])  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
