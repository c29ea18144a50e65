"""The Vendi score of labels, and of many batches of 8, against the vendi-score package: CPU seconds as a ratio."""

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from recording import record
from threadpoolctl import threadpool_limits

from culturekit.metrics import STANDARD_KERNELS, vendi, vendi_batches
from culturekit.metrics.diversity.labels import Weights

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from vendi_score import vendi as vendi_score

ITEMS, BATCHES, PEER_BATCHES = 5_000, 50_000, 2_000
UNIFORM = STANDARD_KERNELS["uniform"]


def cpu_seconds(call: Callable[[], object], *, times: int = 1) -> float:
    """Measure the best of some calls on one thread."""
    found = []
    with threadpool_limits(1):
        for _ in range(times):
            begin = time.process_time()
            call()
            found.append(time.process_time() - begin)
    return min(found)


def codes_of(rng: np.random.Generator, items: int, *, crossing: float = 0.0) -> np.ndarray:
    """Draw items of 3,000 artifacts in 60 countries on 6 continents; a share of the countries is drawn apart."""
    artifact = rng.zipf(1.3, items) % 3000
    country = rng.integers(0, 60, 3000)[artifact]
    country = np.where(rng.random(items) < crossing, rng.integers(0, 60, items), country)
    return np.stack([rng.integers(0, 6, 60)[country], country, artifact], axis=1)


def dense(codes: np.ndarray, weights: Weights) -> np.ndarray:
    """Write the N×N kernel out, as the peer needs it."""
    kernel = np.zeros((len(codes), len(codes)))
    for column, weight in zip(codes.T, weights, strict=True):
        kernel += weight * (column[:, None] == column)
    return kernel


def whole(name: str, codes: np.ndarray) -> list[str]:
    """Score one collection both ways; the peer is given its kernel, and only its eigenvalues are timed."""
    labels = [tuple(f"label {code}" for code in row) for row in codes]
    ours, theirs = [], []
    seconds = cpu_seconds(lambda: ours.append(vendi(labels, weights=UNIFORM)), times=7)
    kernel = dense(codes, UNIFORM)
    peer = cpu_seconds(lambda: theirs.append(float(vendi_score.score_K(kernel))))
    return row_of(name, seconds, peer, abs(ours[0] / theirs[0] - 1))


def batches(codes: np.ndarray) -> list[str]:
    """Score batches of 8 under the five kernels; the peer does a part of them."""
    weights = list(STANDARD_KERNELS.values())
    found: list[np.ndarray] = []
    seconds = cpu_seconds(lambda: found.append(vendi_batches(codes, weights=weights)), times=5)
    parts = codes.reshape(-1, 8, 3)[:PEER_BATCHES]
    theirs = np.empty((5, PEER_BATCHES))

    def peer() -> None:
        for number, kernel in enumerate(weights):
            for place, part in enumerate(parts):
                theirs[number, place] = vendi_score.score_K(dense(part, kernel)) / 8

    peer_seconds = cpu_seconds(peer) * BATCHES / PEER_BATCHES
    difference = float(np.abs(found[0][:, :PEER_BATCHES] / theirs - 1).max())
    return row_of(f"{BATCHES:,} batches of 8, five kernels in one call", seconds, peer_seconds, difference)


def one_by_one(codes: np.ndarray) -> list[str]:
    """Score the same batches in five calls."""

    def calls() -> None:
        for weights in STANDARD_KERNELS.values():
            vendi_batches(codes, weights=weights)

    return ["the same in five calls", f"{cpu_seconds(calls, times=5):.3f}", "", "", ""]


def row_of(name: str, ours: float, theirs: float, difference: float) -> list[str]:
    """Write one line."""
    return [name, f"{ours:.4f}", f"{theirs:.2f}", f"{theirs / ours:,.0f}", f"{difference:.1e}"]


def main() -> None:
    """Measure and write down."""
    rng = np.random.default_rng(0)
    many = codes_of(rng, 8 * BATCHES)
    rows = [
        whole(f"N = {ITEMS:,}, uniform kernel, q = 1, texts", codes_of(rng, ITEMS)),
        whole("the same, 2 % of the labels do not nest", codes_of(rng, ITEMS, crossing=0.02)),
        batches(many),
        one_by_one(many),
    ]
    record(
        "vendi_speed",
        title="Vendi score of labels, CPU seconds on one thread",
        command="python benchmarks/vendi_speed.py",
        table=[["what", "culturekit", "vendi-score", "times as fast", "largest relative difference"], *rows],
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
