"""Ingest beside the limit (igzip alone on the same file) and beside a peer (qwikidata).

    python benchmarks/ingest.py            # 200 MB of JSON
    python benchmarks/ingest.py --full     # 1,200 MB

CPU seconds of the process and its children. Starting Python and importing the packages is measured on a dump of 1 MB
and stands apart, because a whole dump pays it once. Each is measured in turns, and the least counts, for other work
on the machine only adds. qwikidata reads a tenth of the dump; its time is taken ten times.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from dump_generator import generate_dump
from recording import record

IGZIP = """
import sys
from isal import igzip
buffer = bytearray(1 << 20)
with igzip.open(sys.argv[1]) as file:
    while file.readinto(buffer):
        pass
"""

QWIKIDATA = """
import gzip, json, sys
from qwikidata.entity import WikidataItem
found = 0
with gzip.open(sys.argv[1]) as lines:
    for line in lines:
        text = line.strip().rstrip(b",")
        if len(text) < 3:
            continue
        document = json.loads(text)
        if document["type"] != "item":
            continue
        item = WikidataItem(document)
        groups = item.get_truthy_claim_groups()
        for name in ("P31", "P279", "P495", "P17"):
            if name in groups:
                found += sum(1 for claim in groups[name] if claim.mainsnak.snak_datatype)
print(found)
"""

WORKER_PEAK = """
import resource, sys
from pathlib import Path
from culturekit.kg.dump.runs import Run, read_run
from culturekit.kg.dump.read_dump import ranges_of
path, folder = Path(sys.argv[1]), Path(sys.argv[2])
for number, (begin, end) in enumerate(ranges_of(path.stat().st_size)):
    read_run(Run(0, path, "gzip", begin, end, begin == 0, folder / str(number), ("en",)))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


ROUNDS = 4
"""How often each is measured."""


@dataclass(frozen=True)
class Spent:
    """What a command took, and what it said."""

    cpu: float
    wall: float
    output: str


def spend(*command: str) -> Spent:
    """Run a command and measure it."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    single = dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, *command], check=True, capture_output=True, text=True, env={**os.environ, **single}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(cpu, time.perf_counter() - began, done.stdout)


def ingest(path: Path, out: Path, workers: int) -> Spent:
    """Ingest a dump from the command line."""
    return spend("-m", "culturekit", "kg", "ingest", str(path), "--out", str(out), "--workers", str(workers), "--json")


def measure(dump: Path, folder: Path) -> tuple[Spent, Spent, Spent, Spent]:
    """Measure once: igzip alone, decoding to parts, and one and two workers to the store."""
    alone = spend("-c", IGZIP, str(dump))
    parts = spend("-c", WORKER_PEAK, str(dump), str(folder / "parts"))
    return alone, parts, ingest(dump, folder / "one", 1), ingest(dump, folder / "two", 2)


def main() -> int:
    """Measure and write the table."""
    megabytes = 1200 if "--full" in sys.argv else 200
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dump, tenth, tiny = (folder / f"{size}.json.gz" for size in ("dump", "tenth", "tiny"))
        generate_dump(dump, megabytes=megabytes, members=40)
        generate_dump(tenth, megabytes=megabytes / 10, members=4)
        generate_dump(tiny, megabytes=1, members=1)
        nothing = min(spend("-c", "import isal.igzip").cpu for _ in range(3))
        imports = min(spend("-c", "import culturekit.kg.dump.runs, culturekit.kg.dump.read_dump").cpu for _ in range(3))
        start = min((ingest(tiny, folder / f"start-{number}", 1) for number in range(3)), key=lambda spent: spent.cpu)
        rounds = [measure(dump, folder / f"round-{number}") for number in range(ROUNDS)]
        alone, parts, one = (min((spent[place] for spent in rounds), key=lambda spent: spent.cpu) for place in range(3))
        walls = [min(spent[place].wall for spent in rounds) for place in (2, 3)]
        peer = 10 * spend("-c", QWIKIDATA, str(tenth)).cpu
        lines = json.loads(one.output)["counts"]["lines"]
    table = [["what", "CPU seconds", "igzip alone = 1", "MB of JSON a CPU second", "goal"]]
    floor, finished = alone.cpu - nothing, one.cpu - start.cpu
    for what, seconds, goal in (
        ("igzip alone", floor, ""),
        ("decoded to parts", parts.cpu - imports, "2.6"),
        ("to the finished store, one worker", finished, "2.9"),
        ("the same, with starting Python", one.cpu, ""),
        ("qwikidata, four properties", peer, f"{peer / finished:.1f}x of ours; at least 4.5x"),
    ):
        table.append([what, f"{seconds:.2f}", f"{seconds / floor:.2f}", f"{megabytes / seconds:,.0f}", goal])
    for what, less in (("wall, one worker / two workers", 0.0), ("the same, without starting Python", start.wall)):
        first, second = (wall - less for wall in walls)
        table.append([what, f"{first:.1f} / {second:.1f}", "", f"{first / second:.2f}x", "1.8x"])
    table.append(["peak memory of a worker, MB", f"{int(parts.output) / 1000:.0f}", "", "", "500"])
    record(
        "ingest",
        title=f"Ingest of a generated dump: {megabytes:,} MB of JSON, {lines:,} entities, 40 gzip members",
        command=f"python benchmarks/ingest.py{' --full' if '--full' in sys.argv else ''}",
        table=table,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
