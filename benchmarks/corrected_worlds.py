"""Does corrected diversity hold in worlds that nobody tuned it to? Prompts, mappings and models that differ.

    python benchmarks/corrected_worlds.py                       # a few runs of each world
    python benchmarks/corrected_worlds.py --full                # 300 runs of each world, every kernel
    python benchmarks/corrected_worlds.py --runs 40 --kernel country --world "150 x 8" --seed 7
    python benchmarks/corrected_worlds.py --full --runs 60 --journal answers.jsonl   # goes on where it was ended

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
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from recording import record
from scipy.stats import kendalltau

from culturekit.defaults import CONFIDENCE
from culturekit.errors import UsageError
from culturekit.metrics import audit_sample
from culturekit.metrics.corrected.corrected_diversity import CorrectedImages
from culturekit.metrics.corrected.expected_diversity import expected_diversity
from culturekit.metrics.diversity.kernels import STANDARD_KERNELS, Weights
from culturekit.records.schemas import AUDITS

COUNTRIES, CONTINENTS, ARTIFACTS, AUDITED, NONE = 20, 5, 5, 150, 20
"""Artifacts are of a country; the country after the last is a picture of nothing."""

CONTINENT = np.append(np.repeat(np.arange(CONTINENTS), COUNTRIES // CONTINENTS), CONTINENTS)
OF_COUNTRY = 1 / np.arange(1, ARTIFACTS + 1) / (1 / np.arange(1, ARTIFACTS + 1)).sum()
"""How common the artifacts of a country are in its pictures."""

UNMAPPED = 3
"""Runs in which the estimator is asked without mapping, too; kernels with artifacts cost little, and are in all."""

SCATTERED = 1_800
"""Labels of so many prompts are drawn again to see how they scatter."""

Score: TypeAlias = Callable[[NDArray[Any]], NDArray[np.float64]]

MODELS = ("even", "by rank", "half in one", "four of twenty", "mostly one")
FEW = ("even", "two labels", "nine in ten", "one only", "nothing")
NOISE = (0.0, 0.15, 0.3, 0.45, 0.6)


@dataclass(frozen=True, slots=True)
class World:
    """What is drawn.

    Attributes:
        prompts: how many, each with its images.
        images: per prompt; a range where prompts differ in size.
        spread: of the Dirichlet distribution around the model's shares that a prompt's come from; infinite is alike.
        named: share of a prompt's images that show the country which the prompt names.
        accuracy: of the mapping, by country.
        near: errors fall only on neighbours in the list of countries.
        noisy: the five models draw nothing in 0, 15, 30, 45 and 60 % of their images.
        few: models of few labels in place of the usual five.
        outside: half of the countries of each continent are not in the space: nothing is mapped to them.
        worse: in a third of the prompts the mapping errs as many times as often: what no audit of this size sees.
        size: images per batch.
    """

    prompts: int
    images: tuple[int, int]
    spread: float = np.inf
    named: float = 0.0
    accuracy: float = 0.85
    near: bool = False
    noisy: bool = False
    few: bool = False
    outside: bool = False
    worse: float = 1.0
    size: int = 8


WORLDS = {
    "1 x 400": World(1, (400, 400)),
    "1 x 400, accuracy .6": World(1, (400, 400), accuracy=0.6),
    "3 x 400": World(3, (400, 400), 20.0),
    "24 x 39": World(24, (39, 39), 5.0),
    "24 x 40": World(24, (40, 40), 5.0),
    "24 x 50, countries named": World(24, (50, 50), 20.0, named=0.8),
    "150 x 40, alike": World(150, (40, 40)),
    "150 x 40": World(150, (40, 40), 5.0),
    "150 x 8": World(150, (8, 8), 5.0),
    "300 x 4, batches of 4": World(300, (4, 4), 5.0, size=4),
    "12 x 20-400": World(12, (20, 400), 5.0),
    "errors to neighbours": World(3, (400, 400), near=True, accuracy=0.75),
    "accuracy .6": World(3, (400, 400), 20.0, accuracy=0.6),
    "noise 0-60 %": World(3, (400, 400), noisy=True),
    "few labels": World(3, (400, 400), few=True),
    "few labels, 1 x 20,000": World(1, (20_000, 20_000), few=True),
    "half outside the space": World(3, (400, 400), 20.0, outside=True),
    "1 x 20,000": World(1, (20_000, 20_000)),
    "1 x 100,000": World(1, (100_000, 100_000)),
    "a third mapped worse": World(24, (40, 40), 5.0, worse=2.0),
}


def shares_of_models(world: World) -> NDArray[np.float64]:
    """Give the shares of the countries in each model, float64 (5, 21)."""
    even, one = np.full(COUNTRIES, 1 / COUNTRIES), np.eye(COUNTRIES)
    rank = 1 / np.arange(1, COUNTRIES + 1)
    rows = {
        "even": even,
        "by rank": rank / rank.sum(),
        "half in one": 0.5 * one[3] + 0.5 * even,
        "four of twenty": 0.9 * one[[0, 1, 6, 11]].mean(axis=0) + 0.1 * even,
        "mostly one": 0.85 * one[5] + 0.15 * even,
        "two labels": one[[2, 9]].mean(axis=0),
        "nine in ten": 0.9 * one[2] + 0.1 * one[9],
        "one only": one[2],
        "nothing": np.zeros(COUNTRIES),
    }
    shown = np.array([rows[name] for name in (FEW if world.few else MODELS)])
    if world.noisy:
        shown = shown * (1 - np.array(NOISE)[:, None])
    return np.hstack([shown, np.maximum(1 - shown.sum(axis=1, keepdims=True), 0.0).round(12)])


def errors_of(accuracy: float, *, near: bool, outside: bool) -> NDArray[np.float64]:
    """Give how the countries are mapped, float64 (21, 20); nothing is mapped to anything, half of it to three."""
    countries = np.arange(COUNTRIES)
    known = (countries % 4 < 2) | (not outside)
    if near:
        wrong = np.isin((countries[None] - countries[:, None]) % COUNTRIES, (1, 2)).astype(np.float64)
    else:
        wrong = np.where(CONTINENT[:-1, None] == CONTINENT[None, :-1], 4.0, 1.0) + 4.0 * (countries < 3)
        np.fill_diagonal(wrong, 0.0)
    wrong *= known
    rows = accuracy * np.eye(COUNTRIES) * known + (1 - accuracy) * wrong / wrong.sum(axis=1, keepdims=True)
    rows = np.vstack([rows, (0.5 / COUNTRIES + np.where(countries < 3, 0.5 / 3, 0.0)) * known])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class Images:
    """A model's images: the prompt of each, what it shows and what it is mapped to; artifacts are numbered."""

    shares: NDArray[np.float64]
    prompt: NDArray[np.int64]
    shown: NDArray[np.int64]
    mapped: NDArray[np.int64]


def draw_images(world: World, shares: NDArray[np.float64], rng: np.random.Generator) -> Images:
    """Draw the shares of prompts, images, what they show, and their mapping."""
    chosen = np.tile(shares, (world.prompts, 1))
    if np.isfinite(world.spread):
        drawn = rng.gamma(np.maximum(world.spread * chosen, 1e-300)) * (chosen > 0)
        chosen = drawn / drawn.sum(axis=1, keepdims=True)
    if world.named:
        chosen = (1 - world.named) * chosen + world.named * np.eye(COUNTRIES + 1)[np.arange(world.prompts) % COUNTRIES]
    prompt = np.repeat(np.arange(world.prompts), rng.integers(*world.images, endpoint=True, size=world.prompts))
    country = drawn_from(chosen[prompt], rng)
    usual, worse = (
        errors_of(1 - times * (1 - world.accuracy), near=world.near, outside=world.outside)
        for times in (1.0, world.worse)
    )
    seen = drawn_from(np.where((prompt % 3 == 0)[:, None], worse[country], usual[country]), rng)
    artifact = drawn_from(np.tile(OF_COUNTRY, (len(prompt), 1)), rng)
    guess = drawn_from(np.tile(OF_COUNTRY, (len(prompt), 1)), rng)
    kept = (seen == country) & (rng.random(len(prompt)) < 0.8)
    shown = np.where(country == NONE, NONE * ARTIFACTS, country * ARTIFACTS + artifact)
    return Images(chosen, prompt, shown, seen * ARTIFACTS + np.where(kept, artifact, guess))


def drawn_from(chances: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a number from each row of chances."""
    sums = np.cumsum(chances, axis=-1)
    passed = (sums < rng.random(len(sums))[:, None] * sums[:, -1:]).sum(axis=-1)
    return np.asarray(np.minimum(passed, sums.shape[-1] - 1))


def matches_of(images: Images) -> pl.DataFrame:
    """Write what is read of matches."""
    return labelled(images.mapped).with_columns(
        model=pl.lit("model"),
        concept=pl.lit("cuisine"),
        prompt_id=pl.format("p{}", pl.Series(images.prompt)),
        repeat=pl.lit(0),
        slot=pl.int_range(pl.len()),
        rank=pl.lit(1),
        artifact=pl.col("artifact_id"),
    )


def audits_of(images: Images, ids: pl.Series) -> pl.DataFrame:
    """Write what a person who is always right says of some images."""
    said = labelled(images.shown).filter(pl.col("image_id").is_in(ids.implode()))
    return said.with_columns(
        pool=pl.lit("people"), annotator=pl.lit("a"), none_of_these=pl.col("country").is_null()
    ).select(list(AUDITS.columns))


def labelled(artifacts: NDArray[np.int64]) -> pl.DataFrame:
    """Name images and labels."""
    country = np.minimum(artifacts // ARTIFACTS, NONE)
    there = pl.Series(country < NONE)
    return pl.DataFrame(
        {
            "image_id": pl.Series(np.arange(len(artifacts))).cast(pl.String).str.zfill(7),
            "country": pl.Series(country).cast(pl.String).str.zfill(2),
            "continent": pl.Series(CONTINENT[country]).cast(pl.String),
            "artifact_id": pl.Series(artifacts).cast(pl.String).str.zfill(3),
        }
    ).with_columns(pl.when(there).then(pl.col(name)) for name in ("country", "continent", "artifact_id"))


@dataclass(frozen=True, slots=True)
class Truth:
    """The diversity of a model's prompts, and the width of the interval that labels alone would give."""

    value: float
    alone: float


def truth_of(world: World, shares: NDArray[np.float64], weights: Weights, rng: np.random.Generator) -> Truth:
    """Give the mean of the diversity over prompts, and the width of labels alone; NaN where these say nothing."""
    if weights[2] > 0:
        of_shares, of_labels = pairs_scores(weights, world.size)
        shares = np.hstack([np.kron(shares[:, :NONE], OF_COUNTRY), shares[:, NONE:]])
    else:
        of_shares, of_labels = batches_scores(weights, world.size)
    truth, each = float(of_shares(shares).mean()), AUDITED // world.prompts
    if each < world.size:
        return Truth(truth, np.nan)
    times = SCATTERED // world.prompts
    drawn = np.stack([rng.multinomial(each, row, size=times) for row in shares], axis=1)
    again = of_labels(drawn.reshape(-1, shares.shape[1])).reshape(drawn.shape[:2]).mean(axis=1)
    width = float(np.diff(np.quantile(again, (0.025, 0.975)))[0])
    one_more = [of_shares((1 - 3 / AUDITED) * shares + 3 / AUDITED * new).mean() for new in np.eye(shares.shape[1])]
    return Truth(truth, float(np.hypot(width, max(one_more) - truth)))


def batches_scores(weights: Weights, size: int) -> tuple[Score, Score]:
    """Prepare the mean diversity of batches as a function of the shares of countries, and of the labels of images."""
    continent, country, _ = weights
    parents = CONTINENT.tolist() if country > 0 else list(range(CONTINENTS + 1))
    outer, inner = (continent, country) if country > 0 else (0.0, 1.0)
    diversity = expected_diversity(size=size, continent=outer, country=inner, q=1.0, parents=parents)
    into = np.eye(COUNTRIES + 1, dtype=np.int64) if country > 0 else np.eye(CONTINENTS + 1, dtype=np.int64)[CONTINENT]
    return lambda shares: diversity(shares @ into), lambda labels: diversity.of_images(labels @ into)


def pairs_scores(weights: Weights, size: int) -> tuple[Score, Score]:
    """Prepare the order-2 diversity of average pairs by the shares of artifacts, nothing last, and by labels."""
    artifact = np.arange(NONE * ARTIFACTS + 1)
    levels = CONTINENT[artifact // ARTIFACTS], artifact // ARTIFACTS, artifact
    kernel = np.square(sum(weight * (level[:, None] == level) for weight, level in zip(weights, levels, strict=True)))

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
    value: float
    low: float
    high: float
    unmapped: float
    seconds: float


def run_world(name: str, kernels: Sequence[str], *, run: int, seed: int) -> Iterator[Answer]:
    """Run a world once: each kernel is asked about the same images and people."""
    world, which = WORLDS[name], zlib.crc32(name.encode())
    for model, shares in enumerate(shares_of_models(world)):
        rng = np.random.default_rng([seed, run, which, model])
        images = draw_images(world, shares, rng)
        matches = matches_of(images)
        audits = audits_of(images, audit_sample(matches, n=AUDITED, rng=rng)["image_id"])
        rngs = [partial(named_rng, [seed, run, which, model, *again]) for again in ([], [1])]
        people = CorrectedImages(matches, audits, rng=rngs[0])
        unmapped = CorrectedImages(without_mapping(matches), audits, rng=rngs[1])
        for kernel in kernels:
            truth = truth_of(world, images.shares, STANDARD_KERNELS[kernel], rngs[0](kernel))
            bare = run < UNMAPPED or STANDARD_KERNELS[kernel][2] > 0
            start = time.process_time()
            limits = asked(people, kernel, world.size)
            seconds = time.process_time() - start
            _, low, high = asked(unmapped, kernel, world.size) if bare else (np.nan,) * 3
            yield Answer(name, kernel, seed, run, model, truth.value, truth.alone, *limits, high - low, seconds)


def named_rng(seeds: Sequence[int], name: str) -> np.random.Generator:
    """Give the draws of a part of a run."""
    return np.random.default_rng([*seeds, zlib.crc32(name.encode())])


def without_mapping(matches: pl.DataFrame) -> pl.DataFrame:
    """Map all images to one label, which says nothing of what they show."""
    first = matches.row(0, named=True)
    return matches.with_columns(
        pl.lit(first[name]).alias(name) for name in ("country", "continent", "artifact_id", "artifact")
    )


def asked(people: CorrectedImages, kernel: str, size: int) -> tuple[float, float, float]:
    """Ask for the value and its limits; NaN where they are refused."""
    weights = STANDARD_KERNELS[kernel]
    try:
        answer = people.vendi(weights, q=2.0 if weights[2] > 0 else 1.0, size=size, confidence=CONFIDENCE)
    except UsageError as error:
        refusals(error.problem)
        return (np.nan,) * 3
    return answer.value, answer.low, answer.high


@cache
def refusals(problem: str) -> None:
    """Say each reason once."""
    sys.stderr.write(f"refused: {problem}\n")


HEAD = (
    "world", "kernel", "seed", "runs", "coverage", "lowest of a model", "worst bias", "tau", "width / labels alone",
    "widest of a model", "width / without mapping", "widest of one", "refused", "seconds each",
)  # fmt: skip

NUMBERS = ("truth", "alone", "value", "low", "high", "unmapped", "seconds")


def row_of(name: str, kernel: str, answers: Sequence[Answer]) -> list[str]:
    """Write one line of the table."""
    by_model = [sorted((one for one in answers if one.model == model), key=lambda one: one.run) for model in range(5)]
    told = np.array([[attrgetter(*NUMBERS)(one) for one in each] for each in by_model])
    truth, alone, value, low, high, unmapped, seconds = np.moveaxis(told, 2, 0)
    answered = np.isfinite(value)
    seeds = ", ".join(str(seed) for seed in sorted({one.seed for one in answers}))
    start, took = [name, kernel, seeds, str(value.shape[1])], f"{seconds.mean():.2f}"
    if not answered.any():
        return [*start, *"-" * (len(HEAD) - 6), "1.00", took]
    held = (low - 1e-9 <= truth) & (truth <= high + 1e-9)
    some = [(model, there) for model, there in enumerate(answered) if there.any()]
    coverage = [held[model, there].mean() for model, there in some]
    bias = np.array([(value - truth)[model, there].mean() for model, there in some])
    taus = [kendalltau(v[a], t[a]).statistic for v, t, a in zip(value.T, truth.T, answered.T, strict=True)]
    return [
        *start, f"{held[answered].mean():.3f}", f"{np.min(coverage):.3f}", f"{bias[np.abs(bias).argmax()]:+.4f}",
        f"{np.nanmean(taus):.3f}", *ratios(high - low, alone), *ratios(high - low, unmapped),
        f"{1 - answered.mean():.2f}", took,
    ]  # fmt: skip


def ratios(width: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[str, str]:
    """Write the mean over models of the ratio of two widths, float64 (n_models, n_runs), and the largest."""
    both = np.isfinite(width) & np.isfinite(other)
    found = [width[model, there].mean() / other[model, there].mean() for model, there in enumerate(both) if there.any()]
    return (f"{np.mean(found):.2f}", f"{np.max(found):.2f}") if found else ("-", "-")


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
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernel", action="append", choices=sorted(STANDARD_KERNELS))
    parser.add_argument("--world", action="append", choices=sorted(WORLDS))
    parser.add_argument("--journal", type=Path, help="keeps each answer; what it holds is not asked again")
    asked_for = parser.parse_args()
    runs = asked_for.runs if asked_for.runs is not None else 300 if asked_for.full else 3
    answers = answers_kept(asked_for.journal)
    done = {(one.world, one.kernel, one.seed, one.run) for one in answers}
    for run in range(runs):
        for name in asked_for.world or WORLDS:
            usual = STANDARD_KERNELS if asked_for.full or name == "3 x 400" else ["country"]
            kernels = [each for each in asked_for.kernel or usual if (name, each, asked_for.seed, run) not in done]
            told = list(run_world(name, kernels, run=run, seed=asked_for.seed)) if kernels else []
            answers += told
            if asked_for.journal:
                with asked_for.journal.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(asdict(one)) + "\n" for one in told)
    rows = []
    for kernel in STANDARD_KERNELS:
        told = [one for one in answers if one.kernel == kernel]
        each = {name: [one for one in told if one.world == name] for name in WORLDS}
        rows += [row_of(name, kernel, those) for name, those in each.items() if those]
        runs_of_all = {place: number for number, place in enumerate({(one.world, one.run): None for one in told})}
        together = [replace(one, run=runs_of_all[one.world, one.run]) for one in told]
        rows += [row_of("all of these", kernel, together)] if told else []
    part = asked_for.world or asked_for.kernel or not (asked_for.full or asked_for.journal)
    record(
        f"corrected_worlds{'_part' if part else ''}",
        title=f"Corrected diversity in many worlds, 95 % intervals, five models, {AUDITED} audited images each",
        command=" ".join(["python benchmarks/corrected_worlds.py", *sys.argv[1:]]),
        table=[list(HEAD), *rows],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
