"""A whole release, paid stages included, against a server on loopback that speaks the real protocol and its batches.

Made-up candidates go through `cspace filter --batch`, `cspace complete --batch` and `cspace release` as a curator types
them, each in a process of its own. The server answers at once and counts what it was paid. With `--full` there are half
a million candidates.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from completion import CONCEPTS, make
from recording import record

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.llm.server.running import RunningServer, server_process

ROOT = Path(__file__).parents[1]
LIMIT_MB = 2048
PRICE = "0.15/0.60"


@dataclass(frozen=True, slots=True)
class Taken:
    """What one command took, and what it said."""

    seconds: float
    cpu: float
    mb: float
    said: str


def run(*command: str) -> Taken:
    """Run a command of culturekit, and take its time, its processor and its memory."""
    given = [sys.executable, "-m", "culturekit", *command, "--json"]
    environment = {**os.environ, "OPENAI_API_KEY": "sk-of-nobody", "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = subprocess.Popen(given, stdout=said, stderr=subprocess.DEVNULL, env=environment, cwd=ROOT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in {0, 1}:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        said.seek(0)
        lines = said.read().splitlines()
    return Taken(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, lines[-1])


def release(folder: Path, server: RunningServer) -> dict[str, Taken]:
    """Run the three stages."""
    roots = [part for concept in CONCEPTS for part in ("--roots", concept)]
    model = ["--llm", f"openai:judge-1?base_url={server.openai_url}&price={PRICE}", "--batch"]
    filtered, completed, space = (str(folder / name) for name in ("filter", "completion", "cspace"))
    candidates = ["--candidates", str(folder / "candidates.parquet")]
    kept = ["--kept", f"{filtered}/kept.parquet"]
    return {
        "filter": run("cspace", "filter", *candidates, *roots, *model, "--out", filtered),
        "completion": run("cspace", "complete", *kept, *candidates, *roots, *model, "--out", completed),
        "release": run(
            "cspace", "release", "--kept", f"{completed}/completed.parquet", *roots, "--format",
            "parquet,jsonl,csv,public", "--out", space,
        ),
    }  # fmt: skip


def paid(folder: Path) -> tuple[str, str]:
    """Read from the ledger of a stage how many requests it paid, and how much."""
    command = [sys.executable, "-m", "culturekit", "llm", "cost", str(folder), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    total = json.loads(done.stdout)["total"]
    return f"{total['requests']:,}", f"{total['usd']:,.2f}"


def main() -> None:
    """Measure and record."""
    size = 500_000 if "--full" in sys.argv else 20_000
    rows = [["stage", "seconds", "processor seconds", "most memory", "of 2 GB", "requests", "US dollars", "made"]]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make(folder, size, 0)
        (folder / "kept.parquet").unlink()
        (folder / "drops.parquet").unlink()
        with server_process(model="tests.builders.completing_model:answer") as server:
            taken = release(folder, server)
        for stage, one in taken.items():
            requests, dollars = paid(folder / stage) if stage in {"filter", "completion"} else ("", "")
            counts = json.loads((folder / ("cspace" if stage == "release" else stage) / "manifest.json").read_text())
            made = ", ".join(f"{count:,} {name}" for name, count in counts["counts"].items() if count)
            memory = f"{one.mb:,.0f} MB"
            rows.append(
                [
                    stage,
                    f"{one.seconds:.0f}",
                    f"{one.cpu:.0f}",
                    memory,
                    f"{one.mb / LIMIT_MB:.2f}",
                    requests,
                    dollars,
                    made,
                ]
            )
    command = "python benchmarks/release_world.py --full"
    record(
        "release_world",
        title=f"A release of {size:,} candidates against a server on loopback, in batches",
        command=command,
        table=rows,
    )


if __name__ == "__main__":
    main()
