"""Does corrected diversity hold in worlds that nobody tuned it to? Prompts, mappings and models that differ.

    python benchmarks/corrected_worlds.py                       # a few runs of each world
    python benchmarks/corrected_worlds.py --full                # 300 runs of each world, every kernel
    python benchmarks/corrected_worlds.py --runs 40 --kernel country --world "150 x 8" --seed 7
    python benchmarks/corrected_worlds.py --full --runs 60 --journal answers.jsonl   # goes on where it was ended
    python benchmarks/corrected_worlds.py --runs 0 --journal answers.jsonl --add    # adds them to those recorded

Every run draws five models' images with known labels, maps them with a known error, draws an audit with
`audit_sample`, and asks for the interval as `vendi_corrected` does; kernels of a level share what is imputed. The
truth is the mean over prompts of the diversity of batches drawn from the prompt's shares. Labels alone: how much the
mean over prompts of the diversity of their labels, batches or pairs without replacement, scatters: what an interval
that holds is to cover where nothing but labels is known. In worlds of few labels, also what a share of 3 in n for a
label that the model never shows would add, which is seldom seen. Prompts with fewer labels than a batch have no
diversity: there labels alone say nothing. Without mapping: the estimator is asked again, in the first runs, with all
images mapped to one label, so that the labels of all prompts count and nothing else.
"""

import argparse
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from corrected_sums import HEAD, SUMS, added, recorded, rows_of, seeds_of, sums_of
from numpy.typing import NDArray
from recording import record
from simulated_worlds import (
    ARTIFACTS,
    NONE,
    OF_COUNTRY,
    WORLDS,
    Images,
    World,
    audits_of,
    draw_images,
    matches_of,
    shares_of_models,
)

from culturekit.core.choices import CONFIDENCE
from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample
from culturekit.metrics.corrected.corrected_diversity import CorrectedImages
from culturekit.metrics.corrected.expected_diversity import expected_diversity
from culturekit.metrics.diversity.labels import STANDARD_KERNELS, Weights

AUDITED = 150

SCATTERED = 1_800
"""Labels of so many prompts are drawn again to see how they scatter."""

Score: TypeAlias = Callable[[NDArray[Any]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Truth:
    """The diversity of a model's prompts, what labels alone would give, and the width of an interval by them."""

    value: float
    by_labels: float
    alone: float


def truth_of(world: World, images: Images, weights: Weights, rng: np.random.Generator) -> Truth:
    """Give the mean of the diversity over prompts, and the width of labels alone; NaN where these say nothing.

    A prompt has as many of the labels as its part of all images, which is how images are drawn to be looked at.
    """
    shares, sizes = images.shares, np.bincount(images.prompt)
    if weights[2] > 0:
        of_shares, of_labels = pairs_scores(weights, world)
        shares = np.hstack([np.kron(shares[:, :NONE], OF_COUNTRY), shares[:, NONE:]])
    else:
        of_shares, of_labels = batches_scores(weights, world)
    truth, each = float(of_shares(shares).mean()), AUDITED * sizes // sizes.sum()
    if each.min() < world.size:
        return Truth(truth, np.nan, np.nan)
    drawn = rng.multinomial(each, shares, size=(SCATTERED // world.prompts, world.prompts))
    again = of_labels(drawn.reshape(-1, shares.shape[1])).reshape(drawn.shape[:2]).mean(axis=1)
    width = float(np.diff(np.quantile(again, (0.025, 0.975)))[0])
    one_more = [of_shares((1 - 3 / AUDITED) * shares + 3 / AUDITED * new).mean() for new in np.eye(shares.shape[1])]
    return Truth(truth, float(again[0]), float(np.hypot(width, max(one_more) - truth)))


def batches_scores(weights: Weights, world: World) -> tuple[Score, Score]:
    """Prepare the mean diversity of batches as a function of the shares of countries, and of the labels of images."""
    (continent, country, _), of_country = weights, world.continent
    parents = of_country if country > 0 else np.arange(of_country.max() + 1)
    outer, inner = (continent, country) if country > 0 else (0.0, 1.0)
    diversity = expected_diversity(size=world.size, continent=outer, country=inner, q=world.q, parents=parents.tolist())
    into = np.eye(len(of_country), dtype=np.int64) if country > 0 else np.eye(len(parents), dtype=np.int64)[of_country]
    return lambda shares: diversity(shares @ into), lambda labels: diversity.of_images(labels @ into)


def pairs_scores(weights: Weights, world: World) -> tuple[Score, Score]:
    """Prepare the order-2 diversity of average pairs by the shares of artifacts, nothing last, and by labels."""
    artifact = np.arange(NONE * ARTIFACTS + 1)
    levels = world.continent[artifact // ARTIFACTS], artifact // ARTIFACTS, artifact
    kernel = np.square(sum(weight * (level[:, None] == level) for weight, level in zip(weights, levels, strict=True)))
    size = world.size

    def of_labels(labels: NDArray[np.int64]) -> NDArray[np.float64]:
        images = labels.sum(axis=1)
        alike = (((labels @ kernel) * labels).sum(axis=1) - images) / (images * (images - 1))
        return np.asarray(1 / (1 + (size - 1) * alike))

    return lambda shares: 1 / (1 + (size - 1) * ((shares @ kernel) * shares).sum(axis=1)), of_labels


@dataclass(frozen=True, slots=True)
class Answer:
    """What one model's audit gave in one run; the limits are NaN where it was refused."""

    world: str
    kernel: str
    seed: int
    run: int
    model: int
    truth: float
    alone: float
    by_labels: float
    value: float
    low: float
    high: float
    unmapped: float
    unmapped_width: float
    seconds: float


def run_world(name: str, kernels: Sequence[str], *, run: int, seed: int, unmapped: int = 1) -> Iterator[Answer]:
    """Run a world once: each kernel is asked about the same images and people.

    The first `unmapped` runs are asked without mapping, too; kernels with artifacts cost little, and all are.
    """
    world, which = WORLDS[name], zlib.crc32(name.encode())
    for model, shares in enumerate(shares_of_models(world)):
        rng = np.random.default_rng([seed, run, which, model])
        images = draw_images(world, shares, rng)
        matches = matches_of(world, images)
        audits = audits_of(world, images, audit_sample(matches, n=AUDITED, rng=rng)["image_id"])
        rngs = [partial(named_rng, [seed, run, which, model, *again]) for again in ([], [1])]
        people = CorrectedImages(matches, audits, rng=rngs[0])
        alone = CorrectedImages(without_mapping(matches), audits, rng=rngs[1])
        for kernel in kernels:
            truth = truth_of(world, images, STANDARD_KERNELS[kernel], rngs[0](f"truth of {kernel}"))
            bare = run < unmapped or STANDARD_KERNELS[kernel][2] > 0
            start = time.process_time()
            limits = asked(people, kernel, world)
            seconds = time.process_time() - start
            value, low, high = asked(alone, kernel, world) if bare else (np.nan,) * 3
            known = truth.value, truth.alone, truth.by_labels, *limits, value, high - low
            yield Answer(name, kernel, seed, run, model, *known, seconds)


def named_rng(seeds: Sequence[int], name: str) -> np.random.Generator:
    """Give the draws of a part of a run."""
    return np.random.default_rng([*seeds, zlib.crc32(name.encode())])


def without_mapping(matches: pl.DataFrame) -> pl.DataFrame:
    """Map all images to one label, which says nothing of what they show."""
    first = matches.row(0, named=True)
    return matches.with_columns(
        pl.lit(first[name]).alias(name) for name in ("country", "continent", "artifact_id", "artifact")
    )


def asked(people: CorrectedImages, kernel: str, world: World) -> tuple[float, float, float]:
    """Ask for the value and its limits; NaN where they are refused."""
    weights = STANDARD_KERNELS[kernel]
    try:
        answer = people.vendi(weights, q=2.0 if weights[2] > 0 else world.q, size=world.size, confidence=CONFIDENCE)
    except UsageError as error:
        refusals(error.problem)
        return (np.nan,) * 3
    return answer.value, answer.low, answer.high


@cache
def refusals(problem: str) -> None:
    """Say each reason once."""
    sys.stderr.write(f"refused: {problem}\n")


def answers_kept(journal: Path | None) -> list[Answer]:
    """Read what an earlier call was told before it ended."""
    if journal is None or not journal.exists():
        return []
    return [Answer(**json.loads(line)) for line in journal.read_text(encoding="utf-8").splitlines()]


def answers_asked_for(
    parser: argparse.ArgumentParser, kernel: str, worlds: Iterable[str], *, runs: int
) -> tuple[list[Answer], argparse.Namespace]:
    """Give the answers about a kernel that a journal keeps, else those of so many runs of each world."""
    parser.add_argument("--runs", type=int, default=runs, help="runs of each world, where no answers are kept")
    parser.add_argument("--journal", type=Path, help="answers that corrected_worlds.py kept")
    typed = parser.parse_args()
    kept = [one for one in answers_kept(typed.journal) if one.kernel == kernel]
    asked = ((run, name) for run in range(typed.runs) for name in worlds)
    return kept or [one for run, name in asked for one in run_world(name, [kernel], run=run, seed=1)], typed


def main() -> int:
    """Run the worlds that are asked for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="300 runs of each world and kernel")
    parser.add_argument("--runs", type=int, help="runs of each world")
    used = seeds_of(recorded())
    parser.add_argument("--seed", type=int, default=max(used, default=0) + 1, help="usually one that is not recorded")
    parser.add_argument("--kernel", action="append", choices=sorted(STANDARD_KERNELS))
    parser.add_argument("--world", action="append", choices=sorted(WORLDS))
    parser.add_argument("--unmapped", type=int, default=1, help="runs that are asked without mapping, too")
    parser.add_argument("--journal", type=Path, help="keeps each answer; what it holds is not asked again")
    parser.add_argument("--add", action="store_true", help=f"add these runs to those of {SUMS.name}")
    asked_for = parser.parse_args()
    if asked_for.add and asked_for.seed in used:
        parser.error(f"runs of the seed {asked_for.seed} are among those of {SUMS}: expected another")
    runs = asked_for.runs if asked_for.runs is not None else 300 if asked_for.full else 3
    answers = answers_kept(asked_for.journal)
    done = {(one.world, one.kernel, one.seed, one.run) for one in answers}
    how = {"seed": asked_for.seed, "unmapped": asked_for.unmapped}
    for run in range(runs):
        for name in asked_for.world or WORLDS:
            usual = STANDARD_KERNELS if asked_for.full or name == "3 x 400" else ["country"]
            kernels = [each for each in asked_for.kernel or usual if (name, each, asked_for.seed, run) not in done]
            told = list(run_world(name, kernels, run=run, **how)) if kernels else []
            answers += told
            if asked_for.journal:
                with asked_for.journal.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(asdict(one)) + "\n" for one in told)
    sums = sums_of(pl.DataFrame([asdict(one) for one in answers], infer_schema_length=None))
    record(
        "corrected_worlds" if asked_for.add else "corrected_worlds_part",
        title=f"Corrected diversity in many worlds, 95 % intervals, five models, {AUDITED} audited images each",
        command=" ".join(["python benchmarks/corrected_worlds.py", *sys.argv[1:]]),
        table=[list(HEAD), *rows_of(added(sums) if asked_for.add else sums)],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
