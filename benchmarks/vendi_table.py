"""Five kernels and five orders over ten million images of 300,000 artifacts: CPU seconds and memory of a process."""

import json
import resource
import subprocess
import sys
import time

import numpy as np
import polars as pl
from recording import record

IMAGES, ARTIFACTS, COUNTRIES, CONTINENTS = 10_000_000, 300_000, 200, 6
ORDERS = (0.1, 0.5, 1.0, 2.0, float("inf"))
GOALS = "2 CPU-s, 1 GB"


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


def main() -> None:
    """Measure each kind in a process of its own."""
    if len(sys.argv) > 1:
        sys.stdout.write(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
        return
    rows = []
    for kind in ("popular", "equal"):
        for wanted in (IMAGES // 2, IMAGES):
            command = [sys.executable, __file__, kind, str(wanted)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            rows.append([f"{wanted:,}", kind, f"{found['seconds']:.2f}", f"{found['gigabytes']:.2f}", GOALS])
    record(
        "vendi_table",
        title=f"`vendi_table`, five kernels × five orders, {ARTIFACTS:,} artifacts in {COUNTRIES} countries",
        command="python benchmarks/vendi_table.py",
        table=[["images", "artifacts", "CPU-s", "peak memory, GB", "goal for 10,000,000"], *rows],
    )


if __name__ == "__main__":
    main()
