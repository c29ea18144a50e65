"""Ten million images mapped against 300,000 references, in part: does the cost grow with the images and no faster?

    PYTHONPATH=. python benchmarks/mapping_scale.py            # 30,000 references
    PYTHONPATH=. python benchmarks/mapping_scale.py --full     # 300,000

Vectors are drawn about their artifacts'; pictures are not looked at, whose cost is that of embedding. What a mapping
costs before its first image (opening the index, calibrating on its references) is told apart by what the first part of
two thousand takes.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import polars as pl
from recording import record

from culturekit.core.digests import InputRecord, Manifest, describe_outputs, digest_file
from culturekit.core.schemas import ARTIFACTS, DROPS, IMAGES
from culturekit.core.tables import write_table
from culturekit.index.embedding.embedding import save_vectors
from culturekit.index.encoder import Vectors
from tests.index.picture_world import ENCODER, write_built

DIM = ENCODER.identity.dim
EACH = 4
"""References of an artifact."""

COUNTRIES = 60
WANTED = 10_000_000
PARTS = (4_000, 8_000, 16_000)
FEW = 2_000
TIMES = 3
"""Each size is mapped so often, in turn with the others; what stands is the least: other work only adds to it."""


def unit(rng: np.random.Generator, rows: int) -> Vectors:
    """Draw unit vectors."""
    drawn: Vectors = rng.standard_normal((rows, DIM), dtype=np.float32)
    norms: Vectors = np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn / norms


def write_index_of(folder: Path, references: int) -> Vectors:
    """Write an index; give the middle of each artifact."""
    rng = np.random.default_rng(0)
    count = references // EACH
    middles = unit(rng, count)
    vectors = np.repeat(middles, EACH, axis=0)
    vectors += 0.02 * rng.standard_normal(vectors.shape, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [f"Q{number + 1:07d}" for number in range(count)]
    places = [f"C{number % COUNTRIES:02d}" for number in range(count)]
    named = [(one, one, ["art"], [place], ["Asia"]) for one, place in zip(ids, places, strict=True)]
    artifacts = pl.DataFrame(named, schema=ARTIFACTS.schema, orient="row")
    owners = np.repeat(np.arange(count), EACH)
    rows = pl.DataFrame({
        "channel": "image", "artifact_id": [ids[owner] for owner in owners],
        "source": [f"r{number:07d}" for number in range(references)],
    })  # fmt: skip
    write_built(folder, rows, vectors, artifacts)
    return middles


def write_images_of(folder: Path, middles: Vectors, count: int) -> tuple[Path, Path]:
    """Write a table of images, and the folder of their vectors as `index embed` leaves it."""
    rng = np.random.default_rng(count)
    vectors = middles[rng.integers(0, len(middles), count)] + 0.03 * rng.standard_normal((count, DIM), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [f"i{number:08d}" for number in range(count)]
    alike = {"model": "m", "rewriter": "off", "provider_params": "{}", "width": 64, "height": 64, "status": "ok"}
    own = {"image_id": ids, "path": [f"{one}.png" for one in ids], "sha256": [f"{one:064d}" for one in range(count)]}
    values = {name: own.get(name, [alike.get(name)] * count) for name in IMAGES.columns}
    frame = pl.DataFrame(values, schema=IMAGES.schema)
    pictures, embedded = folder / f"images-{count}", folder / f"vectors-{count}"
    pictures.mkdir()
    embedded.mkdir()
    table = write_table(pictures, IMAGES, frame)
    save_vectors(embedded, vectors, ids)
    write_table(embedded, DROPS, pl.DataFrame(schema=DROPS.schema))
    content, outputs = describe_outputs(embedded, {})
    notes = {"encoder": "embedded", "identity": ENCODER.identity.as_options()}
    manifest = Manifest(
        stage="embed", version=1, key="", sha256=content, code={}, packages={}, options={}, seeds={}, counts={},
        inputs={"images": InputRecord(digest_file(table), table.name)}, drops={}, notes=notes, outputs=outputs,
    )  # fmt: skip
    (embedded / "manifest.json").write_bytes(manifest.encode())
    return table, embedded


def seconds(index: Path, table: Path, vectors: Path, out: Path) -> tuple[float, float]:
    """Map by the command, in one process; give its processor seconds and its largest size in MB."""
    command = [sys.executable, __file__, "child", "index", "map", "--index", str(index), "--images", str(table),
               "--vectors", str(vectors), "--out", str(out), "--workers", "1", "--json"]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    told = json.loads(done.stdout.splitlines()[-1])
    return told["seconds"], told["megabytes"]


def child() -> None:
    """Run the command line, and say what it and its worker took."""
    from culturekit.cli import main

    sys.argv = ["culturekit", *sys.argv[2:]]
    try:
        main()
    except SystemExit as left:
        if left.code:
            raise
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = sum(one.ru_utime + one.ru_stime for one in used)
    sys.stdout.write("\n" + json.dumps({"seconds": total, "megabytes": max(one.ru_maxrss for one in used) / 1000}))


def main() -> None:
    """Measure parts of growing size."""
    references = 300_000 if "--full" in sys.argv else 30_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        middles = write_index_of(folder / "index", references)
        given = {count: write_images_of(folder, middles, count) for count in (FEW, *PARTS)}
        told = [
            [seconds(folder / "index", *files, folder / f"matches-{count}-{time}") for count, files in given.items()]
            for time in range(TIMES)
        ]
    least = np.min(told, axis=0)
    rows, before = list[list[str]](), (0, 0.0)
    for count, (took, size) in zip(given, least.tolist(), strict=True):
        each = (took - before[1]) / (count - before[0])
        more = "" if count == FEW else f"{each * 1000:.2f}"
        hours = "" if count == FEW else f"{each * WANTED / 3600:,.1f}"
        rows.append([f"{count:,}", f"{took:.1f}", f"{size:,.0f}", more, hours])
        before = (count, took)
    record(
        "mapping_scale",
        title=f"Mapping to {references:,} references of {DIM} numbers, one worker, vectors given, least of {TIMES}",
        command=f"PYTHONPATH=. python benchmarks/mapping_scale.py{' --full' if '--full' in sys.argv else ''}",
        table=[["images", "CPU-s", "MB", "ms for each more", f"CPU-hours for {WANTED:,}"], *rows],
    )


if __name__ == "__main__":
    child() if sys.argv[1:2] == ["child"] else main()
