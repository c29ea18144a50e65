"""How often intervals hold the truth, and how often tests see a difference where there is none, by simulation."""

import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.typing import NDArray
from recording import record
from scipy import stats

from culturekit.metrics import Interval, bootstrap, compare, compare_models, correlate, group_gap
from culturekit.metrics.statistics.correlations import Correlation

RUNS = 1000
RESAMPLES = 999
ROWS = 5
"""Rows of a cluster."""
RHO = 0.5

Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Values]


def normal(rng: np.random.Generator, clusters: int) -> Values:
    """Draw clusters of normal values, half of whose variance lies between clusters; the truth is 0."""
    return rng.normal(size=(clusters, 1)) + rng.normal(size=(clusters, ROWS))


def skewed(rng: np.random.Generator, clusters: int) -> Values:
    """Draw clusters of log-normal values, skewness 0.95 between clusters; the median is 1."""
    return np.exp(0.3 * rng.normal(size=(clusters, 1)) + 0.1 * rng.normal(size=(clusters, ROWS)))


def shares(rng: np.random.Generator, clusters: int) -> Values:
    """Draw clusters of yes and no; the truth is 0.25."""
    return (rng.random((clusters, ROWS)) < rng.beta(2, 6, (clusters, 1))).astype(np.float64)


def related(rng: np.random.Generator, clusters: int) -> Values:
    """Draw clusters of pairs whose correlation is RHO between clusters and within them, (clusters, ROWS, 2)."""
    pairs = rng.normal(size=(clusters, 1, 2)) + rng.normal(size=(clusters, ROWS, 2))
    pairs[..., 1] = RHO * pairs[..., 0] + math.sqrt(1 - RHO**2) * pairs[..., 1]
    return pairs


def mean(rows: Values) -> float:
    """Average."""
    return float(rows.mean())


def median(rows: Values) -> float:
    """Find the middle value."""
    return float(np.median(rows))


MEANS: Sequence[tuple[str, Draw, Callable[[Values], float], float]] = (
    ("mean, normal", normal, mean, 0.0),
    ("mean, skewed", skewed, mean, math.exp((0.3**2 + 0.1**2) / 2)),
    ("mean of shares", shares, mean, 0.25),
    ("median, normal", normal, median, 0.0),
    ("median, skewed", skewed, median, 1.0),
)
TRUTHS: dict[Correlation, float] = {
    "pearson": RHO,
    "spearman": 6 / math.pi * math.asin(RHO / 2),
    "kendall": 2 / math.pi * math.asin(RHO),
}


def held(interval: Interval, truth: float) -> bool:
    """Tell whether an interval holds the truth."""
    return interval.low <= truth <= interval.high


def plain_scipy(values: Values, statistic: Callable[[Values], float], rng: np.random.Generator) -> tuple[float, float]:
    """Let scipy alone make the interval, over clusters and without widening."""
    answer = stats.bootstrap(
        (np.arange(len(values)),),
        lambda drawn: statistic(values[drawn].reshape(-1, *values.shape[2:])),
        n_resamples=RESAMPLES,
        vectorized=False,
        rng=rng,
    ).confidence_interval
    return answer.low, answer.high


def coverage_of_mean(number: int, clusters: int, runs: int) -> list[list[str]]:
    """Count how often the bootstrap holds a mean or a median."""
    name, draw, statistic, truth = MEANS[number]
    ours = theirs = 0
    for run in range(runs):
        rng = np.random.default_rng([1, number, clusters, run])
        values = draw(rng, clusters)
        keys = np.repeat(np.arange(clusters), ROWS)
        answer = bootstrap(values.ravel(), statistic=statistic, clusters=keys, resamples=RESAMPLES, rng=rng)
        ours += held(answer, truth)
        low, high = plain_scipy(values, statistic, rng)
        theirs += low <= truth <= high
    return [["95 % interval holds", f"bootstrap: {name}", str(clusters), share(ours, runs), share(theirs, runs)]]


def coverage_of_correlation(method: Correlation, clusters: int, runs: int) -> list[list[str]]:
    """Count how often the interval of a correlation holds the true one."""
    ours = 0
    for run in range(runs):
        rng = np.random.default_rng([2, len(method), clusters, run])
        pairs = related(rng, clusters).reshape(-1, 2)
        keys = np.repeat(np.arange(clusters), ROWS)
        answer = correlate(*pairs.T, method=method, clusters=keys, resamples=RESAMPLES, rng=rng)
        ours += held(answer, TRUTHS[method])
    return [["95 % interval holds", f"correlate: {method}", str(clusters), share(ours, runs), ""]]


def comparisons(clusters: int, runs: int) -> list[list[str]]:
    """Compare sides that do not differ: how often is p at most 0.05, and does the interval hold zero."""
    designs: dict[str, dict[str, object]] = {
        "paired": {"target": "population"},
        "these prompts": {"target": "these"},
        "unpaired, unequal scatter": {"paired": False},
    }
    rows = []
    for number, (name, options) in enumerate(designs.items()):
        false = ours = theirs = 0
        for run in range(runs):
            rng = np.random.default_rng([3, number, clusters, run])
            prompt = 0 if "unpaired" in name else rng.normal(size=(clusters, 1))
            # What differs by chance between prompts is part of the question only where other prompts are meant.
            own = 0 if "these" in name else 0.5
            a, b = (prompt + own * rng.normal(size=(clusters, 1)) + rng.normal(size=(clusters, ROWS)) for _ in "ab")
            keys = np.repeat(np.arange(clusters), ROWS)
            other = keys
            if "unpaired" in name:
                b = 3 * b[: max(4, clusters // 2)]
                other = keys[: b.size]
            answer = compare(a.ravel(), b.ravel(), clusters=(keys, other), resamples=RESAMPLES, rng=rng, **options)  # type: ignore[arg-type]
            false += answer.p <= 0.05
            ours += held(answer.interval, 0.0)
            theirs += "unpaired" in name and permuted_labels_p(a.mean(axis=1), b.mean(axis=1), rng) <= 0.05
        peer = share(theirs, runs) if "unpaired" in name else ""
        rows.append(
            ["p at most 0.05 without a difference", f"compare: {name}", str(clusters), share(false, runs), peer]
        )
        rows.append(["95 % interval holds", f"compare: {name}", str(clusters), share(ours, runs), ""])
    return rows


def permuted_labels_p(first: Values, second: Values, rng: np.random.Generator) -> float:
    """Let scipy permute which side a cluster belongs to, and compare Welch's t."""

    def welch(one: Values, other: Values, axis: int) -> Values:
        errors = one.var(axis=axis, ddof=1) / one.shape[axis] + other.var(axis=axis, ddof=1) / other.shape[axis]
        return np.asarray((one.mean(axis=axis) - other.mean(axis=axis)) / np.sqrt(errors))

    answer = stats.permutation_test((first, second), welch, vectorized=True, n_resamples=RESAMPLES, rng=rng)
    return float(answer.pvalue)


def families(runs: int) -> list[list[str]]:
    """Compare five models that do not differ: how often is any of the ten corrected p values at most 0.05."""
    import polars as pl

    false = plain = 0
    for run in range(runs):
        rng = np.random.default_rng([4, run])
        values = rng.normal(size=(24, 1)) + rng.normal(size=(24, 5))
        table = pl.DataFrame(
            {
                "model": [f"m{number % 5}" for number in range(120)],
                "prompt_id": [f"p{number // 5}" for number in range(120)],
                "value": values.ravel(),
            }
        )
        rows = compare_models(table, resamples=RESAMPLES, rng=rng)
        false += bool((rows["p_corrected"] <= 0.05).any())
        plain += bool((rows["p"] <= 0.05).any())
    name = "compare_models: Holm"
    return [["any of 10 p at most 0.05 without a difference", name, "24", share(false, runs), share(plain, runs)]]


def gaps(runs: int) -> list[list[str]]:
    """Compare groups of 5 and 11 countries with unlike scatter whose means are equal."""
    countries = np.repeat([f"c{number:02}" for number in range(16)], 12)
    groups = np.where(countries < "c05", "GN", "GS")
    prompts = np.tile(np.arange(12), 16)
    false = ours = 0
    for run in range(runs):
        rng = np.random.default_rng([5, run])
        scatter = np.repeat(rng.uniform(0.5, 2, 16), 12)
        values = rng.gamma(2, 1, 192) * scatter - 2 * scatter
        answer = group_gap(values, groups=groups, first="GN", second="GS", countries=countries, prompts=prompts)
        false += answer.p <= 0.05
        ours += held(answer.interval, 0.0)
    name = "group_gap: 5 and 11 countries"
    return [
        ["p at most 0.05 without a difference", name, "192", share(false, runs), ""],
        ["95 % interval holds", name, "192", share(ours, runs), ""],
    ]


def share(count: int, runs: int) -> str:
    """Write a share in percent."""
    return f"{100 * count / runs:.1f} %"


def cells(runs: int) -> list[tuple[Callable[..., list[list[str]]], tuple[object, ...]]]:
    """List the simulations, those of 100 clusters where 30 are the hardest."""
    return [
        *((coverage_of_mean, (number, 30, runs)) for number in range(len(MEANS))),
        (coverage_of_mean, (1, 100, runs)),
        *((coverage_of_correlation, (method, 30, runs)) for method in TRUTHS),
        *((comparisons, (clusters, runs)) for clusters in (8, 30, 100)),
        (families, (runs,)),
        (gaps, (runs,)),
    ]


def main() -> None:
    """Run all simulations, as many at a time as there are cores; the first argument may be a number of runs."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    started = time.perf_counter()
    with ProcessPoolExecutor() as pool:
        parts = [pool.submit(simulate, *arguments) for simulate, arguments in cells(runs)]
        rows = [row for part in parts for row in part.result()]
    record(
        "statistics_coverage",
        title=f"Coverage and false positives, {runs:,} runs each, {ROWS} values per cluster",
        command="python benchmarks/statistics_coverage.py",
        table=[
            ["what", "of", "clusters", "share", "beside it: scipy's BCa as it is; labels permuted; uncorrected"],
            *rows,
        ],
    )
    sys.stdout.write(f"{time.perf_counter() - started:.0f} s\n")


if __name__ == "__main__":
    main()
