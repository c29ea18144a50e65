"""A run whose replies are all in the journal: what a row of it takes, and how much memory."""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from llm_rows import IDENTITY, entry_of, outgoing_of
from recording import record

from culturekit.llm.client import Usage
from culturekit.llm.journal import Journal, Reading, key_of

ROWS = 500_000
AT_ONCE = 1_000


def main() -> None:
    """Fill a journal, then read it in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        fill(Path(folder))
        filled = time.perf_counter() - began
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / ROWS
        done = subprocess.run([sys.executable, __file__, folder], capture_output=True, text=True, check=True)
    compose, key, found, memory = map(float, done.stdout.split())
    record(
        "llm_replay",
        title=f"{ROWS:,} replies from the journal, one core",
        command="python benchmarks/llm_replay.py",
        table=[
            ["what", "figure"],
            ["compose a body, CPU", f"{compose:.1f} µs a row"],
            ["hash its key, CPU", f"{key:.1f} µs a row"],
            ["find its reply, CPU", f"{found:.1f} µs a row"],
            ["all three", f"{1e6 / (compose + key + found):,.0f} rows/s"],
            ["peak memory", f"{memory:,.0f} MB"],
            ["size on disk", f"{size:,.0f} bytes a row"],
            ["written in commits of 1,000", f"{ROWS / filled:,.0f} rows/s"],
        ],
    )


def fill(folder: Path) -> None:
    """Write the replies of a finished run."""
    with Journal(folder) as journal:
        for start in range(0, ROWS, AT_ONCE):
            numbers = journal.append_all([entry_of(number) for number in range(start, start + AT_ONCE)])
            for number in numbers:
                journal.note(number, Reading("ok", Usage(300, 14), 0.0000534))


def replay(folder: Path) -> None:
    """Read them all as another run would, and print what each part took."""
    spent = [0.0, 0.0, 0.0]
    rows = 0
    with Journal(folder) as journal:
        for start in range(0, ROWS, AT_ONCE):
            began = time.process_time()
            requests = [outgoing_of(number) for number in range(start, start + AT_ONCE)]
            composed = time.process_time()
            keys = [key_of(IDENTITY, outgoing) for outgoing in requests]
            hashed = time.process_time()
            rows += len(journal.found(keys, run="another"))
            spent = [
                total + part
                for total, part in zip(
                    spent, (composed - began, hashed - composed, time.process_time() - hashed), strict=True
                )
            ]
    if rows != ROWS:
        raise SystemExit(f"found {rows:,} of {ROWS:,} replies")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(" ".join(str(part / ROWS * 1e6) for part in spent) + f" {memory}")


if __name__ == "__main__":
    replay(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
