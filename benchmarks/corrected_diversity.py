"""Does corrected diversity keep its promise? Ten biased models with a known truth, three worlds, many audits.

    python benchmarks/corrected_diversity.py            # 100 runs of everything
    python benchmarks/corrected_diversity.py --full     # 1,000 runs

Each run draws 100,000 images of every model, maps them with a known error, audits 150 of them, and asks for the
interval. Beside it stand the mapped score, and the interval from the audited labels alone.
"""

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from recording import record
from scipy.stats import kendalltau

from culturekit.metrics.corrected.audited_counts import NONE, AuditedCounts
from culturekit.metrics.corrected.corrected_diversity import DRAWS, correct_counts
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity, expected_diversity
from culturekit.metrics.corrected.imputed_labels import Findings
from culturekit.metrics.corrected.references import skewed_limits

COUNTRIES, CONTINENTS, SIZE, IMAGES, AUDITED = 20, 5, 8, 100_000, 150
PARENTS = np.append(np.repeat(np.arange(CONTINENTS), COUNTRIES // CONTINENTS), CONTINENTS)
ACCURACIES = (0.75, 0.85, 0.92)
WORLDS = ("no drift", "noise drift", "drift to the rich")
DRIFT = 0.1
KERNELS = {"country": (0.0, 1.0), "hierarchical": (0.5, 0.5)}
NAMES = (
    "even", "one of three", "half in one", "mostly one", "nearly one", "one only",
    "by rank", "by rank squared", "four of twenty", "nothing",
)  # fmt: skip


def models() -> NDArray[np.float64]:
    """Give the shares of ten models, float64 (10, 21); the last label is a picture of nothing."""
    even = np.full(COUNTRIES, 1 / COUNTRIES)
    first = np.eye(COUNTRIES)[0]
    rank = 1 / np.arange(1, COUNTRIES + 1)
    four = np.where(np.arange(COUNTRIES) < 4, 0.25, 0.0)
    rows = [even, *(share * first + (1 - share) * even for share in (0.3, 0.5, 0.7, 0.85, 0.93))]
    rows += [rank / rank.sum(), rank**2 / (rank**2).sum(), 0.9 * four + 0.1 * even]
    shown = np.array([np.append(row, 0.0) for row in rows])
    return np.vstack([shown, np.append(np.zeros(COUNTRIES), 1.0)])


def mapping(accuracy: float, world: str) -> NDArray[np.float64]:
    """Give how each true label is mapped, float64 (21, 21); nothing is mapped to anything, evenly."""
    near = np.where(PARENTS[:-1, None] == PARENTS[None, :-1], 4.0, 1.0)
    np.fill_diagonal(near, 0.0)
    rows = accuracy * np.eye(COUNTRIES) + (1 - accuracy) * near / near.sum(axis=1, keepdims=True)
    towards = {"no drift": rows, "noise drift": np.full_like(rows, 1 / COUNTRIES)}.get(world)
    if towards is None:
        towards = np.tile(np.where(np.arange(COUNTRIES) < 3, 1 / 3, 0.0), (COUNTRIES, 1))
    drifted = (1 - DRIFT) * rows + DRIFT * towards
    return np.pad(np.vstack([drifted, np.full(COUNTRIES, 1 / COUNTRIES)]), ((0, 0), (0, 1)))


def audited(
    shares: NDArray[np.float64], errors: NDArray[np.float64], rng: np.random.Generator, *, images: int = IMAGES
) -> AuditedCounts:
    """Draw a model's images, map them, and audit every k-th in the order of the mapped labels."""
    both = rng.multinomial(images, (shares[:, None] * errors).ravel()).reshape(errors.shape)
    mapped = both.sum(axis=0)
    places = np.floor((np.arange(AUDITED) + rng.random()) * images / AUDITED)
    met = np.bincount(np.searchsorted(np.cumsum(mapped), places, side="right"), minlength=len(mapped))
    audit = np.array([rng.multivariate_hypergeometric(both[:, label], count) for label, count in enumerate(met)])
    label, shown = (np.repeat(each, audit.ravel()) for each in np.indices(audit.shape).reshape(2, -1))
    labels = (*(f"label {number:02d}" for number in range(len(mapped) - 1)), NONE)
    found = Findings(np.zeros(AUDITED, np.int64), label, np.eye(len(mapped))[shown])
    return AuditedCounts(labels, PARENTS, mapped[None], found)


def from_labels_alone(
    shares: NDArray[np.float64], diversity: ExpectedDiversity, rng: np.random.Generator
) -> tuple[float, float]:
    """Give the interval that 150 labelled images drawn at random give when nothing was mapped."""
    found = rng.multinomial(AUDITED, shares) / AUDITED
    drawn = diversity(rng.multinomial(AUDITED, found, size=DRAWS) / AUDITED)
    plain = float(diversity(found[None])[0])
    value = float(np.clip(2 * plain - drawn.mean(), 1 / SIZE, 1.0))
    return skewed_limits(value, drawn, freedom=AUDITED - 1, confidence=0.95, lowest=1 / SIZE, highest=1.0)


@dataclass(frozen=True, slots=True)
class Result:
    """What many runs of one kernel, world and accuracy gave; arrays are (10,), one value per model."""

    kernel: str
    world: str
    accuracy: float
    truth: NDArray[np.float64]
    naive: NDArray[np.float64]
    bias: NDArray[np.float64]
    covered: NDArray[np.float64]
    width: NDArray[np.float64]
    alone: NDArray[np.float64]
    tau: float
    naive_tau: float
    naive_covered: NDArray[np.float64]


def simulate(kernel: str, world: str, accuracy: float, runs: int) -> Result:
    """Run one kernel, world and accuracy."""
    rng = np.random.default_rng([runs, WORLDS.index(world), round(100 * accuracy), len(kernel)])
    continent, country = KERNELS[kernel]
    diversity = expected_diversity(size=SIZE, continent=continent, country=country, q=1.0, parents=PARENTS.tolist())
    shares, errors = models(), mapping(accuracy, world)
    truth, naive = diversity(shares), diversity(shares @ errors)
    values, widths, alone = (np.zeros((runs, len(shares))) for _ in range(3))
    covered = np.zeros(len(shares))
    naive_covered = np.zeros(len(shares))
    for run in range(runs):
        for model, row in enumerate(shares):
            answer = correct_counts(audited(row, errors, rng), diversity, rng=rng)
            values[run, model], widths[run, model] = answer.value, answer.high - answer.low
            covered[model] += answer.low - 1e-9 <= truth[model] <= answer.high + 1e-9
            low, high = from_labels_alone(row, diversity, rng)
            alone[run, model] = high - low
            naive_covered[model] += naive_holds(row @ errors, truth[model], diversity, rng)
    return Result(
        kernel, world, accuracy, truth, naive, values.mean(axis=0) - truth, covered / runs, widths.mean(axis=0),
        alone.mean(axis=0), float(np.mean([kendalltau(row, truth).statistic for row in values])),
        float(kendalltau(naive, truth).statistic), naive_covered / runs,
    )  # fmt: skip


def naive_holds(
    mapped: NDArray[np.float64], truth: float, diversity: ExpectedDiversity, rng: np.random.Generator
) -> bool:
    """Tell whether the interval of the mapped score over 50 repeats holds the truth."""
    batches = rng.multinomial(SIZE, mapped, size=50) / SIZE
    entropy = -np.where(batches > 0, batches * np.log(np.where(batches > 0, batches, 1.0)), 0.0).sum(axis=1)
    scores = np.exp(entropy) / SIZE
    if diversity.groups:  # two levels: the plug-in value stands for the mean of its batches
        scores = scores - scores.mean() + float(diversity(mapped[None])[0])
    margin = 2.01 * scores.std(ddof=1) / np.sqrt(50)
    return bool(abs(scores.mean() - truth) <= margin)


def cells(runs: int) -> list[tuple[str, str, float, int]]:
    """List what to run."""
    country = [("country", world, accuracy, runs) for world in WORLDS for accuracy in ACCURACIES]
    return [*country, *(("hierarchical", world, 0.85, max(runs // 5, 20)) for world in WORLDS)]


def run_cell(cell: tuple[str, str, float, int]) -> Result:
    """Run one cell, in a process of its own."""
    return simulate(*cell)


def inner(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Leave the two ends of the scale out, the even model and the one that shows nothing."""
    return values[1:-1]


def row_of(result: Result) -> list[str]:
    """Write one line of the table."""
    ratio = inner(result.width / np.maximum(result.alone, 1e-12))
    return [
        result.kernel,
        result.world,
        f"{result.accuracy:.2f}",
        f"{result.covered.mean():.3f}",
        f"{inner(result.covered).min():.3f}-{inner(result.covered).max():.3f}",
        f"{result.covered[[0, -1]].min():.3f}",
        f"{np.abs(result.bias).max():.4f}",
        f"{result.tau:.3f}",
        f"{ratio.mean():.2f}",
        f"{result.naive_covered.mean():.2f}",
        f"{np.abs(result.naive - result.truth).max():.2f}",
        f"{result.naive_tau:.2f}",
    ]


def by_model(results: Sequence[Result]) -> list[list[str]]:
    """Write the table of the ten models for the hardest accuracy of each world."""
    table = [["model", "truth", *(f"{world}: mapped / bias / coverage" for world in WORLDS)]]
    hardest = [next(r for r in results if r.world == world and r.accuracy == ACCURACIES[0]) for world in WORLDS]
    for model, name in enumerate(NAMES):
        told = [f"{r.naive[model]:.3f} / {r.bias[model]:+.4f} / {r.covered[model]:.3f}" for r in hardest]
        table.append([name, f"{hardest[0].truth[model]:.3f}", *told])
    return table


def main() -> int:
    """Run all cells on two processes, and write both tables."""
    full = "--full" in sys.argv
    runs = 1000 if full else 100
    with ProcessPoolExecutor(2) as pool:
        results = list(pool.map(run_cell, cells(runs)))
    head = [
        "kernel", "world", "accuracy", "coverage", "of eight models", "at the ends", "worst bias", "tau",
        "width / labels alone", "mapped: coverage", "worst bias", "tau",
    ]  # fmt: skip
    command = f"python benchmarks/corrected_diversity.py{' --full' if full else ''}"
    title = f"Corrected diversity, 95 % intervals, ten models, {AUDITED} audited images each, {runs:,} runs"
    record("corrected_diversity", title=title, command=command, table=[head, *map(row_of, results)])
    record(
        "corrected_diversity_models",
        title=f"Corrected diversity by model at country accuracy {ACCURACIES[0]}, {runs:,} runs",
        command=command,
        table=by_model(results),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
