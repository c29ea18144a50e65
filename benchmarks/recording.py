"""What every benchmark shares: the machine in words, a table on the screen, the same table as JSON."""

import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["RESULTS", "machine", "record"]

RESULTS = Path(__file__).parent / "results"


def machine() -> str:
    """Describe the machine without naming it, and how many processes wanted its cores in the last minute."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (FileNotFoundError, StopIteration):
        pass
    return f"{os.cpu_count()} cores ({model}) at a load of {os.getloadavg()[0]:.0f}, Python {platform.python_version()}"


def record(name: str, *, title: str, command: str, table: Sequence[Sequence[str]]) -> None:
    """Print a table, its head first, and keep it for the documentation."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    sys.stdout.write(f"{title}\n")
    for row in table:
        sys.stdout.write("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")
    RESULTS.mkdir(exist_ok=True)
    result = {"title": title, "command": command, "machine": machine(), "table": [list(row) for row in table]}
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
