"""Algorithm 1 on graphs of up to 100 million items, against networkx and scipy; the authors' traversal against itself.

With --full also 100 million items: it needs 3 GB of disk, and 8 GB of memory to make the graph.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from algorithm1_graphs import make_graph
from recording import record

SIZES = (20_000, 1_000_000, 10_000_000)
LARGEST = 100_000_000

RUNS = (
    ("ours", 1_000_000, 4),
    ("networkx", 1_000_000, 4),
    ("ours", 10_000_000, 4),
    ("scipy", 10_000_000, 4),
    ("ours", 10_000_000, 40),
)
FULL = (("ours", LARGEST, 4), ("ours", LARGEST, 40))
NAMES = {
    "ours": "culturekit",
    "networkx": "networkx, scaled to 10M",
    "scipy": "scipy, sparse matrix by vector",
    "authors": "culturekit, authors' semantics",
    "naive": "every item against every root, in Python",
}


def main() -> None:
    """Make the graphs, measure each contender in a process of its own, write down."""
    full = "--full" in sys.argv
    folder = Path(tempfile.mkdtemp(prefix="algorithm1-"))
    try:
        for size in (*SIZES, *((LARGEST,) if full else ())):
            (folder / str(size)).mkdir()
            subprocess.run([sys.executable, __file__, "make", str(folder / str(size)), str(size)], check=True)
        rows = [row_of(kind, size, hops, measure(folder, kind, size, hops)) for kind, size, hops in RUNS]
        rows += [row_of(kind, size, hops, measure(folder, kind, size, hops)) for kind, size, hops in FULL if full]
        rows += authors_rows(folder)
    finally:
        shutil.rmtree(folder)
    record(
        "algorithm1",
        title="Algorithm 1, 45 roots of three concepts, arrays memory-mapped",
        command="python benchmarks/algorithm1.py --full" if full else "python benchmarks/algorithm1.py",
        table=[["what", "items", "H", "artifacts or rows", "seconds", "peak memory"], *rows],
    )


def measure(folder: Path, kind: str, size: int, hops: int) -> dict[str, float]:
    """Run a contender in a process of its own: seconds of the walk, peak memory of the whole process, what it found."""
    contender = Path(__file__).parent / "algorithm1_contenders.py"
    words = [sys.executable, str(contender), kind, str(folder / str(size)), str(hops)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def row_of(kind: str, size: int, hops: int, found: dict[str, float]) -> list[str]:
    """Write one line; networkx is scaled by the number of items, which it grows with."""
    seconds = found["seconds"] * (10 if kind == "networkx" else 1)
    return [NAMES[kind], f"{size:,}", f"{hops}", f"{found['found']:,}", f"{seconds:.3g}", f"{found['mib']:,.0f} MiB"]


def authors_rows(folder: Path) -> list[list[str]]:
    """Compare the authors' traversal with a naive one that does what the published code is described to do."""
    size, hops = SIZES[0], 4
    ours, naive = (measure(folder, kind, size, hops) for kind in ("authors", "naive"))
    if ours["found"] != naive["found"]:
        raise SystemExit(f"{ours['found']} rows, but {naive['found']} by the naive walk")
    ratio = ["times as fast", f"{size:,}", f"{hops}", "", f"{naive['seconds'] / ours['seconds']:,.0f}", ""]
    return [row_of("authors", size, hops, ours), row_of("naive", size, hops, naive), ratio]


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make_graph(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
