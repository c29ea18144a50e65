"""What a release of 300,000 artifacts takes after its paid stages: written, checked, audited, asked about, compared."""

import subprocess
import sys
import tempfile
from pathlib import Path

import completion
from recording import record
from release_world import run

GOALS = {"release": (10, 500), "card check": (5, 500), "audit": (12, None), "prompts": (5, None), "diff": (5, None),
         "start": (0.35, None)}  # fmt: skip

LATER = """
import sys
import polars as pl
at = pl.int_range(pl.len())
renamed = pl.when(at % 40 == 3).then(pl.col("label") + " x").otherwise("label")
pl.read_parquet(sys.argv[1]).filter(at % 50 != 7).with_columns(label=renamed).write_parquet(sys.argv[2])
"""


def main() -> None:
    """Measure and record."""
    rows = [["command", "CPU seconds", "seconds", "goal, s", "most memory", "goal, MB"]]
    roots = [part for concept in completion.CONCEPTS for part in ("--roots", concept)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        # In processes of their own: what this one held would count as the most that each command held.
        subprocess.run([sys.executable, completion.__file__, "make", str(folder), "500000", "0"], check=True)
        kept, later = folder / "kept.parquet", folder / "later.parquet"
        subprocess.run([sys.executable, "-c", LATER, str(kept), str(later)], check=True)
        space, card = folder / "space", folder / "card"
        forms = ("--format", "parquet,jsonl,csv,public", "--out")
        release = ("cspace", "release", *roots, *forms)
        run(*release, f"{folder}/after", "--kept", f"{later}")
        taken = {
            "release": run(*release, f"{space}", "--kept", f"{kept}"),
            "card build": run("card", "build", f"{space}", "--hand", "cspace", "--out", f"{card}"),
            "card check": run("card", "check", f"{card}"),
            "audit": run("audit", f"{space}/cspace.parquet"),
            "prompts": run("prompts", "build", "cube", "--cspace", f"{space}/cspace.parquet", "--out", f"{folder}/p"),
            "diff": run("cspace", "diff", f"{space}", f"{folder}/after", "--out", f"{folder}/d", "--show", "5"),
            "start": min((run("cspace", "release", "--help") for _ in range(10)), key=lambda one: one.cpu),
        }
    for name, one in taken.items():
        seconds, mb = GOALS.get(name, (None, None))
        goals = ["" if goal is None else f"{goal:g}" for goal in (seconds, mb)]
        rows.append([name, f"{one.cpu:.2f}", f"{one.seconds:.1f}", goals[0], f"{one.mb:,.0f} MB", goals[1]])
    command, title = "python benchmarks/release_speed.py", "A release of 300,000 artifacts after its paid stages"
    record("release_speed", title=title, command=command, table=rows)


if __name__ == "__main__":
    main()
