"""How many pairs a core aligns and chooses in a second, beside one call of `alignment_c3` after another, in one run.

Vectors are random, of 64 numbers each, and of the 768 and 512 of LaBSE and CLIP; each pair has a caption, its
translation, an object and a picture. Seconds are those of the processor. Memory is what a process of its own holds at
most beyond the vectors, which are mapped.
"""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from recording import record

from culturekit.builders.captions.pairs import SelectOptions, Strategy, select
from culturekit.core.run import run_stage
from culturekit.index.embedding.embedding import load_vectors, save_vectors
from culturekit.metrics.captions import alignment_c3
from culturekit.recipes.c3.scores import ROLES, C3Options, c3
from culturekit.scores.inputs import VectorFolder

WIDTHS = {"64": (64, 64), "768 and 512": (768, 512)}
SIZES = {"64": (1_000_000, 10_000_000), "768 and 512": (100_000,)}
EVERY: tuple[Strategy, ...] = ("random", "labse", "clip", "objects", "no-objects", "c3")
KEPT, NAIVE = 100_000, 10_000


class OneCore:
    """Does everything in this process."""

    workers = 1

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """Do one item after the other."""
        return map(function, items)


def main() -> None:
    """Measure each width and size in a process of its own."""
    table = [["numbers", "pairs", "aligned / s", "chosen / s", "one by one / s", "times as fast", "MB held", "bytes"]]
    for width, sizes in SIZES.items():
        for pairs in sizes:
            done = subprocess.run([sys.executable, __file__, width, str(pairs)], check=True, capture_output=True)
            table.append([width, f"{pairs:,}", *done.stdout.decode().split()])
    record("c3_filtering", title="C3 over many pairs, on one core", command="python benchmarks/c3_filtering.py",
           table=table)  # fmt: skip


def measure(root: Path, width: str, pairs: int) -> list[str]:
    """Align and choose in this process, and align some pairs one by one."""
    maker = get_context("spawn").Process(target=store, args=(root, width, pairs))  # its memory is not counted
    maker.start()
    maker.join()
    folders, held = {role: VectorFolder(root / role) for role in ROLES}, Held()
    options = SelectOptions(KEPT, EVERY, listed="kept")
    started = time.process_time()
    run_stage(c3.stage(**folders, options=C3Options()), root / "scores", engine=OneCore())
    aligned = time.process_time()
    run_stage(select.stage(root / "scores/values.parquet", options=options), root / "kept", engine=OneCore())
    chosen = time.process_time()
    most, vectors = held.most, {role: load_vectors(root / role)[0][:NAIVE] for role in ROLES}
    before = time.process_time()
    for number in range(NAIVE):
        alignment_c3(**{role: each[number] for role, each in vectors.items()})
    naive = NAIVE / (time.process_time() - before)
    rate = pairs / (aligned - started)
    size = (root / "scores/values.parquet").stat().st_size / pairs
    return [f"{rate:,.0f}", f"{pairs / (chosen - aligned):,.0f}", f"{naive:,.0f}", f"{rate / naive:.0f}",
            f"{most / 1e6:.0f}", f"{size:.0f}"]  # fmt: skip


def store(root: Path, width: str, pairs: int) -> None:
    """Write vectors of pairs."""
    rng, ids = np.random.default_rng(0), [f"{number:012x}" for number in range(pairs)]
    for role in ROLES:
        (root / role).mkdir()
        dim = WIDTHS[width][role.startswith("image")]
        save_vectors(root / role, rng.standard_normal((pairs, dim), dtype=np.float32), ids)


class Held:
    """The most memory of this process that no file backs, looked at a hundred times a second."""

    def __init__(self) -> None:
        """Begin to look."""
        self.most = 0
        threading.Thread(target=self.look, daemon=True).start()

    def look(self) -> None:
        """Look until the process ends."""
        while True:
            status = Path("/proc/self/status").read_text(encoding="ascii")
            self.most = max(self.most, int(status.partition("RssAnon:")[2].split()[0]) * 1024)
            time.sleep(0.01)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(" ".join(measure(Path(folder), sys.argv[1], int(sys.argv[2]))))
    else:
        main()
