"""Five kernels and five orders over ten million images of 300,000 artifacts: CPU seconds and memory of a process.

`--full` also streams a hundred million from a Parquet file, as whole numbers and as the texts that a table of matches
has, and twenty million of them to show how both grow.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from recording import record

STREAMED = 100_000_000
IMAGES, ARTIFACTS, COUNTRIES, CONTINENTS = 10_000_000, 300_000, 200, 6
ORDERS = (0.1, 0.5, 1.0, 2.0, float("inf"))
GOALS = "2 CPU-s, 1 GB"
STREAMED_GOALS = "15 CPU-s, 1 GB"


def images(kind: str, images_wanted: int) -> pl.DataFrame:
    """Draw images as integer codes; `popular` artifacts follow Zipf's law, `equal` ones do not."""
    rng = np.random.default_rng(0)
    country = rng.integers(0, COUNTRIES, ARTIFACTS).astype(np.int32)
    continent = rng.integers(0, CONTINENTS, COUNTRIES).astype(np.int32)
    shares = 1 / np.arange(1, ARTIFACTS + 1) if kind == "popular" else np.ones(ARTIFACTS)
    counts = rng.multinomial(images_wanted, shares / shares.sum())
    artifact = np.repeat(rng.permutation(ARTIFACTS).astype(np.int32), counts)
    rng.shuffle(artifact)
    return pl.DataFrame({"continent": continent[country[artifact]], "country": country[artifact], "artifact": artifact})


def measure(kind: str, images_wanted: int) -> dict[str, float]:
    """Score in this process, and say what it took; the table of images counts towards the memory."""
    from culturekit.metrics import STANDARD_KERNELS, vendi_table

    table = images(kind, images_wanted)
    vendi_table(table.head(1000), weights=(1 / 3, 1 / 3, 1 / 3), q=1)
    begin = time.process_time()
    vendi_table(table, weights=list(STANDARD_KERNELS.values()), q=ORDERS)
    seconds = time.process_time() - begin
    return {"seconds": seconds, "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


def stream(path: str) -> dict[str, float]:
    """Score a Parquet file without holding its rows."""
    from culturekit.metrics import STANDARD_KERNELS, vendi_table

    vendi_table(pl.scan_parquet(path).head(1000), weights=(1 / 3, 1 / 3, 1 / 3), q=1)
    begin = time.process_time()
    vendi_table(pl.scan_parquet(path), weights=list(STANDARD_KERNELS.values()), q=ORDERS)
    seconds = time.process_time() - begin
    return {"seconds": seconds, "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


def write_rows(path: Path, wanted: int, *, texts: bool) -> None:
    """Write images as a Parquet file, ten million at a time."""
    part = images("popular", IMAGES)
    if texts:
        part = part.select(pl.format(f"{name} Q{{}}", name).alias(name) for name in part.columns)
    pl.concat([part.lazy()] * (wanted // IMAGES)).sink_parquet(path, compression_level=1)


def streamed(wanted: int, *, texts: bool) -> list[str]:
    """Measure one file in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_rows(path, wanted, texts=texts)
        found = in_process("stream", str(path))
    kind = "popular, streamed as texts" if texts else "popular, streamed"
    return [f"{wanted:,}", kind, f"{found['seconds']:.2f}", f"{found['gigabytes']:.2f}", STREAMED_GOALS]


def in_process(*arguments: str) -> dict[str, float]:
    """Measure in a process of its own."""
    done = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure each kind in a process of its own."""
    full = "--full" in sys.argv
    if not full and len(sys.argv) > 1:
        asked, what = sys.argv[1:3]
        sys.stdout.write(json.dumps(stream(what) if asked == "stream" else measure(asked, int(what))))
        return
    rows = []
    for kind in ("popular", "equal"):
        for wanted in (IMAGES // 2, IMAGES):
            found = in_process(kind, str(wanted))
            rows.append([f"{wanted:,}", kind, f"{found['seconds']:.2f}", f"{found['gigabytes']:.2f}", GOALS])
    if full:
        rows += [streamed(wanted, texts=texts) for texts in (False, True) for wanted in (STREAMED // 5, STREAMED)]
    record(
        "vendi_table",
        title=f"`vendi_table`, five kernels × five orders, {ARTIFACTS:,} artifacts in {COUNTRIES} countries",
        command=f"python benchmarks/vendi_table.py{' --full' if full else ''}",
        table=[["images", "artifacts", "CPU-s", "peak memory, GB", "goal"], *rows],
    )


if __name__ == "__main__":
    main()
