"""How often the intervals of realism, inclusion and tones hold the truth, on populations of known truth.

    python benchmarks/realism_coverage.py

Prompts of a model differ (each has its own centre, chance or histogram), and images differ around their prompt.
Where no formula gives the truth it is the mean of a sample so large that its error does not count.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from recording import record

from culturekit.metrics import (
    Interval,
    clustered_share,
    in_manifold,
    kernel_distance_interval,
    neighbourhoods,
    tone_spread,
    tone_spread_interval,
)
from culturekit.metrics.realism.clip_scores import consistency_interval
from culturekit.metrics.realism.manifolds import coverage_interval, mean_interval, share_interval
from culturekit.metrics.statistics.intervals import Target

RUNS = 1000
DIM, REALS = 8, 400
DRIFT = 0.6
"""How far the centres of prompts lie apart, in standard deviations of an image."""

Held = dict[str, list[Interval]]
Row = list[str]


def main() -> None:
    """Simulate everything."""
    table = [*precision_and_density(), *recall_and_coverage(), *kernel_distances(), *texts(), *answers(), *tones()]
    record(
        "realism_coverage",
        title=f"How often nominal 95 % intervals of realism, inclusion and tones hold the truth, {RUNS:,} runs each",
        command="python benchmarks/realism_coverage.py",
        table=[["score", "sample", "interval", "holds the truth"], *table],
    )


def share_held(intervals: list[Interval], truth: float) -> str:
    """Say how many intervals hold the truth."""
    held = sum(answer.low <= truth <= answer.high for answer in intervals)
    return f"{100 * held / len(intervals):.1f} %"


def images_of(rng: np.random.Generator, centres: np.ndarray, each: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw images around the centres of their prompts, and the prompt of each."""
    prompts = np.repeat(np.arange(len(centres)), each)
    return centres[prompts] + rng.normal(size=(len(prompts), DIM)), prompts


def precision_and_density() -> Iterator[Row]:
    """Hold real images fixed; draw prompts and their images, or images of fixed prompts."""
    real = np.random.default_rng(0).normal(size=(REALS, DIM))
    centres = DRIFT * np.random.default_rng(1).normal(size=(8, DIM))
    many = DRIFT * np.random.default_rng(2).normal(size=(20_000, DIM)) + np.random.default_rng(3).normal(
        size=(20_000, DIM)
    )
    these, _ = images_of(np.random.default_rng(4), centres, 3_000)
    cases: tuple[tuple[str, int, int, Target, np.ndarray], ...] = (
        ("24 prompts × 10 images", 24, 10, "population", many),
        ("these 8 prompts × 30 images", 8, 30, "these", these),
    )
    for name, prompts, each, target, sample in cases:
        around = neighbourhoods(real, sample, k=5).around_fake
        found: Held = {"precision": [], "density": []}
        for run in range(RUNS):
            rng = np.random.default_rng([5, run])
            drawn = DRIFT * rng.normal(size=(prompts, DIM)) if target == "population" else centres
            images, of = images_of(rng, drawn, each)
            count = neighbourhoods(real, images, k=5).around_fake
            found["precision"].append(share_interval(count > 0, clusters=of, target=target))
            found["density"].append(mean_interval(count / 5, clusters=of, target=target))
        yield [
            "precision",
            name,
            "Wilson, effective number",
            share_held(found["precision"], float(np.mean(around > 0))),
        ]
        yield ["density", name, "t", share_held(found["density"], float(np.mean(around)) / 5)]


def recall_and_coverage() -> Iterator[Row]:
    """Draw real images for recall, with generated ones fixed; the other way round for coverage."""
    fake = 0.8 * np.random.default_rng(6).normal(size=(300, DIM))
    truth = in_manifold(fake, np.random.default_rng(7).normal(size=(50_000, DIM)), k=5).mean()
    recalls = [
        share_interval(in_manifold(fake, np.random.default_rng([8, run]).normal(size=(REALS, DIM)), k=5))
        for run in range(RUNS)
    ]
    yield ["recall", f"{REALS} real images", "Wilson", share_held(recalls, float(truth))]
    real = np.random.default_rng(0).normal(size=(REALS, DIM))
    answers = []
    for run in range(RUNS):
        rng = np.random.default_rng([9, run])
        images, prompts = images_of(rng, DRIFT * rng.normal(size=(24, DIM)), 10)
        found = neighbourhoods(real, images, k=5, groups=prompts)
        answers.append(coverage_interval(found, strata=None, groups=24))
    expected = float(np.mean([answer.value for answer in answers]))
    yield ["coverage", "24 prompts × 10 images", "jackknife", share_held(answers, expected)]


def kernel_distances() -> Iterator[Row]:
    """Draw both sides; a model that is off, and one that is right but for its prompts."""
    for name, shift in (("off by half a deviation", 0.5), ("right on average", 0.0)):
        answers = []
        for run in range(RUNS):
            rng = np.random.default_rng([10, run])
            images, prompts = images_of(rng, shift + DRIFT * rng.normal(size=(24, DIM)), 10)
            spread = np.sqrt(1 + DRIFT**2)
            real = spread * rng.normal(size=(REALS, DIM))
            answers.append(kernel_distance_interval(images, real, a_clusters=prompts))
        expected = float(np.mean([answer.value for answer in answers]))
        yield ["kernel distance", f"24 prompts × 10 images, {name}", "jackknife", share_held(answers, expected)]


def texts() -> Iterator[Row]:
    """Draw cosines of prompts and images: their mean, the share above a threshold, the 10th percentile of objects."""
    centre, between, within, threshold = 0.24, 0.02, 0.03, 0.21
    sample = np.random.default_rng(11).normal(centre, np.hypot(between, within), 4_000_000)
    truth = {"CLIPScore": centre, "object presence": float((sample >= threshold).mean())}
    found: Held = {name: [] for name in truth}
    for run in range(RUNS):
        rng = np.random.default_rng([12, run])
        prompts = np.repeat(np.arange(24), 10)
        cosines = rng.normal(centre, between, 24)[prompts] + rng.normal(0, within, 240)
        found["CLIPScore"].append(mean_interval(cosines, clusters=prompts))
        found["object presence"].append(share_interval(cosines >= threshold, clusters=prompts))
    for name, how in (("CLIPScore", "t over prompts"), ("object presence", "Wilson, effective number")):
        yield [name, "24 prompts × 10 images", how, share_held(found[name], truth[name])]
    objects = [name for name in "abc" for _ in range(120)]
    means, deviations = np.repeat([0.20, 0.25, 0.22], 120), np.repeat([0.05, 0.03, 0.02], 120)
    tenth = float(np.mean([0.20 - 0.05 * 1.2815515655, 0.25 - 0.03 * 1.2815515655, 0.22 - 0.02 * 1.2815515655]))
    answers = [
        consistency_interval(np.random.default_rng([13, run]).normal(means, deviations), objects=objects)
        for run in range(RUNS)
    ]
    yield ["object consistency", "3 objects × 120 images", "Woodruff", share_held(answers, tenth)]


def answers() -> Iterator[Row]:
    """Draw images and annotators with tastes of their own."""
    normal = np.random.default_rng(14).normal(size=(3, 2_000_000))
    for images, annotators in ((100, 30), (100, 8)):
        truth = float(np.mean(logistic(0.4 + 0.8 * normal[0] + 0.5 * normal[1])))
        found = []
        for run in range(RUNS):
            rng = np.random.default_rng([15, run])
            taste = 0.5 * rng.normal(size=annotators)
            look = 0.8 * rng.normal(size=images)
            who = np.concatenate([rng.choice(annotators, 6, replace=False) for _ in range(images)])
            what = np.repeat(np.arange(images), 6)
            yes = rng.random(len(who)) < logistic(0.4 + look[what] + taste[who])
            found.append(clustered_share(yes.astype(float), {"image": what, "annotator": who}))
        sample = f"{images} images, each seen by 6 of {annotators} annotators"
        yield ["in-region rate, and other shares of answers", sample, "Wilson, two-way", share_held(found, truth)]


def logistic(value: np.ndarray) -> np.ndarray:
    """Turn a number into a chance."""
    return np.asarray(1 / (1 + np.exp(-value)))


def tones() -> Iterator[Row]:
    """Draw the tones of pictures of prompts whose histograms differ."""
    shares = np.array([0.02, 0.05, 0.1, 0.2, 0.25, 0.18, 0.1, 0.06, 0.03, 0.01])
    both = tone_spread(shares)
    kinds: tuple[tuple[Literal["std", "mad"], float], ...] = (("std", both.std), ("mad", both.mad))
    for kind, truth in kinds:
        found = []
        for run in range(RUNS):
            rng = np.random.default_rng([16, run])
            own = rng.dirichlet(20 * shares, 40)
            seen = np.concatenate([rng.multinomial(1, row, 10) for row in own]).astype(float)
            found.append(tone_spread_interval(seen, np.repeat(np.arange(40), 10), kind=kind))
        yield [f"tone {kind.upper()}", "40 prompts × 10 images", "jackknife", share_held(found, truth)]


if __name__ == "__main__":
    main()
