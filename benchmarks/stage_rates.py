"""Seconds and bytes per unit of work of each stage of the demo, on one worker: what `culturekit plan` reckons with."""

import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from recording import record

SAMPLE = Path(__file__).parents[1] / "culturekit/kg/sample/wikidata-sample.json.gz"
COPIES = 60

UNITS = {"ingest": "byte of dump", "generate": "image", "index": "image", "map": "image", "quality": "image"}


def main() -> None:
    """Run the demo on one worker and divide."""
    with tempfile.TemporaryDirectory() as folder:
        root, dump = Path(folder) / "cube", Path(folder) / "long.json.gz"
        culturekit("demo", "--workdir", str(root), "--workers", "1")
        totals = measure(root)
        lengthen(SAMPLE, dump)
        culturekit("kg", "ingest", str(dump), "--out", str(root / "graph-of-long"), "--workers", "1")
        totals |= {"ingest": measure(root, only="graph-of-long")["ingest"]}
    rows = [
        [kind, unit, f"{seconds / units:.2g}", f"{size / units:.2g}", f"{units:,}"]
        for kind, unit in UNITS.items()
        for seconds, size, units in [totals[kind]]
    ]
    record(
        "stage_rates",
        title="Stages of the demo on one worker",
        command="python benchmarks/stage_rates.py",
        table=[["stage", "unit", "seconds per unit", "bytes written per unit", "units"], *rows],
    )


def culturekit(*arguments: str) -> None:
    """Run a command."""
    subprocess.run([sys.executable, "-m", "culturekit", *arguments], check=True, capture_output=True)


def lengthen(sample: Path, dump: Path) -> None:
    """Write the sample many times over, with new QIDs each time, so that starting up does not count."""
    lines = [
        line.rstrip(",") for line in gzip.decompress(sample.read_bytes()).decode().splitlines() if line not in "[]"
    ]
    with gzip.open(dump, "wt", encoding="utf-8", compresslevel=6) as file:
        for copy in range(COPIES):
            for number, line in enumerate(lines):
                qid = re.search(r'"id":"(Q[0-9]+)"', line)
                new = f'"id":"Q{3_000_000_000 + copy * len(lines) + number}"'
                file.write((line.replace(qid.group(0), new, 1) if qid and copy else line) + "\n")


def measure(root: Path, *, only: str = "*") -> dict[str, tuple[float, int, int]]:
    """Add up seconds, bytes written and units by kind of stage."""
    totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for path in sorted(root.glob(f"{only}/manifest.json")):
        manifest = json.loads(path.read_bytes())
        run = json.loads((path.parent / "run.json").read_bytes())
        counts = manifest["counts"]
        unit = {"generate": "images", "index": "ids", "map": "ids", "quality": "quality"}.get(manifest["stage"])
        units = counts[unit] if unit else dump_bytes(path.parent, run)
        written = sum(output["bytes"] for output in manifest["outputs"].values())
        for place, value in enumerate((run["seconds"], written, units)):
            totals[manifest["stage"]][place] += value
    return {kind: (seconds, int(size), int(units)) for kind, (seconds, size, units) in totals.items()}


def dump_bytes(folder: Path, run: dict[str, dict[str, str]]) -> int:
    """Weigh the dump files of an ingest; other stages have none."""
    return sum((folder / path).stat().st_size for role, path in run["inputs"].items() if role.startswith("dump-"))


if __name__ == "__main__":
    main()
