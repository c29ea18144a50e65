"""Exact search beside FAISS IndexFlatIP: queries a second, filtered, in small batches; and as the rows double.

All that is compared runs in one process on the same vectors with two threads, in turn, and ratios are the medians of
pairs that ran one after the other: what else a machine does meets both. Beside the seconds that passed stand those
that processors worked, all threads together, waiting in circles included: on a busy machine they say more, of a GPU
nothing. `--full` takes 300,000 rows of 512 and 768
numbers instead of 30,000 of 512. What is found is held against the twin.
"""

import json
import os
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
from numpy.typing import NDArray
from recording import record
from search_vectors import Vectors, draw_queries, written

from culturekit.index.search.search import Found, Searcher, best_by_hand, searcher

THREADS = int(os.environ["OMP_NUM_THREADS"])
K = 10
PAIRS = 5
SLICES = 60
"""A filter takes one row in so many."""

BATCHES = (1, 8, 64, 512)
PRODUCTS = "products alone"
"""What no exact search goes without."""

Way = Callable[[Vectors], object]
Times = NDArray[np.float64]
"""Seconds that passed, and seconds of all processors; in_turn has a row for each time."""


def engines(vectors: Vectors) -> dict[str, Searcher]:
    """Make every engine that is installed here."""
    import torch

    torch.set_num_threads(THREADS)
    made = {name: searcher(vectors, engine=name) for name in ("numpy", "faiss")}
    if torch.cuda.is_available():
        made["torch:cuda"] = searcher(vectors, engine="torch:cuda")
    return made


def flat(vectors: Vectors) -> "faiss.IndexFlatIP":
    """Make the peer."""
    faiss.omp_set_num_threads(THREADS)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(np.ascontiguousarray(vectors))
    return index


def seconds(way: Way, queries: Vectors) -> Times:
    """Time one search."""
    passed, worked = time.perf_counter(), time.process_time()
    way(queries)
    return np.array([time.perf_counter() - passed, time.process_time() - worked])


def in_turn(ways: Mapping[str, Way], queries: Vectors) -> dict[str, Times]:
    """Time ways one after the other, several times."""
    for way in ways.values():
        way(queries[:1])
    rounds = [{name: seconds(way, queries) for name, way in ways.items()} for _ in range(PAIRS)]
    return {name: np.array([times[name] for times in rounds]) for name in ways}


def milliseconds(times: Times, queries: int) -> list[str]:
    """Write the medians for one query: what passed, and what was worked."""
    return [f"{middle / queries * 1e3:.3g}" for middle in np.median(times, axis=0)]


def products(vectors: Vectors, queries: Vectors) -> None:
    """Multiply queries with rows, as many at once as stay in the cache, and look at none of the products."""
    at_once = max(1, 2**19 // len(queries))
    for start in range(0, len(vectors), at_once):
        vectors[start : start + at_once] @ queries.T


def ratios(peer: Times, mine: Times) -> list[str]:
    """Write the medians of how many times less the second takes, pair by pair: what passed, and what was worked."""
    return [f"{middle:.1f}x" for middle in np.median(peer / mine, axis=0)]


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
        ways: dict[str, Way] = {"IndexFlatIP": partial(index.search, k=K), PRODUCTS: partial(products, vectors)}
        ways |= {name: partial(one.best, k=K) for name, one in made.items()}
        times = in_turn(ways, queries)
        shape = f"{kind} {len(vectors):,} x {vectors.shape[1]}"
        for name in ways:
            found = f"{recalls[name]:.3f}" if name in recalls else "-"
            less = ratios(times["IndexFlatIP"], times[name])
            rows.append([shape, str(batch), name, *milliseconds(times[name], batch), *less, found])
        if "torch:cuda" in made:
            floor = gpu_floor(vectors, batch)
            floors = f"{np.median(times['torch:cuda'][:, 0]) / floor:.1f} floors"
            rows.append([shape, str(batch), "floor of the GPU", f"{floor / batch * 1e3:.4f}", "-", floors, "-", "-"])
    return rows


def gpu_floor(vectors: Vectors, queries: int) -> float:
    """Say how long the GPU needs at the least, from what it can do at its best."""
    from gpu_floor import floor_seconds, measured_rates

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
    ways |= {PRODUCTS: partial(products, vectors[part[0]])}
    ways |= {name: partial(one.best, k=K, slices=part) for name, one in made.items()}
    times = in_turn(ways, queries)
    return [
        [name, *milliseconds(times[name], len(queries)),
         *(" / ".join(ratios(times[peer], times[name])) for peer in selectors)]
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
    times = np.array([seconds(lambda some: made.best(some, k=K), queries) for _ in range(PAIRS)])
    done.set()
    watcher.join()
    sys.stdout.write(json.dumps({"seconds": list(np.median(times, axis=0)), "memory": most[0] - before}))


def own_memory() -> float:
    """Give the memory that belongs to this process alone, in MB; pages of mapped files do not."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


def doubling(folder: Path, rows: int, dim: int) -> list[list[str]]:
    """Compare a search with one of twice the rows: time, and memory besides the mapped file."""
    table = []
    for engine in ("numpy", "faiss"):
        answers = []
        for count in (rows // 2, rows):
            path = written(folder, "clustered", count, dim)
            command = [sys.executable, __file__, "child", str(path), engine, "512"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            answers.append(json.loads(done.stdout))
        half, full = answers
        growth = (f"{more / less:.2f}x" for more, less in zip(full["seconds"], half["seconds"], strict=True))
        table.append([engine, *(f"{took / 512 * 1e3:.3g}" for took in full["seconds"]), *growth,
                      f"{half['memory']:.0f}", f"{full['memory']:.0f}", f"{rows * dim * 4 / 2**20:.0f}"])  # fmt: skip
    return table


def main() -> None:
    """Compare, refuse what finds less than the twin, and record each part as soon as it is done."""
    full = "--full" in sys.argv
    count, dims, checked = (300_000, (512, 768), 16) if full else (30_000, (512,), 32)
    keep = partial(record, command="python benchmarks/search.py" + (" --full" if full else ""))
    took = ["ms a query", "CPU-ms"]
    whole = [["vectors", "queries", "engine", *took, "as fast as IndexFlatIP", "by CPU", f"recall@{K}"]]
    filtered = [["dim", "engine", *took, "against Batch, by time / by CPU", "Bitmap", "Range"]]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for dim in dims:
            for kind in ("clustered", "random"):
                vectors: Vectors = np.load(written(folder, kind, count, dim), mmap_mode="r")
                found = whole_search(vectors, kind, checked)
                if any(row[-1] not in {"-", "1.000"} for row in found):
                    raise SystemExit(f"an engine finds less than the twin: {found}")
                whole += found
                title = f"Search of all rows, k = {K}, {THREADS} threads; goal: 2.5x IndexFlatIP, recall 1.000"
                keep("search", title=title, table=whole)
            vectors = np.load(written(folder, "clustered", count, dim), mmap_mode="r")
            filtered += [[str(dim), *row] for row in filtered_search(vectors)]
            title = f"Search of 1 row in {SLICES} of {count:,}, 512 queries, {THREADS} threads; goal: 20x a selector"
            keep("search_filtered", title=title, table=filtered)
        head = ["engine", *took, "against half", "by CPU", "MB for half", "MB for all", "MB of the file"]
        title = f"Search of {count:,} x {dims[0]} from a memory map against half as many rows"
        keep("search_doubling", title=title, table=[head, *doubling(folder, count, dims[0])])


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
