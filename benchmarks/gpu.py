"""What culturekit makes of a GPU, in nine minutes: each part against what that GPU can do at its best, as JSON.

`make gpu` runs it on a machine that reaches no network, with the packages that `make gpu-packages` gathered elsewhere.
Where there is no GPU, `--small --device cpu` walks the same way with small sizes: what it then times says nothing.
A part that fails or for which no time is left says so, and the others still run. Every part is written as it ends.
"""

import argparse
import importlib
import importlib.util
import json
import os
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpu_parts import PARTS, Bench, Row
from recording import machine, record

__all__ = ["main"]

MINUTES = 9.0
LEAST_LEFT = 20.0
"""Seconds that have to be left for a part to begin."""

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / ".gpu/packages.tar.xz"


def find_packages() -> None:
    """Put culturekit on the path, and where this Python lacks its packages those that were brought."""
    places = [ROOT]
    if importlib.util.find_spec("polars") is None and PACKAGES.exists():
        places.append(PACKAGES.with_name("site"))
        if not places[1].exists():
            with tarfile.open(PACKAGES) as packed:
                packed.extractall(places[1], filter="data")
    sys.path[1:1] = map(str, places)
    os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, places), os.environ.get("PYTHONPATH", "")])


def main() -> int:
    """Run the parts one after the other; leave with 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="small sizes, to try every line where there is no GPU")
    parser.add_argument("--out", type=Path, default=Path("gpu.json"))
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    given = parser.parse_args()
    find_packages()
    torch = importlib.import_module("torch")
    if given.device.startswith("cuda") and not torch.cuda.is_available():
        sys.stderr.write("there is no GPU that torch sees; --small --device cpu tries every line without one\n")
        return 2
    importlib.import_module("culturekit.core.torch_places").mend_torchvision()
    end = time.perf_counter() + 60 * given.minutes
    told: dict[str, Any] = {"machine": machine(), "small": given.small, "device": given.device, "parts": {}}
    with tempfile.TemporaryDirectory() as made:
        bench = Bench(given.device, given.small, Path(made))
        for name in dict.fromkeys(["floors", *given.parts]):
            told["parts"][name] = ran(bench, PARTS[name], left=end - time.perf_counter())
            given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
            tell(name, told["parts"][name])
    keep(told["parts"], small=given.small, torch=torch.__version__)
    return int(any(part["outcome"] == "failed" for part in told["parts"].values()))


def keep(parts: Mapping[str, Row], *, small: bool, torch: str) -> None:
    """Record the figures; of a walk with small sizes only that every part ran."""
    command = "make gpu GPU_OPTIONS='--small --device cpu'" if small else "make gpu"
    if small:
        title = f"make gpu, walked on a CPU with small sizes, torch {torch}: no figure of a GPU is known yet"
        rows = [[name, part["outcome"], str(len(part["rows"]))] for name, part in parts.items()]
        record("gpu_walk", title=title, command=command, table=[["part", "outcome", "figures"], *rows])
        return
    rows = [[row["what"], shown(row["value"]), row["unit"], row["goal"]]
            for part in parts.values() for row in part["rows"]]  # fmt: skip
    record("gpu", title=f"A GPU against the best that it can do, torch {torch}", command=command,
           table=[["what", "value", "unit", "goal"], *rows])  # fmt: skip


def shown(value: object) -> str:
    """Write a figure with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def ran(bench: Bench, part: Callable[[Bench], None], *, left: float) -> Row:
    """Run one part where there is time; give its figures, and how it ended."""
    if left < LEAST_LEFT:
        return {"outcome": "no time was left", "seconds": 0.0, "rows": []}
    bench.rows = []
    started, outcome, why = time.perf_counter(), "ran", ""
    try:
        part(bench)
    except Exception:  # what one part does not survive must not cost the others
        outcome, why = "failed", traceback.format_exc()
    seconds = round(time.perf_counter() - started, 1)
    return {"outcome": outcome, "seconds": seconds, "rows": bench.rows} | ({"why": why} if why else {})


def tell(name: str, part: Row) -> None:
    """Print a part."""
    sys.stdout.write(f"\n{name}: {part['outcome']}, {part['seconds']} s\n{part.get('why', '')}")
    for row in part["rows"]:
        goal = f"   (goal: {row['goal']})" if row["goal"] else ""
        sys.stdout.write(f"  {row['what']}: {shown(row['value'])} {row['unit']}{goal}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
