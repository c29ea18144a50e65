"""PRDC of 20,000 real and 20,000 fake vectors of 512 numbers, beside the package `prdc`: CPU, memory, answers.

Each runs in a process of its own, with one thread per matrix product, on the same vectors: mixtures in which fakes
lack some of the modes of the reals, so that the four numbers differ. The process without scoring is measured too.
"""

import contextlib
import io
import json
import os
import resource
import subprocess
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from recording import record

N, WIDTH, K = 20_000, 512, 5
NAMES = ("precision", "recall", "density", "coverage")

Vectors = NDArray[np.float32]


def draw() -> tuple[Vectors, Vectors]:
    """Draw reals of 40 modes and fakes of 30 of them, which scatter less."""
    rng = np.random.default_rng(0)
    modes = rng.normal(size=(40, WIDTH)).astype(np.float32)
    directions = rng.normal(size=(24, WIDTH)).astype(np.float32)

    def some(modes_used: int, spread: float) -> Vectors:
        noise = rng.normal(scale=spread, size=(N, len(directions))).astype(np.float32) @ directions
        return np.asarray(modes[rng.integers(0, modes_used, N)] + noise, np.float32)

    return some(40, 0.35), some(30, 0.3)


def ours(real: Vectors, fake: Vectors) -> dict[str, float]:
    """Score with culturekit."""
    from culturekit.metrics import prdc

    found = prdc(real, fake, k=K)
    return {name: getattr(found, name) for name in NAMES}


def peer(real: Vectors, fake: Vectors) -> dict[str, float]:
    """Score with the package."""
    from prdc import compute_prdc

    with contextlib.redirect_stdout(io.StringIO()):
        found = compute_prdc(real_features=real, fake_features=fake, nearest_k=K)
    return {name: float(found[name]) for name in NAMES}


def nothing(real: Vectors, fake: Vectors) -> dict[str, float]:
    """Score nothing: what drawing and the interpreter cost."""
    return dict.fromkeys(NAMES, float(real[0, 0] * fake[0, 0]))


WAYS = {"culturekit": ours, "prdc": peer, "nothing": nothing}


def child(way: str) -> None:
    """Draw, score one way, and say what it cost."""
    found = WAYS[way](*draw())
    used = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout.write(json.dumps({**found, "cpu": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss * 1024}))


def run(way: str) -> dict[str, float]:
    """Run one way in a process of its own."""
    command = [sys.executable, __file__, way]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def main() -> None:
    """Compare, and refuse answers that differ."""
    empty, mine, theirs = (run(way) for way in ("nothing", "culturekit", "prdc"))
    if any(abs(mine[name] - theirs[name]) > 1e-9 for name in NAMES):
        raise SystemExit(f"the answers differ: {mine} {theirs}")
    cpu = [answer["cpu"] - empty["cpu"] for answer in (mine, theirs)]
    rows = [
        ["culturekit", f"{cpu[0]:.1f}", f"{mine['memory'] / 1e9:.2f}", *(f"{mine[name]:.5f}" for name in NAMES)],
        ["prdc", f"{cpu[1]:.1f}", f"{theirs['memory'] / 1e9:.2f}", *(f"{theirs[name]:.5f}" for name in NAMES)],
        ["ratio", f"{cpu[0] / cpu[1]:.2f}x", f"{mine['memory'] / theirs['memory']:.3f}x", *["equal"] * 4],
        ["two vectors drawn, nothing scored", f"{empty['cpu']:.1f}", f"{empty['memory'] / 1e9:.2f}", *["-"] * 4],
    ]
    record(
        "prdc_speed",
        title=f"PRDC of {N:,} + {N:,} vectors of {WIDTH} float32, k = {K}; goals: 0.5x the CPU, 0.15x the memory",
        command="python benchmarks/prdc_speed.py",
        table=[["", "CPU s", "peak memory, GB", *NAMES], *rows],
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(sys.argv[1])
    else:
        main()
