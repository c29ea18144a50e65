"""How often intervals of diversity hold the truth, on simulated models whose truth is known."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from recording import record

from culturekit.metrics import (
    STANDARD_KERNELS,
    Interval,
    interval,
    vendi,
    vendi_batches,
    vendi_jackknife,
    vendi_rarefied,
    vendi_table,
)

RUNS = 1000
SIZE, REPEATS, PROMPTS = 8, 50, (3, 8, 24)
ARTIFACTS, COUNTRIES, CONTINENTS = 120, 30, 6
SPREAD = 0.3
"""How unlike each other prompts are: the shape of the gamma weights of their artifacts; less is more unlike."""

Values = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class World:
    """A model to sample from: the country and the popularity of each artifact, and how good its images are."""

    labels: Codes
    popularity: Values
    quality: Values

    def prompts(self, rng: np.random.Generator, count: int) -> Values:
        """Draw prompts: the shares of the artifacts in the images of each."""
        weights = self.popularity * rng.gamma(SPREAD, size=(count, ARTIFACTS))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def scores(self, rng: np.random.Generator, shares: Values, repeats: int) -> dict[str, Values]:
        """Draw repeats of prompts, of SIZE images each, and score them: by metric, (n_prompts, repeats)."""
        edges = np.cumsum(shares, axis=1)
        edges /= edges[:, -1:]
        drawn = rng.random((len(shares), repeats * SIZE))
        artifact = np.stack([np.searchsorted(edge, row) for edge, row in zip(edges, drawn, strict=True)])
        noise = rng.beta(2, 5, artifact.shape)
        quality = (0.2 + 0.15 * (self.quality[artifact] + noise) / 2).reshape(len(shares), repeats, SIZE).mean(axis=2)
        table = vendi_batches(self.labels[artifact.ravel()], weights=list(STANDARD_KERNELS.values()))
        found = {f"VS@8, {name}": row.reshape(quality.shape) for name, row in zip(STANDARD_KERNELS, table, strict=True)}
        return {**found, "qVS, uniform": found["VS@8, uniform"] * quality, "quality": quality}


def world() -> World:
    """Make the model: popular artifacts are few, and in few countries."""
    rng = np.random.default_rng(1)
    country = np.minimum(rng.zipf(1.4, ARTIFACTS) - 1, COUNTRIES - 1)
    labels = np.stack([rng.integers(0, CONTINENTS, COUNTRIES)[country], country, np.arange(ARTIFACTS)], axis=1)
    return World(labels, 1 / np.arange(1, ARTIFACTS + 1), rng.random(ARTIFACTS))


def held(answer: Interval, truth: float) -> bool:
    """Tell whether an interval holds the truth."""
    return answer.low <= truth <= answer.high


def percent(count: float, runs: int) -> str:
    """Write a share."""
    return f"{100 * count / runs:.1f} %"


def these_prompts(model: World, runs: int) -> Iterator[list[str]]:
    """Hold prompts fixed, and draw their repeats anew in each run."""
    shares = model.prompts(np.random.default_rng(2), max(PROMPTS))
    exact = {
        name: values.mean(axis=1) for name, values in model.scores(np.random.default_rng(3), shares, 40_000).items()
    }
    drawn = [model.scores(np.random.default_rng([4, run]), shares, REPEATS) for run in range(runs)]
    for name, means in exact.items():
        for count in PROMPTS:
            prompts, repeats = np.repeat(np.arange(count), REPEATS), np.tile(np.arange(REPEATS), count)
            truth = float(means[:count].mean())
            answers = [interval(run[name][:count].ravel(), prompts=prompts, repeats=repeats) for run in drawn]
            holding = sum(held(answer, truth) for answer in answers)
            yield ["these prompts", name, f"{count} × {REPEATS} repeats", "t over repeats", percent(holding, runs)]


def other_prompts(model: World, runs: int) -> Iterator[list[str]]:
    """Draw prompts anew in each run: the truth is the mean over all prompts there could be."""
    sample = model.scores(np.random.default_rng(5), model.prompts(np.random.default_rng(6), 400_000), 1)
    repeats = 10
    drawn = []
    for run in range(runs):
        rng = np.random.default_rng([7, run])
        drawn.append(model.scores(rng, model.prompts(rng, max(PROMPTS)), repeats))
    for name, values in sample.items():
        truth = float(values.mean())
        for count in PROMPTS:
            holding = dict.fromkeys(("t over prompts", "t over repeats (wrong)", "bootstrap of prompts (wrong)"), 0)
            prompts, numbers = np.repeat(np.arange(count), repeats), np.tile(np.arange(repeats), count)
            for run, scores in enumerate(drawn):
                found = scores[name][:count]
                if count >= 20:
                    answer = interval(found.ravel(), prompts=prompts, repeats=numbers, target="population")
                    holding["t over prompts"] += held(answer, truth)
                wrong = interval(found.ravel(), prompts=prompts, repeats=numbers)
                holding["t over repeats (wrong)"] += held(wrong, truth)
                picks = np.random.default_rng([8, run]).integers(0, count, (400, count))
                low, high = np.quantile(found.mean(axis=1)[picks].mean(axis=1), (0.025, 0.975))
                holding["bootstrap of prompts (wrong)"] += low <= truth <= high
            if count < 20:
                del holding["t over prompts"]
            for how, number in holding.items():
                yield ["all prompts", name, f"{count} × {repeats} repeats", how, percent(number, runs)]


def whole_collections(runs: int) -> Iterator[list[str]]:
    """Draw collections without prompts, from few and from many artifacts."""
    for artifacts, items in ((30, 400), (3000, 400), (3000, 4000)):
        shares = 1 / np.arange(1, artifacts + 1)
        shares /= shares.sum()
        drawn = [np.random.default_rng([9, run]).choice(artifacts, items, p=shares) for run in range(runs)]
        labels = [np.stack([np.zeros(items, np.int64)] * 2 + [artifact], axis=1) for artifact in drawn]
        limit = float(np.exp(-(shares * np.log(shares)).sum()))
        of_size = float(np.mean([vendi(table) for table in labels]))
        where = f"{items} images of {artifacts} artifacts"
        rarefied = rarefied_truth(shares, 8)
        ways: dict[str, tuple[str, float, Callable[[np.ndarray, np.random.Generator], Interval]]] = {
            "VS@8, artifact": ("rarefaction, t over batches", rarefied, lambda table, rng: vendi_rarefied(
                table, size=8, weights=(0, 0, 1), rng=rng)),
            "VS@N, artifact": ("percentile bootstrap of images (wrong)", of_size, percentile_bootstrap),
            "VS, artifact": ("jackknife (approximate)", limit, lambda table, rng: vendi_jackknife(
                table, weights=(0, 0, 1), rng=rng)),
        }  # fmt: skip
        for name, (how, truth, method) in ways.items():
            holding = sum(
                held(method(table, np.random.default_rng([10, run])), truth) for run, table in enumerate(labels)
            )
            yield ["all images", name, where, how, percent(holding, runs)]


def rarefied_truth(shares: Values, size: int) -> float:
    """Average VS over very many batches."""
    artifact = np.random.default_rng(11).choice(len(shares), 400_000 * size, p=shares)
    return float(vendi_batches(np.stack([artifact] * 3, axis=1), size=size, weights=(0, 0, 1)).mean() * size)


def percentile_bootstrap(table: Codes, rng: np.random.Generator) -> Interval:
    """Draw images again with replacement, and take percentiles of their scores: what not to do."""
    scores = []
    for _ in range(200):
        counts = np.bincount(table[rng.integers(0, len(table), len(table)), 2])
        part = counts[counts > 0] / len(table)
        scores.append(float(np.exp(-(part * np.log(part)).sum())))
    low, high = np.quantile(scores, (0.025, 0.975))
    return Interval(vendi(table), float(low), float(high), len(table), "population")


def whole_worlds(model: World, runs: int) -> Iterator[list[str]]:
    """Draw collections of one prompt, and estimate the limit of the kernels over several levels."""
    shares = model.prompts(np.random.default_rng(12), 1)[0]
    huge = np.repeat(model.labels, np.round(shares * 10**9).astype(np.int64) // 1000, axis=0)
    for name in ("hierarchical", "uniform"):
        weights = STANDARD_KERNELS[name]
        truth = float(vendi_table(huge, weights=weights, q=1)["value"][0])
        holding = 0
        for run in range(runs):
            rng = np.random.default_rng([13, run])
            table = model.labels[rng.choice(ARTIFACTS, 400, p=shares)]
            holding += held(vendi_jackknife(table, weights=weights, groups=50, rng=rng), truth)
        where = f"400 images of {ARTIFACTS} artifacts"
        yield ["all images", f"VS, {name}", where, "jackknife (approximate)", percent(holding, runs)]


def main() -> None:
    """Run all simulations; the first argument may be another number of runs."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    started = time.perf_counter()
    model = world()
    rows = [*these_prompts(model, runs), *other_prompts(model, runs)]
    rows += [*whole_collections(runs), *whole_worlds(model, runs)]
    record(
        "interval_coverage",
        title=f"How often nominal 95 % intervals of diversity hold the truth, {runs:,} runs each",
        command="python benchmarks/interval_coverage.py",
        table=[["about", "score", "sample", "interval", "holds the truth"], *rows],
    )
    sys.stdout.write(f"{time.perf_counter() - started:.0f} s\n")


if __name__ == "__main__":
    main()
