"""What durability costs: replies a second, each on disk before it counts, one by one and with 64 waiting.

How long a sync takes depends on the disk, and on virtual machines it is often no sync at all. So the same is measured
with syncs that take 2 and 5 ms longer, where a C compiler is at hand: a library put before the system's does that.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

from llm_rows import entry_of
from recording import record

from culturekit.llm.journal import Journal

SECONDS = 3.0
WAITING = 64
SLOWER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
static int after(const char *name, int file) {
    usleep(MICROSECONDS);
    return ((int (*)(int))dlsym(RTLD_NEXT, name))(file);
}
int fsync(int file) { return after("fsync", file); }
int fdatasync(int file) { return after("fdatasync", file); }
"""


def main() -> None:
    """Measure on this disk as it is, and made slower."""
    rows = [["disk", "one sync", "one by one", f"{WAITING} waiting", "ratio", "CPU per reply"]]
    with tempfile.TemporaryDirectory() as folder:
        for extra in (0, 2, 5):
            environment = dict(os.environ)
            if extra:
                compiler = shutil.which("cc")
                if compiler is None:
                    continue
                library = Path(folder) / f"slower{extra}.so"
                source = Path(folder) / "slower.c"
                source.write_text(SLOWER.replace("MICROSECONDS", str(extra * 1000)), encoding="ascii")
                subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
                environment["LD_PRELOAD"] = str(library)
            done = subprocess.run(
                [sys.executable, __file__, "measure"], env=environment, capture_output=True, check=True
            )
            sync, single, together, cpu = json.loads(done.stdout)
            name = f"syncs {extra} ms slower" if extra else "as it is"
            speeds = [f"{single:,.0f}/s", f"{together:,.0f}/s", f"{together / single:.0f}"]
            rows.append([name, f"{sync * 1e3:.2f} ms", *speeds, f"{cpu * 1e6:.0f} µs"])
    record(
        "journal",
        title="Replies a second that are on disk before they count",
        command="python benchmarks/journal.py",
        table=rows,
    )


def measure() -> None:
    """Measure in this process, and print the figures."""
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal") as journal:
        single, _ = asyncio.run(rate(journal, 1, start=0))
        together, cpu = asyncio.run(rate(journal, WAITING, start=10**6))
        sys.stdout.write(json.dumps([seconds_of_a_sync(Path(folder)), single, together, cpu]))


async def rate(journal: Journal, tasks: int, *, start: int) -> tuple[float, float]:
    """Append from some tasks at once; give replies and CPU seconds a second."""
    numbers = count(start)
    began, cpu = time.perf_counter(), time.process_time()

    async def ask() -> int:
        done = 0
        while time.perf_counter() < began + SECONDS:
            await journal.append(entry_of(next(numbers)))
            done += 1
        return done

    done = sum(await asyncio.gather(*(ask() for _ in range(tasks))))
    return done / (time.perf_counter() - began), (time.process_time() - cpu) / done


def seconds_of_a_sync(folder: Path) -> float:
    """Time the sync of a small file."""
    with (folder / "file").open("wb") as file:
        began = time.perf_counter()
        for _ in range(50):
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
        return (time.perf_counter() - began) / 50


if __name__ == "__main__":
    measure() if sys.argv[1:] == ["measure"] else main()
