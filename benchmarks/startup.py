"""How long `import culturekit` and `culturekit --help` take above a bare interpreter."""

import statistics
import subprocess
import sys
import time

from recording import record

RUNS = 15
GOALS = {"import culturekit": 0.3, "culturekit --help": 0.5}
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import culturekit": ["-c", "import culturekit"],
    "culturekit --help": ["-m", "culturekit", "--help"],
}


def seconds(arguments: list[str]) -> float:
    """Time one process."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    """Time the three in turn, so that a slow moment of the machine hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(RUNS + 1):
        for name, arguments in COMMANDS.items():
            times[name].append(seconds(arguments))
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    bare = medians["python -c pass"]
    rows = [
        [
            name,
            f"{value:.3f}",
            f"{value - bare:.3f}",
            f"{GOALS[name]:.1f}" if name in GOALS else "",
            f"{value / bare:.1f}",
        ]
        for name, value in medians.items()
    ]
    record(
        "startup",
        title="Start-up, median of 15 runs",
        command="python benchmarks/startup.py",
        table=[["command", "seconds", "above bare", "goal", "ratio"], *rows],
    )


if __name__ == "__main__":
    main()
