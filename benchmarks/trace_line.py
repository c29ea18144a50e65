"""How long it takes to show the line of a dump that a graph names, with the table of starts and without.

    python benchmarks/trace_line.py            # members of 100 MB of JSON, 60 of them
    python benchmarks/trace_line.py --full     # members of 1,000 MB, as in the published dumps, 60 of them

The file is one generated member over and over. Without the table, what stands before is decompressed: measured over
the first two members and counted on.
"""

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
from dump_generator import generate_dump
from recording import record

from culturekit.core.schemas import STARTS
from culturekit.kg.dump.members import GzipRange
from culturekit.kg.dump.read_dump import read_line

MEMBERS = 60
LINES = 12


def main() -> None:
    """Measure lines anywhere in the file."""
    full = "--full" in sys.argv
    with tempfile.TemporaryDirectory() as name:
        one, dump = Path(name) / "one.json.gz", Path(name) / "dump.json.gz"
        generate_dump(one, megabytes=1000 if full else 100, members=1)
        with dump.open("wb") as file:
            for _ in range(MEMBERS):
                file.write(one.read_bytes())
        offsets, size = line_starts(one)
        rows = [(0, member, 0, member * one.stat().st_size) for member in range(MEMBERS)]
        starts = pl.DataFrame(rows, schema=STARTS.schema, orient="row")
        chance, times = random.Random(1), list[float]()
        for _ in range(LINES):
            member, offset = chance.randrange(MEMBERS), chance.choice(offsets)
            began = time.perf_counter()
            read_line(dump, member=member, offset=offset, starts=starts)
            times.append(time.perf_counter() - began)
        began = time.perf_counter()
        read_line(dump, member=2, offset=0)
        rate = 2 * size / (time.perf_counter() - began)
        compressed = dump.stat().st_size
    record(
        "trace_line",
        title=f"A line of a dump of {compressed / 1e9:.1f} GB, {MEMBERS} members of {size / 1e6:,.0f} MB of JSON",
        command=f"python benchmarks/trace_line.py{' --full' if full else ''}",
        table=[
            ["what", "seconds"],
            [f"{LINES} lines anywhere, with the table of starts: median", f"{statistics.median(times):.2f}"],
            ["the slowest of them", f"{max(times):.2f}"],
            ["the middle line without it, at the rate of the first two members", f"{MEMBERS * size / 2 / rate:.0f}"],
            ["the same in a dump of 1.6 TB of JSON", f"{0.8e12 / rate:,.0f}"],
        ],
    )  # fmt: skip


def line_starts(member: Path) -> tuple[list[int], int]:
    """List where lines begin in a member, and how many plain bytes it has."""
    places, size = [0], 0
    for chunk in GzipRange(member, 0, member.stat().st_size).chunks():
        start = chunk.content.find(b"\n")
        while start >= 0:
            places.append(chunk.offset + start + 1)
            start = chunk.content.find(b"\n", start + 1)
        size = chunk.offset + len(chunk.content)
    return [place for place in places if place < size], size


if __name__ == "__main__":
    main()
