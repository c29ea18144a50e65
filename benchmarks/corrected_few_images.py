"""Does corrected diversity hold where prompts have few images? Five models, prompts that differ, many audits.

    python benchmarks/corrected_few_images.py                  # 40 runs of each setting
    python benchmarks/corrected_few_images.py --full           # 200 runs
    python benchmarks/corrected_few_images.py --minutes 9      # as many as there is time for

Each prompt has shares of its own, drawn around the model's. Its images are drawn from these, mapped with a known
error, and 150 of all images are audited. Two truths are asked for: the mean diversity of the batches that were made,
and that of all batches the same prompts could make.
"""

import sys
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from corrected_diversity import AUDITED, COUNTRIES, KERNELS, PARENTS, SIZE, mapping
from numpy.typing import NDArray
from recording import record
from scipy.stats import kendalltau

from culturekit.metrics.corrected.audited_counts import AuditedCounts
from culturekit.metrics.corrected.corrected_diversity import DRAWS
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity, expected_diversity
from culturekit.metrics.corrected.image_batches import ImageBatches
from culturekit.metrics.corrected.imputed_batches import correct_batches

RUNS = 5
"""Runs of a setting that are done in one go."""

NAMES = ("even", "half in one", "one mostly", "by rank", "nothing")


@dataclass(frozen=True, slots=True)
class Setting:
    """What is run: a kernel, how often the mapping is right, the prompts, their images, and how alike prompts are.

    `spread` is the sum of the parameters of the Dirichlet distribution that the shares of prompts are drawn from:
    infinite where all have the model's. `own` is the part of a prompt that one label has, drawn for it.
    """

    accuracy: float
    prompts: int
    images: int
    spread: float
    own: float = 0.0
    kernel: str = "country"

    @property
    def differ(self) -> str:
        """Say how prompts differ."""
        if self.own:
            return f"{self.own:g} of each in one label"
        return "not at all" if np.isinf(self.spread) else f"Dirichlet, {self.spread:g}"


def models() -> NDArray[np.float64]:
    """Give the shares of the models, float64 (5, 21); the last label is a picture of nothing."""
    even = np.full(COUNTRIES, 1 / COUNTRIES)
    first = np.eye(COUNTRIES)[0]
    rank = 1 / np.arange(1, COUNTRIES + 1)
    rows = [even, 0.5 * first + 0.5 * even, 0.85 * first + 0.15 * even, rank / rank.sum()]
    shown = np.array([np.append(row, 0.0) for row in rows])
    return np.vstack([shown, np.append(np.zeros(COUNTRIES), 1.0)])


@dataclass(frozen=True, slots=True)
class World:
    """One model's images: what they show, what they are mapped to, and what an audit of some found."""

    shares: NDArray[np.float64]
    shown: NDArray[np.int64]
    counts: AuditedCounts
    batches: ImageBatches


def world(setting: Setting, shares: NDArray[np.float64], rng: np.random.Generator) -> World:
    """Draw prompts, images, their mapping and an audit of every k-th, in order as `audit_sample` has it."""
    chosen = np.tile(shares, (setting.prompts, 1))
    if np.isfinite(setting.spread):
        drawn = rng.gamma(np.maximum(setting.spread * chosen, 1e-300)) * (chosen > 0)
        chosen = drawn / drawn.sum(axis=1, keepdims=True)
    if setting.own:
        chosen = (1 - setting.own) * chosen + setting.own * np.eye(len(shares))[drawn_labels(chosen, rng)]
    errors = mapping(setting.accuracy, "no drift")
    shown = drawn_labels(chosen[:, None, :].repeat(setting.images, axis=1), rng)
    mapped = drawn_labels(errors[shown], rng)
    asked = np.arange(mapped.size) // setting.images
    by = (mapped.ravel(), asked) if setting.prompts <= AUDITED else (asked, mapped.ravel())
    order = np.lexsort((rng.random(mapped.size), *by))
    places = np.floor((np.arange(AUDITED) + rng.random()) * mapped.size / AUDITED).astype(np.int64)
    looked = order[places]
    audit = np.zeros(errors.shape)
    np.add.at(audit, (mapped.ravel()[looked], shown.ravel()[looked]), 1.0)
    by_prompt = np.array([np.bincount(row, minlength=len(errors)) for row in mapped])
    names = tuple(f"label {number:02d}" for number in range(len(errors)))
    counts = AuditedCounts(names, PARENTS, by_prompt, audit, mapped.size, AUDITED)
    parts = setting.images // SIZE
    prompts = np.repeat(np.arange(setting.prompts), parts)
    weights = (*KERNELS[setting.kernel], 0.0)
    return World(chosen, shown, counts, ImageBatches(mapped.reshape(-1, SIZE), prompts, PARENTS, weights, 1.0))


def drawn_labels(chances: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a label from each row of chances."""
    sums = np.cumsum(chances, axis=-1)
    passed = (sums < rng.random(sums.shape[:-1])[..., None] * sums[..., -1:]).sum(axis=-1)
    return np.asarray(np.minimum(passed, sums.shape[-1] - 1))


@dataclass(frozen=True, slots=True)
class Result:
    """What many runs gave, (runs, models): values, limits, and the truth of the batches made and of the prompts."""

    setting: Setting
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    made: NDArray[np.float64]
    could: NDArray[np.float64]
    seconds: float

    def covered(self, truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give how often the limits hold a truth, by model."""
        return np.asarray(((self.low - 1e-9 <= truth) & (truth <= self.high + 1e-9)).mean(axis=0))

    def tau(self) -> float:
        """Give the mean of Kendall's tau between the values of the models and what their batches show."""
        return float(np.mean([kendalltau(*pair).statistic for pair in zip(self.value, self.made, strict=True)]))


def diversity_of(kernel: str) -> ExpectedDiversity:
    """Give the mean diversity of batches as a function of shares."""
    continent, country = KERNELS[kernel]
    return expected_diversity(size=SIZE, continent=continent, country=country, q=1.0, parents=PARENTS.tolist())


def run(task: tuple[Setting, int]) -> Result:
    """Run one setting a few times; the number says which few."""
    setting, number = task
    rng = np.random.default_rng([number, zlib.crc32(repr(setting).encode())])
    diversity = diversity_of(setting.kernel)
    answers = np.zeros((5, RUNS, len(NAMES)))
    start = time.process_time()
    for again in range(RUNS):
        for model, shares in enumerate(models()):
            one = world(setting, shares, rng)
            found = correct_batches(one.counts, one.batches, rng=rng, draws=DRAWS)
            made = one.batches.over_prompts(one.batches.scores(one.shown.reshape(-1, SIZE)))
            could = diversity(one.shares).mean()
            answers[:, again, model] = found.value, found.low, found.high, made, could
    return Result(
        setting, answers[0], answers[1], answers[2], answers[3], answers[4],
        (time.process_time() - start) / RUNS / len(NAMES),
    )  # fmt: skip


def together(parts: Sequence[Result]) -> Result:
    """Put the runs of one setting together."""
    return Result(
        parts[0].setting,
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        np.concatenate([part.made for part in parts]),
        np.concatenate([part.could for part in parts]),
        float(np.mean([part.seconds for part in parts])),
    )


def row_of(result: Result) -> list[str]:
    """Write one line of the table."""
    setting = result.setting
    made, could = result.covered(result.made), result.covered(result.could)
    bias = (result.value - result.made).mean(axis=0)
    return [
        setting.kernel,
        f"{setting.accuracy:.2f}",
        f"{setting.prompts} x {setting.images}",
        setting.differ,
        str(len(result.value)),
        f"{made.mean():.3f}",
        f"{made.min():.3f}",
        f"{could.mean():.3f}",
        f"{could.min():.3f}",
        f"{bias[np.abs(bias).argmax()]:+.4f}",
        f"{result.tau():.3f}",
        f"{(result.high - result.low)[:, :-1].mean():.3f}",
        f"{result.seconds:.2f}",
    ]


def settings() -> list[Setting]:
    """List what is run."""
    found = [Setting(accuracy, 60, 8, 20.0) for accuracy in (0.75, 0.85, 0.92)]
    found += [Setting(0.75, 60, 8, np.inf), Setting(0.85, 60, 8, 5.0), Setting(0.85, 60, 8, np.inf, 0.5)]
    found += [Setting(0.85, 60, images, 20.0) for images in (16, 24)]
    return [*found, Setting(0.85, 60, 8, 20.0, kernel="hierarchical"), Setting(0.85, 300, 8, 20.0)]


def all_runs() -> list[Result]:
    """Run all settings on two processes, a few runs of each in turns, until they are done or the time is up."""
    goes = (200 if "--full" in sys.argv else 40) // RUNS
    minutes = float(sys.argv[sys.argv.index("--minutes") + 1]) if "--minutes" in sys.argv else np.inf
    goes = 200 // RUNS if np.isfinite(minutes) else goes
    end, found = time.monotonic() + 60 * minutes, []
    with ProcessPoolExecutor(2) as pool:
        for number in range(goes):
            if time.monotonic() < end:
                found += [list(pool.map(run, [(setting, number) for setting in settings()]))]
    return [together(parts) for parts in zip(*found, strict=True)]


def main() -> int:
    """Run all settings, and write the table."""
    results = all_runs()
    head = [
        "kernel", "accuracy", "prompts x images", "prompts differ", "runs", "coverage, batches made",
        "lowest of a model", "coverage, prompts", "lowest of a model", "worst bias", "tau", "width", "CPU seconds each",
    ]  # fmt: skip
    record(
        "corrected_few_images",
        title=f"Corrected diversity of few images, 95 % intervals, five models, {AUDITED} audited each",
        command=" ".join(["python benchmarks/corrected_few_images.py", *sys.argv[1:]]),
        table=[head, *map(row_of, results)],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
