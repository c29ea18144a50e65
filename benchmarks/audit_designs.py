"""What a second instrument and whole batches are worth to an audit, in worlds of known truth.

    python benchmarks/audit_designs.py                    # a few runs of each row
    python benchmarks/audit_designs.py --full             # 60 runs of five models for each row
    python benchmarks/audit_designs.py --runs 60 --part instruments --world "150 x 8" --journal answers.jsonl
    python benchmarks/audit_designs.py --runs 0 --journal answers.jsonl --add    # sums up what the journal keeps

Instruments: the second maps the same images as well as the first, or worse, with errors of its own (free), on the same
images as the first in part (tied: a correlation of .5 or .9 between what is hard for both), to the same wrong labels in
part (same labels), or everywhere (a copy). Widths and errors stand beside those of the first instrument alone with 150
audited images. Batches: whole batches of 8, for the kernels of artifacts and countries.
"""

import argparse
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from recording import RESULTS, record
from scipy.special import ndtr, ndtri
from simulated_worlds import (
    ARTIFACTS,
    COUNTRIES,
    NONE,
    OF_COUNTRY,
    WORLDS,
    Images,
    World,
    audits_of,
    draw_images,
    drawn_from,
    labelled,
    matches_of,
    shares_of_models,
)

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample, vendi_corrected
from culturekit.metrics.corrected.expected_diversity import expected_diversity
from culturekit.metrics.diversity.labels import STANDARD_KERNELS

TRIED = {
    "24 x 40": WORLDS["24 x 40"],
    "3 x 400": WORLDS["3 x 400"],
    "1 x 400": WORLDS["1 x 400"],
    "150 x 8": WORLDS["150 x 8"],
    "150 x 8, right in .8": replace(WORLDS["150 x 8"], accuracy=0.8),
    "150 x 8, right in .75": replace(WORLDS["150 x 8"], accuracy=0.75),
    "150 x 8, right in .65": replace(WORLDS["150 x 8"], accuracy=0.65),
    "3 x 400, right in .3": WORLDS["accuracy .3"],
    "noise 0-60 %": WORLDS["noise 0-60 %"],
    "a third mapped worse": WORLDS["a third mapped worse"],
    "accuracy .42-.98": WORLDS["accuracy .42-.98"],
}

SECOND = {
    "free": (0.85, 0.0, 0.0),
    "tied .5": (0.85, 0.5, 0.0),
    "worse, tied .5": (0.7, 0.5, 0.0),
    "tied .9": (0.85, 0.9, 0.0),
    "same labels in .5": (0.85, 0.0, 0.5),
    "same labels in .9": (0.85, 0.0, 0.9),
    "a copy": (0.85, 0.0, 1.0),
    "tied .5, 100 audited": (0.85, 0.5, 0.0),
    "right in .42": (0.42, 0.0, 0.0),
    "right in .98": (0.98, 0.0, 0.0),
}
"""Second instruments: how often right, how far the same images are hard for both, how often an error is copied."""

PEERS, FEW_PROMPTS = ("labels alone", "predict then debias", "AIPW"), 3
"""What others would do, where prompts have enough audited images for a batch of their labels."""

PEOPLE = {
    "who is right": (1, 1.0, 0, 0.0),
    "one, right in .95, gold": (1, 0.95, 10, 0.0),
    "one, right in .95, untested": (1, 0.95, 0, 0.0),
    "one, right in .95, 40 gold": (1, 0.95, 40, 0.0),
    "one, right in .9, 40 gold": (1, 0.9, 40, 0.0),
    "two, right in .9": (2, 0.9, 0, 0.0),
    "two, half of the errors shared": (2, 0.9, 0, 0.5),
    "two, half shared, gold": (2, 0.9, 10, 0.5),
    "three, right in .9": (3, 0.9, 0, 0.0),
}
"""Raters: how many, how often right, gold items of each, in what share of its errors one says what the first says."""

HEAD = ("world", "audit", "models", "refused", "coverage", "worst model", "bias", "width", "of one", "error of one")

PLACES = ("country", "continent", "artifact_id")

Key: TypeAlias = tuple[Any, ...]
Ask: TypeAlias = Callable[[], Sequence[float]]


def second_of(world: World, images: Images, kind: str, rng: np.random.Generator) -> NDArray[np.int64]:
    """Map images by a second instrument, which errs to other countries than the first; artifacts are left out."""
    right, tied, copied = SECOND[kind]
    country, first = np.minimum(images.shown // ARTIFACTS, NONE), images.mapped // ARTIFACTS
    if copied == 1:
        return images.mapped
    continent = world.continent[:-1]
    wrong = np.where(continent[:, None] == continent, 4.0, 1.0) + 4.0 * np.isin(np.arange(COUNTRIES), (10, 11, 12))
    np.fill_diagonal(wrong, 0.0)
    nothing = 0.5 / COUNTRIES + np.isin(np.arange(COUNTRIES), (10, 11, 12)) / 6
    errs = np.vstack([wrong / wrong.sum(axis=1, keepdims=True), nothing])[country]
    missed = first != country
    usual = max(1 - float(missed[country < NONE].mean()), 0.01) if (country < NONE).any() else 0.5
    place = np.where(missed, rng.random(len(country)) * (1 - usual), 1 - usual + rng.random(len(country)) * usual)
    hard = tied * ndtri(np.clip(place, 1e-9, 1 - 1e-9)) + np.sqrt(1 - tied**2) * rng.standard_normal(len(country))
    label = np.where((country == NONE) | (ndtr(hard) < 1 - right), drawn_from(errs, rng), country)
    return np.where(missed & (rng.random(len(label)) < copied), first, label) * ARTIFACTS


def truth_of(images: Images, kernel: str, size: int) -> float:
    """Give the mean diversity of batches over prompts."""
    shares = images.shares
    if kernel == "artifact":
        shares = np.hstack([np.kron(shares[:, :NONE], OF_COUNTRY), shares[:, NONE:]])
    mean = expected_diversity(size=size, continent=0.0, country=1.0, q=1.0, parents=[0] * shares.shape[1])
    return float(mean(shares).mean())


def asked(matches: pl.DataFrame, audits: pl.DataFrame, **how: object) -> tuple[float, float, float]:
    """Ask for the value and its limits; NaN where they are refused."""
    try:
        answer = vendi_corrected(matches, audits, **how)  # type: ignore[arg-type]
    except UsageError as error:
        sys.stderr.write(f"refused: {error.problem}\n")
        return (np.nan,) * 3
    return answer.value, answer.low, answer.high


def drawn_worlds(name: str, *, run: int, seed: int) -> Iterator[tuple[int, Images, Sequence[int]]]:
    """Draw the images of each model, with a seed for what is drawn after."""
    for model, shares in enumerate(shares_of_models(TRIED[name])):
        seeds = [seed, run, model, zlib.crc32(name.encode())]
        yield model, draw_images(TRIED[name], shares, np.random.default_rng(seeds)), seeds


def by_instruments(
    world: World, images: Images, matches: pl.DataFrame, seeds: Sequence[int], kind: str
) -> Sequence[float]:
    """Correct the kernel of countries by one instrument, or with a second."""
    n, second = 100 if "100" in kind else 150, None
    drawn = audit_sample(matches, n=n, rng=np.random.default_rng([*seeds, n]))["image_id"]
    if kind in SECOND:
        mapped = second_of(world, images, kind, np.random.default_rng([*seeds, 1]))
        second = matches_of(world, replace(images, mapped=mapped))
    rng, audits = np.random.default_rng([*seeds, 2]), audits_of(world, images, drawn)
    answer = asked(matches, audits, weights="country", size=world.size, rng=rng, second=second)
    return truth_of(images, "country", world.size), *answer


def instruments(name: str, *, run: int, seed: int) -> Iterator[tuple[Key, Ask]]:
    """Correct the kernel of countries by one instrument, and by two."""
    world = TRIED[name]
    for model, images, seeds in drawn_worlds(name, run=run, seed=seed):
        drawn = world, images, matches_of(world, images), seeds
        for kind in ("one instrument", *SECOND):
            yield (name, kind, seed, run, model), partial(by_instruments, *drawn, kind)
        for kind in PEERS if world.prompts <= FEW_PROMPTS else ():
            sample = audit_sample(drawn[2], n=150, rng=np.random.default_rng([*seeds, 150]))
            audited = sample["image_id"].cast(pl.Int64).to_numpy()
            yield (name, kind, seed, run, model), partial(by_hand, kind, world, images, audited)


def by_hand(kind: str, world: World, images: Images, audited: NDArray[np.int64]) -> Sequence[float]:
    """Correct as others would, with an interval of the jackknife over audited images.

    Labels alone: the diversity of the audited images. Predict then debias: that of all mapped images, and what audited
    labels add to it on the same images. AIPW: shares imputed from P(true | mapped), moved by what they miss of the
    audited images of a prompt.
    """
    shown, mapped = np.minimum(images.shown // ARTIFACTS, NONE), images.mapped // ARTIFACTS
    one, prompt = np.eye(NONE + 1, dtype=np.int64), np.eye(world.prompts, dtype=np.int64)[images.prompt]
    diversity = expected_diversity(size=world.size, continent=0.0, country=1.0, q=1.0, parents=[0] * (NONE + 1))
    everything = prompt.T @ one[mapped]

    def value(some: NDArray[np.int64]) -> float:
        labels, seen = (prompt[some].T @ one[each[some]] for each in (shown, mapped))
        if kind == "AIPW":
            table = one[mapped[some]].T @ one[shown[some]] + 2 * one[shown[some]].mean(axis=0)
            chances = table / table.sum(axis=1, keepdims=True)
            missed = (labels - seen @ chances) / labels.sum(axis=1, keepdims=True)
            shares = np.maximum(everything @ chances / everything.sum(axis=1, keepdims=True) + missed, 0.0)
            return float(diversity(shares / shares.sum(axis=1, keepdims=True)).mean())
        alone = float(diversity.of_images(labels).mean())
        if kind == "labels alone":
            return alone
        return alone + float(diversity.of_images(everything).mean() - diversity.of_images(seen).mean())

    without = np.array([value(np.delete(audited, place)) for place in range(len(audited))])
    error = np.sqrt((len(audited) - 1) * without.var())
    found = value(audited)
    return truth_of(images, "country", world.size), found, found - 1.96 * error, found + 1.96 * error


def by_batches(
    world: World, images: Images, matches: pl.DataFrame, seeds: Sequence[int], kernel: str, count: int
) -> Sequence[float]:
    """Correct a kernel by so many whole batches."""
    draw = partial(np.random.default_rng, [*seeds, count])
    sample = audit_sample(matches, n=count * world.size, rng=draw(), drawing="batches", size=world.size)
    audits = audits_of(world, images, sample["image_id"])
    how = {"weights": STANDARD_KERNELS[kernel], "size": world.size, "rng": draw(), "sample": sample}
    return truth_of(images, kernel, world.size), *asked(matches, audits, **how)


def batches(name: str, *, run: int, seed: int) -> Iterator[tuple[Key, Ask]]:
    """Correct kernels by whole batches."""
    world = TRIED[name]
    for model, images, seeds in drawn_worlds(name, run=run, seed=seed):
        drawn = world, images, matches_of(world, images), seeds
        for kernel in ("artifact", "country"):
            for count in (12, 18, 24, 36, 48):
                yield (name, f"{count} batches, {kernel}", seed, run, model), partial(by_batches, *drawn, kernel, count)


def by_raters(
    world: World, images: Images, matches: pl.DataFrame, seeds: Sequence[int], audit: str, who: str
) -> Sequence[float]:
    """Correct what raters said who err."""
    rng, kernel, how = np.random.default_rng([*seeds, 3]), "country", dict[str, object]()
    if "batches" in audit:
        kernel = audit.rpartition(" ")[2]
        how["sample"] = drawn = audit_sample(matches, n=192, rng=rng, drawing="batches", size=world.size)
    else:
        drawn = audit_sample(matches, n=150, rng=rng)
    if audit == "two instruments":
        mapped = second_of(world, images, "tied .5", np.random.default_rng([*seeds, 1]))
        how["second"] = matches_of(world, replace(images, mapped=mapped))
    audits = said_by(PEOPLE[who], audits_of(world, images, drawn["image_id"]), world, rng)
    how |= {"weights": STANDARD_KERNELS[kernel], "size": world.size, "rng": np.random.default_rng([*seeds, 2])}
    return truth_of(images, kernel, world.size), *asked(matches, audits, **how)


def raters(name: str, *, run: int, seed: int) -> Iterator[tuple[Key, Ask]]:
    """Correct by raters who err: by one instrument, by two, and by whole batches."""
    world = TRIED[name]
    for model, images, seeds in drawn_worlds(name, run=run, seed=seed):
        drawn = world, images, matches_of(world, images), seeds
        for audit in ("one instrument", "two instruments", "24 batches, artifact", "24 batches, country"):
            for who in PEOPLE:
                yield (f"{name}, raters", f"{audit}: {who}", seed, run, model), partial(by_raters, *drawn, audit, who)


def said_by(
    people: tuple[int, float, int, float], truth: pl.DataFrame, world: World, rng: np.random.Generator
) -> pl.DataFrame:
    """Let people answer, who take a country for another: of the same continent three times in four."""
    count, accuracy, gold, shared = people
    known = truth.filter(~pl.col("none_of_these")).sample(gold, with_replacement=True, seed=int(rng.integers(2**31)))
    known = known.with_columns(
        *(pl.col(column).alias(f"known_{column}") for column in PLACES),
        image_id=pl.format("gold {}", pl.int_range(gold)), gold=pl.lit(value=True),
    )  # fmt: skip
    asked_of = pl.concat([truth, known], how="diagonal")
    country = asked_of["country"].fill_null(str(NONE)).cast(pl.Int64).to_numpy()
    tables, errors = list[pl.DataFrame](), list[tuple[NDArray[np.bool_], NDArray[np.int64]]]()
    for rater in range(count):
        near, drawn = rng.random(len(country)) < 0.75, rng.integers(COUNTRIES, size=len(country))
        other = np.where(near & (country < NONE), country // 4 * 4 + drawn % 4, drawn)
        other = np.where(other == country, (other + 1) % COUNTRIES, other)
        wrong = rng.random(len(country)) >= accuracy
        errors.append((wrong, other))
        copied = (rng.random(len(country)) < shared) & (rater > 0)
        wrong, other = np.where(copied, errors[0], errors[-1])
        said = labelled(world, other.astype(np.int64) * ARTIFACTS + drawn % ARTIFACTS)
        errs = pl.Series(wrong.astype(np.bool_))
        places = (pl.when(errs).then(said[column]).otherwise(column).alias(column) for column in PLACES)
        nothing = pl.col("none_of_these") & ~errs
        tables.append(asked_of.with_columns(*places, annotator=pl.lit(f"rater {rater}"), none_of_these=nothing))
    return pl.concat(tables)


def base_of(kind: str) -> str:
    """Name what a way to audit is held against: one instrument, 12 batches, or a rater who is always right."""
    audit, people, _ = kind.partition(": ")
    if people:
        return f"{audit}: who is right"
    return f"12 batches, {kind.rpartition(' ')[2]}" if "batches" in kind else "one instrument"


def rows_of(kept: Mapping[Key, Sequence[float]]) -> Iterator[Sequence[str]]:
    """Sum up each way to audit in each world, beside one instrument or 12 batches on the same images."""
    found: dict[tuple[str, str], dict[Key, Sequence[float]]] = {}
    for (world, kind, *drawn), answer in kept.items():
        found.setdefault((world, kind), {})[tuple(drawn)] = answer
    for (world, kind), answers in found.items():
        base = found[world, base_of(kind)]
        both = [key for key in answers if key in base]
        truth, value, low, high = np.array([answers[key] for key in both]).T
        _, first, first_low, first_high = np.array([base[key] for key in both]).T
        model, ok = np.array([key[-1] for key in both]), np.isfinite(value)
        lost = str(int((~ok).sum()))
        if not ok.any():
            yield world, kind, str(len(ok)), lost, *[""] * 6
            continue
        holds, away = (low <= truth) & (truth <= high), value - truth
        worst = min(holds[ok & (model == one)].mean() for one in np.unique(model[ok]))
        figures = [
            f"{holds[ok].mean():.3f}",
            f"{worst:.3f}",
            f"{away[ok].mean():+.4f}",
            f"{(high - low)[ok].mean():.4f}",
        ]
        ok &= np.isfinite(first)
        beside = ["", ""]
        if ok.any():
            width = (high - low)[ok].mean() / (first_high - first_low)[ok].mean()
            beside = [f"{width:.2f}", f"{np.sqrt((away[ok] ** 2).mean() / ((first - truth)[ok] ** 2).mean()):.2f}"]
        yield world, kind, str(len(model)), lost, *figures, *beside


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What is asked for in worlds, and how it is summed up.

    Attributes:
        name: of the record, with
        title: its title, and
        head: the head of its table, of which the first two columns name a row.
        parts: for each part what a run asks in a world, under keys of which the second is the way to audit, and worlds.
        rows: sums up what is kept.
        runs: of a quick call, and of a full one.
    """

    name: str
    title: str
    head: Sequence[str]
    parts: Mapping[str, tuple[Callable[..., Iterator[tuple[Key, Ask]]], Sequence[str]]]
    rows: Callable[[Mapping[Key, Sequence[float]]], Iterator[Sequence[str]]]
    runs: tuple[int, int]

    def main(self, doc: str | None) -> int:
        """Ask for what is lacking in the worlds that are named, keep each answer, and write the table."""
        parser = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else None)
        parser.add_argument("--full", action="store_true", help=f"{self.runs[1]} runs of each world")
        parser.add_argument("--runs", type=int, help="runs of each world; 0 sums up what the journal keeps")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--add", action="store_true", help="keep the recorded rows of other worlds and audits")
        parser.add_argument("--journal", type=Path, help="keeps each answer; what it holds is not asked again")
        parser.add_argument("--audit", action="append", help="only these ways to audit")
        parser.add_argument("--part", action="append", choices=self.parts)
        parser.add_argument(
            "--world", action="append", choices=sorted({w for _, all_ in self.parts.values() for w in all_})
        )
        typed = parser.parse_args()
        runs = typed.runs if typed.runs is not None else self.runs[typed.full]
        kept: dict[Key, Sequence[float]] = {}
        if typed.journal and typed.journal.is_file():
            kept = {tuple(key): said for key, said in map(json.loads, typed.journal.read_text("utf-8").splitlines())}
        for run, part in product(range(runs), typed.part or self.parts):
            ask, worlds = self.parts[part]
            for world in [each for each in worlds if each in (typed.world or worlds)]:
                for key, answer in ask(world, run=run, seed=typed.seed):
                    if key in kept or (typed.audit and key[1] not in typed.audit):
                        continue
                    kept[key] = [float(number) for number in answer()]
                    if typed.journal:
                        with typed.journal.open("a", encoding="utf-8") as file:
                            file.write(json.dumps([key, kept[key]]) + "\n")
        file = RESULTS / f"{self.name}.json"
        before = json.loads(file.read_text(encoding="utf-8"))["table"][1:] if file.is_file() and typed.add else []
        table = {tuple(row[:2]): list(row) for row in [*before, *self.rows(kept)]}
        command = " ".join([f"python benchmarks/{self.name}.py", *sys.argv[1:]])
        record(self.name, title=self.title, command=command, table=[list(self.head), *table.values()])
        return 0


if __name__ == "__main__":
    few = ("24 x 40", "150 x 8", "150 x 8, right in .65", "3 x 400")
    title = "Audits with a second instrument, and of whole batches: 95 % intervals, five models"
    parts = {
        "instruments": (instruments, tuple(TRIED)),
        "batches": (batches, few),
        "raters": (raters, ("24 x 40", "3 x 400")),
    }
    sys.exit(Benchmark("audit_designs", title, HEAD, parts, rows_of, (2, 60)).main(__doc__))
